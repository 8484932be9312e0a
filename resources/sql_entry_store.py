"""Cache entries in an SQL database: what SQLite and PostgreSQL do alike.

Cost does not grow with the number of entries: a look-up is one indexed select, a store one upsert.
Field digests, artifacts and usage are one JSON column each, not rows of their own.

Extend tests/integration/test_entry_store_contract.py, which all entry stores pass.

Source: specification C4, C11, C13, C15, C16, C17, C19, C24.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from reprise.model.cache import CacheEntry, EntryCaps, EntryFilter, EntryStats, EntrySummary, Lease
from reprise.model.result import CacheReason
from resources.entry_uses import EntryUses
from resources.micros import from_micros, to_micros
from resources.sql_database import Dialect, SqlDatabase, SqlSession, marks
from resources.sql_entry_rows import NAMES, SUMMARY_NAMES, entry_of, row_of, summary_from

TOMBSTONE_DAYS = 30
BATCH_ROWS = 500
"""Rows of one listed page and of one batch that is removed."""
USES_ROWS = 200
"""Rows whose uses are written by one statement."""

_TOMBSTONE_MICROS = TOMBSTONE_DAYS * 24 * 3600 * 1_000_000
_LEASE_KEPT_MICROS = 24 * 3600 * 1_000_000

_COLUMNS = ", ".join(NAMES)
_STORED = f"{_COLUMNS}, size_bytes, last_used_at"
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in (*NAMES[2:], "size_bytes"))
# Counts begin anew: another result answers from now on.
_ON_CONFLICT = f"""
    ON CONFLICT (project_id, cache_key) DO UPDATE SET
        {_REPLACED}, last_used_at = excluded.last_used_at, hits = 0
"""
_UPSERT = f"INSERT INTO entry ({_STORED}) VALUES {marks(20)} {_ON_CONFLICT}"
_FENCED_UPSERT = f"""
    INSERT INTO entry ({_STORED}) SELECT {", ".join("?" * 20)} WHERE EXISTS (
        SELECT 1 FROM lease WHERE project_id = ? AND cache_key = ? AND holder = ? AND fence = ?
    ) {_ON_CONFLICT}
"""
_ONE = "project_id = ? AND cache_key = ?"
_THIS_ONE = f"{_ONE} AND created_at = ? AND payload_digest = ?"
_GET = f"""
    SELECT {_COLUMNS}, id, last_used_at FROM entry
    WHERE {_ONE} AND (expires_at > ? OR pinned = 1)
"""
_WITHOUT_PAYLOAD = {"payload_key": "NULL", "payload_bytes": "NULL", "payload": "''"}
_BARE_COLUMNS = ", ".join(_WITHOUT_PAYLOAD.get(name, name) for name in NAMES)
_NEAREST = f"""
    SELECT {_BARE_COLUMNS} FROM entry
    WHERE project_id = ? AND workflow_id = ? AND step_label = ?
    ORDER BY created_at DESC, id DESC LIMIT 1
"""
_OF_KEY = f"SELECT {_BARE_COLUMNS} FROM entry WHERE {_ONE}"
_GONE = "RETURNING project_id, cache_key, payload_key"
_BURY = """
    INSERT INTO tombstone (project_id, cache_key, payload_key, reason, gone_at) VALUES {marks}
    ON CONFLICT (project_id, cache_key) DO UPDATE SET
        payload_key = excluded.payload_key, reason = excluded.reason, gone_at = excluded.gone_at
"""
_USED = """
    UPDATE entry SET hits = entry.hits + v.column2, last_used_at = CASE
        WHEN v.column3 > entry.last_used_at THEN v.column3 ELSE entry.last_used_at END
    FROM (VALUES {marks}) AS v WHERE entry.id = v.column1
"""
_SUMMARY_COLUMNS = ", ".join(SUMMARY_NAMES)
_STATS = """
    SELECT count(*), coalesce(sum(size_bytes), 0), coalesce(sum(hits), 0), coalesce(sum(pinned), 0),
        coalesce(sum(CASE WHEN expires_at <= ? AND pinned = 0 THEN 1 ELSE 0 END), 0),
        count(DISTINCT project_id), min(created_at), max(created_at)
    FROM entry
