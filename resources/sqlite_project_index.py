"""What is known of projects' files for search, in an SQLite file of its own with FTS5.

Each project has a full-text table of its own: bm25 weighs words by how rare they are in a table,
and what one project holds must neither move nor betray the order of another's hits. The file can
be made again from files and analyses, so a damaged one is set aside.

Source: specification W8.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from reprise.context.search_words import query_terms, snippet
from reprise.model.search import (
    HITS_MAX,
    IndexedFile,
    IndexRow,
    Passage,
    SearchAnswer,
    SearchHit,
    index_revision,
)
from resources.sqlite import CACHE_APPLICATION_ID, SqliteFile, SqliteSchema, transaction

BUSY_SECONDS = 15.0
"""Taking a large document in holds the file for about a second; others wait."""

_SCHEMA = SqliteSchema(
    component="project index",
    application_id=CACHE_APPLICATION_ID,
    rebuildable=True,
    migrations=(
        (
            """
            CREATE TABLE indexed_project (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                project_id TEXT NOT NULL UNIQUE
            ) STRICT
            """,
            """
            CREATE TABLE indexed_file (
                id INTEGER PRIMARY KEY,
                project_id TEXT NOT NULL,
                name TEXT NOT NULL,
                content_digest TEXT NOT NULL,
                digest TEXT NOT NULL,
                passage_count INTEGER NOT NULL,
                summary TEXT NOT NULL,
                note TEXT NOT NULL,
                UNIQUE (project_id, name)
            ) STRICT
            """,
            """
            CREATE TABLE passage (
                id INTEGER PRIMARY KEY,
                file_id INTEGER NOT NULL REFERENCES indexed_file (id) ON DELETE CASCADE,
                at INTEGER NOT NULL,
                start_line INTEGER,
                end_line INTEGER,
                start_seconds REAL,
                end_seconds REAL,
                text TEXT NOT NULL
            ) STRICT
            """,
            "CREATE INDEX passage_by_file ON passage (file_id, at)",
        ),
    ),
)

# The text stands in `passage`; FTS5 reads it there and keeps the words alone.
_WORDS = """
    CREATE VIRTUAL TABLE IF NOT EXISTS words_{0} USING fts5 (
        text, content = 'passage', content_rowid = 'id', columnsize = 1,
        tokenize = 'unicode61 remove_diacritics 2'
    )
"""
_ROW_COLUMNS = "name, content_digest, digest, passage_count, summary, note"
_PLACE_COLUMNS = "start_line, end_line, start_seconds, end_seconds"
_SEARCH = f"""
    SELECT f.name, f.content_digest, p.text,
        {", ".join("p." + name for name in _PLACE_COLUMNS.split(", "))}
    FROM words_{{0}} JOIN passage p ON p.id = words_{{0}}.rowid JOIN indexed_file f
        ON f.id = p.file_id
    WHERE words_{{0}} MATCH ?
    ORDER BY bm25(words_{{0}}), f.name, p.at LIMIT ?
"""

_Result = TypeVar("_Result")


class SqliteProjectIndex:
    """A `ProjectIndex` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.

    A path that cannot be used is told by the first call, since most of the engine does without.
    """

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._path = path
        self._busy_seconds = busy_seconds

    @cached_property
    def _file(self) -> SqliteFile:
        # As the registry beside it, it is taken on any file system: what it may lose there can be
        # made again.
        return SqliteFile(
            self._path, _SCHEMA, busy_seconds=self._busy_seconds, kind_of=lambda _path: None
        )

    def put(self, project_id: str, file: IndexedFile) -> None:
        """Take a file in; see `ProjectIndex`."""
        digest = file.digest

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                number = _made(connection, project_id)
                _forget(connection, project_id, number, file.name)
                _insert(connection, project_id, number, file)

        nothing: list[tuple[str, str]] = []
        known = self._read(lambda c: _digests(c, project_id), absent=nothing)
        if (file.name, digest) not in known:
            self._file.run(work)

    def remove(self, project_id: str, name: str) -> bool:
        """Forget a file; see `ProjectIndex`."""

        def work(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                number = _number(connection, project_id)
                return number is not None and _forget(connection, project_id, number, name)

        return self._file.run_if_present(work, absent=False)

    def remove_project(self, project_id: str) -> None:
        """Forget a project; see `ProjectIndex`."""

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                number = _number(connection, project_id)
                if number is not None:
                    connection.execute(f"DROP TABLE words_{number}")
                    key = (project_id,)
                    connection.execute("DELETE FROM indexed_file WHERE project_id = ?", key)
                    connection.execute("DELETE FROM indexed_project WHERE project_id = ?", key)

        self._file.run_if_present(work, absent=None)

    def file(self, project_id: str, name: str) -> IndexedFile | None:
        """Return what is known of a file; see `ProjectIndex`."""

        def work(connection: sqlite3.Connection) -> IndexedFile | None:
            row = connection.execute(
                "SELECT id, content_digest, summary, note FROM indexed_file "
                "WHERE project_id = ? AND name = ?",
                (project_id, name),
            ).fetchone()
            if row is None:
                return None
            passages = connection.execute(
                f"SELECT text, {_PLACE_COLUMNS} FROM passage WHERE file_id = ? ORDER BY at",
                (row[0],),
            ).fetchall()
            return IndexedFile(
                name=name,
                content_digest=row[1],
                summary=row[2],
                note=row[3],
                passages=tuple(map(_passage, passages)),
            )

        return self._read(work, absent=None)

    def rows(self, project_id: str) -> Sequence[IndexRow]:
        """Return what is known of each file, by name; see `ProjectIndex`."""
        statement = f"SELECT {_ROW_COLUMNS} FROM indexed_file WHERE project_id = ? ORDER BY name"
        no_rows: list[tuple[object, ...]] = []
        rows = self._read(lambda c: c.execute(statement, (project_id,)).fetchall(), absent=no_rows)
        names = _ROW_COLUMNS.split(", ")
        return [IndexRow.model_validate(dict(zip(names, row, strict=True))) for row in rows]

    def revision(self, project_id: str) -> str:
        """Return a digest of the project's state; see `ProjectSearch`."""
        return self._read(lambda c: _revision(c, project_id), absent=index_revision({}))

    def search(self, project_id: str, query: str, *, limit: int) -> SearchAnswer:
        """Return the passages that hold words of a query; see `ProjectSearch`."""
        absent = SearchAnswer(revision=index_revision({}))
        return self._read(lambda c: searched(c, project_id, query, limit), absent=absent)

    def close(self) -> None:
        """Close idle connections; the next call opens the file again."""
        self._file.close()

    def _read(self, work: Callable[[sqlite3.Connection], _Result], *, absent: _Result) -> _Result:
        """Return what `work` reads, all of it from one state of the file."""

        def read(connection: sqlite3.Connection) -> _Result:
            with _one_state(connection):
                return work(connection)

        return self._file.run_if_present(read, absent=absent)


