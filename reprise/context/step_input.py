"""What a step reads: the orders it waits for, and its input text in the four modes.

Source: specification W4, W6.
"""

import re
from collections.abc import Mapping

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import JsonValue

from reprise.canonical import canonical_json
from reprise.context.variables import names_in
from reprise.errors import InputUnresolved
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.conversation import PriorOutput
from reprise.model.result import StepStatus
from reprise.model.variables import REQUEST_VARIABLE
from reprise.model.workflow import EditRoomConfig, InputMode, Step, StepType, Workflow

_MAPPED_ORDER = re.compile(r'steps\s*\.\s*"(\d+)"')

CONFIG_FIELDS = (
    "extract",
    "video_analyze",
    "edit_room",
    "video_compile",
    "graphics_room",
    "color_grade_room",
    "function",
)


SHOWS_PROMPT: Mapping[StepType, bool] = {
    StepType.EXTRACT: False,
    StepType.VIDEO_ANALYZE: False,
    StepType.VIDEO_COMPILE: False,
    StepType.EDIT_ROOM: True,
    StepType.GRAPHICS_ROOM: True,
    StepType.COLOR_GRADE_ROOM: True,
    StepType.AGENT: True,
    StepType.REVIEW_LOOP: True,
    StepType.CONDITIONAL: False,
    StepType.FOR_EACH: False,
    StepType.PARALLEL: False,
    StepType.FUNCTION: False,
    StepType.SCRIPT: False,
}
"""Whether a step's input text is for a model. For code it is the raw outputs, whatever their
length, and no step's own word on what prompts show (specification B6)."""


def used_names(step: Step, agents: "tuple[AgentDefinition, ...]") -> set[str]:
    """Return the variable names that a step's prompt, config and agents use."""
    names = names_in([step.prompt or "", step.condition or ""])
    for field in CONFIG_FIELDS:
        blob = getattr(step, field)
        if blob is not None:
            names |= names_in(blob.model_dump(mode="json"))
    for agent in agents:
        names |= names_in([agent.system_prompt, *agent.assigned_skills])
    return names


def read_orders(step: Step, workflow: Workflow, agents: "tuple[AgentDefinition, ...]") -> list[int]:
    """Return the orders of the earlier steps whose outputs a step reads, rising.

    An agent with WorkflowRead may read any; else what the step is shown counts.
    """
    if any(ToolGroup.WORKFLOW_READ in agent.tool_groups for agent in agents):
        return [other.order for other in workflow.steps if other.order < step.order]
    return shown_orders(step, workflow, agents)


def shown_orders(
    step: Step, workflow: Workflow, agents: "tuple[AgentDefinition, ...]"
) -> list[int]:
    """Return the orders of the earlier steps whose outputs a step is shown, rising.

    Its input mode, its mapping and the output variables that it names all count.
    """
    earlier = [other for other in workflow.steps if other.order < step.order]
    orders = mode_orders(step, workflow)
    names = used_names(step, agents)
    orders |= {other.order for other in earlier if names.intersection(other.variables)}
    return sorted(orders)


def mode_orders(step: Step, workflow: Workflow) -> set[int]:
    """Return the orders that a step's input mode puts into its input text."""
    earlier = {other.order for other in workflow.steps if other.order < step.order}
    match step.input_mode:
        case InputMode.FULL_WORKFLOW:
            return earlier
        case InputMode.PREVIOUS_STEP_ONLY:
            return {max(earlier)} if earlier else set()
        case InputMode.SELECTED_PRIOR_STEPS:
            return set(step.selected_prior_step_orders)
        case InputMode.CUSTOM_MAPPED_SUBSET:
            return mapped_orders(step)


def agent_ids(step: Step) -> tuple[str, ...]:
    """Return the ids of the agents that work in a step, in speaking order."""
    match step.type:
        case StepType.EDIT_ROOM:
            return (step.edit_room or EditRoomConfig()).agents
        case StepType.GRAPHICS_ROOM:
            return step.graphics_room.agents if step.graphics_room else ()
        case StepType.COLOR_GRADE_ROOM:
            return step.color_grade_room.agents if step.color_grade_room else ()
        case _:
            return (step.agent,) if step.agent else ()


def mapped_orders(step: Step) -> set[int]:
    """Return the orders that a step's input mapping names as `steps."<order>"`."""
    return {int(n) for path in step.input_mapping.values() for n in _MAPPED_ORDER.findall(path)}


def sees_request(step: Step, agents: "tuple[AgentDefinition, ...]") -> bool:
    """Answer whether the free-text request can change a step's result."""
    # What a function takes of its inputs cannot be told, so it sees all of them.
    is_function = step.type is StepType.FUNCTION
    return bool(agents) or is_function or REQUEST_VARIABLE in used_names(step, agents)


def resolved_input(step: Step, prior: Mapping[int, PriorOutput], *, where: str) -> str:
    """Return the input text of a step.

    Args:
        step: The step.
        prior: Outputs of the steps that its mode reads, by order; a skipped step is not among them.
        where: The step for messages.

    Raises:
        InputUnresolved: A mapping's expression is broken.
    """
    if step.input_mode is InputMode.PREVIOUS_STEP_ONLY:
        return body_text(prior[max(prior)].output) if prior else ""
    if step.input_mode is InputMode.CUSTOM_MAPPED_SUBSET:
        return canonical_json(mapped_values(step, prior, where=where))
    return "\n\n".join(
        f"## Step {order}: {prior[order].label}\n{body_text(prior[order].output)}"
        for order in sorted(prior)
    )


def mapped_values(
    step: Step, prior: Mapping[int, PriorOutput], *, where: str
) -> dict[str, JsonValue]:
    """Return the values that a step's input mapping takes out of prior outputs.

    Raises:
        InputUnresolved: An expression is broken.
    """
    document = {"steps": {str(order): item.output for order, item in prior.items()}}
    values: dict[str, JsonValue] = {}
    for name, path in step.input_mapping.items():
        try:
            values[name] = jmespath.search(path, document)
        except JMESPathError as error:
            message = f"{where}: input_mapping {name!r}: {path!r} is no JMESPath: {error}"
            raise InputUnresolved(message) from error
    return values


def body_text(output: JsonValue) -> str:
    """Return an output as a prompt shows it: text as it is, anything else as JSON."""
    return output if isinstance(output, str) else canonical_json(output)


def is_readable(status: StepStatus) -> bool:
    """Answer whether later steps see a result of this status in their input."""
    return status is StepStatus.SUCCEEDED
