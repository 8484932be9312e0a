import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import JsonValue

from reprise.cache.lookup import StepCache, StepCost, StepIdentity
from reprise.canonical import sha256_hex
from reprise.errors import StoreError, StoreTimeout
from reprise.model.cache import CacheEntry, Lease
from reprise.model.result import Artifact, CacheReason, StepResult, Usage
from reprise.model.settings import StepCacheSettings
from reprise.model.stored import ObjectInfo
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_object_store import MemoryObjectStore

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "a" * 64
COST = StepCost(run_id="run-one", seconds=12.5)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class BrokenEntryStore(MemoryEntryStore):
    """Fails on every call, as a database that is down does."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        raise self.error

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        raise self.error


class BrokenObjectStore(MemoryObjectStore):
    """Answers no HEAD, as a store behind a refused key does."""

    def head(self, key: str) -> ObjectInfo | None:
        message = "403"
        raise StoreError(message)


def identity(key: str = KEY, **digests: str) -> StepIdentity:
    return StepIdentity("p", "w", "hook", "Agent", "hook", key, digests or {"resolved_input": "1"})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def objects() -> MemoryObjectStore:
    return MemoryObjectStore()


@pytest.fixture
def entries() -> MemoryEntryStore:
    return MemoryEntryStore()


@pytest.fixture
def cache(entries: MemoryEntryStore, objects: MemoryObjectStore, clock: Clock) -> StepCache:
    return StepCache(entries, objects.head, StepCacheSettings(), clock)


def test_a_stored_result_comes_back_with_its_cost(cache: StepCache) -> None:
    result = StepResult(output={"a": [1, 2.5, None]}, usage=Usage(output=7), variables={"v": True})
    assert cache.store(identity(), result, COST) is None

    hit = cache.lookup(identity())

    assert hit.reason is CacheReason.HIT
    assert hit.result == result
    assert hit.entry is not None
    assert (hit.entry.usage.tokens, hit.entry.seconds) == (7, 12.5)


def test_changing_a_hit_does_not_change_the_next_one(cache: StepCache) -> None:
    cache.store(identity(), StepResult(output={"a": [1]}), COST)
    first = cache.lookup(identity()).result
    assert first is not None
    assert isinstance(first.output, dict)
    first.output["a"] = "changed"

    again = cache.lookup(identity()).result

    assert again is not None
    assert again.output == {"a": [1]}


def test_values_come_back_as_they_were(cache: StepCache) -> None:
    output: dict[str, JsonValue] = {
        "big": 2**70,
        "small": 1e-9,
        "nested": [[], {}, None, True, 1, 1.0, "é\u2028"],
    }
    cache.store(
        identity(), StepResult(output=output, variables={"v": 2**64, "w": -(10**400)}), COST
    )

    result = cache.lookup(identity()).result

    assert result is not None
    assert repr(result.output) == repr(dict(sorted(output.items())))
    assert result.variables == {"v": 2**64, "w": -(10**400)}


@pytest.mark.parametrize(
    "payload", ["[]", "{", '{"variables":[]}', '{"metadata":1}', '{"foreign":1}', '{"output":NaN}']
)
def test_a_payload_that_is_no_result_is_a_miss(
    cache: StepCache, entries: MemoryEntryStore, payload: str
) -> None:
    cache.store(identity(), StepResult(output=1), COST)
    entry = entries.get("p", KEY, now=START)
    assert entry is not None
    update = {"payload": payload, "payload_digest": sha256_hex(payload)}
    entries.put(entry.model_copy(update=update))

    assert not cache.lookup(identity()).is_hit


def test_a_stop_signal_and_a_missing_output_variable_survive(cache: StepCache) -> None:
    result = StepResult(output=1, stop_workflow=True, sets_output_variable=False)
    cache.store(identity(), result, COST)

    assert cache.lookup(identity()).result == result


def test_another_project_does_not_see_it(cache: StepCache) -> None:
    cache.store(identity(), StepResult(output=1), COST)
    other = StepIdentity("q", "w", "hook", "Agent", "hook", KEY, {})

    assert cache.lookup(other).result is None


def test_the_first_time_is_said(cache: StepCache) -> None:
    assert cache.lookup(identity()).reason is CacheReason.FIRST_TIME


def test_a_miss_names_the_field_that_changed(cache: StepCache) -> None:
    cache.store(identity(prompt="1", request="1"), StepResult(output=1), COST)

    miss = cache.lookup(identity("b" * 64, prompt="2", request="1"))

    assert miss.reason is CacheReason.FIELD_CHANGED
    assert miss.detail == "changed: prompt"


def test_a_miss_after_a_hit_of_another_workflow_is_compared_with_that_entry(
    cache: StepCache, entries: MemoryEntryStore
) -> None:
    cache.store(replace(identity(prompt="1"), workflow_id="other"), StepResult(output=1), COST)

    step = identity("b" * 64, prompt="2")
    miss = cache.lookup(step, last_key=lambda: KEY)

    assert miss.reason is CacheReason.FIELD_CHANGED
    assert miss.detail == f"changed: prompt; compared with run {COST.run_id[:8]} of 'other'"
    assert miss.compared_run_id == COST.run_id
    entries.clear()
    gone = cache.lookup(step, last_key=lambda: KEY)
    assert gone.detail == "nothing is kept of this step's earlier runs"


def test_an_entry_expires(cache: StepCache, clock: Clock) -> None:
    cache.store(identity(), StepResult(output=1), COST)
    clock.now = START + timedelta(hours=167)
    assert cache.lookup(identity()).reason is CacheReason.HIT
    clock.now = START + timedelta(hours=169)

    assert cache.lookup(identity()).reason is CacheReason.EXPIRED


def test_a_damaged_payload_is_a_miss_and_goes(cache: StepCache, entries: MemoryEntryStore) -> None:
    cache.store(identity(), StepResult(output="good"), COST)
    entry = entries.get("p", KEY, now=START)
    assert entry is not None
    entries.put(entry.model_copy(update={"payload": entry.payload.replace("good", "evil")}))

    assert cache.lookup(identity()).reason is CacheReason.PAYLOAD_DAMAGED
    assert cache.lookup(identity()).reason is CacheReason.PAYLOAD_DAMAGED
    assert len(entries) == 0


@pytest.fixture
def film(objects: MemoryObjectStore) -> StepResult:
    info = objects.put_bytes("k/film.mp4", b"film")
    artifact = Artifact(name="film.mp4", storage_key="k/film.mp4", size_bytes=4, etag=info.etag)
    return StepResult(output=1, artifacts=(artifact,), output_storage_key="k/film.mp4")


def test_a_hit_needs_its_artifact(
    cache: StepCache, entries: MemoryEntryStore, objects: MemoryObjectStore, film: StepResult
) -> None:
    cache.store(identity(), film, COST)
    assert cache.lookup(identity()).reason is CacheReason.HIT
    objects.delete("k/film.mp4")

    assert cache.lookup(identity()).reason is CacheReason.ARTIFACT_GONE
    assert len(entries) == 0


@pytest.mark.parametrize("data", [b"another", b"mlif"])
def test_a_replaced_artifact_is_a_miss(
    cache: StepCache, objects: MemoryObjectStore, film: StepResult, data: bytes
) -> None:
    cache.store(identity(), film, COST)
    objects.put_bytes("k/film.mp4", data)

    assert cache.lookup(identity()).reason is CacheReason.ARTIFACT_GONE


def test_an_unanswered_head_is_a_miss_and_keeps_the_entry(
    entries: MemoryEntryStore, clock: Clock, film: StepResult
) -> None:
    cache = StepCache(entries, BrokenObjectStore().head, StepCacheSettings(), clock)
    cache.store(identity(), film, COST)

    assert cache.lookup(identity()).reason is CacheReason.ARTIFACT_UNCHECKED
    assert len(entries) == 1


def test_artifacts_are_not_asked_for_when_told_so(
    entries: MemoryEntryStore, clock: Clock, film: StepResult
) -> None:
    settings = StepCacheSettings(validate_storage_artifacts=False)
    cache = StepCache(entries, BrokenObjectStore().head, settings, clock)
    cache.store(identity(), film, COST)

    assert cache.lookup(identity()).reason is CacheReason.HIT


@pytest.mark.parametrize("error", [StoreError("down"), StoreTimeout("slow"), ValueError("bug")])
def test_a_broken_store_means_no_cache_and_no_error(
    error: Exception,
    objects: MemoryObjectStore,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = StepCache(BrokenEntryStore(error), objects.head, StepCacheSettings(), clock)

    assert cache.lookup(identity()).reason is CacheReason.STORE_OFF
    assert cache.store(identity(), StepResult(output=1), COST) is CacheReason.STORE_OFF
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("output", [(1,), {1: "a"}, float("nan"), "\ud83d", 2**14_001])
def test_what_json_cannot_hold_is_refused_with_a_warning(
    cache: StepCache,
    entries: MemoryEntryStore,
    output: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Built past validation, which would make a list of a tuple.
    result = StepResult.model_construct(output=output)  # type: ignore[arg-type]  # The point.

    assert cache.store(identity(), result, COST) is CacheReason.NOT_HASHABLE
    assert len(entries) == 0
    assert len(caplog.records) == 1


def test_a_result_of_one_character_too_many_is_not_stored(
    entries: MemoryEntryStore, objects: MemoryObjectStore, clock: Clock
) -> None:
    result = StepResult(output="x" * 100)
    empty = StepResult(output="")
    roomy = StepCache(entries, objects.head, StepCacheSettings(), clock)
    roomy.store(identity(), empty, COST)
    entry = entries.get("p", KEY, now=START)
    assert entry is not None
    size = len(entry.payload) + 100
    entries.clear()

    tight = StepCache(entries, objects.head, StepCacheSettings(max_entry_chars=size - 1), clock)
    fits = StepCache(entries, objects.head, StepCacheSettings(max_entry_chars=size), clock)

    assert tight.store(identity(), result, COST) is CacheReason.TOO_LARGE
    assert len(entries) == 0
    assert fits.store(identity(), result, COST) is None


def test_switched_off_it_neither_reads_nor_writes(
    entries: MemoryEntryStore, objects: MemoryObjectStore, clock: Clock
) -> None:
    cache = StepCache(entries, objects.head, StepCacheSettings(enabled=False), clock)

    assert cache.store(identity(), StepResult(output=1), COST) is CacheReason.STORE_OFF
    assert cache.lookup(identity()).reason is CacheReason.STORE_OFF
    assert len(entries) == 0


def test_artifacts_are_asked_for_at_the_same_time(entries: MemoryEntryStore, clock: Clock) -> None:
    meeting = threading.Barrier(3, timeout=30)

    def head(key: str) -> ObjectInfo:
        meeting.wait()
        return ObjectInfo(key=key, size_bytes=1, etag="e", modified_at=START)

    cache = StepCache(entries, head, StepCacheSettings(), clock)
    artifacts = tuple(
        Artifact(name=f"{n}.jpg", storage_key=f"k/{n}", size_bytes=1, etag="e") for n in range(3)
    )
    cache.store(identity(), StepResult(output=1, artifacts=artifacts), COST)

    assert cache.lookup(identity()).reason is CacheReason.HIT


def test_one_artifact_gone_and_one_unanswered_is_gone(
    entries: MemoryEntryStore, clock: Clock
) -> None:
    def head(key: str) -> ObjectInfo | None:
        if key == "k/0":
            message = "403"
            raise StoreError(message)
        return None

    cache = StepCache(entries, head, StepCacheSettings(), clock)
    artifacts = tuple(
        Artifact(name=f"{n}.jpg", storage_key=f"k/{n}", size_bytes=1, etag="e") for n in range(2)
    )
    cache.store(identity(), StepResult(output=1, artifacts=artifacts), COST)

    assert cache.lookup(identity()).reason is CacheReason.ARTIFACT_GONE
    assert len(entries) == 0


def test_a_lookup_that_is_slow_leaves_what_a_twin_has_stored_meanwhile(
    entries: MemoryEntryStore, objects: MemoryObjectStore, clock: Clock
) -> None:
    twin = StepCache(entries, objects.head, StepCacheSettings(), clock)

    def head(key: str) -> ObjectInfo | None:
        # While this one asks, the twin has found out, executed and stored.
        clock.now += timedelta(seconds=1)
        assert twin.store(identity(), StepResult(output="new"), COST) is None
        return None

    gone = Artifact(name="a.mp4", storage_key="gone.mp4", size_bytes=4)
    twin.store(identity(), StepResult(output="old", artifacts=(gone,)), COST)
    slow = StepCache(entries, head, StepCacheSettings(), clock)
    assert slow.lookup(identity()).reason is CacheReason.ARTIFACT_GONE
    hit = twin.lookup(identity())
    assert hit.result is not None
    assert hit.result.output == "new"


def test_a_read_only_lookup_leaves_what_it_cannot_use(
    cache: StepCache, entries: MemoryEntryStore, objects: MemoryObjectStore, film: StepResult
) -> None:
    cache.store(identity(), film, COST)
    objects.delete("k/film.mp4")
    assert cache.lookup(identity(), read_only=True).reason is CacheReason.ARTIFACT_GONE
    entry = entries.get("p", KEY, now=START)
    assert entry is not None
    entries.put(entry.model_copy(update={"payload": ""}))

    assert cache.lookup(identity(), read_only=True).reason is CacheReason.PAYLOAD_DAMAGED
    assert len(entries) == 1