@contextmanager
def _one_state(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def searched(
    connection: sqlite3.Connection, project_id: str, query: str, limit: int
) -> SearchAnswer:
    """Return what `SqliteProjectIndex.search` answers; its code is behind `SEARCH_REVISION`."""
    terms = query_terms(query)
    # Quoted, so that FTS5 takes each for a word and none for its own syntax.
    match = " OR ".join(f'"{term}"' for term in terms)
    revision = _revision(connection, project_id)
    number = _number(connection, project_id)
    if number is None or not terms:
        return SearchAnswer(revision=revision)
    count = f"SELECT count(*) FROM words_{number} WHERE words_{number} MATCH ?"
    total = connection.execute(count, (match,)).fetchone()[0]
    hits_max = max(1, min(limit, HITS_MAX))
    rows = connection.execute(_SEARCH.format(number), (match, hits_max)).fetchall()
    hits = tuple(_hit(row, terms) for row in rows)
    return SearchAnswer(hits=hits, total=total, revision=revision)


def _number(connection: sqlite3.Connection, project_id: str) -> int | None:
    """Return the number of a project's full-text table."""
    row = connection.execute(
        "SELECT number FROM indexed_project WHERE project_id = ?", (project_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def _made(connection: sqlite3.Connection, project_id: str) -> int:
    """Return the number of a project's full-text table, made when it is not there."""
    number = _number(connection, project_id)
    if number is None:
        number = connection.execute(
            "INSERT INTO indexed_project (project_id) VALUES (?)", (project_id,)
        ).lastrowid
        connection.execute(_WORDS.format(number))
    return int(number or 0)


def _forget(connection: sqlite3.Connection, project_id: str, number: int, name: str) -> bool:
    row = connection.execute(
        "SELECT id FROM indexed_file WHERE project_id = ? AND name = ?", (project_id, name)
    ).fetchone()
    if row is None:
        return False
    # Before the text goes: FTS5 takes the words away that it is told, and checks none of them.
    connection.execute(
        f"INSERT INTO words_{number} (words_{number}, rowid, text) "
        "SELECT 'delete', id, text FROM passage WHERE file_id = ?",
        row,
    )
    connection.execute("DELETE FROM indexed_file WHERE id = ?", row)
    return True


def _insert(
    connection: sqlite3.Connection, project_id: str, number: int, file: IndexedFile
) -> None:
    values = (
        project_id,
        file.name,
        file.content_digest,
        file.digest,
        len(file.passages),
        file.summary,
        file.note,
    )
    file_id = connection.execute(
        f"INSERT INTO indexed_file (project_id, {_ROW_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        values,
    ).lastrowid
    connection.executemany(
        f"INSERT INTO passage (file_id, at, text, {_PLACE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(file_id, at, *passage.model_dump().values()) for at, passage in enumerate(file.passages)],
    )
    connection.execute(
        f"INSERT INTO words_{number} (rowid, text) SELECT id, text FROM passage WHERE file_id = ?",
        (file_id,),
    )


def _digests(connection: sqlite3.Connection, project_id: str) -> list[tuple[str, str]]:
    statement = "SELECT name, digest FROM indexed_file WHERE project_id = ?"
    return connection.execute(statement, (project_id,)).fetchall()


def _revision(connection: sqlite3.Connection, project_id: str) -> str:
    return index_revision(dict(_digests(connection, project_id)))


def _passage(row: Sequence[object]) -> Passage:
    names = ("text", *_PLACE_COLUMNS.split(", "))
    return Passage.model_validate(dict(zip(names, row, strict=True)))


def _hit(row: Sequence[object], terms: Sequence[str]) -> SearchHit:
    name, content_digest, *rest = row
    passage = _passage(rest)
    places = passage.model_dump(exclude={"text"})
    return SearchHit(
        name=str(name),
        content_digest=str(content_digest),
        snippet=snippet(passage.text, terms),
        **places,
    )
