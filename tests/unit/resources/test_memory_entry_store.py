"""What only the store in memory promises: a bound, least recently used first, and counts."""

import pytest

from reprise.model.result import CacheReason
from resources.memory_entry_store import MemoryEntryStore
from tests.cache_entries import DAY, NOW, WEEK, entry, key_of


def has(store: MemoryEntryStore, name: str) -> bool:
    return store.get("p1", key_of(name), now=NOW) is not None


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_that_is_not_above_zero_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"capacity is {capacity}"):
        MemoryEntryStore(capacity)


def test_the_default_capacity_is_128_entries() -> None:
    store = MemoryEntryStore()
    for index in range(129):
        store.put(entry(str(index)))
    assert len(store) == 128
    assert not has(store, "0")
    assert has(store, "1")


def test_the_least_recently_used_entry_goes_first_and_leaves_its_reason() -> None:
    store = MemoryEntryStore(capacity=3)
    for name in "abc":
        store.put(entry(name))
    assert has(store, "a")
    store.put(entry("b", run_id="again"))
    store.put(entry("d"))
    assert [has(store, name) for name in "abcd"] == [True, True, False, True]
    assert store.tombstone("p1", key_of("c")) is CacheReason.EVICTED


def test_an_entry_that_expired_is_not_kept_alive_by_looking() -> None:
    store = MemoryEntryStore(capacity=2)
    store.put(entry("a"))
    store.put(entry("b", created_at=NOW + DAY))
    assert store.get("p1", key_of("a"), now=NOW + WEEK) is None
    store.put(entry("c", created_at=NOW + DAY))
    assert store.tombstone("p1", key_of("a")) is CacheReason.EVICTED
    assert len(store) == 2


def test_hits_and_misses_are_counted() -> None:
    store = MemoryEntryStore()
    store.put(entry("a"))
    for name in ("a", "a", "b"):
        has(store, name)
    store.get("p1", key_of("a"), now=NOW + WEEK)
    assert (store.hits, store.misses) == (2, 2)


def test_reasons_are_bounded_too() -> None:
    store = MemoryEntryStore(capacity=1)
    for index in range(20):
        store.put(entry(str(index)))
    reasons = [store.tombstone("p1", key_of(str(index))) for index in range(19)]
    assert reasons == [None] * 11 + [CacheReason.EVICTED] * 8
