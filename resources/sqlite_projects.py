"""Projects and their files in a SQLite file. May share its file with the history.

Adding a file again with the same bytes leaves its row as it was, so that what depends on the row
(cache keys, sensors) does not move; other bytes make it new: its own upload time, nothing
summarised, nothing indexed.

Source: specification W7, W9.
"""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reprise.errors import BadInput, UnknownName
from reprise.model.project import FileStatus, Project, ProjectFile
from resources.micros import from_micros, to_micros
from resources.sqlite import METADATA_APPLICATION_ID, SqliteFile, SqliteSchema, transaction

BUSY_SECONDS = 15.0
"""Nothing here is on a step's path, so a writer waits rather than fails."""

_SCHEMA = SqliteSchema(
    component="project",
    application_id=METADATA_APPLICATION_ID,
    rebuildable=False,
    migrations=(
        (
            """
            CREATE TABLE project (
                id TEXT PRIMARY KEY,
                name TEXT NOT NULL UNIQUE,
                created_at INTEGER NOT NULL
            ) STRICT
            """,
            """
            CREATE TABLE project_file (
                project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
                name TEXT NOT NULL,
                id TEXT NOT NULL,
                storage_key TEXT NOT NULL,
                size_bytes INTEGER NOT NULL,
                content_digest TEXT NOT NULL,
                media_kind TEXT NOT NULL,
                media_type TEXT NOT NULL,
                uploaded_at INTEGER NOT NULL,
                summary_status TEXT NOT NULL,
                indexing_status TEXT NOT NULL,
                PRIMARY KEY (project_id, name)
            ) STRICT
            """,
        ),
        ("ALTER TABLE project ADD COLUMN owner_id TEXT",),
    ),
)

_FILE_COLUMNS = (
    "id, project_id, name, storage_key, size_bytes, content_digest, media_kind, media_type, "
    "uploaded_at, summary_status, indexing_status"
)
# The id stays that of the name's first row. With the same upload time the row is being updated (a
# status moved); with another one the file is being added again.
_PUT_FILE = f"""
    INSERT INTO project_file ({_FILE_COLUMNS}) VALUES ({", ".join("?" * 11)})
    ON CONFLICT (project_id, name) DO UPDATE SET
        storage_key = excluded.storage_key, size_bytes = excluded.size_bytes,
        content_digest = excluded.content_digest, media_kind = excluded.media_kind,
        media_type = excluded.media_type, uploaded_at = excluded.uploaded_at,
        summary_status = CASE WHEN content_digest = excluded.content_digest
            THEN excluded.summary_status ELSE 'pending' END,
        indexing_status = CASE WHEN content_digest = excluded.content_digest
            THEN excluded.indexing_status ELSE 'pending' END
    WHERE uploaded_at = excluded.uploaded_at
        OR content_digest <> excluded.content_digest OR storage_key <> excluded.storage_key
        OR media_kind <> excluded.media_kind OR media_type <> excluded.media_type
"""
_SET_STATUS = """
    UPDATE project_file SET
        summary_status = coalesce(?, summary_status),
        indexing_status = coalesce(?, indexing_status)
    WHERE project_id = ? AND name = ? AND content_digest = ? AND uploaded_at = ?
"""


