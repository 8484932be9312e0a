"""What every store of cache entries promises, run on each."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from reprise.model.result import CacheReason, Usage
from reprise.ports import EntryStore
from resources.breaker import BreakerEntryStore, CircuitBreaker
from resources.deadline import DeadlineEntryStore
from resources.memory_entry_store import MemoryEntryStore
from resources.sqlite_entry_store import SqliteEntryStore
from tests.cache_entries import DAY, HOUR, NOW, WEEK, entry, key_of

STORES: dict[str, Callable[[Path], EntryStore]] = {
    "memory": lambda _: MemoryEntryStore(capacity=1000),
    "sqlite": lambda folder: SqliteEntryStore(folder / "new" / "cache.sqlite"),
    "sqlite-guarded": lambda folder: BreakerEntryStore(
        DeadlineEntryStore(
            SqliteEntryStore(folder / "cache.sqlite"), lookup_seconds=30, store_seconds=30
        ),
        CircuitBreaker("the store"),
    ),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EntryStore:
    return STORES[request.param](tmp_path)


def found(store: EntryStore, name: str, now: datetime) -> bool:
    return store.get("p1", key_of(name), now=now) is not None


def test_a_new_store_is_empty(store: EntryStore) -> None:
    assert len(store) == 0
    assert store.get("p1", key_of("a"), now=NOW) is None
    assert store.tombstone("p1", key_of("a")) is None
    assert store.nearest("p1", "quick-win-promo", "audience") is None
    assert store.sweep(now=NOW) == 0
    store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
    store.clear()
    assert store.tombstone("p1", key_of("a")) is None


def test_an_entry_comes_back_field_by_field(store: EntryStore) -> None:
    stored = entry("a")
    store.put(stored)
    assert store.get("p1", key_of("a"), now=NOW) == stored


def test_an_entry_of_least_fields_comes_back(store: EntryStore) -> None:
    stored = entry("a", agent_id=None, artifacts=(), field_digests={}, usage=Usage(), seconds=0.0)
    store.put(stored)
    assert store.get("p1", key_of("a"), now=NOW) == stored


def test_a_payload_of_two_million_characters_of_four_bytes_comes_back(store: EntryStore) -> None:
    stored = entry("a", payload="🎬" * 2_000_000)
    store.put(stored)
    assert store.get("p1", key_of("a"), now=NOW) == stored


def test_an_unknown_price_stays_unknown(store: EntryStore) -> None:
    store.put(entry("a", usage=Usage(output=1, cost_micros=None)))
    back = store.get("p1", key_of("a"), now=NOW)
    assert back is not None
    assert back.usage.cost_micros is None


def test_times_of_another_zone_are_the_same_moment(store: EntryStore) -> None:
    tokyo = timezone(timedelta(hours=9))
    store.put(entry("a", created_at=NOW.astimezone(tokyo)))
    back = store.get("p1", key_of("a"), now=NOW.astimezone(tokyo))
    assert back is not None
    assert back.created_at == NOW


def test_an_entry_of_one_project_is_not_found_in_another(store: EntryStore) -> None:
    store.put(entry("a"))
    assert store.get("p2", key_of("a"), now=NOW) is None
    assert store.nearest("p2", "quick-win-promo", "audience") is None
    store.delete("p2", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
    assert found(store, "a", NOW)


def test_project_and_key_are_told_apart_by_letter_case(store: EntryStore) -> None:
    store.put(entry("a", project_id="Promo", run_id="upper"))
    store.put(entry("a", project_id="promo", run_id="lower"))
    upper = store.get("Promo", key_of("a"), now=NOW)
    assert upper is not None
    assert upper.run_id == "upper"
    assert len(store) == 2


def test_storing_a_key_again_replaces_every_field(store: EntryStore) -> None:
    store.put(entry("a"))
    later = entry(
        "a",
        created_at=NOW + DAY,
        schema_version=2,
        workflow_id="other",
        step_label="hook",
        step_type="video_compile",
        agent_id=None,
        run_id="run-2",
        payload="{}",
        payload_digest=key_of("{}"),
        artifacts=(),
        field_digests={"model": key_of("new")},
        usage=Usage(calls=1),
        seconds=0.5,
    )
    store.put(later)
    assert store.get("p1", key_of("a"), now=NOW + DAY) == later
    assert len(store) == 1


def test_an_entry_is_valid_until_the_moment_it_expires(store: EntryStore) -> None:
    store.put(entry("a"))
    assert found(store, "a", NOW + WEEK - timedelta(microseconds=1))
    assert not found(store, "a", NOW + WEEK)
    assert len(store) == 1


def test_storing_again_resets_the_expiry(store: EntryStore) -> None:
    store.put(entry("a"))
    store.put(entry("a", created_at=NOW + 6 * DAY))
    assert found(store, "a", NOW + 12 * DAY)


def test_a_clock_that_steps_back_does_not_bring_back_what_had_expired(store: EntryStore) -> None:
    store.put(entry("a"))
    assert not found(store, "a", NOW + WEEK)
    assert not found(store, "a", NOW + WEEK - HOUR)
    store.put(entry("a", created_at=NOW + WEEK - HOUR))
    assert found(store, "a", NOW + WEEK - HOUR)


def test_an_entry_that_expired_says_so_before_and_after_the_sweep(store: EntryStore) -> None:
    store.put(entry("a"))
    assert store.tombstone("p1", key_of("a")) is None
    assert not found(store, "a", NOW + WEEK)
    assert store.tombstone("p1", key_of("a")) is CacheReason.EXPIRED
    assert store.sweep(now=NOW + WEEK) == 1
    assert len(store) == 0
    assert store.tombstone("p1", key_of("a")) is CacheReason.EXPIRED


@pytest.mark.parametrize(
    "reason",
    [
        CacheReason.ARTIFACT_GONE,
        CacheReason.INVALIDATED,
        CacheReason.PAYLOAD_DAMAGED,
        CacheReason.EVICTED,
    ],
)
def test_a_deleted_entry_leaves_its_reason(store: EntryStore, reason: CacheReason) -> None:
    store.put(entry("a"))
    store.put(entry("b"))
    store.delete("p1", key_of("a"), reason=reason, now=NOW)
    assert not found(store, "a", NOW)
    assert store.tombstone("p1", key_of("a")) is reason
    assert found(store, "b", NOW)
    assert store.tombstone("p1", key_of("b")) is None


def test_the_newest_reason_stands(store: EntryStore) -> None:
    for reason in (CacheReason.INVALIDATED, CacheReason.ARTIFACT_GONE):
        store.put(entry("a"))
        store.delete("p1", key_of("a"), reason=reason, now=NOW)
    assert store.tombstone("p1", key_of("a")) is CacheReason.ARTIFACT_GONE


def test_an_entry_that_is_back_has_no_tombstone(store: EntryStore) -> None:
    store.put(entry("a"))
    store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
    store.put(entry("a"))
    assert store.tombstone("p1", key_of("a")) is None


def test_a_tombstone_is_forgotten_after_thirty_days(store: EntryStore) -> None:
    store.put(entry("a"))
    store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
    store.get("p1", key_of("a"), now=NOW + 30 * DAY - HOUR)
    assert store.tombstone("p1", key_of("a")) is CacheReason.INVALIDATED
    store.get("p1", key_of("a"), now=NOW + 30 * DAY)
    assert store.tombstone("p1", key_of("a")) is None
    assert store.sweep(now=NOW + 30 * DAY) == 0
    assert store.tombstone("p1", key_of("a")) is None


def test_a_sweep_goes_in_batches_and_leaves_valid_entries(store: EntryStore) -> None:
    for index in range(25):
        store.put(entry(f"old-{index}"))
    for index in range(5):
        store.put(entry(f"new-{index}", created_at=NOW + DAY))
    batches = [store.sweep(now=NOW + WEEK, rows_max=10) for _ in range(4)]
    assert batches == [10, 10, 5, 0]
    assert len(store) == 5
    assert found(store, "new-0", NOW + WEEK)


def test_the_nearest_entry_is_the_newest_of_its_step_without_its_payload(store: EntryStore) -> None:
    store.put(entry("b", created_at=NOW + 2 * HOUR))
    store.put(entry("a", created_at=NOW + HOUR))
    store.put(entry("c", created_at=NOW + 3 * HOUR, step_label="hook"))
    store.put(entry("d", created_at=NOW + 3 * HOUR, workflow_id="other"))
    store.put(entry("e", created_at=NOW + 3 * HOUR, project_id="p2"))
    near = store.nearest("p1", "quick-win-promo", "audience")
    assert near == entry("b", created_at=NOW + 2 * HOUR, payload="", payload_digest=key_of_b())
    store.put(entry("a", created_at=NOW + 3 * HOUR))
    again = store.nearest("p1", "quick-win-promo", "audience")
    assert again is not None
    assert again.cache_key == key_of("a")


def key_of_b() -> str:
    return entry("b").payload_digest


def test_an_expired_entry_still_explains(store: EntryStore) -> None:
    store.put(entry("a"))
    assert not found(store, "a", NOW + WEEK)
    near = store.nearest("p1", "quick-win-promo", "audience")
    assert near is not None
    assert near.field_digests == {"resolved_input": key_of("input"), "model": key_of("model")}


def test_clear_removes_entries_and_reasons(store: EntryStore) -> None:
    store.put(entry("a"))
    store.put(entry("b", project_id="p2"))
    store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
    store.clear()
    assert len(store) == 0
    assert store.tombstone("p1", key_of("a")) is None
    store.put(entry("a"))
    assert found(store, "a", NOW)


def test_changing_what_went_in_or_came_out_changes_nothing_kept(store: EntryStore) -> None:
    stored = entry("a")
    store.put(stored)
    stored.field_digests["model"] = "changed"
    first = store.get("p1", key_of("a"), now=NOW)
    assert first is not None
    first.field_digests["model"] = "changed"
    near = store.nearest("p1", "quick-win-promo", "audience")
    assert near is not None
    near.field_digests.clear()
    assert store.get("p1", key_of("a"), now=NOW) == entry("a")


def test_threads_that_store_and_read_at_once_lose_nothing(store: EntryStore) -> None:
    def work(thread: int) -> None:
        for index in range(25):
            store.put(entry(f"{thread}-{index}"))
            assert found(store, f"{thread}-{index}", NOW)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(store) == 200


def test_a_time_without_a_zone_is_refused(store: EntryStore) -> None:
    store.put(entry("a"))
    with pytest.raises(ValueError, match="time zone"):
        store.get("p1", key_of("a"), now=NOW.replace(tzinfo=None))
    assert found(store, "a", NOW)
