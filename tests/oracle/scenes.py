"""What runs: small workflows with their agents, as they are before any edit."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from pydantic import JsonValue

from pipelines.step_run import RunCacheMode
from reprise.context.step_input import agent_ids
from reprise.model.agent import SANDBOX_GROUPS, AgentDefinition, ModelParameters, ToolGroup
from reprise.model.settings import ContextBudgetSettings, StepCacheSettings
from reprise.model.workflow import (
    EditRoomConfig,
    FunctionConfig,
    InputMode,
    SandboxConfig,
    Step,
    StepType,
    Workflow,
)
from reprise.model.workflow_checks import Checked, Placed, find_problems

PROVIDERS = ("rule", "other", "texts")
"""Two that read values, and one that answers from the texts alone."""

AGENTS = (
    "plain_a",
    "plain_b",
    "coarse_c",
    "constant_d",
    "constant_e",
    "reader_f",
    "browser_h",
    "author_i",
    "director_g",
)
FIRST_GROUPS: Mapping[str, frozenset[ToolGroup]] = {
    "reader_f": frozenset({ToolGroup.PROJECT_READ}),
    "browser_h": frozenset({ToolGroup.SANDBOX_BROWSE}),
    "author_i": frozenset({ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING}),
}
"""What agents may do before any edit."""
PROMPTS = (
    "You are {name}.",
    "You are {name}. ",
    "You are {name}.\r\n",
    "Work as {name}, in this tone: {{{{tone}}}}.",
    "Say {{{{count}}}} things, {name}.",
    "{name}: {{{{request}}}}",
    "{{{{a_output}}}}",
    "{{{{b_output}}}} and {{{{out}}}}",
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
    frozenset({ToolGroup.SANDBOX_BROWSE}),
    frozenset({ToolGroup.SANDBOX_BROWSE}),
    frozenset({ToolGroup.SANDBOX_AUTHORING}),
    frozenset({ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING}),
)
TEMPLATES: tuple[Mapping[str, str], ...] = (
    {},
    {"a.txt": "one\n"},
    {"a.txt": "two\n"},
    {"a.txt": "one\n", "src/b.txt": "two\n"},
    {"src/a.txt": "one\n"},
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
STEPS_MAX = 6
LABELS = string.ascii_lowercase[:12]
FUNCTIONS = (
    FunctionConfig(callable="steps:summary", pure=True),
    FunctionConfig(callable="steps:summary", pure=False),
    FunctionConfig(callable="steps:summary", pure=True, files=("*.md",)),
    FunctionConfig(callable="steps:summary", pure=True, files=()),
    FunctionConfig(callable="steps:gate", pure=True, sets=("gated",), stops=True, files=()),
)


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
    template: Mapping[str, str] = field(default_factory=lambda: TEMPLATES[1])
    """Path → text: what sandboxes begin with."""

    def with_steps(self, steps: Sequence[Step]) -> "Scene":
        """Return the scene with other steps."""
        known = {step.order for step in steps}
        modes = {order: mode for order, mode in self.step_modes.items() if order in known}
        workflow = self.workflow.model_copy(update={"steps": tuple(steps)})
        return replace(self, workflow=workflow, step_modes=modes)

    def is_valid(self) -> bool:
        """Answer whether the engine would load it; effects that are skipped on purpose are none.

        A run that leaves an author out has another sandbox: somebody chose so.
        """
        steps = self.workflow.steps
        if any(step.allow_skipping_effects and self.authors(step) for step in steps):
            return False
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

    def authors(self, step: Step) -> bool:
        """Answer whether a step changes the sandbox."""
        return self._has(step, frozenset({ToolGroup.SANDBOX_AUTHORING}))

    def has_sandbox(self, step: Step) -> bool:
        """Answer whether a step's agents have tools for the sandbox."""
        return self._has(step, SANDBOX_GROUPS)

    def _has(self, step: Step, groups: frozenset[ToolGroup]) -> bool:
        agents = (self.agents.get(name) for name in agent_ids(step))
        return any(agent is not None and agent.tool_groups & groups for agent in agents)


def first_agents() -> dict[str, AgentDefinition]:
    """Return the agents as they are before any edit."""
    return {
        name: AgentDefinition(
            id=name,
            agent_type=name,
            system_prompt=f"You are {name}.",
            tool_groups=FIRST_GROUPS.get(name, frozenset()),
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


@dataclass(frozen=True)
class Reads:
    """What a step reads, wherever it comes to stand."""

    mode: InputMode
    selected: tuple[int, ...]
    mapped: Mapping[str, tuple[int, str]]

    def at(self, order: int) -> dict[str, object]:
        """Return the input of a step of this order, which reads only what is before it."""
        mode, earlier = self.mode, range(1, order)
        if mode is InputMode.CUSTOM_MAPPED_SUBSET and not earlier:
            mode = InputMode.FULL_WORKFLOW
        selects = mode is InputMode.SELECTED_PRIOR_STEPS
        maps = mode is InputMode.CUSTOM_MAPPED_SUBSET
        paths = {
            name: f'steps."{earlier[place % len(earlier)]}"{end}'
            for name, (place, end) in self.mapped.items()
            if maps
        }
        return {
            "input_mode": mode,
            "selected_prior_step_orders": tuple(
                o for o in self.selected if selects and o in earlier
            ),
            "input_mapping": paths,
        }


reads = st.builds(
    Reads,
    mode=st.sampled_from(InputMode),
    selected=st.lists(st.integers(1, STEPS_MAX - 1), unique=True, max_size=3).map(tuple),
    mapped=st.dictionaries(
        st.sampled_from(["x", "y"]),
        st.tuples(
            st.integers(0, 4), st.sampled_from(["", ".a", ".b", ".sources[0].name", ".title"])
        ),
        min_size=1,
    ),
)
works: st.SearchStrategy[Mapping[str, object]] = st.sampled_from(
    [{"type": StepType.AGENT, "agent": name} for name in AGENTS[:8] * 2]
    + [{"type": StepType.FUNCTION, "function": function} for function in FUNCTIONS]
)
"""What a step may do."""


def step_of(order: int, label: str, work: Mapping[str, object], read: Reads) -> Step:
    """Return a step at its place."""
    return Step.model_validate({"order": order, "label": label, **work, **read.at(order)})


def _scene(has_film: bool, drafts: Sequence[tuple[Mapping[str, object], Reads]]) -> Scene:
    steps = _media_steps() if has_film else []
    for draft in drafts:
        steps.append(step_of(len(steps) + 1, LABELS[len(steps)], *draft))
    workflow = Workflow(
        id="w",
        default_request="a promo",
        variables={"tone": "warm", "count": 1},
        sandbox=SandboxConfig(template="plain"),
        steps=tuple(steps),
    )
    return Scene(workflow, first_agents())


first_scenes = st.builds(
    _scene,
    has_film=st.sampled_from([False, False, True]),
    drafts=st.lists(st.tuples(works, reads), min_size=2, max_size=STEPS_MAX - 3),
).filter(Scene.is_valid)
"""Workflows of two to six steps; two gates that would set the same variable are none."""
