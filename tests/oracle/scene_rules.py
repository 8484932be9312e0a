"""Every edit that a person can make of what runs, as rules of a state machine.

A machine says by an invariant what has to hold after each: tests/oracle/machine.py outside Dagster,
tests/pipelines/test_oracle_in_dagster.py inside. A place or a choice is counted round, so that each
rule does something whatever the workflow has become; an edit that the engine would refuse is not
made, and the workflow runs again as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from pydantic import JsonValue

from pipelines.step_run import RunCacheMode
from reprise.model.agent import ModelParameters, ToolChoice, ToolGroup
from reprise.model.workflow import (
    CacheMode,
    EditRoomConfig,
    FunctionConfig,
    SandboxConfig,
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
    PARAMETERS,
    PROMPTS,
    PROVIDERS,
    REQUESTS,
    SCHEMAS,
    SKILLS,
    STEPS_MAX,
    TASKS,
    TEMPLATES,
    VALUES,
    Reads,
    Scene,
    reads,
    step_of,
    works,
)

EVERYTHING = 0
NOTHING = STEPS_MAX + 1
"""As `SceneRules.touched`."""

MAPPED = re.compile(r'steps\."(\d+)"')

places = st.integers(0, STEPS_MAX - 1)
prompts = st.sampled_from([prompt.format(name="it") for prompt in PROMPTS])
cache_modes = st.sampled_from(
    [
        {"cache_mode": None, "allow_skipping_effects": False},
        {"cache_mode": CacheMode.NEVER},
        {"cache_mode": CacheMode.ALWAYS},
        {"cache_mode": CacheMode.ALWAYS, "allow_skipping_effects": True},
    ]
)
rooms = st.sampled_from(
    [
        EditRoomConfig(agents=("plain_a", "director_g")),
        EditRoomConfig(agents=("plain_b", "plain_a", "director_g")),
        EditRoomConfig(agents=("plain_a", "plain_b", "director_g")),
        EditRoomConfig(agents=("plain_a", "director_g"), target_seconds=20.0),
        EditRoomConfig(agents=("plain_a", "director_g"), cuts_min=2),
    ]
)
analyses = st.sampled_from(
    [
        VideoAnalyzeConfig(),
        VideoAnalyzeConfig(sources=("*",)),
        VideoAnalyzeConfig(sources=("one.mp4",)),
        VideoAnalyzeConfig(speech=False),
        VideoAnalyzeConfig(shot_threshold=2.0),
        VideoAnalyzeConfig(language="de"),
    ]
)
films = st.sampled_from(
    [
        VideoCompileConfig(),
        VideoCompileConfig(captions=False),
        VideoCompileConfig(crf=30),
        VideoCompileConfig(title_card=False),
        VideoCompileConfig(height_max=144),
    ]
)


class SceneRules(RuleBasedStateMachine):
    """A scene and its edits; a machine sets the first one."""

    scene: Scene
    touched: int = EVERYTHING
    """The first order whose step the last rule may have changed: keys before it stay."""
    edits: ClassVar[int] = 0
    """How many were made, by all machines."""

    def take(self, scene: Scene, touched: int = EVERYTHING) -> None:
        """Make an edit, unless the engine would not load it."""
        SceneRules.edits += 1
        is_taken = scene.is_valid()
        self.scene = scene if is_taken else self.scene
        self.touched = touched if is_taken else NOTHING

    # -------------------------------------------------------------------------------- agents

    def _edit_agent(self, choice: int, **update: object) -> None:
        scene = self.scene
        used = [name for step in scene.workflow.steps for name in agents_of(step)] or AGENTS
        name = used[choice % len(used)]
        # A director has to keep its form: the room reads it.
        if name == "director_g":
            update.pop("output_schema", None)
        agent = scene.agents[name].model_copy(update=update)
        touched = [step.order for step in scene.workflow.steps if name in agents_of(step)]
        edited = replace(scene, agents={**scene.agents, name: agent})
        self.take(edited, min(touched, default=NOTHING))

    @rule(choice=places, prompt=prompts)
    def edit_prompt(self, choice: int, prompt: str) -> None:
        self._edit_agent(choice, system_prompt=prompt)

    @rule(choice=places, schema=st.sampled_from(SCHEMAS))
    def edit_schema(self, choice: int, schema: dict[str, JsonValue] | None) -> None:
        self._edit_agent(choice, output_schema=schema)

    @rule(choice=places, name=st.sampled_from([None, "", "one", "two"]))
    def edit_schema_name(self, choice: int, name: str | None) -> None:
        self._edit_agent(choice, output_schema_name=name)

    @rule(choice=places, skills=st.sampled_from(SKILLS))
    def edit_skills(self, choice: int, skills: tuple[str, ...]) -> None:
        self._edit_agent(choice, assigned_skills=skills)

    @rule(choice=places, groups=st.sampled_from(GROUPS))
    def edit_tool_groups(self, choice: int, groups: frozenset[ToolGroup]) -> None:
        self._edit_agent(choice, tool_groups=groups)

    @rule(choice=places, tool_choice=st.sampled_from([None, *ToolChoice]))
    def edit_tool_choice(self, choice: int, tool_choice: ToolChoice | None) -> None:
        self._edit_agent(choice, tool_choice=tool_choice)

    @rule(choice=places, parameters=st.sampled_from(PARAMETERS))
    def edit_parameters(self, choice: int, parameters: ModelParameters) -> None:
        self._edit_agent(choice, parameters=parameters)

    @rule(choice=places, agent_type=st.sampled_from(["plain_a", "another"]))
    def edit_agent_type(self, choice: int, agent_type: str) -> None:
        self._edit_agent(choice, agent_type=agent_type)

    @rule(choice=places, provider=st.sampled_from([None, *PROVIDERS]))
    def edit_agent_provider(self, choice: int, provider: str | None) -> None:
        self._edit_agent(choice, inference_provider_id=provider)

    # --------------------------------------------------------------------------------- steps

    def _edit_step(self, place: int, **update: object) -> None:
        steps = list(self.scene.workflow.steps)
        place %= len(steps)
        steps[place] = steps[place].model_copy(update=update)
        self.take(self.scene.with_steps(steps), place + 1)

    @rule(place=places, task=st.sampled_from(TASKS))
    def edit_task(self, place: int, task: str | None) -> None:
        self._edit_step(place, prompt=task)

    @rule(place=places, read=reads)
    def edit_inputs(self, place: int, read: Reads) -> None:
        place %= len(self.scene.workflow.steps)
        self._edit_step(place, **read.at(place + 1))

    @rule(place=places, agent=st.sampled_from(AGENTS[:8]))
    def swap_agent(self, place: int, agent: str) -> None:
        place %= len(self.scene.workflow.steps)
        is_agent = self.scene.workflow.steps[place].type is StepType.AGENT
        self._edit_step(place, **({"agent": agent} if is_agent else {}))

    @rule(place=places, label=st.sampled_from(LABELS))
    def relabel(self, place: int, label: str) -> None:
        self._edit_step(place, label=label)

    @rule(place=places, name=st.sampled_from([None, "out", "a_output"]))
    def name_output(self, place: int, name: str | None) -> None:
        self._edit_step(place, output_variable=name)

    @rule(place=places, update=cache_modes)
    def edit_cache_mode(self, place: int, update: Mapping[str, object]) -> None:
        self._edit_step(place, **update)

    @rule(label=st.sampled_from(LABELS), work=works, read=reads)
    def add_step(self, label: str, work: Mapping[str, object], read: Reads) -> None:
        steps = self.scene.workflow.steps[: STEPS_MAX - 1]
        added = step_of(len(steps) + 1, label, work, read)
        self.take(self.scene.with_steps([*steps, added]), added.order)

    @rule(label=st.sampled_from(LABELS), place=places)
    def add_a_twin(self, label: str, place: int) -> None:
        """Add a step that asks what another one asks."""
        steps = self.scene.workflow.steps[: STEPS_MAX - 1]
        update = {"order": len(steps) + 1, "label": label, "output_variable": None}
        twin = steps[place % len(steps)].model_copy(update=update)
        self.take(self.scene.with_steps([*steps, twin]), twin.order)

    @rule(place=places)
    def remove_step(self, place: int) -> None:
        steps = list(self.scene.workflow.steps)
        place %= len(steps)
        if len(steps) > 2:
            del steps[place]
        self.take(_renumbered(self.scene, steps), place + 1)

    @rule(one=places, other=places)
    def swap_steps(self, one: int, other: int) -> None:
        """Change two steps' places; what they read follows them where it can."""
        steps = list(self.scene.workflow.steps)
        one, other = one % len(steps), other % len(steps)
        steps[one], steps[other] = steps[other], steps[one]
        self.take(_renumbered(self.scene, steps), min(one, other) + 1)

    # ------------------------------------------------------------------------------- sandbox

    @rule(template=st.sampled_from(TEMPLATES))
    def edit_template(self, template: Mapping[str, str]) -> None:
        self._edit_sandbox(replace(self.scene, template=template))

    @rule(name=st.sampled_from([None, "plain"]))
    def choose_template(self, name: str | None) -> None:
        update = {"sandbox": SandboxConfig(template=name)}
        workflow = self.scene.workflow.model_copy(update=update)
        self._edit_sandbox(replace(self.scene, workflow=workflow))

    def _edit_sandbox(self, scene: Scene) -> None:
        steps = scene.workflow.steps
        touched = [step.order for step in steps if scene.has_sandbox(step)]
        self.take(scene, min(touched, default=NOTHING))

    # ------------------------------------------------------------------------------- configs

    def _configure(self, kind: StepType, **update: object) -> None:
        places = [
            place for place, step in enumerate(self.scene.workflow.steps) if step.type is kind
        ]
        if places:
            self._edit_step(places[0], **update)
        else:
            self.take(self.scene, NOTHING)

    @rule(function=st.sampled_from(FUNCTIONS))
    def edit_function(self, function: FunctionConfig) -> None:
        self._configure(StepType.FUNCTION, function=function)

    @rule(room=rooms)
    def edit_room(self, room: EditRoomConfig) -> None:
        self._configure(StepType.EDIT_ROOM, edit_room=room)

    @rule(analysis=analyses)
    def edit_analysis(self, analysis: VideoAnalyzeConfig) -> None:
        self._configure(StepType.VIDEO_ANALYZE, video_analyze=analysis)

    @rule(film=films)
    def edit_film(self, film: VideoCompileConfig) -> None:
        self._configure(StepType.VIDEO_COMPILE, video_compile=film)

    # ---------------------------------------------------------------------- workflow and run

    @rule(name=st.sampled_from(["tone", "count"]), value=st.sampled_from(VALUES))
    def edit_variable(self, name: str, value: JsonValue) -> None:
        variables = {**self.scene.workflow.variables, name: value}
        workflow = self.scene.workflow.model_copy(update={"variables": variables})
        self.take(replace(self.scene, workflow=workflow))

    @rule(request=st.sampled_from(REQUESTS))
    def edit_request(self, request: str | None) -> None:
        self.take(replace(self.scene, request=request))

    @rule(request=st.sampled_from(["a promo", "a trailer", "{{tone}}"]))
    def edit_default_request(self, request: str) -> None:
        workflow = self.scene.workflow.model_copy(update={"default_request": request})
        self.take(replace(self.scene, workflow=workflow))

    @rule(provider=st.sampled_from(PROVIDERS))
    def switch_provider(self, provider: str) -> None:
        self.take(replace(self.scene, provider=provider))

    @rule(project=st.sampled_from(["p", "q"]))
    def switch_project(self, project: str) -> None:
        self.take(replace(self.scene, project=project))

    @rule(mode=st.sampled_from(RunCacheMode))
    def use_the_cache_otherwise(self, mode: RunCacheMode) -> None:
        self.take(replace(self.scene, mode=mode), NOTHING)

    @rule(place=places, mode=st.sampled_from(RunCacheMode))
    def use_the_cache_otherwise_for_a_step(self, place: int, mode: RunCacheMode) -> None:
        order = place % len(self.scene.workflow.steps) + 1
        self.take(replace(self.scene, step_modes={order: mode}), NOTHING)

    @rule()
    def use_the_cache_as_by_default(self) -> None:
        self.take(replace(self.scene, mode=RunCacheMode.USE, step_modes={}), NOTHING)

    @rule()
    def run_again(self) -> None:
        self.take(self.scene, NOTHING)


def agents_of(step: Step) -> tuple[str, ...]:
    """Return the agents that work in a step."""
    room = step.edit_room.agents if step.edit_room is not None else ()
    return (step.agent, *room) if step.agent is not None else room


def _renumbered(scene: Scene, steps: list[Step]) -> Scene:
    places = {step.order: place for place, step in enumerate(steps, start=1)}
    return scene.with_steps([_moved(step, places) for step in steps])


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
