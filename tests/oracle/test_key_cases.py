"""The cases of a step cache's key that others get wrong: a run, a change, a run.

Each docstring begins with the case's number; the table of all is in test_cache_cases.py.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pydantic import JsonValue

from reprise.errors import StoreError
from reprise.model.agent import AgentDefinition, ToolChoice, ToolGroup
from reprise.model.result import CacheReason, StepStatus
from reprise.model.workflow import (
    FunctionConfig,
    InputMode,
)
from tests.child_process import ROOT
from tests.oracle.cases import (
    PURE,
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
from tests.oracle.scenes import Scene, film_scene
from tests.oracle.user_code import module_texts
from tests.oracle.world import World
from tests.watched import stand_in

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
from tests.oracle.test_key_cases import key_of_many
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
            "changed: agent_tool_groups, agent_tools (list_project_files, new; read_project_file, "
            "new; read_project_transcript, new), project_file_fingerprint (brief.md, new; "
            "one.mp4, new; search, new)",
        ),
        ({"inference_provider_id": "other"}, "changed: agent_inference_provider_id"),
        ({"tool_choice": ToolChoice.REQUIRED}, "changed: tool_choice"),
    ],
)
def test_an_edited_agent_misses_and_the_edit_is_named(
    make_world: MakeWorld, update: dict[str, object], said: str
) -> None:
    """C6: prompt, schema, skills, tools, tool choice, provider of the same model."""
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


def test_another_context_of_the_model_misses_for_an_agent_with_tools_alone(
    make_world: MakeWorld,
) -> None:
    """Tool results are cut to it; what else it changes is in the input's text."""
    world = make_world(agents_scene("reader_f", "plain_a"))
    records(world)
    world.providers["rule"].context_tokens = 8_000
    reader, plain = records(world).values()

    assert reader.cache_detail == "changed: agent_inference_provider_id"
    assert plain.from_cache


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