"""


class SqlEntryStore:
    """An `EntryStore` in an SQL database.

    Args:
        database: The database, its tables made by it on first use.
        caps: How much one project may keep.
    """

    def __init__(self, database: SqlDatabase, *, caps: EntryCaps) -> None:
        self._database = database
        self._caps = caps
        self._uses = EntryUses()
        # The latest time that a caller named. A clock that steps back must not bring back what was
        # already found expired.
        self._latest = 0

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`."""
        micros = self._advance(now)
        rows = self._database.rows(_GET, (project_id, cache_key, micros))
        if not rows:
            return None
        try:
            entry = entry_of(rows[0][:-2])
        except ValueError:
            # Edited by hand or by a stray program; nothing is run by reading it.
            named = dict(zip(NAMES, rows[0], strict=False))
            self._remove(
                _THIS_ONE,
                (project_id, cache_key, named["created_at"], named["payload_digest"]),
                CacheReason.PAYLOAD_DAMAGED,
                to_micros(now),
            )
            return None
        if self._uses.record(rows[0][-2], written_at=rows[0][-1], now=micros):
            self._write_uses(due_only=True)
        return entry

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        """Insert or replace an entry; see `EntryStore`."""
        row = row_of(entry)
        if lease is None:
            self._database.count(_UPSERT, row, write=True)
            return True
        fence = (lease.project_id, lease.cache_key, lease.holder, lease.fence)
        return self._database.count(_FENCED_UPSERT, (*row, *fence), write=True) > 0

    def delete(
        self,
        project_id: str,
        cache_key: str,
        *,
        reason: CacheReason,
        now: datetime,
        seen: CacheEntry | None = None,
    ) -> None:
        """Remove an entry, leaving a tombstone when there was one; see `EntryStore`."""
        if seen is None:
            self._remove(_ONE, (project_id, cache_key), reason, to_micros(now))
            return
        version = (to_micros(seen.created_at), seen.payload_digest)
        self._remove(_THIS_ONE, (project_id, cache_key, *version), reason, to_micros(now))

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key is not valid any more; see `EntryStore`.

        "The last 30 days" and "expired" are counted from the latest time that this object was told.
        """
        rows = self._database.rows(
            f"SELECT expires_at, pinned, NULL FROM entry WHERE {_ONE} UNION ALL "
            f"SELECT gone_at, 0, reason FROM tombstone WHERE {_ONE}",
            (project_id, cache_key) * 2,
        )
        for expires_at, pinned, reason in rows:
            if reason is None:
                return CacheReason.EXPIRED if expires_at <= self._latest and not pinned else None
        for gone_at, _, reason in rows:
            if gone_at > self._latest - _TOMBSTONE_MICROS:
                return CacheReason(reason)
        return None

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry of a step, without its payload; see `EntryStore`."""
        rows = self._database.rows(_NEAREST, (project_id, workflow_id, step_label))
        return entry_of(rows[0]) if rows else None

    def of_key(self, project_id: str, cache_key: str) -> CacheEntry | None:
        """Return the entry of a key, without its payload; see `EntryStore`."""
        rows = self._database.rows(_OF_KEY, (project_id, cache_key))
        return entry_of(rows[0]) if rows else None

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove entries that expired or are over the caps, and tombstones older than 30 days."""
        micros = self._advance(now)
        gone = self._remove(
            "id IN (SELECT id FROM entry WHERE expires_at <= ? AND pinned = 0 "
            f"ORDER BY expires_at, id LIMIT ? {self._dialect.skip_locked})",
            (micros, rows_max),
            CacheReason.EXPIRED,
            micros,
        )
        if gone < rows_max:
            gone += self._evict(micros, rows_max - gone)
        self._database.count(
            "DELETE FROM tombstone WHERE (project_id, cache_key) IN "
            "(SELECT project_id, cache_key FROM tombstone WHERE gone_at <= ? LIMIT ?)",
            (micros - _TOMBSTONE_MICROS, rows_max),
        )
        self._database.count(
            "DELETE FROM lease WHERE (project_id, cache_key) IN (SELECT project_id, cache_key "
            f"FROM lease WHERE expires_at < {self._dialect.now_micros} - ? LIMIT ?)",
            (_LEASE_KEPT_MICROS, rows_max),
        )
        return gone

    def pin(self, project_id: str, cache_key: str, *, on: bool) -> bool:
        """Keep an entry from expiring and from being evicted, or no longer; see `EntryStore`."""
        statement = f"UPDATE entry SET pinned = ? WHERE {_ONE}"
        return self._database.count(statement, (int(on), project_id, cache_key)) > 0

    def find(self, wanted: EntryFilter) -> Iterator[EntrySummary]:
        """Yield the entries that a filter means, the newest first; see `EntryStore`."""
        # The ids first, then page by page: no snapshot stays open while a person reads.
        ids = self._matching(wanted, "ORDER BY created_at DESC, id DESC")
        for start in range(0, len(ids), BATCH_ROWS):
            batch = ids[start : start + BATCH_ROWS]
            rows = self._database.rows(
                f"SELECT id, {_SUMMARY_COLUMNS} FROM entry WHERE id IN {marks(len(batch))}", batch
            )
            found = {row[0]: summary_from(row[1:]) for row in rows}
            yield from (found[row_id] for row_id in batch if row_id in found)

    def invalidate(self, wanted: EntryFilter, *, now: datetime) -> int:
        """Remove the entries that a filter means, in batches; see `EntryStore`."""
        where, values = _condition(wanted, self._dialect)
        ids = self._matching(wanted)
        gone = 0
        for start in range(0, len(ids), BATCH_ROWS):
            batch = ids[start : start + BATCH_ROWS]
            # Asked again: one may have been stored anew since.
            gone += self._remove(
                f"id IN {marks(len(batch))} AND {where}",
                (*batch, *values),
                CacheReason.INVALIDATED,
                to_micros(now),
            )
        return gone

    def stats(self, project_id: str | None = None, *, now: datetime) -> EntryStats:
        """Return figures of one project's entries, or of all; see `EntryStore`."""
        self.flush()
        where, values = _condition(EntryFilter(project_id=project_id), self._dialect)
        rows = self._database.rows(f"{_STATS} WHERE {where}", (self._advance(now), *values))
        if not rows:
            return EntryStats()
        *figures, oldest, newest = rows[0]
        names = ("rows", "size_bytes", "hits", "pinned", "expired", "projects")
        counted = {name: int(figure) for name, figure in zip(names, figures, strict=True)}
        return EntryStats(
            **counted,
            oldest_at=None if oldest is None else from_micros(oldest),
            newest_at=None if newest is None else from_micros(newest),
        )

    def payloads_in_use(self, payload_keys: Sequence[str], *, since: datetime) -> set[str]:
        """Return those of these objects that are still named; see `EntryStore`."""
        if not payload_keys:
            return set()
        listed = marks(len(payload_keys))
        rows = self._database.rows(
            f"SELECT payload_key FROM entry WHERE payload_key IN {listed} UNION "
            f"SELECT payload_key FROM tombstone WHERE payload_key IN {listed} AND gone_at >= ?",
            (*payload_keys, *payload_keys, to_micros(since)),
        )
        return {str(row[0]) for row in rows}

    def flush(self) -> None:
        """Write down the uses that this process has counted; see `EntryStore`."""
        self._write_uses(due_only=False)

    def clear(self) -> None:
        """Remove all entries and all tombstones: every step is a first time again."""

        def work(session: SqlSession) -> None:
            session.count("DELETE FROM entry")
            session.count("DELETE FROM tombstone")

        self._database.transact(work, absent=None)

    def __len__(self) -> int:
        rows = self._database.rows("SELECT count(*) FROM entry")
        return int(rows[0][0]) if rows else 0

    def close(self) -> None:
        """Close idle connections; the next call opens new ones."""
        self._database.close()

    @property
    def _dialect(self) -> Dialect:
        return self._database.dialect

    def _advance(self, now: datetime) -> int:
        micros = to_micros(now)
        if micros > self._latest:
            self._latest = micros
        return self._latest

    def _matching(self, wanted: EntryFilter, order: str = "") -> list[int]:
        where, values = _condition(wanted, self._dialect)
        rows = self._database.rows(f"SELECT id FROM entry WHERE {where} {order}", values)
        return [int(row[0]) for row in rows]

    def _remove(self, where: str, values: Sequence[object], reason: CacheReason, now: int) -> int:
        def work(session: SqlSession) -> int:
            gone = session.rows(f"DELETE FROM entry WHERE {where} {_GONE}", values)
            if gone:
                graves = [value for row in gone for value in (*row, reason.value, now)]
                session.count(_BURY.format(marks=marks(5, len(gone))), graves)
            return len(gone)

        return self._database.transact(work, absent=0)

    def _evict(self, now: int, rows_max: int) -> int:
        # The sums are taken outside the transaction that removes: a store that comes in between
        # is counted by the next sweep.
        crowded = self._database.rows(
            "SELECT project_id, count(*), sum(size_bytes) FROM entry GROUP BY project_id "
            "HAVING count(*) > ? OR sum(size_bytes) > ? ORDER BY project_id",
            (self._caps.rows_max, self._caps.size_bytes_max),
        )
        if crowded:
            # Written down first, so that what was used just now does not go.
            self.flush()
        gone = 0
        for project_id, rows, total_bytes in crowded:
            size_bytes = int(total_bytes)
            victims: list[object] = []
            for row_id, row_bytes in self._database.rows(
                "SELECT id, size_bytes FROM entry WHERE project_id = ? AND pinned = 0 "
                "ORDER BY last_used_at, id LIMIT ?",
                (project_id, rows_max - gone),
            ):
                over = rows - len(victims) > self._caps.rows_max
                if not over and size_bytes <= self._caps.size_bytes_max:
                    break
                victims.append(row_id)
                size_bytes -= row_bytes
            for start in range(0, len(victims), BATCH_ROWS):
                batch = victims[start : start + BATCH_ROWS]
                where = f"id IN {marks(len(batch))} AND pinned = 0"
                gone += self._remove(where, batch, CacheReason.EVICTED, now)
        return gone

    def _write_uses(self, *, due_only: bool) -> None:
        uses = self._uses.take(due_only=due_only)
        for start in range(0, len(uses), USES_ROWS):
            batch = uses[start : start + USES_ROWS]
            values = [value for use in batch for value in (use.row_id, use.hits, use.last_used_at)]
            self._database.count(_USED.format(marks=marks(3, len(batch))), values)


def _condition(wanted: EntryFilter, dialect: Dialect) -> tuple[str, list[object]]:
    """Return a condition over `entry` and its values."""
    parts: list[tuple[str, list[object]]] = [
        (f"{name} = ?", [getattr(wanted, name)])
        for name in ("project_id", "workflow_id", "step_label", "agent_id")
        if getattr(wanted, name) is not None
    ]
    if wanted.key_prefix is not None:
        # Hexadecimal digits alone: nothing in it is a wildcard.
        parts.append(("cache_key LIKE ?", [f"{wanted.key_prefix}%"]))
    digest = {"f.key = ?": wanted.field, "f.value = ?": wanted.field_digest}
    tests = {test: value for test, value in digest.items() if value is not None}
    if tests:
        inner = f"SELECT 1 FROM {dialect.digests} WHERE {' AND '.join(tests)}"
        parts.append((f"EXISTS ({inner})", list(tests.values())))
    if wanted.older_than is not None:
        parts.append(("created_at < ?", [to_micros(wanted.older_than)]))
    if wanted.newer_than is not None:
        parts.append(("created_at >= ?", [to_micros(wanted.newer_than)]))
    where = " AND ".join(test for test, _ in parts) or "1 = 1"
    return where, [value for _, values in parts for value in values]
