"""Cache entries in a store of the user's own: any object with `get(key)` and `set(key, value)`.

Keys and values are text; a value is JSON, and nothing is run by reading one. `get` answers None
for a key that is not there, and may answer bytes. What else the object offers is used:

    clear()        `clear`
    keys()         listing, figures, invalidation by filter, sweeps, and an exact `len`
    delete(key)    marks of entries that went are removed after 30 days
    __len__()      `len` without `keys()`: everything in the object counts then

Without them the methods that need them raise `BadInput`; a sweep then removes nothing, since
expiry is tested on reading. Writers that share the object are as safe as it makes them; a fence is
checked just before the write.

Extend tests/integration/test_entry_store_contract.py; tests/unit/resources/test_user_entry_store.py
has what differs without the rest of the methods.

Source: specification C12, C15.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from reprise.canonical import sha256_hex
from reprise.errors import BadInput, StoreError
from reprise.model.base import Value
from reprise.model.cache import CacheEntry, EntryCaps, EntryFilter, EntryStats, EntrySummary, Lease
from reprise.model.result import CacheReason
from reprise.ports import LeaseStore
from resources.entry_listing import is_same, means, stats_of, summary_of, victims_of

TOMBSTONE_DAYS = 30
ENTRY_PREFIX = "reprise/entry/"
STEP_PREFIX = "reprise/step/"
_BARE = {"payload": "", "payload_key": None, "payload_bytes": None}
USES_MAX = 1000
"""Uses of so many entries are written down without being asked."""


class _Record(Value):
    """What a value holds: an entry, or why it went."""

    entry: CacheEntry | None = None
    pinned: bool = False
    hits: int = 0
    last_used_at: datetime | None = None
    reason: CacheReason | None = None
    gone_at: datetime | None = None
    payload_key: str | None = None


class UserEntryStore:
    """An `EntryStore` over an object with `get` and `set`.

    Args:
        store: The object.
        caps: How much one project may keep, where the object offers `keys()`.
        leases: Where leases are asked for at a store; None when none are given.

    Raises:
        TypeError: The object lacks `get` or `set`.
    """

    def __init__(
        self, store: object, *, caps: EntryCaps | None = None, leases: LeaseStore | None = None
    ) -> None:
        for name in ("get", "set"):
            if not callable(getattr(store, name, None)):
                message = (
                    f"{type(store).__name__} object cannot be a cache store: it has no method"
                    f" {name!r}; give an object with get(key) and set(key, value)"
                )
                raise TypeError(message)
        self._store: Any = store
        self._caps = caps or EntryCaps()
        self._leases = leases
        # A clock that steps back must not bring back what was already found expired.
        self._latest: datetime | None = None
        self._uses: dict[str, tuple[int, datetime]] = {}

    @property
    def can_list(self) -> bool:
        """Whether the object offers `keys()`."""
        return self._offers("keys")

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`."""
        latest = self._advance(now)
        key = _entry_key(project_id, cache_key)
        record = self._read(key)
        if record is None or record.entry is None:
            return None
        entry = record.entry
        if (entry.project_id, entry.cache_key) != (project_id, cache_key):
            # Another's value under this key: never an answer.
            self._bury(key, record, CacheReason.PAYLOAD_DAMAGED, now)
            return None
        if not record.pinned and entry.expires_at <= latest:
            return None
        hits, _ = self._uses.get(key, (0, latest))
        self._uses[key] = (hits + 1, latest)
        if len(self._uses) >= USES_MAX:
            self.flush()
        return entry

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        """Insert or replace an entry; see `EntryStore`."""
        if lease is not None and (self._leases is None or not self._leases.holds(lease)):
            return False
        key = _entry_key(entry.project_id, entry.cache_key)
        old = self._read(key)
        pinned = old is not None and old.pinned
        self._write(key, _Record(entry=entry, pinned=pinned))
        step = _step_key(entry.project_id, entry.workflow_id, entry.step_label)
        newest = self._read(step)
        if newest is None or newest.entry is None or newest.entry.created_at <= entry.created_at:
            self._write(step, _Record(entry=entry.model_copy(update=_BARE)))
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
        """Put a mark in the place of an entry when there is one; see `EntryStore`."""
        key = _entry_key(project_id, cache_key)
        record = self._read(key)
        if record is None or record.entry is None:
            return
        if seen is None or is_same(record.entry, seen):
            self._bury(key, record, reason, now)

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key is not valid any more; see `EntryStore`."""
        record = self._read(_entry_key(project_id, cache_key))
        if record is None:
            return None
        if record.entry is not None:
            return CacheReason.EXPIRED if self._is_expired(record) else None
        return None if self._is_old(record) else record.reason

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry that a step stored, without its payload; see `EntryStore`.

        It explains also when the entry itself went since.
        """
        record = self._read(_step_key(project_id, workflow_id, step_label))
        return None if record is None else record.entry

    def of_key(self, project_id: str, cache_key: str) -> CacheEntry | None:
        """Return the entry of a key, without its payload; see `EntryStore`."""
        record = self._read(_entry_key(project_id, cache_key))
        entry = None if record is None else record.entry
        if entry is None or (entry.project_id, entry.cache_key) != (project_id, cache_key):
            return None
        return entry.model_copy(update=_BARE)

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove what expired or is over the caps, where the object lists its keys."""
        self._advance(now)
        if not self.can_list:
            return 0
        self.flush()
        records = list(self._records())
        expired = [(key, record) for key, record in records if self._is_expired(record)]
        for key, record in expired[:rows_max]:
            self._bury(key, record, CacheReason.EXPIRED, now)
        gone = min(len(expired), rows_max)
        living = {key: record for key, record in records if not self._is_expired(record)}
        summaries = {key: _summary(record) for key, record in living.items() if record.entry}
        for key in victims_of(summaries, self._caps)[: rows_max - gone]:
            self._bury(key, living[key], CacheReason.EVICTED, now)
            gone += 1
        if self._offers("delete"):
            for key, record in records:
                if record.entry is None and self._is_old(record):
                    self._call("delete", key)
        return gone

    def pin(self, project_id: str, cache_key: str, *, on: bool) -> bool:
        """Keep an entry from expiring and from being evicted, or no longer; see `EntryStore`."""
        key = _entry_key(project_id, cache_key)
        record = self._read(key)
        if record is None or record.entry is None:
            return False
        self._write(key, record.model_copy(update={"pinned": on}))
        return True

    def find(self, wanted: EntryFilter) -> Iterator[EntrySummary]:
        """Yield the entries that a filter means, the newest first; see `EntryStore`."""
        found = [_summary(record) for _, record in self._meant(wanted)]
        yield from sorted(found, key=lambda summary: summary.created_at, reverse=True)

    def invalidate(self, wanted: EntryFilter, *, now: datetime) -> int:
        """Remove the entries that a filter means; see `EntryStore`."""
        meant = list(self._meant(wanted))
        for key, record in meant:
            self._bury(key, record, CacheReason.INVALIDATED, now)
        return len(meant)

    def stats(self, project_id: str | None = None, *, now: datetime) -> EntryStats:
        """Return figures of one project's entries, or of all; see `EntryStore`."""
        latest = self._advance(now)
        self.flush()
        return stats_of(self.find(EntryFilter(project_id=project_id)), now=latest)

    def payloads_in_use(self, payload_keys: Sequence[str], *, since: datetime) -> set[str]:
        """Return those of these objects that are still named; see `EntryStore`."""
        if not payload_keys:
            return set()
        named = set()
        for _, record in self._records():
            if record.entry is not None:
                named.add(record.entry.payload_key)
            elif record.gone_at is None or record.gone_at >= since:
                named.add(record.payload_key)
        return {key for key in payload_keys if key in named}

    def flush(self) -> None:
        """Write down the uses that this object has counted; see `EntryStore`."""
        while self._uses:
            try:
                key, (hits, used_at) = self._uses.popitem()
            except KeyError:
                # Another thread took the last one.
                return
            record = self._read(key)
            if record is not None and record.entry is not None:
                uses = {"hits": record.hits + hits, "last_used_at": used_at}
                self._write(key, record.model_copy(update=uses))

    def clear(self) -> None:
        """Remove everything, with the object's own `clear`; see `EntryStore`.

        Raises:
            BadInput: It has none.
        """
        self._require("clear", "empty itself")
        self._call("clear")

    def __len__(self) -> int:
        if self.can_list:
            return sum(record.entry is not None for _, record in self._records())
        self._require("__len__", "count")
        return int(self._call("__len__"))

    def _meant(self, wanted: EntryFilter) -> Iterator[tuple[str, _Record]]:
        for key, record in self._records():
            if record.entry is not None and means(wanted, record.entry):
                yield key, record

    def _records(self) -> Iterator[tuple[str, _Record]]:
        self._require("keys", "list")
        for name in self._ask(lambda: list(self._store.keys())):
            key = name.decode() if isinstance(name, bytes) else str(name)
            record = self._read(key) if key.startswith(ENTRY_PREFIX) else None
            if record is not None:
                yield key, record

    def _offers(self, name: str) -> bool:
        return callable(getattr(self._store, name, None))

    def _require(self, name: str, what: str) -> None:
        if not self._offers(name):
            message = f"the cache store {type(self._store).__name__} cannot {what}: no {name!r}"
            raise BadInput(message)

    def _read(self, key: str) -> _Record | None:
        value = self._ask(lambda: self._store.get(key))
        if value is None:
            return None
        try:
            return _Record.model_validate_json(value)
        except ValidationError:
            # Not what was written here. It cannot be an answer, and the next store replaces it.
            return _Record(reason=CacheReason.PAYLOAD_DAMAGED)

    def _write(self, key: str, record: _Record) -> None:
        try:
            text = record.model_dump_json()
        except ValueError as error:
            message = f"cache store: an entry is no text: {error}"
            raise BadInput(message) from error
        self._call("set", key, text)

    def _bury(self, key: str, record: _Record, reason: CacheReason, now: datetime) -> None:
        payload_key = None if record.entry is None else record.entry.payload_key
        self._write(key, _Record(reason=reason, gone_at=now, payload_key=payload_key))

    def _call(self, name: str, *values: object) -> Any:
        return self._ask(lambda: getattr(self._store, name)(*values))

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            # Whatever a stranger's code raises: the breaker counts it (specification C7).
            message = f"the cache store {type(self._store).__name__} failed: {error!r}"
            raise StoreError(message) from error

    def _advance(self, now: datetime) -> datetime:
        if now.tzinfo is None:
            message = f"{now!r} has no time zone; give an aware time, such as datetime.now(UTC)"
            raise ValueError(message)
        if self._latest is None or now > self._latest:
            self._latest = now
        return self._latest

    def _is_expired(self, record: _Record) -> bool:
        if record.entry is None or record.pinned or self._latest is None:
            return False
        return record.entry.expires_at <= self._latest

    def _is_old(self, record: _Record) -> bool:
        if self._latest is None or record.gone_at is None:
            return False
        return record.gone_at <= self._latest - timedelta(days=TOMBSTONE_DAYS)


def _entry_key(project_id: str, cache_key: str) -> str:
    # The key's length is fixed, so the project may hold any character.
    return f"{ENTRY_PREFIX}{cache_key}/{project_id}"


def _step_key(project_id: str, workflow_id: str, step_label: str) -> str:
    parts = (project_id, workflow_id, step_label)
    return STEP_PREFIX + sha256_hex("".join(f"{len(part)}:{part}" for part in parts))


def _summary(record: _Record) -> EntrySummary:
    assert record.entry is not None
    return summary_of(
        record.entry, last_used_at=record.last_used_at, hits=record.hits, pinned=record.pinned
    )
