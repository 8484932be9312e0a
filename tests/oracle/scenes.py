"""What runs: small workflows with their agents, as they are before any edit."""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from pydantic import JsonValue

from pipelines.step_run import RunCacheMode
from reprise.model.agent import AgentDefinition, ModelParameters, ToolGroup
from reprise.model.settings import ContextBudgetSettings, StepCacheSettings
from reprise.model.workflow import (
    EditRoomConfig,
    FunctionConfig,
    InputMode,
    Step,
    StepType,
    Workflow,
)
from reprise.model.workflow_checks import Checked, Placed, find_problems

PROVIDERS = ("rule", "other", "texts")
"""Two that read values, and one that answers from the texts alone."""

AGENTS = ("plain_a", "plain_b", "coarse_c", "constant_d", "constant_e", "reader_f", "director_g")
PROMPTS = (
    "You are {name}.",
    "You are {name}. ",
    "You are {name}.\r\n",
    "Work as {name}, in this tone: {{{{tone}}}}.",
    "Say {{{{count}}}} things, {name}.",
    "{name}: {{{{request}}}}",
)
SCHEMAS: tuple[dict[str, JsonValue] | None, ...] = (
    None,
    {},
    {"type": "object", "properties": {"a": {}, "b": {}}},
    {"type": "object", "properties": {"b": {}, "a": {}}},
    {"type": "object", "required": ["a"]},
)
SKILLS = ((), ("Be brief.",), ("Be kind.",), ("Be brief.", "Be kind."), ("Be brief. Be kind.",))
GROUPS: tuple[frozenset[ToolGroup], ...] = (
    frozenset(),
    frozenset({ToolGroup.PROJECT_READ}),
    frozenset({ToolGroup.PROJECT_WRITE}),
    frozenset({ToolGroup.WORKFLOW_READ}),
    frozenset({ToolGroup.PROJECT_READ, ToolGroup.SANDBOX_RENDER}),
)
PARAMETERS = (
    ModelParameters(),
    ModelParameters(temperature=0.0),
    ModelParameters(temperature=0.5),
    ModelParameters(model="m"),
    ModelParameters(seed=1, top_p=0.5),
)
VALUES: tuple[JsonValue, ...] = (
    1,
    True,
    "1",
    1.0,
    None,
    "None",
    "",
    [],
    [1],
    {"a": 1},
    "é",
    "e\u0301",
)
TASKS = (None, "", "Do it.", "Do it", "Count {{count}}.", "{{request}}", "{{gated}}")
REQUESTS = (None, "", "make it short", "make it long", "in the tone {{tone}}")
LABELS = string.ascii_lowercase[:12]
FUNCTIONS = (
    FunctionConfig(callable="steps:summary", pure=True),
    FunctionConfig(callable="steps:summary", pure=False),
    FunctionConfig(callable="steps:summary", pure=True, files=("*.md",)),
    FunctionConfig(callable="steps:summary", pure=True, files=()),
    FunctionConfig(callable="steps:gate", pure=True, sets=("gated",), stops=True, files=()),
)
MAPPED = re.compile(r'steps\."(\d+)"')


@dataclass(frozen=True)
class Scene:
    """Everything that a run is made of, the files and the stores apart."""

    workflow: Workflow
    agents: Mapping[str, AgentDefinition]
    project: str = "p"
    provider: str = "rule"
    request: str | None = None
    mode: RunCacheMode = RunCacheMode.USE
    step_modes: Mapping[int, RunCacheMode] = field(default_factory=dict)
    settings: StepCacheSettings = field(default_factory=StepCacheSettings)
    budget: ContextBudgetSettings = field(default_factory=ContextBudgetSettings)

    def is_valid(self) -> bool:
        """Answer whether the engine would load it."""
        steps = self.workflow.steps
        checked = Checked(
            steps=tuple(Placed(place, step) for place, step in enumerate(steps)),
            orders=frozenset(step.order for step in steps),
            variables=self.workflow.variables,
            default_request=self.workflow.default_request,
            complete=True,
            agent_ids=self.agents,
            agents=self.agents,
        )
        return not find_problems(checked)


