"""What must hold between the steps of a workflow: orders, names, configs, agents, variables.

Each rule is one function from a `Checked` workflow to problems, listed in `RULES`. To add one:
write it, list it, and add a case to tests/unit/model/test_workflow_checks.py.

Source: specification W2, W2a, W3, W4, C22.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import jmespath
import jmespath.exceptions
from pydantic import JsonValue

from reprise.model.agent import EFFECT_GROUPS, AgentDefinition
from reprise.model.jmespath_orders import orders_named
from reprise.model.model_errors import did_you_mean
from reprise.model.variables import REQUEST_VARIABLE, variable_names
from reprise.model.workflow import (
    CacheMode,
    ColorGradeRoomConfig,
    EditRoomConfig,
    GraphicsRoomConfig,
    InputMode,
    Step,
    StepType,
    slug,
)
from reprise.model.yaml_text import Path

CONFIG_OF_TYPE: Mapping[StepType, str | None] = {
    StepType.EXTRACT: "extract",
    StepType.VIDEO_ANALYZE: "video_analyze",
    StepType.VIDEO_COMPILE: "video_compile",
    StepType.EDIT_ROOM: "edit_room",
    StepType.GRAPHICS_ROOM: "graphics_room",
    StepType.COLOR_GRADE_ROOM: "color_grade_room",
    StepType.AGENT: None,
    StepType.REVIEW_LOOP: None,
    StepType.CONDITIONAL: None,
    StepType.FOR_EACH: None,
    StepType.PARALLEL: None,
    StepType.FUNCTION: "function",
    StepType.SCRIPT: None,
}
"""The one config that a step of this type may have."""

TYPES_WITH_AGENT = frozenset({StepType.AGENT, StepType.REVIEW_LOOP})
"""Types whose steps may name an `agent`."""

TYPES_WITHOUT_PROMPT = frozenset(
    {StepType.EXTRACT, StepType.VIDEO_ANALYZE, StepType.VIDEO_COMPILE, StepType.FUNCTION}
)
"""Types that no model reads: a `prompt` there would change nothing."""

TYPES_SETTING_VARIABLES = frozenset({StepType.SCRIPT})
"""Types that may set variables of any name, so that later names cannot be known when loading."""

_ROOMS: Mapping[
    StepType, type[EditRoomConfig] | type[GraphicsRoomConfig] | type[ColorGradeRoomConfig]
] = {
    StepType.EDIT_ROOM: EditRoomConfig,
    StepType.GRAPHICS_ROOM: GraphicsRoomConfig,
    StepType.COLOR_GRADE_ROOM: ColorGradeRoomConfig,
}

VARIABLE_NAME = re.compile(r"[A-Za-z0-9_]+")
CONDITION_ORDER = re.compile(r"""\bsteps\s*(?:\[\s*["']?(\d+)["']?\s*\]|\.\s*"?(\d+)"?)""")


@dataclass(frozen=True)
class Placed:
    """A step and where it stands."""

    index: int
    """Place in the list, from 0."""
    step: Step
    """The step."""

    def path(self, *more: str | int) -> Path:
        """Return the path of something in it."""
        return ("steps", self.index, *more)


@dataclass(frozen=True)
class Checked:
    """What the rules look at."""

    steps: tuple[Placed, ...]
    """The steps that are valid by themselves."""
    orders: frozenset[int]
    """Orders of all steps, also of those that are not valid by themselves."""
    variables: Mapping[str, JsonValue]
    """Variables of the workflow."""
    default_request: str
    """The workflow's request."""
    complete: bool
    """False when a step is left out because it is not valid by itself."""
    agent_ids: Collection[str] | None
    """Agents that have a file; null leaves them unchecked."""
    agents: Mapping[str, AgentDefinition] | None
    """Agents whose file is valid; null leaves them unchecked."""


Found = Iterator[tuple[Path, str]]
"""Where each problem is and what it says."""


def find_problems(checked: Checked) -> list[tuple[Path, str]]:
    """Return what is wrong between the steps, rule by rule."""
    return [problem for rule in RULES for problem in rule(checked)]


def _orders(checked: Checked) -> Found:
    first_of: dict[int, Placed] = {}
    highest = 0
    for placed in checked.steps:
        order = placed.step.order
        if order in first_of:
            label = first_of[order].step.label
            what = f"order {order} is taken by step {label!r} already; give each step its own order"
            yield placed.path("order"), what
        elif order < highest:
            what = f"order {order} comes after order {highest}; write the steps by rising order"
            yield placed.path("order"), what
        first_of.setdefault(order, placed)
        highest = max(highest, order)


def _names(checked: Checked) -> Found:
    labels: dict[str, Step] = {}
    variables: dict[str, str] = dict.fromkeys(checked.variables, "the workflow")
    variables[REQUEST_VARIABLE] = "the engine"
    for placed in checked.steps:
        step = placed.step
        other = labels.setdefault(slug(step.label).lower(), step)
        if other is not step:
            what = (
                f"the label {step.label!r} reads like {other.label!r} of step {other.order} "
                f"(both are {slug(step.label)!r} in Dagster); choose another label"
            )
            yield placed.path("label"), what
            continue
        key = "output_variable" if step.output_variable else "label"
        if not VARIABLE_NAME.fullmatch(step.variable):
            what = (
                f"output_variable: {step.output_variable!r} cannot be written as a variable; "
                "use letters, digits and `_`"
            )
            yield placed.path(key), what
        elif step.variable in variables:
            owner = variables[step.variable]
            what = (
                f"the output variable {step.variable!r} is set by {owner} already; "
                "give this step another output_variable"
            )
            yield placed.path(key), what
        variables.setdefault(step.variable, f"step {step.order}")
        yield from _set_names(placed, variables)


def _set_names(placed: Placed, variables: dict[str, str]) -> Found:
    step = placed.step
    for at, name in enumerate(step.function.sets if step.function is not None else ()):
        path = placed.path("function", "sets", at)
        if not VARIABLE_NAME.fullmatch(name):
            yield path, f"{name!r} cannot be written as a variable; use letters, digits and `_`"
        elif name in variables:
            yield (
                path,
                f"the variable {name!r} is set by {variables[name]} already; rename this one",
            )
        variables.setdefault(name, f"step {step.order}")


def _configs(checked: Checked) -> Found:
    every = [name for name in CONFIG_OF_TYPE.values() if name]
    for placed in checked.steps:
        step = placed.step
        own = CONFIG_OF_TYPE[step.type]
        for name in every:
            if name != own and getattr(step, name) is not None:
                remedy = f"use {own!r} or remove it" if own else "remove it"
                what = (
                    f"the config {name!r} does not belong to a step of type {step.type}; {remedy}"
                )
                yield placed.path(name), what
        if step.type is StepType.FUNCTION and step.function is None:
            yield placed.path(), "a Function step needs `function: {callable: module:name}`; add it"
        if step.prompt is not None and step.type in TYPES_WITHOUT_PROMPT:
            what = f"a step of type {step.type} shows its prompt to nobody; remove `prompt`"
            yield placed.path("prompt"), what
        if step.type is not StepType.REVIEW_LOOP:
            for name in ("max_iterations", "min_score"):
                if getattr(step, name) is not None:
                    what = f"{name!r} is for steps of type ReviewLoop alone; remove it"
                    yield placed.path(name), what


def _agents(checked: Checked) -> Found:
    for placed in checked.steps:
        step = placed.step
        if step.type is StepType.AGENT and step.agent is None:
            yield (
                placed.path(),
                "a step of type Agent needs `agent:` with the id of an agent; add it",
            )
        if step.agent is not None and step.type not in TYPES_WITH_AGENT:
            what = f"a step of type {step.type} has no single agent; remove `agent`"
            yield placed.path("agent"), what
        for path, name in _agent_names(placed):
            yield from _agent_problems(checked, placed, path, name)


def _agent_names(placed: Placed) -> Iterator[tuple[Path, str]]:
    step = placed.step
    if step.agent is not None:
        yield placed.path("agent"), step.agent
    # A room without config takes the default agents of its config class, which need files too.
    room = _ROOMS[step.type]() if step.type in _ROOMS else None
    name = CONFIG_OF_TYPE[step.type]
    if room is None or name is None:
        return
    room = getattr(step, name) or room
    for at, agent in enumerate(room.agents):
        yield placed.path(name, "agents", at), agent


def _agent_problems(checked: Checked, placed: Placed, path: Path, name: str) -> Found:
    if checked.agent_ids is not None and name not in checked.agent_ids:
        hint = did_you_mean(name, checked.agent_ids)
        what = f"there is no agent {name!r}: add the prompt file prompts/{name}.md{hint}"
        yield path, what
        return
    if checked.agents is None:
        return
    agent = checked.agents.get(name)
    if agent is None:
        yield path, f"the agent {name!r} has a file that is not valid; correct that file first"
        return
    step = placed.step
    effects = sorted(agent.tool_groups & EFFECT_GROUPS)
    if step.cache_mode is CacheMode.ALWAYS and effects and not step.allow_skipping_effects:
        what = (
            f"cache_mode: always would skip what agent {name!r} does with {', '.join(effects)}; "
            "remove cache_mode, or add `allow_skipping_effects: true` to accept that"
        )
        yield placed.path("cache_mode"), what
    known = _known_variables(checked, step)
    if known is not None:
        for text in (agent.system_prompt, *agent.assigned_skills):
            for problem in _unknown_in(text, known, checked, step):
                yield path, f"{problem} (in the prompt of agent {name!r})"


def _references(checked: Checked) -> Found:
    for placed in checked.steps:
        step = placed.step
        yield from _selected(checked, placed)
        yield from _mapping(checked, placed)
        if step.condition is not None:
            for match in CONDITION_ORDER.finditer(step.condition):
                order = int(match.group(1) or match.group(2))
                yield from _reference(checked, placed, placed.path("condition"), order)
        if step.extract is not None:
            for name, expression in step.extract.fields.items():
                path = placed.path("extract", "fields", name)
                yield from _expression(checked, placed, path, expression)


def _selected(checked: Checked, placed: Placed) -> Found:
    step = placed.step
    orders = step.selected_prior_step_orders
    if orders and step.input_mode is not InputMode.SELECTED_PRIOR_STEPS:
        what = (
            "selected_prior_step_orders is read in `input_mode: selected_prior_steps` alone; "
            "set that mode or remove the list"
        )
        yield placed.path("selected_prior_step_orders"), what
    for at, order in enumerate(orders):
        path = placed.path("selected_prior_step_orders", at)
        if order in orders[:at]:
            yield path, f"order {order} is listed twice; list it once"
        yield from _reference(checked, placed, path, order)


def _mapping(checked: Checked, placed: Placed) -> Found:
    step = placed.step
    mapped = step.input_mode is InputMode.CUSTOM_MAPPED_SUBSET
    if mapped and not step.input_mapping:
        what = "input_mode: custom_mapped_subset needs `input_mapping` with names and expressions"
        yield placed.path("input_mode"), what
    if step.input_mapping and not mapped:
        what = (
            "input_mapping is read in `input_mode: custom_mapped_subset` alone; "
            "set that mode or remove it"
        )
        yield placed.path("input_mapping"), what
    for name, expression in step.input_mapping.items():
        yield from _expression(checked, placed, placed.path("input_mapping", name), expression)


def _expression(checked: Checked, placed: Placed, path: Path, expression: str) -> Found:
    try:
        parsed = jmespath.compile(expression).parsed
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).split("\n", 1)[0]
        yield path, f"{expression!r} is not JMESPath: {reason}"
        return
    for order in sorted(set(orders_named(parsed))):
        yield from _reference(checked, placed, path, order)


def _reference(checked: Checked, placed: Placed, path: Path, order: int) -> Found:
    own = placed.step.order
    if order not in checked.orders:
        what = f"no step has order {order}; name one of {_earlier(checked, own)}"
        yield path, what
    elif order >= own:
        which = "itself" if order == own else f"the later step {order}"
        yield path, f"it reads {which}; a step reads earlier steps alone: {_earlier(checked, own)}"


def _earlier(checked: Checked, order: int) -> str:
    earlier = sorted(each for each in checked.orders if each < order)
    return ", ".join(str(each) for each in earlier) or "none, this is the first step"


def _variables(checked: Checked) -> Found:
    own = frozenset(checked.variables)
    for name in variable_names(checked.default_request):
        if name not in own:
            hint = did_you_mean(name, own)
            what = f"unknown variable {{{{{name}}}}}{hint}; declare it in `variables`"
            yield ("default_request",), what
    for placed in checked.steps:
        known = _known_variables(checked, placed.step)
        if known is None:
            continue
        for path, text in _texts(placed):
            for problem in _unknown_in(text, known, checked, placed.step):
                yield path, problem


def _known_variables(checked: Checked, step: Step) -> frozenset[str] | None:
    """Return the variables that a step can name; None when they cannot be known when loading."""
    earlier = [each.step for each in checked.steps if each.step.order < step.order]
    if not checked.complete or any(each.type in TYPES_SETTING_VARIABLES for each in earlier):
        return None
    outputs = (name for each in earlier for name in each.variables)
    return frozenset({REQUEST_VARIABLE, *checked.variables, *outputs})


def _unknown_in(text: str, known: frozenset[str], checked: Checked, step: Step) -> Iterator[str]:
    for name in variable_names(text):
        if name in known:
            continue
        later = [each.step for each in checked.steps if name in each.step.variables]
        if later:
            which = "this step" if later[0].order == step.order else f"step {later[0].order}"
            yield f"the variable {{{{{name}}}}} is the output of {which}; name an earlier step's"
        else:
            hint = did_you_mean(name, known)
            yield f"unknown variable {{{{{name}}}}}{hint}; known are {', '.join(sorted(known))}"


def _texts(placed: Placed) -> Iterator[tuple[Path, str]]:
    """Yield the texts of a step in which variables are replaced, with their places."""
    step = placed.step
    if step.prompt is not None:
        yield placed.path("prompt"), step.prompt
    config_name = CONFIG_OF_TYPE[step.type]
    config = getattr(step, config_name) if config_name else None
    if config is not None and config_name is not None:
        yield from _strings(config.model_dump(mode="json"), placed.path(config_name))


def _strings(value: JsonValue, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _strings(item, (*path, at))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, (*path, name))


RULES: tuple[Callable[[Checked], Found], ...] = (
    _orders,
    _names,
    _configs,
    _agents,
    _references,
    _variables,
)
"""Every rule, in the order of the messages."""
