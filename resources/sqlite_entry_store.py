"""Cache entries in one SQLite file: the embedded default, for any number of processes.

Cost does not grow with the number of entries: a lookup is one indexed select, a store one upsert.
Field digests, artifacts and usage are one JSON column each, not rows of their own.
Performance: 22 KB payload, 26 digests: get 37 µs and put 54 µs where a bare select takes 11 and a
bare upsert 31.

Extend tests/integration/test_entry_store_contract.py, which all entry stores pass.

Source: specification C4, C11, C13, C15, C16, C17.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from reprise.model.result import Artifact, CacheReason
from reprise.ports import CacheEntry
from resources.sqlite import (
    CACHE_APPLICATION_ID,
    SqliteFile,
    SqliteSchema,
    from_micros,
    to_micros,
    transaction,
)

TOMBSTONE_DAYS = 30
BUSY_SECONDS = 2.0
"""Longer than the deadlines in resources/deadline.py, which are what bounds a step."""

_TOMBSTONE_MICROS = TOMBSTONE_DAYS * 24 * 3600 * 1_000_000

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
    ),
)

_COLUMNS = (
    "project_id, cache_key, schema_version, workflow_id, step_label, step_type, agent_id, run_id, "
    "created_at, expires_at, payload_digest, artifacts, field_digests, usage, seconds"
)
_NAMES = (*_COLUMNS.split(", "), "payload")
_UPSERT = f"""
    INSERT INTO entry ({_COLUMNS}, payload) VALUES ({", ".join("?" * 16)})
    ON CONFLICT (project_id, cache_key) DO UPDATE SET
        schema_version = excluded.schema_version, workflow_id = excluded.workflow_id,
        step_label = excluded.step_label, step_type = excluded.step_type,
        agent_id = excluded.agent_id, run_id = excluded.run_id,
        created_at = excluded.created_at, expires_at = excluded.expires_at,
        payload_digest = excluded.payload_digest, artifacts = excluded.artifacts,
        field_digests = excluded.field_digests, usage = excluded.usage,
        seconds = excluded.seconds, payload = excluded.payload
"""
_GET = (
    f"SELECT {_COLUMNS}, payload FROM entry "
    "WHERE project_id = ? AND cache_key = ? AND expires_at > ?"
)
_NEAREST = (
    f"SELECT {_COLUMNS}, '' FROM entry WHERE project_id = ? AND workflow_id = ? "
    "AND step_label = ? ORDER BY created_at DESC, id DESC LIMIT 1"
)
_BURY = """
    INSERT INTO tombstone (project_id, cache_key, reason, gone_at)
    SELECT project_id, cache_key, ?, ? FROM entry WHERE {where}
    ON CONFLICT (project_id, cache_key)
        DO UPDATE SET reason = excluded.reason, gone_at = excluded.gone_at
