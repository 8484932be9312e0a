"""What every store of cache entries promises, run on each."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from reprise.model.cache import EntryCaps, EntryFilter, EntryStats
from reprise.model.result import CacheReason, Usage
from reprise.ports import EntryStore
from resources.breaker import BreakerEntryStore, CircuitBreaker
from resources.deadline import DeadlineEntryStore
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_object_store import MemoryObjectStore
from resources.payload_offload import PayloadOffload
from resources.postgres_entry_store import PostgresEntryStore
from resources.sqlite_entry_store import SqliteEntryStore
from resources.user_entry_store import UserEntryStore
from tests.cache_entries import DAY, HOUR, NOW, WEEK, entry, key_of
from tests.postgres_server import PostgresTestServer


class UserStore:
    """A store of a user's own that offers all that `UserEntryStore` can use."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, key: str) -> bytes | None:
        value = self.values.get(key)
        return None if value is None else value.encode()

    def set(self, key: str, value: str) -> None:
        assert isinstance(value, str)
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def keys(self) -> list[str]:
        return list(self.values)

    def clear(self) -> None:
        self.values.clear()


STORES: dict[str, Callable[[Path, EntryCaps], EntryStore]] = {
    "memory": lambda _, caps: MemoryEntryStore(capacity=1000, caps=caps),
    "sqlite": lambda folder, caps: SqliteEntryStore(folder / "new" / "cache.sqlite", caps=caps),
    "user": lambda _, caps: UserEntryStore(UserStore(), caps=caps),
    "sqlite-offload": lambda folder, caps: PayloadOffload(
        SqliteEntryStore(folder / "cache.sqlite", caps=caps),
        MemoryObjectStore(),
        inline_bytes_max=8,
    ),
    "sqlite-guarded": lambda folder, caps: BreakerEntryStore(
        DeadlineEntryStore(
            SqliteEntryStore(folder / "cache.sqlite", caps=caps),
            lookup_seconds=30,
            store_seconds=30,
        ),
        CircuitBreaker("the store"),
    ),
}
KINDS = [*STORES, "postgres"]


def make_store(
    request: pytest.FixtureRequest, kind: str, folder: Path, caps: EntryCaps
) -> EntryStore:
    if kind != "postgres":
        return STORES[kind](folder, caps)
    # Asked for here, so that the other kinds start no server.
    server: PostgresTestServer = request.getfixturevalue("postgres")
    store = PostgresEntryStore(server.url, schema=server.new_schema(), caps=caps)
    request.addfinalizer(store.close)
    return store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EntryStore:
    return make_store(request, request.param, tmp_path, EntryCaps())


@pytest.fixture(params=KINDS)
def small_store(request: pytest.FixtureRequest, tmp_path: Path) -> EntryStore:
    """A store that keeps ten entries and a million bytes of a project."""
    return make_store(
        request, request.param, tmp_path, EntryCaps(rows_max=10, size_bytes_max=10**6)
    )


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


def test_what_a_twin_stored_since_is_not_removed_for_what_was_seen(store: EntryStore) -> None:
    store.put(entry("a", payload='"old"'))
    seen = store.get("p1", key_of("a"), now=NOW)
    assert seen is not None
    for later in (
        entry("a", payload='"new"'),
        entry("a", payload='"old"', created_at=NOW + timedelta(microseconds=1)),
    ):
        store.put(later)
        store.delete("p1", key_of("a"), reason=CacheReason.ARTIFACT_GONE, now=NOW + HOUR, seen=seen)
        assert store.get("p1", key_of("a"), now=NOW + HOUR) == later
        assert store.tombstone("p1", key_of("a")) is None
    store.delete("p1", key_of("a"), reason=CacheReason.ARTIFACT_GONE, now=NOW + HOUR, seen=later)
    assert len(store) == 0
    assert store.tombstone("p1", key_of("a")) is CacheReason.ARTIFACT_GONE


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


def test_the_entry_of_a_key_explains_expired_too_and_without_its_payload(
    store: EntryStore,
) -> None:
    store.put(entry("b"))
    store.put(entry("a", workflow_id="other"))
    assert not found(store, "b", NOW + WEEK)
    near = store.of_key("p1", key_of("b"))
    assert near == entry("b", payload="", payload_digest=key_of_b())
    assert store.of_key("p2", key_of("b")) is None
    assert store.of_key("p1", key_of("c")) is None
    assert [item.hits for item in store.find(EntryFilter())] == [0, 0]
    near.field_digests.clear()
    assert store.of_key("p1", key_of("b")) != near


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


def names(store: EntryStore, wanted: EntryFilter) -> list[str]:
    """The steps that a filter finds; each test here gives every entry a label of its own."""
    return [summary.step_label for summary in store.find(wanted)]