class SqliteProjectRegistry:
    """A `ProjectRegistry` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.

    Raises:
        StoreUnusable: The path is a folder, or a file that is not ours.
    """

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._file = SqliteFile(path, _SCHEMA, busy_seconds=busy_seconds)

    def add_project(self, name: str, *, now: datetime, owner_id: str | None = None) -> Project:
        """Make a project, or return the one of this name; see `ProjectRegistry`."""
        try:
            project = Project(id=name, name=name, created_at=now, owner_id=owner_id)
        except ValidationError as error:
            message = (
                f"project name {name!r} cannot be used; take up to 100 letters, digits, `-`, `_` "
                "and `.`, beginning with a letter or a digit"
            )
            raise BadInput(message) from error
        row = (project.id, project.name, to_micros(now), owner_id)

        def work(connection: sqlite3.Connection) -> Project:
            with transaction(connection):
                connection.execute(
                    "INSERT INTO project (id, name, created_at, owner_id) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (id) DO NOTHING",
                    row,
                )
                return _projects(connection, "WHERE name = ?", name)[0]

        return self._file.run(work)

    def project(self, name: str) -> Project | None:
        """Return a project, or None; see `ProjectRegistry`."""
        none: list[Project] = []
        found = self._file.run_if_present(
            lambda c: _projects(c, "WHERE name = ?", name), absent=none
        )
        return found[0] if found else None

    def projects(self) -> Sequence[Project]:
        """Return all projects, by name; see `ProjectRegistry`."""
        return self._file.run_if_present(lambda c: _projects(c, "ORDER BY name"), absent=[])

    def set_owner(self, name: str, owner_id: str | None) -> bool:
        """Give a project to a user, or to nobody; see `ProjectRegistry`."""
        statement = "UPDATE project SET owner_id = ? WHERE name = ?"
        return self._file.run_if_present(
            lambda c: c.execute(statement, (owner_id, name)).rowcount > 0, absent=False
        )

    def remove_project(self, name: str, *, emptied: Callable[[], None] | None = None) -> bool:
        """Remove a project and its file rows; see `ProjectRegistry`."""

        def work(connection: sqlite3.Connection) -> bool:
            # As in `remove_file`: the lock is held while the objects go.
            with transaction(connection):
                gone = connection.execute("DELETE FROM project WHERE name = ?", (name,)).rowcount
                if gone and emptied is not None:
                    emptied()
                return gone > 0

        return self._file.run_if_present(work, absent=False)

    def put_file(self, file: ProjectFile) -> None:
        """Add a file row, or replace the one of this name when its bytes or its state differ.

        Raises:
            UnknownName: There is no such project.
        """
        row = (
            file.id,
            file.project_id,
            file.name,
            file.storage_key,
            file.size_bytes,
            file.content_digest,
            file.media_kind.value,
            file.media_type,
            to_micros(file.uploaded_at),
            file.summary_status.value,
            file.indexing_status.value,
        )

        def work(connection: sqlite3.Connection) -> bool:
            try:
                connection.execute(_PUT_FILE, row)
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
                    raise
                return False
            return True

        if not self._file.run(work):
            message = (
                f"file {file.name!r}: there is no project {file.project_id!r}; "
                "make it first with `reprise project add`"
            )
            raise UnknownName(message)

    def files(self, project_id: str) -> Sequence[ProjectFile]:
        """Return a project's files, by name; see `ProjectRegistry`."""
        statement = f"SELECT {_FILE_COLUMNS} FROM project_file WHERE project_id = ? ORDER BY name"
        no_rows: list[tuple[Any, ...]] = []
        rows = self._file.run_if_present(
            lambda c: c.execute(statement, (project_id,)).fetchall(), absent=no_rows
        )
        return [_file(row) for row in rows]

    def set_status(
        self,
        file: ProjectFile,
        *,
        summary: FileStatus | None = None,
        indexing: FileStatus | None = None,
    ) -> bool:
        """Move a file's statuses while its bytes are these; see `ProjectRegistry`."""
        row = (
            summary and summary.value,
            indexing and indexing.value,
            file.project_id,
            file.name,
            file.content_digest,
            to_micros(file.uploaded_at),
        )
        return self._file.run_if_present(
            lambda c: c.execute(_SET_STATUS, row).rowcount > 0, absent=False
        )

    def remove_file(
        self, project_id: str, name: str, *, unused: Callable[[str], None] | None = None
    ) -> bool:
        """Remove a file row; see `ProjectRegistry`."""

        def work(connection: sqlite3.Connection) -> bool:
            # The lock is held while the object goes: whoever adds the same bytes writes the row
            # before, or finds the object gone after it.
            with transaction(connection):
                gone = connection.execute(
                    "DELETE FROM project_file WHERE project_id = ? AND name = ? "
                    "RETURNING storage_key",
                    (project_id, name),
                ).fetchall()
                for (key,) in gone:
                    if (
                        unused is not None
                        and not connection.execute(
                            "SELECT 1 FROM project_file WHERE storage_key = ? LIMIT 1", (key,)
                        ).fetchall()
                    ):
                        unused(key)
                return bool(gone)

        return self._file.run_if_present(work, absent=False)

    def close(self) -> None:
        """Close idle connections; the next call opens the file again."""
        self._file.close()


def _projects(connection: sqlite3.Connection, clause: str, *arguments: str) -> list[Project]:
    rows = connection.execute(
        f"SELECT id, name, created_at, owner_id FROM project {clause}", arguments
    ).fetchall()
    return [
        Project(id=row[0], name=row[1], created_at=from_micros(row[2]), owner_id=row[3])
        for row in rows
    ]


def _file(row: Sequence[Any]) -> ProjectFile:
    values = dict(zip(_FILE_COLUMNS.split(", "), row, strict=True))
    values["uploaded_at"] = from_micros(row[8])
    return ProjectFile.model_validate(values)
