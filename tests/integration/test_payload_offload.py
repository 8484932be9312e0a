"""Large payloads in the object store: order of writing, damage, loss, and removal in two phases."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reprise.canonical import sha256_hex
from reprise.errors import ObjectMissing, StoreError
from reprise.model.cache import CacheEntry, EntryFilter
from reprise.model.result import CacheReason
from reprise.model.stored import ObjectInfo
from reprise.ports import EntryStore
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_object_store import MemoryObjectStore
from resources.payload_offload import PREFIX, PayloadOffload
from resources.postgres_entry_store import PostgresEntryStore
from resources.sqlite_entry_store import SqliteEntryStore
from tests.cache_entries import entry, key_of
from tests.postgres_server import PostgresTestServer

NOW = datetime.now(UTC)
"""The objects are dated by the store's own clock."""

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def sized(name: str, size: int) -> CacheEntry:
    payload = (name * size)[:size]
    return entry(name, created_at=NOW, payload=payload, payload_digest=sha256_hex(payload))


def postgres_store(request: pytest.FixtureRequest, folder: Path) -> EntryStore:
    server: PostgresTestServer = request.getfixturevalue("postgres")
    store = PostgresEntryStore(server.url, schema=server.new_schema())
    request.addfinalizer(store.close)
    return store


ROWS: dict[str, Callable[[pytest.FixtureRequest, Path], EntryStore]] = {
    "memory": lambda _, __: MemoryEntryStore(),
    "sqlite": lambda _, folder: SqliteEntryStore(folder / "cache.sqlite"),
    "postgres": postgres_store,
}


@pytest.fixture(params=ROWS)
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> EntryStore:
    return ROWS[request.param](request, tmp_path)


@pytest.fixture
def objects() -> MemoryObjectStore:
    return MemoryObjectStore()


@pytest.fixture
def store(rows: EntryStore, objects: MemoryObjectStore) -> PayloadOffload:
    return PayloadOffload(rows, objects)


def kept(objects: MemoryObjectStore) -> list[str]:
    return [info.key for info in objects.scan(PREFIX)]


def test_a_result_of_24_kilobytes_stays_in_its_row(
    store: PayloadOffload, rows: EntryStore, objects: MemoryObjectStore
) -> None:
    stored = sized("a", 24 * 1024)
    assert store.put(stored)
    assert kept(objects) == []
    assert rows.get("p1", key_of("a"), now=NOW) == stored
    assert store.get("p1", key_of("a"), now=NOW) == stored


def test_a_result_of_2_megabytes_goes_to_the_object_store_by_its_digest(
    store: PayloadOffload, rows: EntryStore, objects: MemoryObjectStore
) -> None:
    stored = sized("a", 2 * 10**6)
    assert store.put(stored)
    digest = sha256_hex("a" * 2 * 10**6)
    assert kept(objects) == [f"step-cache/payloads/p1/{digest[:2]}/{digest}.json"]
    row = rows.get("p1", key_of("a"), now=NOW)
    assert row is not None
    assert (row.payload, row.payload_bytes) == ("", 2 * 10**6)
    assert store.get("p1", key_of("a"), now=NOW) == stored
    assert store.stats(now=NOW).size_bytes == 2 * 10**6


@pytest.mark.parametrize(("character", "offloaded"), [("x", False), ("é", True), ("🎬", True)])
def test_the_limit_is_in_bytes(character: str, offloaded: bool) -> None:
    objects = MemoryObjectStore()
    store = PayloadOffload(MemoryEntryStore(), objects, inline_bytes_max=1000)
    stored = sized(character, 1000)
    store.put(stored)
    assert bool(kept(objects)) is offloaded
    assert store.get("p1", key_of(character), now=NOW) == stored


