"""Every edit that a person can make of a scene."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from pipelines.step_run import RunCacheMode
from reprise.model.settings import ContextBudgetSettings, StepCacheSettings
from reprise.model.workflow import (
    CacheMode,
    EditRoomConfig,
    Step,
    StepType,
    VideoAnalyzeConfig,
    VideoCompileConfig,
)
from tests.oracle.scenes import (
    AGENTS,
    FUNCTIONS,
    GROUPS,
    LABELS,
    MAPPED,
    PARAMETERS,
    PROMPTS,
    PROVIDERS,
    REQUESTS,
    SCHEMAS,
    SKILLS,
    TASKS,
    VALUES,
    Scene,
    input_update,
    some_step,
)

SceneEdit = Callable[[Scene, Random], Scene]


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
    return _step(scene, place, **input_update(place + 1, rng))


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
    return _steps(scene, [*steps, some_step(len(steps) + 1, rng.choice(free), rng)])


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


def edit_budget(scene: Scene, rng: Random) -> Scene:
    """Change what of the prior outputs goes into a prompt; the outputs are short, and so is it."""
    update: dict[str, object] = rng.choice(
        [
            {},
            {"max_input_chars": 40, "recent_steps_verbatim": 0},
            {"max_input_chars": 120, "recent_steps_verbatim": 0, "digest_max_string_chars": 3},
            {"max_input_chars": 200, "recent_steps_verbatim": 1, "digest_max_array_items": 1},
            {"max_input_chars": 120, "digest_max_depth": 1, "digest_strategy": "sampled"},
            {"max_input_chars": 40, "recent_steps_verbatim": 0, "enabled": False},
        ]
    )
    return replace(scene, budget=ContextBudgetSettings.model_validate(update))


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
    edit_budget,
    edit_budget,
    edit_nothing,
)
