"""Stores of a user's own: what they have to offer, and what strange ones do to a run (nothing)."""

from collections.abc import Callable

import pytest

from reprise.errors import BadInput, StoreError
from reprise.model.cache import EntryFilter
from reprise.model.result import CacheReason
from resources.memory_lease_store import MemoryLeaseStore
from resources.user_entry_store import UserEntryStore
from tests.cache_entries import DAY, NOW, WEEK, entry, key_of


class Least:
    """The least that a store can be."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def get(self, key: str) -> object:
        return self.values.get(key)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value


class OnlyGet:
    def get(self, key: str) -> str | None:
        return None


class GetIsNoMethod(Least):
    get = "value"  # type: ignore[assignment]  # What a user may get wrong.


@pytest.mark.parametrize("store", [None, 7, {}, object(), OnlyGet(), GetIsNoMethod()])
def test_an_object_without_get_or_set_is_refused(store: object) -> None:
    with pytest.raises(TypeError, match="cannot be a cache store: it has no method"):
        UserEntryStore(store)


def test_get_and_set_alone_are_enough_for_a_run() -> None:
    store = UserEntryStore(Least())
    assert store.get("p1", key_of("a"), now=NOW) is None
    store.put(entry("a"))
    assert store.get("p1", key_of("a"), now=NOW) == entry("a")
    assert store.get("p1", key_of("a"), now=NOW + WEEK) is None
    assert store.tombstone("p1", key_of("a")) is CacheReason.EXPIRED
    near = store.nearest("p1", "quick-win-promo", "audience")
    assert near is not None
    assert near.payload == ""
    store.delete("p1", key_of("a"), reason=CacheReason.ARTIFACT_GONE, now=NOW + WEEK)
    assert store.tombstone("p1", key_of("a")) is CacheReason.ARTIFACT_GONE
    assert store.sweep(now=NOW + 2 * WEEK) == 0


LISTING: dict[str, Callable[[UserEntryStore], object]] = {
    "find": lambda store: list(store.find(EntryFilter())),
    "invalidate": lambda store: store.invalidate(EntryFilter(), now=NOW),
    "stats": lambda store: store.stats(now=NOW),
    "clear": lambda store: store.clear(),
    "len": len,
}


@pytest.mark.parametrize("ask", LISTING.values(), ids=LISTING.keys())
def test_what_the_object_cannot_do_is_said(ask: Callable[[UserEntryStore], object]) -> None:
    with pytest.raises(BadInput, match="the cache store Least cannot"):
        ask(UserEntryStore(Least()))


class Sized(Least):
    def __len__(self) -> int:
        return len(self.values)

    def clear(self) -> None:
        self.values.clear()


def test_len_and_clear_are_the_objects_own_where_it_has_them() -> None:
    store = UserEntryStore(Sized())
    store.put(entry("a"))
    assert len(store) == 2
    store.clear()
    assert len(store) == 0
    assert store.get("p1", key_of("a"), now=NOW) is None


def test_keys_and_values_are_text() -> None:
    plain = Least()
    UserEntryStore(plain).put(entry("a"))
    key = f"reprise/entry/{key_of('a')}/p1"
    assert [type(value) for value in plain.values.values()] == [str, str]
    assert key in plain.values


@pytest.mark.parametrize("value", ["", "no json", "[]", b"\xff", 7, {"entry": None, "more": 1}])
def test_a_value_that_is_not_ours_is_a_miss_and_is_replaced(value: object) -> None:
    plain = Least()
    store = UserEntryStore(plain)
    plain.values[f"reprise/entry/{key_of('a')}/p1"] = value
    assert store.get("p1", key_of("a"), now=NOW) is None
    assert store.tombstone("p1", key_of("a")) is CacheReason.PAYLOAD_DAMAGED
    store.put(entry("a"))
    assert store.get("p1", key_of("a"), now=NOW) == entry("a")


def test_anothers_entry_under_a_key_is_never_an_answer() -> None:
    plain = Least()
    store = UserEntryStore(plain)
    store.put(entry("a", project_id="p2"))
    plain.values[f"reprise/entry/{key_of('a')}/p1"] = plain.values[
        f"reprise/entry/{key_of('a')}/p2"
    ]
    assert store.get("p1", key_of("a"), now=NOW) is None
    assert store.get("p2", key_of("a"), now=NOW) is not None


class Raising(Least):
    def get(self, key: str) -> object:
        raise ConnectionError("down")


def test_whatever_the_object_raises_is_a_store_error() -> None:
    store = UserEntryStore(Raising())
    with pytest.raises(StoreError, match=r"Raising failed.*down"):
        store.get("p1", key_of("a"), now=NOW)
    with pytest.raises(StoreError):
        store.put(entry("a"))


def test_a_store_under_a_lost_lease_is_refused() -> None:
    leases = MemoryLeaseStore()
    store = UserEntryStore(Least(), leases=leases)
    lease = leases.acquire("p1", key_of("a"), holder="one", seconds=60)
    assert lease is not None
    assert store.put(entry("a"), lease=lease)
    leases.release(lease)
    assert not store.put(entry("a", run_id="late"), lease=lease)
    kept = store.get("p1", key_of("a"), now=NOW + DAY)
    assert kept is not None
    assert kept.run_id == "run-1"