def fill(store: EntryStore) -> None:
    store.put(entry("a", step_label="a", created_at=NOW))
    store.put(entry("b", step_label="b", created_at=NOW + HOUR, workflow_id="other"))
    store.put(entry("c", step_label="c", created_at=NOW + 2 * HOUR, agent_id=None))
    store.put(
        entry(
            "d",
            step_label="d",
            created_at=NOW + 3 * HOUR,
            project_id="p2",
            field_digests={"project_file_fingerprint / b %é'.mp4": key_of("b.mp4")},
        )
    )


@pytest.mark.parametrize(
    ("wanted", "found_labels"),
    [
        (EntryFilter(), "dcba"),
        (EntryFilter(project_id="p1"), "cba"),
        (EntryFilter(workflow_id="quick-win-promo"), "dca"),
        (EntryFilter(step_label="b"), "b"),
        (EntryFilter(agent_id="audience-analyst"), "dba"),
        (EntryFilter(key_prefix=key_of("c")[:9]), "c"),
        (EntryFilter(field="project_file_fingerprint / b %é'.mp4"), "d"),
        (EntryFilter(field="model"), "cba"),
        (EntryFilter(field="model", field_digest=key_of("input")), ""),
        (EntryFilter(field_digest=key_of("input")), "cba"),
        (EntryFilter(older_than=NOW + 2 * HOUR), "ba"),
        (EntryFilter(newer_than=NOW + 2 * HOUR), "dc"),
        (EntryFilter(project_id="p1", newer_than=NOW + 2 * HOUR, key_prefix=key_of("c")), "c"),
        (EntryFilter(project_id="none"), ""),
    ],
)
def test_a_filter_finds_what_fits_all_of_it_the_newest_first(
    store: EntryStore, wanted: EntryFilter, found_labels: str
) -> None:
    fill(store)
    assert "".join(names(store, wanted)) == found_labels


@pytest.mark.parametrize(
    ("wanted", "gone_names"),
    [
        (EntryFilter(project_id="p2"), "d"),
        (EntryFilter(older_than=NOW + 2 * HOUR), "ab"),
        (EntryFilter(field="model"), "abc"),
        (EntryFilter(project_id="p3"), ""),
        (EntryFilter(), "abcd"),
    ],
)
def test_invalidating_removes_what_a_filter_finds_and_leaves_the_reason(
    store: EntryStore, wanted: EntryFilter, gone_names: str
) -> None:
    fill(store)
    assert store.invalidate(wanted, now=NOW + DAY) == len(gone_names)
    for name in "abcd":
        project = "p2" if name == "d" else "p1"
        reason = CacheReason.INVALIDATED if name in gone_names else None
        assert store.tombstone(project, key_of(name)) is reason
    assert len(store) == 4 - len(gone_names)


def test_a_summary_tells_everything_but_payload_artifacts_and_digests(store: EntryStore) -> None:
    store.put(entry("a"))
    (summary,) = store.find(EntryFilter())
    assert summary.model_dump() == {
        "project_id": "p1",
        "cache_key": key_of("a"),
        "workflow_id": "quick-win-promo",
        "step_label": "audience",
        "step_type": "agent",
        "agent_id": "audience-analyst",
        "run_id": "run-1",
        "created_at": NOW,
        "expires_at": NOW + WEEK,
        "last_used_at": NOW,
        "hits": 0,
        "pinned": False,
        "size_bytes": 22,
        "usage": Usage(input_uncached=1200, output=300, calls=2, cost_micros=4500).model_dump(),
        "seconds": 12.75,
    }


def test_uses_are_counted_and_written_down_by_a_flush(store: EntryStore) -> None:
    store.put(entry("a", step_label="a"))
    store.put(entry("b", step_label="b"))
    for hours in (1, 2, 3):
        assert found(store, "a", NOW + hours * HOUR)
    store.flush()
    used, unused = sorted(store.find(EntryFilter()), key=lambda summary: summary.step_label)
    assert (used.hits, used.last_used_at) == (3, NOW + 3 * HOUR)
    assert (unused.hits, unused.last_used_at) == (0, NOW)
    assert found(store, "a", NOW + 3 * HOUR)
    store.flush()
    assert store.stats(now=NOW).hits == 4


def test_storing_again_begins_to_count_anew(store: EntryStore) -> None:
    store.put(entry("a"))
    assert found(store, "a", NOW)
    store.flush()
    store.put(entry("a", created_at=NOW + DAY))
    (summary,) = store.find(EntryFilter())
    assert (summary.hits, summary.last_used_at) == (0, NOW + DAY)


