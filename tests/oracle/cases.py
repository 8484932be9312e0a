"""Small scenes and short words for the cases of the step cache."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pydantic import JsonValue

from pipelines.services import Services
from reprise.model.result import CacheReason, StepRecord
from reprise.model.workflow import (
    FunctionConfig,
    InputMode,
    Step,
    StepType,
    Workflow,
)
from tests.oracle.scenes import Scene, first_agents
from tests.oracle.world import World

REQUEST = "a promo"
MakeWorld = Callable[..., World]


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
