"""The cases of files, failures, time and tenants that step caches get wrong.

Each docstring begins with the case's number, or with its name in the behaviour probe. All of them:

| case | where |
| --- | --- |
| C1 to C4, C6 | test_key_cases.py; the encoding itself: tests/unit/cache/test_key.py |
| C5 | tests/unit/cache/test_executor_closures.py |
| C7, C8 | not yet: they are the traced reads of specification C21 |
| C9 to C11, C18 to C23, C25 | here; C11 over HTTP: tests/integration/test_s3_faults.py |
| C12 | not yet: no step reads an artifact of another |
| C13, C14 | test_faults.py, tests/integration/test_sqlite_faults.py, test_postgres_faults.py |
| C15 to C17 | tests/integration/test_single_flight.py, tests/pipelines/test_single_flight.py |
| C24 | not yet: it comes with ForEach |

| case of the probe | where |
| --- | --- |
| same_input_hits, own_body_edited, comment_only | test_key_cases.py |
| constant_edited, helper_edited | test_key_cases.py |
| True_vs_1, 1_vs_1.0, str1_vs_int1, dict_order, set_hashseed | test_key_cases.py |
| read_file_edited, failure_not_cached, payload_deleted | here |
| store_garbage, store_truncated, store_path_taken | test_faults.py |
| three_at_once | tests/integration/test_single_flight.py |
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import JsonValue

from pipelines.run_step import run_step
from pipelines.step_run import RunCacheMode, StepRun
from reprise.errors import Cancelled, StoreError
from reprise.model.agent import ToolGroup
from reprise.model.conversation import ModelReply, ModelRequest
from reprise.model.result import CacheReason, StepStatus
from reprise.model.settings import StepCacheSettings
from reprise.model.workflow import (
    CacheMode,
    FunctionConfig,
)
from reprise.ports import Cancelled as IsCancelled
from resources.memory_entry_store import MemoryEntryStore
from resources.payload_offload import PayloadOffload
from tests.oracle.cases import (
    HIT,
    REQUEST,
    MakeWorld,
    agents_scene,
    function_scene,
    reasons,
    record,
    records,
    with_agent,
    with_step,
)
from tests.oracle.deterministic import DeterministicProvider
from tests.oracle.scenes import film_scene
from tests.watched import stand_in

# ---------------------------------------------------------------------------------- files


def test_a_file_edited_while_the_step_runs_is_not_stored(make_world: MakeWorld) -> None:
    """C9: the result serves this run, and the next one misses."""
    world = make_world(agents_scene("reader_f"))
    provider = world.providers["rule"]
    provider.before_call = lambda _agent: world.add_file("p", "brief.md", b"edited")

    first = record(world)

    assert first.status is StepStatus.SUCCEEDED
    assert first.cache_detail == "this step has not run before; not stored: inputs_moved"
    assert len(world.entries) == 0
    provider.before_call = lambda _agent: None
    assert reasons(records(world)) == [CacheReason.FIRST_TIME]
    assert reasons(records(world)) == [HIT]


def test_what_an_analysis_heard_is_searched_by_who_follows_and_by_the_second_run(
    make_world: MakeWorld,
) -> None:
    """The index moves within the first run, before who searches it, and not in the second."""
    world = make_world(film_scene())
    revisions = []
    for _ in range(2):
        found = records(world)
        revisions.append(world.stores.index.revision("p"))
    assert reasons(found) == [HIT] * 5
    assert [row.name for row in world.stores.index.rows("p")] == ["one.mp4"]
    assert world.stores.index.rows("p")[0].passage_count == 1

    world.stores.index.remove_project("p")
    assert reasons(records(world)) == [HIT] * 5, "a hit puts it there again"
    assert {*revisions, world.stores.index.revision("p")} == {revisions[0]}


def test_touching_a_file_hits_and_other_bytes_of_its_size_miss(make_world: MakeWorld) -> None:
    """C10; probe read_file_edited: within one tick of the clock."""
    world = make_world(agents_scene("reader_f"))
    moment = world.clock.now
    record(world)
    world.add_file("p", "brief.md", b"a brief")
    assert record(world).from_cache

    world.clock.now = moment
    world.add_file("p", "brief.md", b"b brief")

    assert record(world).cache_detail == "changed: project_file_fingerprint (brief.md)"


def test_a_film_that_is_gone_is_made_again(make_world: MakeWorld) -> None:
    """C11: 404 removes the entry; the new run stores a new one."""
    world = make_world(film_scene())
    film = records(world)[3].output_storage_key
    assert film is not None
    world.objects.delete(film)

    again = records(world)

    assert reasons(again) == [HIT, HIT, CacheReason.ARTIFACT_GONE, HIT, HIT]
    assert world.objects.head(film) is not None
    assert reasons(records(world)) == [HIT] * 5


def test_a_film_that_was_written_over_is_made_again(make_world: MakeWorld) -> None:
    """C11: as many bytes under another tag are another film, and the right one takes its place."""
    world = make_world(film_scene())
    film = records(world)[3].output_storage_key
    assert film is not None
    right = world.objects.get_bytes(film)
    world.objects.put_bytes(film, b"x" * len(right))

    assert records(world)[3].cache_reason is CacheReason.ARTIFACT_GONE
    assert world.objects.get_bytes(film) == right
    assert reasons(records(world)) == [HIT] * 5


def test_a_film_that_cannot_be_asked_for_is_made_again_and_its_entry_stays(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """C11: 403, 5xx and time-outs are no proof that it is gone."""
    world = make_world(film_scene())
    records(world)
    count = len(world.entries)

    def around(name: str, work: Callable[[], object]) -> object:
        message = "403"
        raise StoreError(message)

    cache = world.cache_with(stand_in(world.objects, around))
    world.scene = replace(world.scene, mode=RunCacheMode.READONLY)
    found = records(world, replace(world.services(), cache=cache))

    assert found[3].cache_reason is CacheReason.ARTIFACT_UNCHECKED
    assert len(world.entries) == count
    assert reasons(records(world)) == [HIT] * 5


# ---------------------------------------------------------------------- what is never stored


ANY_OBJECT: dict[str, JsonValue] = {"type": "object"}


class OneReply(DeterministicProvider):
    """Answers with one reply, whatever is asked."""

    def __init__(self, reply: ModelReply) -> None:
        super().__init__()
        self._reply = reply

    def complete(self, request: ModelRequest, *, cancelled: IsCancelled) -> ModelReply:
        return self._reply


def reply(text: str, finish_reason: str = "stop") -> ModelReply:
    return ModelReply(text=text, finish_reason=finish_reason, usage={}, model="m")  # type: ignore[arg-type]  # No usage.


@pytest.mark.parametrize(
    "bad",
    [reply("half an ans", "length"), reply("no JSON"), reply('{"a":1}', "content_filter")],
    ids=["cut short", "does not fit its schema", "refused"],
)
def test_an_answer_that_cannot_be_used_is_not_stored(
    make_world: MakeWorld, bad: ModelReply
) -> None:
    """C18: what came before it stays."""
    scene = with_agent(
        agents_scene("plain_a", "plain_b"),
        "plain_b",
        output_schema=ANY_OBJECT,
        inference_provider_id="other",
    )
    world = make_world(scene)
    sound = world.providers["other"]
    world.providers["other"] = OneReply(bad)

    outcome = world.run(world.services(), REQUEST)

    assert list(outcome.errors) == [2]
    assert len(world.entries) == 1
    world.providers["other"] = sound
    assert reasons(records(world)) == [HIT, CacheReason.FIRST_TIME]


def test_a_failure_is_not_cached(make_world: MakeWorld) -> None:
    """C18; probe failure_not_cached: the next run asks again and succeeds."""
    world = make_world(agents_scene("plain_a", "plain_b"))
    world.fail_agents({"plain_b"})

    outcome = world.run(world.services(), REQUEST)

    assert list(outcome.errors) == [2]
    world.fail_agents(set())
    assert reasons(records(world)) == [HIT, CacheReason.FIRST_TIME]


def test_a_step_that_is_stopped_while_it_works_is_not_stored(make_world: MakeWorld) -> None:
    """C18."""
    world = make_world(agents_scene("plain_a"))
    services = world.services()
    records(world, services)
    stopped = [False]
    world.providers["rule"].before_call = lambda _agent: stopped.__setitem__(0, True)
    history = services.history.of_step("w", "p", "request", run_id=None)
    assert history is not None
    assert history.reference is not None
    world.scene = with_agent(world.scene, "plain_a", system_prompt="You are another.")
    run = StepRun(
        workflow=world.scene.workflow,
        step=world.scene.workflow.steps[0],
        project_id="p",
        run_id="stopped",
        history={0: history.reference.seen},
        cancelled=lambda: stopped[0],
    )

    with pytest.raises(Cancelled):
        run_step(run, world.services())

    assert len(world.entries) == 1


def test_an_agent_with_effects_is_neither_looked_up_nor_stored(make_world: MakeWorld) -> None:
    """C19: and a forced `always` needs a second word."""
    scene = with_agent(
        agents_scene("plain_a"), "plain_a", tool_groups=frozenset({ToolGroup.PROJECT_WRITE})
    )
    world = make_world(scene)
    records(world)
    assert reasons(records(world)) == [CacheReason.POLICY]
    assert len(world.entries) == 0

    world.scene = with_step(scene, cache_mode=CacheMode.ALWAYS)
    assert not world.scene.is_valid()
    assert reasons(records(world)) == [CacheReason.POLICY]

    world.scene = with_step(scene, cache_mode=CacheMode.ALWAYS, allow_skipping_effects=True)
    assert world.scene.is_valid()
    records(world)
    assert reasons(records(world)) == [HIT]


def test_a_result_over_the_limit_is_not_stored_and_the_run_goes_on(make_world: MakeWorld) -> None:
    """C20: the limit counts characters, not bytes."""
    emoji = "🎬" * 1000
    world = make_world(function_scene(FunctionConfig(callable="steps:pick", pure=True)))
    world.functions.texts = {"steps": f"def pick(inputs):\n    return {emoji!r}\n"}
    roomy = StepCacheSettings(max_entry_chars=2000)
    world.scene = replace(world.scene, settings=StepCacheSettings(max_entry_chars=1000))

    found = record(world)

    assert found.cache_detail == "this step has not run before; not stored: too_large"
    assert len(world.entries) == 0
    world.scene = replace(world.scene, settings=roomy)
    records(world)
    assert reasons(records(world)) == [HIT]


# ------------------------------------------------------------------------- time and tenants


def test_an_expired_entry_does_not_come_back_when_the_clock_steps_back(
    make_world: MakeWorld,
) -> None:
    """C21."""
    world = make_world(agents_scene("plain_a"))
    start = world.clock.now
    record(world)
    world.clock.now = start + timedelta(hours=169)
    world.scene = replace(world.scene, mode=RunCacheMode.READONLY)
    assert record(world).cache_reason is CacheReason.EXPIRED

    world.clock.now = start + timedelta(hours=1)

    assert record(world).cache_reason is CacheReason.EXPIRED


def test_an_entry_that_expires_after_the_look_up_is_still_this_runs_hit(
    make_world: MakeWorld,
) -> None:
    """C21: and no longer the next one's."""
    world = make_world(agents_scene("plain_a"))
    record(world)

    def around(name: str, work: Callable[[], object]) -> object:
        answer = work()
        world.clock.now += timedelta(hours=200 if name == "get" else 0)
        return answer

    services = replace(world.services(), cache=world.cache_with(None, around))

    assert reasons(records(world, services)) == [HIT]
    assert reasons(records(world)) == [CacheReason.EXPIRED]


