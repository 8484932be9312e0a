"""Large payloads in the object store, by digest, around any entry store.

The object is complete before the row that names it is written. It goes in two phases: first the
row, then, by `sweep_objects`, an object that no row names, that no row named lately, and that is
old itself. So a look-up that has just read the row still finds the object; if not, it is a miss.

Put it outside the guards, so that a slow object store is not held against the database:
`PayloadOffload(BreakerEntryStore(DeadlineEntryStore(store), …), BreakerObjectStore(…))`.

Source: specification C7, C23; tests in tests/integration/test_payload_offload.py.
"""

from datetime import datetime, timedelta

from reprise.canonical import sha256_hex
from reprise.errors import BadInput, ObjectMissing
from reprise.model.cache import CacheEntry, Lease
from reprise.ports import EntryStore, ObjectStore
from resources.guarded_stores import GuardedEntryStore, unguarded

INLINE_BYTES_MAX = 64 * 1024
PREFIX = "step-cache/payloads/"
GRACE_HOURS = 24.0
BATCH_OBJECTS = 500


class PayloadOffload(GuardedEntryStore):
    """An `EntryStore` that keeps large payloads in an object store.

    Args:
        inner: Keeps the rows.
        objects: Keeps the payloads.
        inline_bytes_max: Payloads up to this size stay in their row.
    """

    def __init__(
        self, inner: EntryStore, objects: ObjectStore, *, inline_bytes_max: int = INLINE_BYTES_MAX
    ) -> None:
        super().__init__(inner, lookup=unguarded, store=unguarded)
        self._objects = objects
        self._inline_bytes_max = inline_bytes_max

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`.

        One whose object is gone or damaged comes without a payload: its digest then tells the
        cache that it is damaged, and the cache removes it unless it may only read.

        Raises:
            StoreError: The object store gave no answer; the entry stays.
        """
        entry = self._inner.get(project_id, cache_key, now=now)
        if entry is None or entry.payload_key is None:
            return entry
        size_bytes = entry.payload_bytes or 0
        try:
            data = self._objects.get_bytes(entry.payload_key, size_bytes_max=max(1, size_bytes))
        except ObjectMissing:
            data = b""
        whole = sha256_hex(data) == entry.payload_digest
        payload = data.decode() if whole else ""
        return entry.model_copy(
            update={"payload_key": None, "payload_bytes": None, "payload": payload}
        )

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        """Insert or replace an entry, its payload first when it is large; see `EntryStore`."""
        # A character takes one byte or more, and four at most.
        if len(entry.payload) * 4 <= self._inline_bytes_max:
            return self._inner.put(entry, lease=lease)
        try:
            data = entry.payload.encode()
        except UnicodeEncodeError as error:
            message = f"entry {entry.cache_key[:12]}: its payload is no text: {error}"
            raise BadInput(message) from error
        if len(data) <= self._inline_bytes_max:
            return self._inner.put(entry, lease=lease)
        digest = sha256_hex(data)
        key = f"{PREFIX}{entry.project_id}/{digest[:2]}/{digest}.json"
        # Also when it is there: that makes it young again for a sweep that looks at it just now,
        # and repairs one that is damaged.
        self._objects.put_bytes(key, data, media_type="application/json")
        held = {"payload": "", "payload_key": key, "payload_bytes": len(data)}
        return self._inner.put(entry.model_copy(update=held), lease=lease)

    def sweep_objects(
        self, *, now: datetime, objects_max: int = 1000, grace_hours: float = GRACE_HOURS
    ) -> int:
        """Remove objects that no row names; return how many went.

        Args:
            now: The time.
            objects_max: Stop after so many.
            grace_hours: What is younger, or was named since, stays.
        """
        since = now - timedelta(hours=grace_hours)
        gone = 0
        batch: list[str] = []
        for info in self._objects.scan(PREFIX):
            if info.modified_at < since:
                batch.append(info.key)
            if len(batch) == BATCH_OBJECTS:
                gone += self._remove_unused(batch, since, objects_max - gone)
                batch = []
            if gone >= objects_max:
                return gone
        return gone + self._remove_unused(batch, since, objects_max - gone)

    def _remove_unused(self, keys: list[str], since: datetime, objects_max: int) -> int:
        in_use = self._inner.payloads_in_use(keys, since=since)
        unused = [key for key in keys if key not in in_use][:objects_max]
        for key in unused:
            self._objects.delete(key)
        return len(unused)
