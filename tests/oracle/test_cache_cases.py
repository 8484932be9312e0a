"""The cases that step caches get wrong, each on whole steps: a run, a change, a run.

Each docstring begins with the case's number; the cases without a test here are tested where they
belong: C5 in tests/unit/cache/test_executor_closures.py, C13 and C14 in test_faults.py, C15 to C17
in tests/integration/test_single_flight.py and tests/pipelines/test_single_flight.py.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pydantic import JsonValue

from pipelines.run_step import run_step
from pipelines.services import Services
from pipelines.step_run import RunCacheMode, StepRun
from reprise.errors import Cancelled, StoreError
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.conversation import ModelReply, ModelRequest
from reprise.model.result import CacheReason, StepRecord, StepStatus
from reprise.model.settings import StepCacheSettings
from reprise.model.workflow import (
    CacheMode,
    FunctionConfig,
    InputMode,
    Step,
    StepType,
    Workflow,
)
from reprise.ports import Cancelled as IsCancelled
from resources.memory_entry_store import MemoryEntryStore
from resources.payload_offload import PayloadOffload
from tests.child_process import ROOT
from tests.oracle.deterministic import DeterministicProvider
from tests.oracle.scenes import Scene, film_scene, first_agents
from tests.oracle.sequences import MEMORY
from tests.oracle.user_code import module_texts
from tests.oracle.world import World
from tests.watched import stand_in

REQUEST = "a promo"
MakeWorld = Callable[..., World]


@pytest.fixture
def make_world() -> Iterator[MakeWorld]:
    folders: list[TemporaryDirectory[str]] = []

    def make(scene: Scene, **stores: MemoryEntryStore) -> World:
        folders.append(TemporaryDirectory(dir=MEMORY))
        return World(scene, Path(folders[-1].name), **stores)

    yield make
    for folder in folders:
        folder.cleanup()


def agents_scene(*names: str, **variables: JsonValue) -> Scene:
    """One Agent step after the other, each reading the one before."""
    steps = tuple(
        Step(
            order=place,
            label=name,
            type=StepType.AGENT,
            agent=name,
            input_mode=InputMode.PREVIOUS_STEP_ONLY,
        )
        for place, name in enumerate(names, start=1)
    )
    return Scene(Workflow(id="w", variables=variables, steps=steps), first_agents())


def function_scene(config: FunctionConfig, **variables: JsonValue) -> Scene:
    step = Step(order=1, label="f", type=StepType.FUNCTION, function=config)
    return Scene(Workflow(id="w", variables=variables, steps=(step,)), first_agents())


def with_agent(scene: Scene, name: str, **update: object) -> Scene:
    agent = scene.agents[name].model_copy(update=update)
    return replace(scene, agents={**scene.agents, name: agent})


def with_step(scene: Scene, **update: object) -> Scene:
    first, *rest = scene.workflow.steps
    steps = (first.model_copy(update=update), *rest)
    return replace(scene, workflow=scene.workflow.model_copy(update={"steps": steps}))


def records(world: World, services: Services | None = None) -> Mapping[int, StepRecord]:
    outcome = world.run(services or world.services(), REQUEST)
    assert outcome.errors == {}
    return outcome.records


def record(world: World, order: int = 1) -> StepRecord:
    return records(world)[order]


def reasons(found: Mapping[int, StepRecord]) -> list[CacheReason | None]:
    return [found[order].cache_reason for order in sorted(found)]


HIT = CacheReason.HIT
PURE = FunctionConfig(callable="steps:summary", pure=True)


# ---------------------------------------------------------------------------------- the key


@pytest.mark.parametrize("kind", ["agent", "function"])
def test_values_that_only_look_alike_have_keys_of_their_own(
    make_world: MakeWorld, kind: str
) -> None:
    """C1, C2; probe True_vs_1, 1_vs_1.0, str1_vs_int1: each type is another value."""
    alike: list[JsonValue] = [
        1,
        True,
        1.0,
        "1",
        None,
        "None",
        [1],
        {"a": 1},
        [["a", 1]],
        "",
        [],
        {},
    ]
    if kind == "agent":
        scene = with_step(agents_scene("plain_a"), prompt="Count {{count}}.")
    else:
        scene = function_scene(PURE)
    world = make_world(scene)
    keys = set()
    for value in alike:
        workflow = scene.workflow.model_copy(update={"variables": {"count": value}})
        world.scene = replace(scene, workflow=workflow)
        found = record(world)
        assert not found.from_cache
        keys.add(found.cache_key)

    assert len(keys) == len(alike)


def test_absent_null_and_empty_prompts_are_told_apart(make_world: MakeWorld) -> None:
    """C1: an agent without a schema name and one with an empty name are two agents."""
    scene = agents_scene("plain_a")
    world = make_world(with_agent(scene, "plain_a", output_schema_name=None))
    one = record(world)
    world.scene = with_agent(scene, "plain_a", output_schema_name="")
    other = record(world)

    assert one.cache_key != other.cache_key


KEY_IN_A_PROCESS = """
from tests.oracle.test_cache_cases import key_of_many
print(key_of_many())
"""


def key_of_many() -> str:
    """The key of a step with sets and dictionaries, made in another order each time."""
    groups = frozenset({ToolGroup.PROJECT_READ, ToolGroup.WORKFLOW_READ})
    names = {"b", "a", "c"}
    variables: dict[str, JsonValue] = {"x": {name: ord(name) for name in names}}
    scene = agents_scene("plain_a", **variables)
    scene = with_step(with_agent(scene, "plain_a", tool_groups=groups), prompt="{{x}}")
    with TemporaryDirectory() as folder:
        world = World(scene, Path(folder))
        return str(record(world).cache_key)


def test_sets_and_the_order_of_dictionaries_do_not_move_the_key() -> None:
    """C3; probe dict_order, set_hashseed: equal across processes with other hash seeds."""
    keys = {
        subprocess.run(
            [sys.executable, "-c", KEY_IN_A_PROCESS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "7")
    }

    assert len(keys) == 1
    # None of the two failed in the same way.
    assert len(keys.pop().strip()) == 64


@pytest.mark.parametrize(("one", "other"), [("é", "e\u0301"), ("a\nb", "a\r\nb"), ("a", "a ")])
def test_texts_that_look_alike_are_different(make_world: MakeWorld, one: str, other: str) -> None:
    """C3: normal forms, line ends and blanks are part of what a model is shown."""
    world = make_world(with_step(agents_scene("plain_a"), prompt=one))
    record(world)
    world.scene = with_step(world.scene, prompt=other)

    assert record(world).cache_detail == "changed: step_prompt"


def test_a_step_whose_code_cannot_be_hashed_is_neither_looked_up_nor_stored(
    make_world: MakeWorld,
) -> None:
    """C4: no key is made of the rest."""
    world = make_world(function_scene(FunctionConfig(callable="steps:pick", pure=True)))
    world.functions.texts = {"steps": "pick = eval('lambda inputs: 1')\n"}

    assert reasons(records(world)) == [CacheReason.NOT_HASHABLE]
    assert reasons(records(world)) == [CacheReason.NOT_HASHABLE]
    assert len(world.entries) == 0
    assert record(world).cache_key is None


def test_files_that_cannot_be_listed_again_leave_the_result_unstored(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """C4, C9: the step has its answer; what it would be stored under cannot be had."""
    world = make_world(agents_scene("reader_f"))
    services = world.services()
    lists = 0

    def around(name: str, work: Callable[[], object]) -> object:
        nonlocal lists
        lists += name == "files"
        if lists > 1:
            message = "the registry is down"
            raise StoreError(message)
        return work()

    found = records(world, replace(services, projects=stand_in(services.projects, around)))

    assert found[1].status is StepStatus.SUCCEEDED
    assert len(world.entries) == 0
    assert "the registry is down" in caplog.text


OTHER_SCHEMA: dict[str, JsonValue] = {"type": "object"}


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"system_prompt": "You are another."}, "changed: agent_system_prompt"),
        ({"output_schema": OTHER_SCHEMA}, "changed: agent_output_schema"),
        ({"assigned_skills": ("Be brief.",)}, "changed: agent_assigned_skills"),
        (
            {"tool_groups": frozenset({ToolGroup.PROJECT_READ})},
            "changed: agent_tool_groups, agent_tools, project_file_fingerprint"
            " (brief.md, new; one.mp4, new)",
        ),
        ({"inference_provider_id": "other"}, "changed: agent_inference_provider_id"),
    ],
)
def test_an_edited_agent_misses_and_the_edit_is_named(
    make_world: MakeWorld, update: dict[str, object], said: str
) -> None:
    """C6: prompt, schema, skills, tools, provider of the same model."""
    world = make_world(agents_scene("plain_a"))
    record(world)
    world.scene = with_agent(world.scene, "plain_a", **update)

    assert record(world).cache_detail == said


def test_another_model_behind_the_same_provider_misses(make_world: MakeWorld) -> None:
    """C6: a provider's id is not its model."""
    world = make_world(agents_scene("plain_a"))
    record(world)
    world.providers["rule"].model = "rule-2"

    assert record(world).cache_detail == "changed: agent_inference_provider_id"


