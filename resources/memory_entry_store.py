"""Cache entries in this process's memory: a bounded LRU, for tests and for runs that keep nothing.

Extend tests/integration/test_entry_store_contract.py, which all entry stores pass.

Source: specification C12, C13, C15, C17.
"""

import threading
from collections import OrderedDict
from datetime import datetime, timedelta

from reprise.model.result import CacheReason
from reprise.ports import CacheEntry

TOMBSTONE_DAYS = 30
TOMBSTONES_PER_ENTRY_MAX = 8

_Key = tuple[str, str]


class MemoryEntryStore:
    """An `EntryStore` in memory; safe among threads.

    What goes in and out is a copy: a caller that changes its entry changes nobody else's.

    Args:
        capacity: Most entries kept; the least recently used goes first.

    Raises:
        ValueError: The capacity is not above 0.
    """

    def __init__(self, capacity: int = 128) -> None:
        if capacity <= 0:
            message = f"capacity is {capacity}; it has to be above 0"
            raise ValueError(message)
        self._capacity = capacity
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, CacheEntry] = OrderedDict()
        self._tombstones: OrderedDict[_Key, tuple[CacheReason, datetime | None]] = OrderedDict()
        self._latest: datetime | None = None
        self._hits = 0
        self._misses = 0

    @property
    def hits(self) -> int:
        """How many calls of `get` found a valid entry."""
        return self._hits

    @property
    def misses(self) -> int:
        """How many calls of `get` found none."""
        return self._misses

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`."""
        key = (project_id, cache_key)
        with self._lock:
            latest = self._advance(now)
            entry = self._entries.get(key)
            if entry is None or entry.expires_at <= latest:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end(key)
        return entry.model_copy(deep=True)

    def put(self, entry: CacheEntry) -> None:
        """Insert or replace an entry; the least recently used goes when there are too many."""
        key = (entry.project_id, entry.cache_key)
        kept = entry.model_copy(deep=True)
        with self._lock:
            self._entries[key] = kept
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                evicted, _ = self._entries.popitem(last=False)
                self._bury(evicted, CacheReason.EVICTED, self._latest)

    def delete(
        self, project_id: str, cache_key: str, *, reason: CacheReason, now: datetime
    ) -> None:
        """Remove an entry, leaving a tombstone when there was one; see `EntryStore`."""
        key = (project_id, cache_key)
        with self._lock:
            if self._entries.pop(key, None) is not None:
                self._bury(key, reason, now)

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key is not valid any more; see `EntryStore`.

        "The last 30 days" and "expired" are counted from the latest time that this object was told.
        """
        key = (project_id, cache_key)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                expired = self._latest is not None and entry.expires_at <= self._latest
                return CacheReason.EXPIRED if expired else None
            reason, gone_at = self._tombstones.get(key, (None, None))
            if reason is None or self._is_old(gone_at):
                return None
            return reason

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry of a step, without its payload; see `EntryStore`."""
        step = (project_id, workflow_id, step_label)
        with self._lock:
            found = [
                entry
                for entry in self._entries.values()
                if (entry.project_id, entry.workflow_id, entry.step_label) == step
            ]
        if not found:
            return None
        newest = max(found, key=lambda entry: entry.created_at)
        return newest.model_copy(update={"payload": ""}, deep=True)

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove up to so many expired entries, and tombstones older than 30 days."""
        with self._lock:
            latest = self._advance(now)
            expired = [key for key, entry in self._entries.items() if entry.expires_at <= latest]
            for key in expired[:rows_max]:
                del self._entries[key]
                self._bury(key, CacheReason.EXPIRED, latest)
            for key in [k for k, (_, gone_at) in self._tombstones.items() if self._is_old(gone_at)]:
                del self._tombstones[key]
        return min(len(expired), rows_max)

    def clear(self) -> None:
        """Remove all entries and all tombstones: every step is a first time again."""
        with self._lock:
            self._entries.clear()
            self._tombstones.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def _advance(self, now: datetime) -> datetime:
        if now.tzinfo is None:
            message = f"{now!r} has no time zone; give an aware time, such as datetime.now(UTC)"
            raise ValueError(message)
        # A clock that steps back must not bring back what was already found expired.
        if self._latest is None or now > self._latest:
            self._latest = now
        return self._latest

    def _is_old(self, gone_at: datetime | None) -> bool:
        if self._latest is None or gone_at is None:
            return False
        return gone_at <= self._latest - timedelta(days=TOMBSTONE_DAYS)

    def _bury(self, key: _Key, reason: CacheReason, gone_at: datetime | None) -> None:
        self._tombstones[key] = (reason, gone_at)
        self._tombstones.move_to_end(key)
        while len(self._tombstones) > self._capacity * TOMBSTONES_PER_ENTRY_MAX:
            self._tombstones.popitem(last=False)
