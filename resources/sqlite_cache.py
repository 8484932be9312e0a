"""The cache's SQLite file: its tables, and how the SQL stores run their statements in it.

To change a table: append a migration to `_SCHEMA`, never edit one, and do the same in
resources/postgres_cache.py.

Source: specification C11, C13, C15.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from resources.file_system import file_system_kind
from resources.sql_database import Dialect, Rows, SqlSession, Values
from resources.sqlite import CACHE_APPLICATION_ID, SqliteFile, SqliteSchema, transaction

BUSY_SECONDS = 2.0
"""Longer than the deadlines in resources/deadline.py, which are what bounds a step."""

GIVE_BACK_PAGES = 1_000
"""Pages of 4 KB that one step gives back to the disk, a transaction of its own."""

_Result = TypeVar("_Result")

_SCHEMA = SqliteSchema(
    component="step cache",
    application_id=CACHE_APPLICATION_ID,
    rebuildable=True,
    migrations=(
        (
            # An ordinary rowid table: WITHOUT ROWID is 2 to 5 times slower with inline payloads.
            # No foreign keys: editing a workflow must not remove entries that are still valid.
            """
            CREATE TABLE entry (
                id INTEGER PRIMARY KEY,
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                schema_version INTEGER NOT NULL,
                workflow_id TEXT NOT NULL,
                step_label TEXT NOT NULL,
                step_type TEXT NOT NULL,
                agent_id TEXT,
                run_id TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                expires_at INTEGER NOT NULL,
                payload_digest TEXT NOT NULL,
                artifacts TEXT NOT NULL,
                field_digests TEXT NOT NULL,
                usage TEXT NOT NULL,
                seconds REAL NOT NULL,
                payload TEXT NOT NULL,
                UNIQUE (project_id, cache_key)
            ) STRICT
            """,
            """
            CREATE INDEX entry_by_step
                ON entry (project_id, workflow_id, step_label, created_at)
            """,
            "CREATE INDEX entry_by_expiry ON entry (expires_at)",
            """
            CREATE TABLE tombstone (
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                reason TEXT NOT NULL,
                gone_at INTEGER NOT NULL,
                PRIMARY KEY (project_id, cache_key)
            ) STRICT, WITHOUT ROWID
            """,
            "CREATE INDEX tombstone_by_age ON tombstone (gone_at)",
        ),
        (
            # Copied rather than altered: new columns would stand behind the payload, and reading
            # one there walks through all of it.
            "ALTER TABLE entry RENAME TO entry_1",
            "DROP INDEX entry_by_step",
            "DROP INDEX entry_by_expiry",
            """
            CREATE TABLE entry (
                id INTEGER PRIMARY KEY,
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                schema_version INTEGER NOT NULL,
                workflow_id TEXT NOT NULL,
                step_label TEXT NOT NULL,
                step_type TEXT NOT NULL,
                agent_id TEXT,
                run_id TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                expires_at INTEGER NOT NULL,
                last_used_at INTEGER NOT NULL,
                hits INTEGER NOT NULL DEFAULT 0,
                pinned INTEGER NOT NULL DEFAULT 0,
                size_bytes INTEGER NOT NULL,
                seconds REAL NOT NULL,
                payload_digest TEXT NOT NULL,
                payload_key TEXT,
                payload_bytes INTEGER,
                usage TEXT NOT NULL,
                artifacts TEXT NOT NULL,
                field_digests TEXT NOT NULL,
                payload TEXT NOT NULL,
                UNIQUE (project_id, cache_key)
            ) STRICT
            """,
            """
            INSERT INTO entry (id, project_id, cache_key, schema_version, workflow_id, step_label,
                step_type, agent_id, run_id, created_at, expires_at, last_used_at, size_bytes,
                seconds, payload_digest, usage, artifacts, field_digests, payload)
            SELECT id, project_id, cache_key, schema_version, workflow_id, step_label,
                step_type, agent_id, run_id, created_at, expires_at, created_at,
                length(CAST(payload AS BLOB)), seconds, payload_digest, usage, artifacts,
                field_digests, payload
            FROM entry_1
            """,
            "DROP TABLE entry_1",
            """
            CREATE INDEX entry_by_step
                ON entry (project_id, workflow_id, step_label, created_at)
            """,
            "CREATE INDEX entry_by_expiry ON entry (expires_at)",
            # Sums and least recently used rows are answered from the index alone.
            """
            CREATE INDEX entry_by_use ON entry (project_id, pinned, last_used_at, id, size_bytes)
            """,
            "CREATE INDEX entry_by_payload ON entry (payload_key) WHERE payload_key IS NOT NULL",
            "ALTER TABLE tombstone ADD COLUMN payload_key TEXT",
            """
            CREATE INDEX tombstone_by_payload ON tombstone (payload_key)
                WHERE payload_key IS NOT NULL
            """,
            """
            CREATE TABLE lease (
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                holder TEXT NOT NULL,
                fence INTEGER NOT NULL,
                renewed_at INTEGER NOT NULL,
                expires_at INTEGER NOT NULL,
                PRIMARY KEY (project_id, cache_key)
            ) STRICT, WITHOUT ROWID
            """,
        ),
    ),
)

_DIALECT = Dialect(
    # A Julian day as a double is exact to 40 µs; `unixepoch('subsec')` needs SQLite 3.42.
    now_micros="CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)",
    # One process writes at a time.
    skip_locked="",
    digests="json_each(entry.field_digests) AS f",
)


class SqliteCacheDatabase:
    """The `SqlDatabase` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.
        kind_of: Tells the kind of file system.

    Raises:
        StoreUnusable: The path is a folder, a file that is not ours, or on a network file system.
    """

    dialect = _DIALECT

    def __init__(
        self,
        path: Path,
        *,
        busy_seconds: float = BUSY_SECONDS,
        kind_of: Callable[[Path], str | None] = file_system_kind,
    ) -> None:
        self._file = SqliteFile(path, _SCHEMA, busy_seconds=busy_seconds, kind_of=kind_of)

    def rows(self, statement: str, values: Values = (), *, write: bool = False) -> Rows:
        """Run one statement and return its rows; see `SqlDatabase`."""
        # All rows are read: a cursor that is not read to its end keeps its snapshot open, and a
        # write after it would fail at once.
        if write:
            return self._file.run(lambda c: c.execute(statement, values).fetchall())
        return self._file.run_if_present(
            lambda c: c.execute(statement, values).fetchall(), absent=[]
        )

    def count(self, statement: str, values: Values = (), *, write: bool = False) -> int:
        """Run one statement and return how many rows it changed; see `SqlDatabase`."""
        if write:
            return self._file.run(lambda c: c.execute(statement, values).rowcount)
        return self._file.run_if_present(lambda c: c.execute(statement, values).rowcount, absent=0)

    def transact(self, work: Callable[[SqlSession], _Result], *, absent: _Result) -> _Result:
        """Run statements in one transaction, or return `absent`; see `SqlDatabase`."""

        def whole(connection: sqlite3.Connection) -> _Result:
            with transaction(connection):
                return work(_Session(connection))

        return self._file.run_if_present(whole, absent=absent)

    def give_back(self, steps_max: int) -> None:
        """Make the file smaller by its unused pages; writers get their turn between the steps."""
        unused = self._file.run_if_present(_unused_pages, absent=0)
        for _ in range(steps_max):
            left = self._file.run_if_present(_give_back_some, absent=0)
            if left == 0 or left >= unused:
                break
            unused = left
        # In WAL mode the file is cut when a checkpoint has come to its end. This kind waits for
        # nobody; where a reader is in the way, a later one does it.
        self.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close idle connections; the next call opens the file again."""
        self._file.close()


def _unused_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def _give_back_some(connection: sqlite3.Connection) -> int:
    """Give back some pages and return how many are left."""
    # It gives back a page at each step of the statement, and `execute` takes a single one.
    connection.executescript(f"PRAGMA incremental_vacuum({GIVE_BACK_PAGES})")
    return _unused_pages(connection)


class _Session:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Values = ()) -> Rows:
        return self._connection.execute(statement, values).fetchall()

    def count(self, statement: str, values: Values = ()) -> int:
        return self._connection.execute(statement, values).rowcount