def first_agents() -> dict[str, AgentDefinition]:
    """Return the agents as they are before any edit."""
    return {
        name: AgentDefinition(
            id=name,
            agent_type=name,
            system_prompt=f"You are {name}.",
            tool_groups=GROUPS[1] if name == "reader_f" else GROUPS[0],
            output_schema={} if name == "director_g" else None,
        )
        for name in AGENTS
    }


def film_scene() -> Scene:
    """Return five steps with all that a hit may carry: thumbnails, a film, files read by tools."""
    steps = [
        *_media_steps(),
        Step(order=4, label="d", type=StepType.AGENT, agent="reader_f"),
        Step(order=5, label="e", type=StepType.AGENT, agent="plain_b"),
    ]
    return Scene(Workflow(id="w", default_request="a promo", steps=tuple(steps)), first_agents())


def first_scene(rng: Random) -> Scene:
    """Return a workflow of two to six steps."""
    agents = first_agents()
    while True:
        workflow = Workflow(
            id="w",
            default_request="a promo",
            variables={"tone": "warm", "count": 1},
            steps=tuple(_first_steps(rng)),
        )
        scene = Scene(workflow, agents)
        # Two gates would set the same variable.
        if scene.is_valid():
            return scene


def _first_steps(rng: Random) -> list[Step]:
    steps = _media_steps() if rng.random() < 0.35 else []
    while len(steps) < 2 or (len(steps) < 6 and rng.random() < 0.6):
        steps.append(some_step(len(steps) + 1, LABELS[len(steps)], rng))
    return steps


def _media_steps() -> list[Step]:
    selected = InputMode.SELECTED_PRIOR_STEPS
    room = EditRoomConfig(agents=("plain_a", "director_g"))
    return [
        Step(order=1, label=LABELS[0], type=StepType.VIDEO_ANALYZE),
        Step(
            order=2,
            label=LABELS[1],
            type=StepType.EDIT_ROOM,
            edit_room=room,
            input_mode=selected,
            selected_prior_step_orders=(1,),
        ),
        Step(
            order=3,
            label=LABELS[2],
            type=StepType.VIDEO_COMPILE,
            input_mode=selected,
            selected_prior_step_orders=(1, 2),
        ),
    ]


def some_step(order: int, label: str, rng: Random) -> Step:
    """Return a step that reads something before it."""
    step = Step(order=order, label=label, type=StepType.AGENT, agent=rng.choice(AGENTS[:6]))
    if rng.random() < 0.15:
        function = rng.choice(FUNCTIONS)
        step = Step(order=order, label=label, type=StepType.FUNCTION, function=function)
    return step.model_copy(update=input_update(order, rng))


def input_update(order: int, rng: Random) -> dict[str, object]:
    """Return another input of a step of this order."""
    mode = rng.choice(list(InputMode))
    earlier = list(range(1, order))
    update: dict[str, object] = {
        "input_mode": mode,
        "selected_prior_step_orders": (),
        "input_mapping": {},
    }
    if mode is InputMode.SELECTED_PRIOR_STEPS:
        chosen = rng.sample(earlier, rng.randint(0, len(earlier)))
        update["selected_prior_step_orders"] = tuple(chosen)
    if mode is InputMode.CUSTOM_MAPPED_SUBSET:
        if not earlier:
            return {**update, "input_mode": InputMode.FULL_WORKFLOW}
        ends = ("", ".a", ".b", ".sources[0].name", ".title")
        order_text = rng.choice(earlier)
        update["input_mapping"] = {
            name: f'steps."{order_text}"{rng.choice(ends)}'
            for name in rng.sample(["x", "y"], rng.randint(1, 2))
        }
    return update