# ------------------------------------------------------------- found by the oracle, each once


def mapped_scene(path: str, provider: str = "rule") -> Scene:
    """Two agents; the second reads a part of the first's answer."""
    scene = agents_scene("plain_a", "plain_b")
    one, two = scene.workflow.steps
    scene = with_agent(scene, "plain_a", output_schema={})
    mapped = two.model_copy(
        update={"input_mode": InputMode.CUSTOM_MAPPED_SUBSET, "input_mapping": {"x": path}}
    )
    workflow = scene.workflow.model_copy(update={"steps": (one, mapped)})
    return replace(scene, workflow=workflow, provider=provider)


@pytest.mark.parametrize(("provider", "hits"), [("rule", False), ("texts", True)])
def test_what_a_mapped_input_leaves_out_counts_for_those_that_see_it(
    make_world: MakeWorld, provider: str, hits: bool
) -> None:
    """The heuristics read whole prior outputs; a model reads its prompt alone."""
    world = make_world(mapped_scene('steps."1".b', provider))
    records(world)
    world.scene = with_agent(world.scene, "plain_a", system_prompt="You are another.")

    assert records(world)[2].from_cache is hits
    assert world.check() == []


def test_a_room_reads_its_whole_analysis_whatever_is_mapped(make_world: MakeWorld) -> None:
    scene = film_scene()
    analysis, room, *rest = scene.workflow.steps
    room = room.model_copy(
        update={
            "input_mode": InputMode.CUSTOM_MAPPED_SUBSET,
            "selected_prior_step_orders": (),
            "input_mapping": {"name": 'steps."1".sources[0].name'},
        }
    )
    workflow = scene.workflow.model_copy(update={"steps": (analysis, room, *rest)})
    world = make_world(replace(scene, workflow=workflow, provider="texts"))
    records(world)
    world.analyzer.version = "2"

    assert not records(world)[2].from_cache
    assert world.check() == []


