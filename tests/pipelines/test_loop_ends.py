"""How an agent's loop ended, as a run keeps it: what failed, what it took, what is never cached."""

from pathlib import Path

import dagster as dg
import pytest

from pipelines.compile import merged_history
from pipelines.run_step import run_step
from pipelines.step_run import StepRun
from reprise.agents.loop import end_of, usage_of
from reprise.errors import ProviderError
from reprise.model.conversation import ModelReply
from reprise.model.result import LoopEnd, StepStatus, Usage
from resources.scripted_provider import ScriptedProvider
from resources.tool_modes import JsonToolProvider, LenientProvider
from tests.oracle.cases import REQUEST
from tests.oracle.deterministic import USAGE
from tests.oracle.scenes import film_scene
from tests.oracle.world import World
from tests.pipelines.engine import Engine

FAILURE, SUCCESS = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS
ONE_CALL = Usage(input_uncached=10, output=5, calls=1, cost_micros=70)


def reply(text: str, finish: str = "stop") -> ModelReply:
    return ModelReply(text=text, finish_reason=finish, usage=ONE_CALL, model="scripted-1")


def test_a_cut_answer_fails_its_step_counts_and_is_never_cached(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.scripted = ScriptedProvider([reply("half an ans", "length"), reply("whole")])

    failed = engine.run()
    record = engine.records(failed)["a"]
    assert (failed.status, record.status) == (FAILURE, StepStatus.FAILED)
    assert record.ended is LoopEnd.ANSWER_CUT
    assert record.usage == ONE_CALL
    assert len(engine.wiring.entries) == 0

    again = engine.run()
    assert again.status is SUCCESS
    assert engine.records(again)["a"].from_cache is False
    assert len(engine.scripted.requests) == 2


def test_a_call_on_the_last_turn_fails_its_step_and_is_never_cached(engine: Engine) -> None:
    limits = {"turns_max": 3}
    engine.agent("a", "You are a.", tool_groups=["WorkflowRead"], limits=limits)
    engine.agents_workflow({"a": []})
    engine.project("p")
    call = '{"tool": "list_prior_steps", "arguments": {}}'
    engine.scripted = ScriptedProvider([*[reply(call)] * 3, reply('{"answer": "Nothing."}')])
    engine.before = JsonToolProvider

    failed = engine.run()
    record = engine.records(failed)["a"]
    assert (failed.status, record.ended) == (FAILURE, LoopEnd.TURNS)
    assert len(engine.wiring.entries) == 0

    again = engine.run()
    assert again.status is SUCCESS
    assert engine.records(again)["a"].from_cache is False


def test_an_answer_beyond_its_bounds_is_cached_for_a_lenient_provider_alone(
    engine: Engine,
) -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number", "maximum": 10}}}
    engine.agent("a", "You are a.", output_schema_name="x", output_schema=schema)
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.scripted = ScriptedProvider([reply('{"score": 99}')] * 6)

    failed = engine.run()
    assert engine.records(failed)["a"].ended is LoopEnd.ANSWER_INVALID
    assert len(engine.wiring.entries) == 0

    engine.before = LenientProvider
    first, second = (engine.records(engine.run())["a"] for _ in range(2))
    assert (first.from_cache, second.from_cache) == (False, True)
    assert "was mended (lenient): $.score: 99 became its bound 10" in first.notes[0]
    # It is no answer of a provider that is held to its schemas.
    engine.before = lambda provider: provider
    assert engine.run().status is FAILURE


def test_an_agents_own_bounds_hold_in_a_run(engine: Engine) -> None:
    schema = {"type": "object", "required": ["x"]}
    limits = {"turns_max": 2}
    engine.agent("a", "You are a.", output_schema_name="x", output_schema=schema, limits=limits)
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.scripted = ScriptedProvider([reply("no")] * 9)

    record = engine.records(engine.run())["a"]

    assert record.ended is LoopEnd.TURNS
    assert record.usage == Usage(input_uncached=20, output=10, calls=2, cost_micros=140)


def test_the_ui_shows_why_a_loop_ended_and_what_it_took(engine: Engine) -> None:
    engine.agents_workflow({"a": [], "b": [1]})
    engine.project("p")
    engine.scripted = ScriptedProvider(
        {"a": [reply("fine")], "b": [reply("", "content_filter")]},
    )

    run = engine.run()

    events = [entry.dagster_event for entry in engine.instance.all_logs(run.run_id)]
    (gave,) = (
        event.step_materialization_data.materialization.metadata
        for event in events
        if event is not None
        and event.is_step_materialization
        and event.asset_key == dg.AssetKey(["w", "s01_a"])
    )
    assert gave["ended"].value == "answered"
    (lost,) = (
        event.step_failure_data.user_failure_data
        for event in events
        if event is not None and event.is_step_failure
    )
    assert lost is not None
    assert lost.metadata["ended"].value == "answer_refused"
    assert lost.metadata["tokens_used"].value == 15
    assert lost.metadata["cost_usd"].value == pytest.approx(0.00007)


def test_a_room_that_fails_counts_what_its_earlier_agents_took(tmp_path: Path) -> None:
    world = World(film_scene(), tmp_path)
    services = world.services()
    record = world.run(services, REQUEST).records[1]
    assert record.reference is not None
    world.fail_agents({"director_g"})
    run = StepRun(
        workflow=world.scene.workflow,
        step=world.scene.workflow.step(2).model_copy(update={"prompt": "Do it anew."}),
        project_id="p",
        run_id="r",
        history=merged_history([record.reference]),
    )

    with pytest.raises(ProviderError) as caught:
        run_step(run, services)

    assert usage_of(caught.value) == USAGE, "the first agent of two answered"
    assert end_of(caught.value) is LoopEnd.PROVIDER


@pytest.mark.parametrize(
    ("front", "limits", "runs_anew"),
    [
        ({}, {"turns_max": 5}, False),
        ({}, {"cost_usd_max": 1.5, "seconds_max": 100, "tokens_max": 5000}, False),
        # Its last turn is for the answer.
        ({"tool_groups": ["ProjectRead"]}, {"turns_max": 5}, True),
        ({"tool_groups": ["ProjectRead"]}, {"cost_usd_max": 1.5, "tokens_max": 5000}, False),
    ],
)
def test_a_bound_that_shapes_answers_is_in_the_key_and_no_other(
    engine: Engine, front: dict[str, object], limits: dict[str, object], runs_anew: bool
) -> None:
    engine.agent("a", "You are a.", **front)
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.run()
    engine.executed()

    engine.agent("a", "You are a.", limits=limits, **front)
    engine.run()

    assert engine.executed() == ({"a"} if runs_anew else set())
