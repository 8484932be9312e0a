"""A plan against the run that follows it; it writes nothing.

Over every kind of edit the oracle does this (test_oracle.py): `World.check` plans before each run,
compares the two, and sees which calls the plan made of stores, models and programs.

Source: specification C18.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pipelines.plan import Forecast
from pipelines.step_run import RunCacheMode
from reprise.model.agent import ToolGroup
from reprise.model.workflow import FunctionConfig, InputMode, Step, StepType, Workflow
from tests.oracle.machine import MEMORY
from tests.oracle.scenes import Scene, film_scene, first_agents
from tests.oracle.world import World

HIT, RUN, UNKNOWN = Forecast.HIT, Forecast.RUN, Forecast.UNKNOWN


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def world() -> Iterator[World]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield World(film_scene(), Path(folder))


def forecasts(world: World) -> list[Forecast]:
    planned, findings = world.plan(world.services())
    assert findings == []
    return [step.forecast for step in planned]


def test_what_reads_a_step_that_will_run_is_unknown(world: World) -> None:
    assert forecasts(world) == [RUN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]


def test_all_of_an_unchanged_run_are_hits(world: World) -> None:
    world.run(world.services(), "a promo")

    assert forecasts(world) == [HIT] * 5


def test_an_edited_room_is_run_and_the_analysis_before_it_is_not(world: World) -> None:
    world.run(world.services(), "a promo")
    agent = world.scene.agents["plain_a"].model_copy(update={"system_prompt": "You are another."})
    world.scene = replace(world.scene, agents={**world.scene.agents, "plain_a": agent})

    assert forecasts(world) == [HIT, RUN, UNKNOWN, UNKNOWN, UNKNOWN]


def test_a_refreshed_step_is_run_and_what_reads_it_is_unknown(world: World) -> None:
    world.run(world.services(), "a promo")
    world.scene = replace(world.scene, step_modes={3: RunCacheMode.REFRESH})

    assert forecasts(world) == [HIT, HIT, RUN, UNKNOWN, UNKNOWN]


def scene_of_two(*agents: str) -> Scene:
    """Two agents that read nothing."""
    steps = [
        Step(
            order=order,
            label=label,
            type=StepType.AGENT,
            agent=agent,
            input_mode=InputMode.SELECTED_PRIOR_STEPS,
        )
        for (order, label), agent in zip(((1, "a"), (2, "b")), agents, strict=True)
    ]
    workflow = Workflow(id="w", default_request="a promo", steps=tuple(steps))
    return Scene(workflow, first_agents())


def test_a_twin_of_a_step_that_will_run_is_unknown(world: World) -> None:
    world.scene = scene_of_two("plain_a", "plain_a")

    assert forecasts(world) == [RUN, UNKNOWN]
    world.run(world.services(), "a promo")
    assert forecasts(world) == [HIT, HIT]


def test_a_step_that_waits_for_one_that_may_fail_is_unknown(world: World) -> None:
    """It reads nothing of it, and is not reached when it fails."""
    world.scene = scene_of_two("plain_a", "plain_b")
    reader = world.scene.agents["plain_b"].model_copy(
        update={"tool_groups": frozenset({ToolGroup.WORKFLOW_READ})}
    )
    world.scene = replace(world.scene, agents={**world.scene.agents, "plain_b": reader})
    world.run(world.services(), "a promo")
    world.scene = replace(world.scene, step_modes={1: RunCacheMode.REFRESH})

    assert forecasts(world) == [RUN, UNKNOWN]
    world.fail_agents({"plain_a"})
    assert list(world.run(world.services(), "a promo").errors) == [1]


def test_a_stop_skips_nothing_that_waits_for_a_step_that_may_fail(world: World) -> None:
    gate = FunctionConfig(callable="steps:gate", pure=True, sets=("gated",), stops=True)
    alone = {"input_mode": InputMode.SELECTED_PRIOR_STEPS}
    previous = {"input_mode": InputMode.PREVIOUS_STEP_ONLY}
    steps = [
        {"order": 1, "label": "a", "type": StepType.AGENT, "agent": "plain_a", **alone},
        {"order": 2, "label": "b", "type": StepType.FUNCTION, "function": gate, **alone},
        {"order": 3, "label": "c", "type": StepType.AGENT, "agent": "plain_b"},
        {"order": 4, "label": "d", "type": StepType.AGENT, "agent": "plain_b", **previous},
    ]
    workflow = Workflow(
        id="w", default_request="a promo", steps=tuple(map(Step.model_validate, steps))
    )
    world.scene = Scene(workflow, first_agents())
    world.run(world.services(), "a promo")
    assert forecasts(world) == [HIT, HIT, Forecast.SKIP, Forecast.SKIP]

    world.scene = replace(world.scene, step_modes={1: RunCacheMode.REFRESH})

    assert forecasts(world) == [RUN, HIT, UNKNOWN, UNKNOWN]
    world.fail_agents({"plain_a"})
    assert list(world.run(world.services(), "a promo").errors) == [1]