def test_a_refresh_starts_the_lifetime_anew(make_world: MakeWorld) -> None:
    """C21."""
    world = make_world(agents_scene("plain_a"))
    record(world)
    world.clock.now += timedelta(hours=100)
    world.scene = replace(world.scene, mode=RunCacheMode.REFRESH)
    assert record(world).cache_reason is CacheReason.REFRESH
    world.clock.now += timedelta(hours=100)
    world.scene = replace(world.scene, mode=RunCacheMode.USE)

    assert record(world).from_cache


def test_another_project_with_the_same_content_misses(make_world: MakeWorld) -> None:
    """C22."""
    world = make_world(agents_scene("plain_a"))
    first = record(world)
    world.scene = replace(world.scene, project="q")
    other = record(world)

    assert not other.from_cache
    assert other.cache_key != first.cache_key


def test_a_row_changed_by_hand_is_a_miss_and_goes(make_world: MakeWorld) -> None:
    """C23."""
    world = make_world(agents_scene("constant_d"))
    first = record(world)
    assert first.cache_key is not None
    entry = world.entries.get("p", first.cache_key, now=world.clock.now)
    assert entry is not None
    world.entries.put(entry.model_copy(update={"payload": entry.payload.replace("same", "evil")}))

    again = record(world)

    assert again.cache_reason is CacheReason.PAYLOAD_DAMAGED
    assert again.reference is not None
    assert first.reference is not None
    assert again.reference.seen == first.reference.seen
    assert record(world).from_cache


