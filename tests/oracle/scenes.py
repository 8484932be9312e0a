"""What a person can edit: small workflows with their agents, and every edit of them."""

import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from pydantic import JsonValue

from pipelines.step_run import RunCacheMode
from reprise.model.agent import AgentDefinition, ModelParameters, ToolGroup
from reprise.model.settings import StepCacheSettings
from reprise.model.workflow import (
    CacheMode,
    EditRoomConfig,
    FunctionConfig,
    InputMode,
    Step,
    StepType,
    VideoAnalyzeConfig,
    VideoCompileConfig,
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


SceneEdit = Callable[[Scene, Random], Scene]


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
        steps.append(_some_step(len(steps) + 1, LABELS[len(steps)], rng))
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


def _some_step(order: int, label: str, rng: Random) -> Step:
    step = Step(order=order, label=label, type=StepType.AGENT, agent=rng.choice(AGENTS[:6]))
    if rng.random() < 0.15:
        function = rng.choice(FUNCTIONS)
        step = Step(order=order, label=label, type=StepType.FUNCTION, function=function)
    return step.model_copy(update=_input_update(order, rng))


def _input_update(order: int, rng: Random) -> dict[str, object]:
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


# ------------------------------------------------------------------------------------ agents


def _agent(scene: Scene, rng: Random, **update: object) -> Scene:
    used = [name for step in scene.workflow.steps for name in _names(step)] or list(scene.agents)
    name = rng.choice(used)
    # A director has to keep its form: the room reads it.
    if name == "director_g":
        update.pop("output_schema", None)
    agent = scene.agents[name].model_copy(update=update)
    return replace(scene, agents={**scene.agents, name: agent})


def _names(step: Step) -> tuple[str, ...]:
    room = step.edit_room.agents if step.edit_room is not None else ()
    return (step.agent, *room) if step.agent is not None else room


def edit_prompt(scene: Scene, rng: Random) -> Scene:
    """Write another system prompt."""
    labels = [f"{{{{{step.variable}}}}}" for step in scene.workflow.steps[:-1]]
    texts = [prompt.format(name="it") for prompt in PROMPTS] + labels
    return _agent(scene, rng, system_prompt=rng.choice(texts))


def edit_schema(scene: Scene, rng: Random) -> Scene:
    """Give an agent another schema, or the same with its properties in another order."""
    return _agent(scene, rng, output_schema=rng.choice(SCHEMAS))


def edit_schema_name(scene: Scene, rng: Random) -> Scene:
    """Name an agent's schema otherwise."""
    return _agent(scene, rng, output_schema_name=rng.choice([None, "", "one", "two"]))


def edit_skills(scene: Scene, rng: Random) -> Scene:
    """Give an agent other skills."""
    return _agent(scene, rng, assigned_skills=rng.choice(SKILLS))


def edit_tool_groups(scene: Scene, rng: Random) -> Scene:
    """Give an agent other tools."""
    return _agent(scene, rng, tool_groups=rng.choice(GROUPS))


def edit_parameters(scene: Scene, rng: Random) -> Scene:
    """Let an agent answer with other sampling, or another model."""
    return _agent(scene, rng, parameters=rng.choice(PARAMETERS))


def edit_agent_type(scene: Scene, rng: Random) -> Scene:
    """Make an agent one of another kind."""
    return _agent(scene, rng, agent_type=rng.choice(["plain_a", "another"]))


def edit_agent_provider(scene: Scene, rng: Random) -> Scene:
    """Give an agent a provider of its own."""
    return _agent(scene, rng, inference_provider_id=rng.choice([None, *PROVIDERS]))


# ------------------------------------------------------------------------------------- steps


def _step(scene: Scene, place: int, **update: object) -> Scene:
    steps = list(scene.workflow.steps)
    steps[place] = steps[place].model_copy(update=update)
    return _steps(scene, steps)


def _steps(scene: Scene, steps: list[Step]) -> Scene:
    workflow = scene.workflow.model_copy(update={"steps": tuple(steps)})
    known = {step.order for step in steps}
    modes = {order: mode for order, mode in scene.step_modes.items() if order in known}
    return replace(scene, workflow=workflow, step_modes=modes)


def _any_place(scene: Scene, rng: Random) -> int:
    return rng.randrange(len(scene.workflow.steps))


def edit_task(scene: Scene, rng: Random) -> Scene:
    """Write another step prompt."""
    return _step(scene, _any_place(scene, rng), prompt=rng.choice(TASKS))


def edit_inputs(scene: Scene, rng: Random) -> Scene:
    """Let a step read something else, or in another order."""
    place = _any_place(scene, rng)
    return _step(scene, place, **_input_update(place + 1, rng))


def swap_agent(scene: Scene, rng: Random) -> Scene:
    """Let another agent do a step."""
    place = _any_place(scene, rng)
    if scene.workflow.steps[place].type is not StepType.AGENT:
        return scene
    return _step(scene, place, agent=rng.choice(AGENTS[:6]))


def relabel(scene: Scene, rng: Random) -> Scene:
    """Call a step otherwise."""
    return _step(scene, _any_place(scene, rng), label=rng.choice(LABELS))


def name_output(scene: Scene, rng: Random) -> Scene:
    """Put a step's output into another variable."""
    return _step(
        scene, _any_place(scene, rng), output_variable=rng.choice([None, "out", "a_output"])
    )


def edit_cache_mode(scene: Scene, rng: Random) -> Scene:
    """Give a step its own word on caching."""
    update: dict[str, object] = rng.choice(
        [
            {"cache_mode": None, "allow_skipping_effects": False},
            {"cache_mode": CacheMode.NEVER},
            {"cache_mode": CacheMode.ALWAYS},
            {"cache_mode": CacheMode.ALWAYS, "allow_skipping_effects": True},
        ]
    )
    return _step(scene, _any_place(scene, rng), **update)


def add_step(scene: Scene, rng: Random) -> Scene:
    """Add a step at the end."""
    steps = list(scene.workflow.steps)
    free = [label for label in LABELS if label not in {step.label for step in steps}]
    if len(steps) >= 6:
        return scene
    return _steps(scene, [*steps, _some_step(len(steps) + 1, rng.choice(free), rng)])


def twin_step(scene: Scene, rng: Random) -> Scene:
    """Add a step at the end that asks what another one asks."""
    steps = list(scene.workflow.steps)
    free = [label for label in LABELS if label not in {step.label for step in steps}]
    if len(steps) >= 6:
        return scene
    update = {"order": len(steps) + 1, "label": rng.choice(free), "output_variable": None}
    return _steps(scene, [*steps, rng.choice(steps).model_copy(update=update)])


def remove_step(scene: Scene, rng: Random) -> Scene:
    """Remove a step; those behind it move up."""
    if len(scene.workflow.steps) <= 2:
        return scene
    place = _any_place(scene, rng)
    kept = [step for at, step in enumerate(scene.workflow.steps) if at != place]
    return _renumbered(scene, kept)


def reorder(scene: Scene, rng: Random) -> Scene:
    """Change two steps' places; what they read follows them where it can."""
    steps = list(scene.workflow.steps)
    one, other = rng.sample(range(len(steps)), 2)
    steps[one], steps[other] = steps[other], steps[one]
    return _renumbered(scene, steps)


def _renumbered(scene: Scene, steps: list[Step]) -> Scene:
    places = {step.order: place for place, step in enumerate(steps, start=1)}
    return _steps(scene, [_moved(step, places) for step in steps])


def _moved(step: Step, places: Mapping[int, int]) -> Step:
    own = places[step.order]
    selected = [places.get(order, own) for order in step.selected_prior_step_orders]
    mapping = {
        name: MAPPED.sub(lambda found: f'steps."{places.get(int(found[1]), own)}"', path)
        for name, path in step.input_mapping.items()
    }
    update: dict[str, object] = {
        "order": own,
        "selected_prior_step_orders": tuple(order for order in selected if order < own),
        "input_mapping": mapping,
    }
    return step.model_copy(update=update)


def edit_function(scene: Scene, rng: Random) -> Scene:
    """Let a Function step call another function, or see other files."""
    return _config(scene, StepType.FUNCTION, "function", rng.choice(FUNCTIONS))


def edit_room(scene: Scene, rng: Random) -> Scene:
    """Change an edit room's bounds or its speaking order."""
    update = rng.choice(
        [
            {"agents": ("plain_a", "director_g")},
            {"agents": ("plain_b", "director_g")},
            {"agents": ("plain_a", "plain_b", "director_g")},
            {"agents": ("plain_b", "plain_a", "director_g")},
            {"agents": ("plain_a", "director_g"), "target_seconds": 20.0},
            {"agents": ("plain_a", "director_g"), "cuts_min": 2},
        ]
    )
    return _config(scene, StepType.EDIT_ROOM, "edit_room", EditRoomConfig.model_validate(update))


def edit_analysis(scene: Scene, rng: Random) -> Scene:
    """Change what is analysed, or how."""
    update: dict[str, object] = rng.choice(
        [
            {},
            {"sources": ["*"]},
            {"sources": ["one.mp4"]},
            {"speech": False},
            {"shot_threshold": 2.0},
            {"language": "de"},
        ]
    )
    config = VideoAnalyzeConfig.model_validate(update)
    return _config(scene, StepType.VIDEO_ANALYZE, "video_analyze", config)


def edit_compile(scene: Scene, rng: Random) -> Scene:
    """Change how the film is made."""
    update: dict[str, object] = rng.choice(
        [{}, {"captions": False}, {"crf": 30}, {"title_card": False}, {"height_max": 144}]
    )
    config = VideoCompileConfig.model_validate(update)
    return _config(scene, StepType.VIDEO_COMPILE, "video_compile", config)


def _config(scene: Scene, kind: StepType, name: str, config: object) -> Scene:
    for place, step in enumerate(scene.workflow.steps):
        if step.type is kind:
            return _step(scene, place, **{name: config})
    return scene


# --------------------------------------------------------------------------- workflow and run


def edit_variable(scene: Scene, rng: Random) -> Scene:
    """Give a variable another value, or the same one in another type."""
    variables = {**scene.workflow.variables, rng.choice(["tone", "count"]): rng.choice(VALUES)}
    return replace(scene, workflow=scene.workflow.model_copy(update={"variables": variables}))


def edit_request(scene: Scene, rng: Random) -> Scene:
    """Ask for something else."""
    return replace(scene, request=rng.choice(REQUESTS))


def edit_default_request(scene: Scene, rng: Random) -> Scene:
    """Change the workflow's default request."""
    text = rng.choice(["a promo", "a trailer", "{{tone}}"])
    return replace(scene, workflow=scene.workflow.model_copy(update={"default_request": text}))


def switch_provider(scene: Scene, rng: Random) -> Scene:
    """Let another provider answer."""
    return replace(scene, provider=rng.choice(PROVIDERS))


def switch_project(scene: Scene, rng: Random) -> Scene:
    """Run on the other project."""
    return replace(scene, project="q" if scene.project == "p" else "p")


def edit_run_mode(scene: Scene, rng: Random) -> Scene:
    """Change how the next runs use the cache."""
    return replace(scene, mode=rng.choice(list(RunCacheMode)))


def edit_step_mode(scene: Scene, rng: Random) -> Scene:
    """Change how the next runs use the cache for one step."""
    order = scene.workflow.steps[_any_place(scene, rng)].order
    return replace(scene, step_modes={order: rng.choice(list(RunCacheMode))})


def use_cache_again(scene: Scene, rng: Random) -> Scene:
    """Use the cache as by default."""
    return replace(scene, mode=RunCacheMode.USE, step_modes={}, settings=StepCacheSettings())


def edit_settings(scene: Scene, rng: Random) -> Scene:
    """Change the cache's settings."""
    update: dict[str, object] = rng.choice(
        [
            {"ttl_hours": 0.5},
            {"ttl_hours": 2000.0},
            {"max_entry_chars": 400},
            {"max_entry_chars": 1200},
            {"enabled": False},
            {},
        ]
    )
    return replace(scene, settings=StepCacheSettings.model_validate(update))


def edit_nothing(scene: Scene, rng: Random) -> Scene:
    """Run again."""
    return scene


SCENE_EDITS: tuple[SceneEdit, ...] = (
    edit_prompt,
    edit_schema,
    edit_schema_name,
    edit_skills,
    edit_tool_groups,
    edit_parameters,
    edit_agent_type,
    edit_agent_provider,
    edit_task,
    edit_inputs,
    swap_agent,
    relabel,
    name_output,
    edit_cache_mode,
    add_step,
    twin_step,
    remove_step,
    reorder,
    edit_function,
    edit_room,
    edit_analysis,
    edit_compile,
    edit_variable,
    edit_request,
    edit_default_request,
    switch_provider,
    switch_project,
    edit_run_mode,
    edit_step_mode,
    use_cache_again,
    use_cache_again,
    edit_settings,
    edit_nothing,
)