"""
_ONE = "project_id = ? AND cache_key = ?"
_EXPIRED = "id IN (SELECT id FROM entry WHERE expires_at <= ? ORDER BY expires_at, id LIMIT ?)"

_ARTIFACTS = TypeAdapter(tuple[Artifact, ...])


class SqliteEntryStore:
    """An `EntryStore` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.

    Raises:
        StoreUnusable: The path is a folder, or a file that is not ours.
    """

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._file = SqliteFile(path, _SCHEMA, busy_seconds=busy_seconds)
        # The latest time that a caller named. A clock that steps back must not bring back what was
        # already found expired.
        self._latest = 0

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`."""
        key = (project_id, cache_key, self._advance(now))
        row = self._file.run_if_present(lambda c: _first(c.execute(_GET, key)), absent=None)
        if row is None:
            return None
        try:
            return _entry(row)
        except (ValidationError, orjson.JSONDecodeError):
            # Edited by hand or by a stray program; nothing is run by reading it.
            self.delete(project_id, cache_key, reason=CacheReason.PAYLOAD_DAMAGED, now=now)
            return None

    def put(self, entry: CacheEntry) -> None:
        """Insert or replace an entry; see `EntryStore`."""
        row = _row(entry)
        self._file.run(lambda c: c.execute(_UPSERT, row))

    def delete(
        self, project_id: str, cache_key: str, *, reason: CacheReason, now: datetime
    ) -> None:
        """Remove an entry, leaving a tombstone when there was one; see `EntryStore`."""
        key = (project_id, cache_key)
        gone_at = to_micros(now)

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute(_BURY.format(where=_ONE), (reason.value, gone_at, *key))
                connection.execute(f"DELETE FROM entry WHERE {_ONE}", key)

        self._file.run_if_present(work, absent=None)

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key is not valid any more; see `EntryStore`.

        "The last 30 days" and "expired" are counted from the latest time that this object was told.
        """
        key = (project_id, cache_key)

        def work(connection: sqlite3.Connection) -> CacheReason | None:
            row = _first(connection.execute(f"SELECT expires_at FROM entry WHERE {_ONE}", key))
            if row is not None:
                return CacheReason.EXPIRED if int(row[0]) <= self._latest else None
            row = _first(
                connection.execute(
                    f"SELECT reason FROM tombstone WHERE {_ONE} AND gone_at > ?",
                    (*key, self._latest - _TOMBSTONE_MICROS),
                )
            )
            return None if row is None else CacheReason(row[0])

        return self._file.run_if_present(work, absent=None)

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry of a step, without its payload; see `EntryStore`."""
        step = (project_id, workflow_id, step_label)
        row = self._file.run_if_present(lambda c: _first(c.execute(_NEAREST, step)), absent=None)
        return None if row is None else _entry(row)

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove up to so many expired entries, and tombstones older than 30 days."""
        micros = self._advance(now)
        batch = (micros, rows_max)

        def work(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                connection.execute(
                    _BURY.format(where=_EXPIRED), (CacheReason.EXPIRED.value, micros, *batch)
                )
                gone = connection.execute(f"DELETE FROM entry WHERE {_EXPIRED}", batch).rowcount
                connection.execute(
                    "DELETE FROM tombstone WHERE (project_id, cache_key) IN "
                    "(SELECT project_id, cache_key FROM tombstone WHERE gone_at <= ? LIMIT ?)",
                    (micros - _TOMBSTONE_MICROS, rows_max),
                )
                return gone

        return self._file.run_if_present(work, absent=0)

    def clear(self) -> None:
        """Remove all entries and all tombstones: every step is a first time again."""

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute("DELETE FROM entry")
                connection.execute("DELETE FROM tombstone")

        self._file.run_if_present(work, absent=None)

    def __len__(self) -> int:
        return self._file.run_if_present(
            lambda c: int(c.execute("SELECT count(*) FROM entry").fetchall()[0][0]), absent=0
        )

    def close(self) -> None:
        """Close idle connections; the next call opens the file again."""
        self._file.close()

    def _advance(self, now: datetime) -> int:
        micros = to_micros(now)
        if micros > self._latest:
            self._latest = micros
        return self._latest


def _first(cursor: sqlite3.Cursor) -> Sequence[Any] | None:
    # All rows are read: a cursor that is not read to its end keeps its snapshot open, and a write
    # after it would fail at once.
    rows = cursor.fetchall()
    return rows[0] if rows else None


def _row(entry: CacheEntry) -> tuple[object, ...]:
    return (
        entry.project_id,
        entry.cache_key,
        entry.schema_version,
        entry.workflow_id,
        entry.step_label,
        entry.step_type,
        entry.agent_id,
        entry.run_id,
        to_micros(entry.created_at),
        to_micros(entry.expires_at),
        entry.payload_digest,
        _ARTIFACTS.dump_json(entry.artifacts).decode() if entry.artifacts else "[]",
        orjson.dumps(entry.field_digests).decode(),
        entry.usage.model_dump_json(),
        entry.seconds,
        entry.payload,
    )


def _entry(row: Sequence[Any]) -> CacheEntry:
    values = dict(zip(_NAMES, row, strict=True))
    values["created_at"] = from_micros(row[8])
    values["expires_at"] = from_micros(row[9])
    for name in ("artifacts", "field_digests", "usage"):
        values[name] = orjson.loads(values[name])
    return CacheEntry.model_validate(values)
