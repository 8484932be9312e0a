"""Stores whose calls on a step's path go through guards; deadline.py and breaker.py give those.

What only people and schedules ask (list, figures, invalidate, pin, clear) takes as long as it
takes and is always tried.

Source: specification C7.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from reprise.model.cache import CacheEntry, EntryFilter, EntryStats, EntrySummary, Lease
from reprise.model.result import CacheReason
from reprise.model.stored import ObjectInfo
from reprise.ports import EntryStore, LeaseStore, ObjectStore

_Result = TypeVar("_Result")


class Guard(Protocol):
    """Runs a call, or refuses it."""

    def __call__(self, work: Callable[[], _Result], /) -> _Result:
        """Return what `work` returns, or raise what it raises, or a `StoreError`."""
        ...


def unguarded(work: Callable[[], _Result], /) -> _Result:
    """Run the call as it is: the guard that refuses nothing."""
    return work()


class GuardedEntryStore:
    """An `EntryStore` whose calls on a step's path go through guards.

    Args:
        inner: The store.
        lookup: Guards `get`, `tombstone`, `nearest` and `of_key`.
        store: Guards `put`, `delete`, `sweep` and `flush`.
    """

    def __init__(self, inner: EntryStore, *, lookup: Guard, store: Guard) -> None:
        self._inner = inner
        self._lookup = lookup
        self._store = store

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`."""
        return self._lookup(lambda: self._inner.get(project_id, cache_key, now=now))

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        """Insert or replace an entry; see `EntryStore`."""
        return self._store(lambda: self._inner.put(entry, lease=lease))

    def delete(
        self,
        project_id: str,
        cache_key: str,
        *,
        reason: CacheReason,
        now: datetime,
        seen: CacheEntry | None = None,
    ) -> None:
        """Remove an entry and leave a tombstone; see `EntryStore`."""
        self._store(
            lambda: self._inner.delete(project_id, cache_key, reason=reason, now=now, seen=seen)
        )

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key went; see `EntryStore`."""
        return self._lookup(lambda: self._inner.tombstone(project_id, cache_key))

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry of a step; see `EntryStore`."""
        return self._lookup(lambda: self._inner.nearest(project_id, workflow_id, step_label))

    def of_key(self, project_id: str, cache_key: str) -> CacheEntry | None:
        """Return the entry of a key; see `EntryStore`."""
        return self._lookup(lambda: self._inner.of_key(project_id, cache_key))

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove expired entries and those over the caps; see `EntryStore`."""
        return self._store(lambda: self._inner.sweep(now=now, rows_max=rows_max))

    def pin(self, project_id: str, cache_key: str, *, on: bool) -> bool:
        """Keep an entry from expiring and from being evicted, or no longer; see `EntryStore`."""
        return self._inner.pin(project_id, cache_key, on=on)

    def find(self, wanted: EntryFilter) -> Iterator[EntrySummary]:
        """Yield the entries that a filter means; see `EntryStore`."""
        return self._inner.find(wanted)

    def invalidate(self, wanted: EntryFilter, *, now: datetime) -> int:
        """Remove the entries that a filter means; see `EntryStore`."""
        return self._inner.invalidate(wanted, now=now)

    def stats(self, project_id: str | None = None, *, now: datetime) -> EntryStats:
        """Return figures; see `EntryStore`."""
        return self._inner.stats(project_id, now=now)

    def payloads_in_use(self, payload_keys: Sequence[str], *, since: datetime) -> set[str]:
        """Return those of these objects that are still named; see `EntryStore`."""
        return self._inner.payloads_in_use(payload_keys, since=since)

    def flush(self) -> None:
        """Write down the uses that were counted; see `EntryStore`."""
        self._store(self._inner.flush)

    def clear(self) -> None:
        """Remove all entries."""
        self._inner.clear()

    def __len__(self) -> int:
        return len(self._inner)


class GuardedLeaseStore:
    """A `LeaseStore` whose every call goes through a guard.

    Args:
        inner: The store.
        guard: The guard.
    """

    def __init__(self, inner: LeaseStore, guard: Guard) -> None:
        self._inner = inner
        self._guard = guard

    def acquire(
        self, project_id: str, cache_key: str, *, holder: str, seconds: float
    ) -> Lease | None:
        """Take the lease, or None; see `LeaseStore`."""
        return self._guard(
            lambda: self._inner.acquire(project_id, cache_key, holder=holder, seconds=seconds)
        )

    def renew(self, lease: Lease, *, seconds: float) -> bool:
        """Have it for so long from now; see `LeaseStore`."""
        return self._guard(lambda: self._inner.renew(lease, seconds=seconds))

    def release(self, lease: Lease) -> None:
        """Give it up; see `LeaseStore`."""
        self._guard(lambda: self._inner.release(lease))

    def remaining_seconds(self, project_id: str, cache_key: str) -> float:
        """Return how long the present holder still has it; see `LeaseStore`."""
        return self._guard(lambda: self._inner.remaining_seconds(project_id, cache_key))

    def holds(self, lease: Lease) -> bool:
        """Answer whether nobody took it since; see `LeaseStore`."""
        return self._guard(lambda: self._inner.holds(lease))


class GuardedObjectStore:
    """An `ObjectStore` with guarded calls: `head` by one, those that move bytes by another.

    Args:
        inner: The store.
        head: Guards `head`.
        transfer: Guards `put_bytes`, `get_bytes` and `delete`; None leaves them as they are.
    """

    def __init__(self, inner: ObjectStore, *, head: Guard, transfer: Guard | None = None) -> None:
        self._inner = inner
        self._head = head
        self._transfer: Guard = transfer or unguarded

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object, or None; see `ObjectStore`."""
        return self._head(lambda: self._inner.head(key))

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        """Store bytes; see `ObjectStore`."""
        return self._transfer(lambda: self._inner.put_bytes(key, data, media_type=media_type))

    def put_file(self, key: str, path: Path, *, media_type: str | None = None) -> ObjectInfo:
        """Store a file's bytes; see `ObjectStore`."""
        return self._inner.put_file(key, path, media_type=media_type)

    def get_bytes(self, key: str, *, size_bytes_max: int = 64 * 2**20) -> bytes:
        """Return an object's bytes; see `ObjectStore`."""
        return self._transfer(lambda: self._inner.get_bytes(key, size_bytes_max=size_bytes_max))

    def fetch(self, key: str, target: Path) -> None:
        """Copy an object to a local file; see `ObjectStore`."""
        self._inner.fetch(key, target)

    def local_path(self, key: str) -> Path | None:
        """Return a path that can be read in place, or None; see `ObjectStore`."""
        return self._inner.local_path(key)

    def delete(self, key: str) -> None:
        """Remove an object; see `ObjectStore`."""
        self._transfer(lambda: self._inner.delete(key))

    def scan(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key begins with the prefix; see `ObjectStore`."""
        return self._inner.scan(prefix)

    def url(self, key: str) -> str:
        """Return where a person finds it; see `ObjectStore`."""
        return self._inner.url(key)