class FailingObjectStore(MemoryObjectStore):
    """Refuses what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        if self.error is not None:
            raise self.error
        return super().put_bytes(key, data, media_type=media_type)

    def get_bytes(self, key: str, *, size_bytes_max: int = 64 * 2**20) -> bytes:
        if self.error is not None:
            raise self.error
        return super().get_bytes(key, size_bytes_max=size_bytes_max)


def test_no_row_is_written_before_its_object(rows: EntryStore) -> None:
    objects = FailingObjectStore()
    objects.error = StoreError("503")
    with pytest.raises(StoreError, match="503"):
        PayloadOffload(rows, objects).put(sized("a", 100_000))
    assert len(rows) == 0


def test_an_entry_whose_object_is_gone_comes_without_a_payload(
    store: PayloadOffload, objects: MemoryObjectStore
) -> None:
    store.put(sized("a", 100_000))
    objects.delete(kept(objects)[0])
    found = store.get("p1", key_of("a"), now=NOW)
    assert found is not None
    assert found.payload == ""
    assert len(store) == 1


@pytest.mark.parametrize("data", [b"", b"x" * 99_999, b"y" * 100_000])
def test_an_entry_whose_object_is_damaged_comes_without_a_payload_until_stored_anew(
    store: PayloadOffload, objects: MemoryObjectStore, data: bytes
) -> None:
    stored = sized("a", 100_000)
    store.put(stored)
    objects.put_bytes(kept(objects)[0], data)
    found = store.get("p1", key_of("a"), now=NOW)
    assert found is not None
    assert found.payload == ""
    store.put(stored)
    assert store.get("p1", key_of("a"), now=NOW) == stored


@pytest.mark.parametrize("error", [StoreError("403"), StoreError("timeout")])
def test_an_object_store_that_does_not_answer_leaves_the_row(
    rows: EntryStore, error: StoreError
) -> None:
    objects = FailingObjectStore()
    store = PayloadOffload(rows, objects)
    stored = sized("a", 100_000)
    store.put(stored)
    objects.error = error
    with pytest.raises(StoreError):
        store.get("p1", key_of("a"), now=NOW)
    objects.error = None
    assert store.get("p1", key_of("a"), now=NOW) == stored


def test_an_object_goes_a_day_after_its_last_row(
    store: PayloadOffload, objects: MemoryObjectStore
) -> None:
    store.put(sized("a", 100_000))
    store.put(sized("b", 100_000))
    assert store.sweep_objects(now=NOW + 30 * DAY) == 0
    later = NOW + 3 * DAY
    store.invalidate(EntryFilter(key_prefix=key_of("a")), now=later)
    assert store.sweep_objects(now=later + 23 * HOUR) == 0
    assert store.sweep_objects(now=later + 25 * HOUR) == 1
    assert store.get("p1", key_of("b"), now=later) == sized("b", 100_000)
    assert len(kept(objects)) == 1


def test_an_object_that_two_entries_name_stays_for_the_other(
    store: PayloadOffload, objects: MemoryObjectStore
) -> None:
    payload = "z" * 100_000
    for name in "ab":
        store.put(entry(name, created_at=NOW, payload=payload, payload_digest=sha256_hex(payload)))
    assert len(kept(objects)) == 1
    store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
    assert store.sweep_objects(now=NOW + 5 * DAY) == 0
    assert store.get("p1", key_of("b"), now=NOW) is not None


def test_an_upload_whose_row_was_never_written_goes_when_it_is_old(
    store: PayloadOffload, objects: MemoryObjectStore
) -> None:
    objects.put_bytes(f"{PREFIX}p1/aa/orphan.json", b"x")
    objects.put_bytes("projects/p1/film.mp4", b"x")
    assert store.sweep_objects(now=NOW + HOUR) == 0
    assert store.sweep_objects(now=NOW + 2 * DAY) == 1
    assert objects.get_bytes("projects/p1/film.mp4") == b"x"
    with pytest.raises(ObjectMissing):
        objects.get_bytes(f"{PREFIX}p1/aa/orphan.json")


def test_a_sweep_of_objects_is_bounded(store: PayloadOffload, objects: MemoryObjectStore) -> None:
    for index in range(12):
        objects.put_bytes(f"{PREFIX}p1/aa/{index}.json", b"x")
    gone = [store.sweep_objects(now=NOW + 2 * DAY, objects_max=5) for _ in range(4)]
    assert gone == [5, 5, 2, 0]