def test_the_type_of_the_agent_before_counts_for_those_that_see_it(make_world: MakeWorld) -> None:
    world = make_world(agents_scene("constant_d", "plain_a"))
    records(world)
    world.scene = with_agent(world.scene, "constant_d", agent_type="another")

    assert reasons(records(world)) == [CacheReason.FIELD_CHANGED, CacheReason.FIELD_CHANGED]


def test_a_text_and_an_object_that_print_alike_are_told_apart(make_world: MakeWorld) -> None:
    world = make_world(agents_scene("constant_d", "plain_a"))
    records(world)
    world.scene = with_agent(world.scene, "constant_d", output_schema={})

    assert not records(world)[2].from_cache
    assert world.check() == []


def test_a_room_may_stand_at_another_place_of_the_workflow(make_world: MakeWorld) -> None:
    scene = film_scene()
    analysis, room, film, *_ = scene.workflow.steps
    twin = room.model_copy(update={"order": 4, "label": "d"})
    workflow = scene.workflow.model_copy(update={"steps": (analysis, room, film, twin)})
    world = make_world(replace(scene, workflow=workflow))

    assert world.check() == []
    assert records(world)[4].from_cache


def test_the_order_of_a_schemas_properties_is_another_prompt(make_world: MakeWorld) -> None:
    scene = agents_scene("plain_a")
    world = make_world(
        with_agent(scene, "plain_a", output_schema={"properties": {"a": {}, "b": {}}})
    )
    record(world)
    world.scene = with_agent(scene, "plain_a", output_schema={"properties": {"b": {}, "a": {}}})

    assert record(world).cache_detail == "changed: agent_output_schema"
    assert world.check() == []


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
        output_schema=OTHER_SCHEMA,
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
    world.entries = PayloadOffload(MemoryEntryStore(), world.objects, inline_bytes_max=0)
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


# ---------------------------------------------------------------------- the probe on functions


@pytest.mark.parametrize(
    ("version", "is_stale"),
    [
        (module_texts(0), False),
        (module_texts(2), True),
        (module_texts(3), False),
        (module_texts(5), False),
        (module_texts(1), True),
    ],
    ids=["same_input_hits", "own_body_edited", "comment_only", "unrelated", "constant_edited"],
)
def test_a_function_runs_again_when_its_code_changed(
    make_world: MakeWorld, version: dict[str, str], is_stale: bool
) -> None:
    """Probe: body, comment and module constant."""
    world = make_world(function_scene(PURE))
    record(world)
    world.functions.texts = version

    assert record(world).from_cache is not is_stale
    assert world.check() == []


def test_a_function_runs_again_when_a_helper_changed(make_world: MakeWorld) -> None:
    """Probe helper_edited: in another module."""
    gate = FunctionConfig(callable="steps:gate", pure=True, sets=("gated",), stops=True)
    world = make_world(function_scene(gate))
    record(world)
    world.functions.texts = module_texts(6)

    found = record(world)

    assert not found.from_cache
    assert found.cache_detail.startswith("changed: function_fingerprint")
    assert world.check() == []


def test_an_agent_that_is_not_there_any_more_fails_as_it_would_without_a_cache(
    make_world: MakeWorld,
) -> None:
    """A cached answer does not outlive its agent."""
    world = make_world(agents_scene("plain_a"))
    record(world)
    agents: dict[str, AgentDefinition] = dict(world.scene.agents)
    agents["plain_a"] = agents["plain_a"].model_copy(update={"inference_provider_id": "gone"})
    world.scene = replace(world.scene, agents=agents)

    outcome = world.run(world.services(), REQUEST)

    assert outcome.errors == {1: "no provider 'gone'"}
