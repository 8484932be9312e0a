"""Cache entries in this process's memory: a bounded LRU, for tests and for runs that keep nothing.

Extend tests/integration/test_entry_store_contract.py, which all entry stores pass.

Source: specification C12, C13, C15, C17.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reprise.model.cache import CacheEntry, EntryCaps, EntryFilter, EntryStats, EntrySummary, Lease
from reprise.model.result import CacheReason
from reprise.ports import LeaseStore
from resources.entry_listing import is_same, means, stats_of, summary_of, victims_of

TOMBSTONE_DAYS = 30
TOMBSTONES_PER_ENTRY_MAX = 8

_Key = tuple[str, str]


@dataclass
class _Kept:
    entry: CacheEntry
    last_used_at: datetime
    hits: int = 0
    pinned: bool = False

    def is_expired(self, now: datetime | None) -> bool:
        return not self.pinned and now is not None and self.entry.expires_at <= now

    def summary(self) -> EntrySummary:
        return summary_of(
            self.entry, last_used_at=self.last_used_at, hits=self.hits, pinned=self.pinned
        )


@dataclass(frozen=True)
class _Grave:
    reason: CacheReason
    gone_at: datetime | None
    payload_key: str | None


class MemoryEntryStore:
    """An `EntryStore` in memory; safe among threads.

    What goes in and out is a copy: a caller that changes its entry changes nobody else's.

    Args:
        capacity: Most entries kept; the least recently used that is not pinned goes first.
        caps: How much one project may keep after a sweep.
        leases: Where leases are asked for at a store; None when none are given.

    Raises:
        ValueError: The capacity is not above 0.
    """

    def __init__(
        self,
        capacity: int = 128,
        *,
        caps: EntryCaps | None = None,
        leases: LeaseStore | None = None,
    ) -> None:
        if capacity <= 0:
            message = f"capacity is {capacity}; it has to be above 0"
            raise ValueError(message)
        self._capacity = capacity
        self._caps = caps or EntryCaps()
        self._leases = leases
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._graves: OrderedDict[_Key, _Grave] = OrderedDict()
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
            kept = self._kept.get(key)
            if kept is None or kept.is_expired(latest):
                self._misses += 1
                return None
            self._hits += 1
            kept.hits += 1
            kept.last_used_at = max(kept.last_used_at, latest)
            self._kept.move_to_end(key)
            entry = kept.entry
        return entry.model_copy(deep=True)

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        """Insert or replace an entry; the least recently used goes when there are too many."""
        if lease is not None and (self._leases is None or not self._leases.holds(lease)):
            return False
        key = (entry.project_id, entry.cache_key)
        copied = entry.model_copy(deep=True)
        with self._lock:
            old = self._kept.get(key)
            pinned = old is not None and old.pinned
            self._kept[key] = _Kept(copied, copied.created_at, pinned=pinned)
            self._kept.move_to_end(key)
            if len(self._kept) > self._capacity:
                # When all are pinned, the oldest of them goes: the bound is on this process.
                loose = (known for known, kept in self._kept.items() if not kept.pinned)
                self._bury(next(loose, next(iter(self._kept))), CacheReason.EVICTED, self._latest)
        return True

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
        key = (project_id, cache_key)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and (seen is None or is_same(kept.entry, seen)):
                self._bury(key, reason, now)

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key is not valid any more; see `EntryStore`.

        "The last 30 days" and "expired" are counted from the latest time that this object was told.
        """
        key = (project_id, cache_key)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                return CacheReason.EXPIRED if kept.is_expired(self._latest) else None
            grave = self._graves.get(key)
            return None if grave is None or self._is_old(grave) else grave.reason

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry of a step, without its payload; see `EntryStore`."""
        wanted = EntryFilter(project_id=project_id, workflow_id=workflow_id, step_label=step_label)
        with self._lock:
            found = [kept.entry for kept in self._kept.values() if means(wanted, kept.entry)]
        if not found:
            return None
        newest = max(found, key=lambda entry: entry.created_at)
        return _bare(newest)

    def of_key(self, project_id: str, cache_key: str) -> CacheEntry | None:
        """Return the entry of a key, without its payload; see `EntryStore`."""
        with self._lock:
            kept = self._kept.get((project_id, cache_key))
        return None if kept is None else _bare(kept.entry)

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove entries that expired or are over the caps, and tombstones older than 30 days."""
        with self._lock:
            latest = self._advance(now)
            expired = [key for key, kept in self._kept.items() if kept.is_expired(latest)]
            for key in expired[:rows_max]:
                self._bury(key, CacheReason.EXPIRED, latest)
            gone = min(len(expired), rows_max)
            summaries = {key: kept.summary() for key, kept in self._kept.items()}
            for key in victims_of(summaries, self._caps)[: rows_max - gone]:
                self._bury(key, CacheReason.EVICTED, latest)
                gone += 1
            for key in [key for key, grave in self._graves.items() if self._is_old(grave)]:
                del self._graves[key]
        return gone

    def pin(self, project_id: str, cache_key: str, *, on: bool) -> bool:
        """Keep an entry from expiring and from being evicted, or no longer; see `EntryStore`."""
        with self._lock:
            kept = self._kept.get((project_id, cache_key))
            if kept is not None:
                kept.pinned = on
        return kept is not None

    def find(self, wanted: EntryFilter) -> Iterator[EntrySummary]:
        """Yield the entries that a filter means, the newest first; see `EntryStore`."""
        with self._lock:
            found = [kept.summary() for kept in self._kept.values() if means(wanted, kept.entry)]
        yield from sorted(found, key=lambda summary: summary.created_at, reverse=True)

    def invalidate(self, wanted: EntryFilter, *, now: datetime) -> int:
        """Remove the entries that a filter means; see `EntryStore`."""
        with self._lock:
            found = [key for key, kept in self._kept.items() if means(wanted, kept.entry)]
            for key in found:
                self._bury(key, CacheReason.INVALIDATED, now)
        return len(found)

    def stats(self, project_id: str | None = None, *, now: datetime) -> EntryStats:
        """Return figures of one project's entries, or of all; see `EntryStore`."""
        with self._lock:
            latest = self._advance(now)
        return stats_of(self.find(EntryFilter(project_id=project_id)), now=latest)

    def payloads_in_use(self, payload_keys: Sequence[str], *, since: datetime) -> set[str]:
        """Return those of these objects that are still named; see `EntryStore`."""
        with self._lock:
            named = {kept.entry.payload_key for kept in self._kept.values()}
            named |= {
                grave.payload_key
                for grave in self._graves.values()
                if grave.gone_at is None or grave.gone_at >= since
            }
        return {key for key in payload_keys if key in named}

    def flush(self) -> None:
        """Do nothing: uses are counted where they happen."""

    def clear(self) -> None:
        """Remove all entries and all tombstones: every step is a first time again."""
        with self._lock:
            self._kept.clear()
            self._graves.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def _advance(self, now: datetime) -> datetime:
        if now.tzinfo is None:
            message = f"{now!r} has no time zone; give an aware time, such as datetime.now(UTC)"
            raise ValueError(message)
        # A clock that steps back must not bring back what was already found expired.
        if self._latest is None or now > self._latest:
            self._latest = now
        return self._latest

    def _is_old(self, grave: _Grave) -> bool:
        if self._latest is None or grave.gone_at is None:
            return False
        return grave.gone_at <= self._latest - timedelta(days=TOMBSTONE_DAYS)

    def _bury(self, key: _Key, reason: CacheReason, gone_at: datetime | None) -> None:
        entry = self._kept.pop(key).entry
        self._graves[key] = _Grave(reason, gone_at, entry.payload_key)
        self._graves.move_to_end(key)
        while len(self._graves) > self._capacity * TOMBSTONES_PER_ENTRY_MAX:
            self._graves.popitem(last=False)


def _bare(entry: CacheEntry) -> CacheEntry:
    bare = {"payload": "", "payload_key": None, "payload_bytes": None}
    return entry.model_copy(update=bare, deep=True)