def test_a_row_put_under_another_key_is_a_miss(make_world: MakeWorld) -> None:
    """C23: sound in itself, and another step's."""
    world = make_world(agents_scene("plain_a", "plain_b"))
    first = records(world)
    keys = [first[order].cache_key for order in (1, 2)]
    assert keys[0] is not None
    assert keys[1] is not None
    own = world.entries.get("p", keys[0], now=world.clock.now)
    assert own is not None

    def around(name: str, work: Callable[[], object]) -> object:
        return own if name == "get" else work()

    services = replace(world.services(), cache=world.cache_with(None, around))
    found = records(world, services)

    assert reasons(found) == [HIT, CacheReason.PAYLOAD_DAMAGED]


def test_a_payload_whose_object_is_gone_is_a_miss(make_world: MakeWorld) -> None:
    """Probe payload_deleted."""
    world = make_world(agents_scene("plain_a"))
    world.stores.entries = PayloadOffload(MemoryEntryStore(), world.objects, inline_bytes_max=0)
    records(world)
    assert reasons(records(world)) == [HIT]
    for info in list(world.objects.scan("step-cache/")):
        world.objects.delete(info.key)

    assert reasons(records(world)) == [CacheReason.PAYLOAD_DAMAGED]
    assert reasons(records(world)) == [HIT]


def test_a_hit_leaves_what_the_fresh_step_left(make_world: MakeWorld) -> None:
    """C25: then an edit downstream reads the replayed outputs."""
    world = make_world(film_scene())
    services = world.services()
    fresh = world.run(services, REQUEST)
    warm = world.run(services, REQUEST)

    assert reasons(warm.records) == [HIT] * 5
    assert world.differences(warm, services, fresh, services) == []
    spent = [(item.usage.tokens, item.usage.calls) for item in warm.records.values()]
    assert spent == [(0, 0)] * 5
    saved = [item.cached_tokens_saved for item in warm.records.values()]
    assert saved == [item.usage.tokens for item in fresh.records.values()]
    world.scene = with_agent(world.scene, "plain_b", system_prompt="You are another.")
    assert world.check() == []