def test_the_figures_of_one_project_and_of_all(store: EntryStore) -> None:
    assert store.stats(now=NOW) == EntryStats()
    fill(store)
    store.pin("p1", key_of("a"), on=True)
    assert found(store, "c", NOW + 3 * HOUR)
    assert store.stats("p1", now=NOW + WEEK + HOUR) == EntryStats(
        rows=3,
        size_bytes=66,
        hits=1,
        pinned=1,
        expired=1,
        projects=1,
        oldest_at=NOW,
        newest_at=NOW + 2 * HOUR,
    )
    whole = store.stats(now=NOW + WEEK + HOUR)
    assert (whole.rows, whole.projects, whole.newest_at) == (4, 2, NOW + 3 * HOUR)


def test_a_pinned_entry_never_expires_until_it_is_let_go(store: EntryStore) -> None:
    store.put(entry("a"))
    assert store.pin("p1", key_of("a"), on=True)
    assert found(store, "a", NOW + 9 * WEEK)
    assert store.tombstone("p1", key_of("a")) is None
    assert store.sweep(now=NOW + 9 * WEEK) == 0
    store.put(entry("a", run_id="again"))
    assert found(store, "a", NOW + 9 * WEEK)
    assert store.pin("p1", key_of("a"), on=False)
    assert not found(store, "a", NOW + 9 * WEEK)
    assert store.sweep(now=NOW + 9 * WEEK) == 1


def test_pinning_what_is_not_there_says_so(store: EntryStore) -> None:
    store.put(entry("a"))
    assert not store.pin("p2", key_of("a"), on=True)
    assert not store.pin("p1", key_of("b"), on=False)


def test_a_pinned_entry_can_be_invalidated(store: EntryStore) -> None:
    store.put(entry("a"))
    store.pin("p1", key_of("a"), on=True)
    assert store.invalidate(EntryFilter(project_id="p1"), now=NOW) == 1
    assert not found(store, "a", NOW)


def test_a_sweep_evicts_the_least_recently_used_above_the_row_cap(small_store: EntryStore) -> None:
    for index in range(13):
        small_store.put(entry(f"{index}", created_at=NOW + index * timedelta(seconds=1)))
    small_store.put(entry("other", project_id="p2"))
    assert found(small_store, "0", NOW + HOUR)
    small_store.pin("p1", key_of("1"), on=True)
    assert small_store.sweep(now=NOW + HOUR, rows_max=2) == 2
    assert small_store.sweep(now=NOW + HOUR, rows_max=200) == 1
    assert small_store.sweep(now=NOW + HOUR, rows_max=200) == 0
    gone = [index for index in range(13) if not found(small_store, f"{index}", NOW + HOUR)]
    assert gone == [2, 3, 4]
    assert small_store.tombstone("p1", key_of("3")) is CacheReason.EVICTED
    assert small_store.stats("p2", now=NOW).rows == 1


def test_a_sweep_evicts_the_least_recently_used_above_the_byte_cap(small_store: EntryStore) -> None:
    for index in range(5):
        at = NOW + index * timedelta(seconds=1)
        small_store.put(entry(f"{index}", payload="x" * 300_000, created_at=at))
    assert small_store.sweep(now=NOW + HOUR) == 2
    assert [found(small_store, f"{index}", NOW + HOUR) for index in range(5)] == [
        *(False, False, True, True, True)
    ]
    assert small_store.stats("p1", now=NOW).size_bytes == 900_000


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"sqlite-offload"}))
def test_a_payload_in_an_object_is_named_until_its_tombstone_is_old(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """Such rows are made by `PayloadOffload`; here is what it asks of the store under it."""
    store = make_store(request, kind, tmp_path, EntryCaps())
    held: dict[str, Any] = {"payload": "", "payload_key": "payloads/1", "payload_bytes": 300}
    store.put(entry("a", **held))
    assert store.get("p1", key_of("a"), now=NOW) == entry("a", **held)
    assert next(iter(store.find(EntryFilter()))).size_bytes == 300
    keys = ["payloads/1", "payloads/2"]
    assert store.payloads_in_use(keys, since=NOW + DAY) == {"payloads/1"}
    store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW + HOUR)
    assert store.payloads_in_use(keys, since=NOW + HOUR) == {"payloads/1"}
    assert store.payloads_in_use(keys, since=NOW + 2 * HOUR) == set()
    assert store.payloads_in_use([], since=NOW) == set()


def test_a_listing_goes_on_over_many_pages_while_entries_come_and_go(store: EntryStore) -> None:
    wanted = EntryFilter(step_label="listed")
    for index in range(501):
        store.put(entry(f"{index}", step_label="listed"))
    store.put(entry("other"))
    listing = store.find(wanted)
    next(listing)
    store.put(entry("new", step_label="listed"))
    assert len(list(listing)) == 500
    assert store.invalidate(wanted, now=NOW) == 502
    assert len(store) == 1
