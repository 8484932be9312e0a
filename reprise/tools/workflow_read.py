"""Tools of the group WorkflowRead: re-read the raw outputs of prior steps.

A prompt may show an output cut or not at all (specification B); here it is whole: as a value where
it fits, by JMESPath, or by range of its text.

Source: specification B12.
"""

import json
from collections.abc import Mapping

from jmespath.exceptions import JMESPathError
from pydantic import JsonValue

from reprise.model.conversation import PriorOutput, ToolSchema
from reprise.tools.access import ToolAccess
from reprise.tools.bounded_path import PathTooLarge, bounded_json, followed
from reprise.tools.tool import (
    RESULT_CHARS_MAX,
    Tool,
    cut_text,
    failure,
    items_within,
    json_chars,
    whole,
)

PATH_CHARS_MAX = 500

LIST_STEPS = ToolSchema(
    name="list_prior_steps",
    description=(
        "List the earlier steps of this run that have an output, with its size and its first keys. "
        "read_prior_output reads one."
    ),
    parameters={"type": "object", "additionalProperties": False, "properties": {}},
)

READ_OUTPUT = ToolSchema(
    name="read_prior_output",
    description=(
        "Read the raw output of an earlier step: whole, the part that a JMESPath names, or a range "
        "of its text. A result that was cut says with which offset to go on."
    ),
    parameters={
        "type": "object",
        "additionalProperties": False,
        "required": ["order"],
        "properties": {
            "order": {
                "type": "integer",
                "minimum": 1,
                "description": "The step's order, as list_prior_steps gives it.",
            },
            "path": {
                "type": "string",
                "minLength": 1,
                "maxLength": PATH_CHARS_MAX,
                "description": "JMESPath into the output, such as `sources[0].shots[:5]`.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "First character of the output's text (JSON unless it is a text).",
            },
            "char_count": {
                "type": "integer",
                "minimum": 1,
                "maximum": RESULT_CHARS_MAX,
                "description": f"How many characters; {RESULT_CHARS_MAX} when left out.",
            },
        },
    },
)


def list_prior_steps(
    arguments: Mapping[str, JsonValue],  # noqa: ARG001 - Every tool has them.
    access: ToolAccess,
) -> dict[str, JsonValue]:
    """Return the earlier steps that have an output, by order."""
    steps = [_row(item) for item in access.prior()]
    shown = items_within(steps)
    return {"ok": True, "total": len(steps), "steps": shown, "cut": len(shown) < len(steps)}


def read_prior_output(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Return an output, a part of it, or a range of its text."""
    order = whole(arguments.get("order"), 0)
    item = next((each for each in access.prior() if each.order == order), None)
    if item is None:
        known = ", ".join(str(each.order) for each in access.prior()) or "none"
        return failure(f"step {order} has no output before this step; those that have one: {known}")
    value, path = item.output, arguments.get("path")
    try:
        if isinstance(path, str):
            value = followed(path, value)
            # An expression such as `&a` alone is a function and no value.
            text = value if isinstance(value, str) else bounded_json(value)
        else:
            text = _text(value)
    except PathTooLarge as error:
        return failure(f"the path {path!r} is not followed: {error}")
    except (JMESPathError, ValueError, TypeError, RecursionError, OverflowError) as error:
        return failure(f"the path {path!r} cannot be followed: {str(error)[:300]}")
    if value is None and path is not None:
        return failure(f"the path {path!r} leads to nothing in the output of step {order}")
    head: dict[str, JsonValue] = {"ok": True, "order": order, "label": item.label}
    is_range = "offset" in arguments or "char_count" in arguments
    if not is_range and _cost(value, text) <= RESULT_CHARS_MAX:
        return {**head, "value": value, "cut": False}
    return {**head, **_range(text, arguments)}


TOOLS = (
    Tool(LIST_STEPS, "1", list_prior_steps),
    Tool(READ_OUTPUT, "2", read_prior_output),
)
"""The group's tools."""


def _row(item: PriorOutput) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {
        "order": item.order,
        "label": item.label,
        "type": item.type,
        "chars": len(_text(item.output)),
    }
    if item.agent_type is not None:
        row["agent_type"] = item.agent_type
    if isinstance(item.output, dict):
        row["keys"] = [cut_text(key, 60) for key in list(item.output)[:20]]
    return row


def _range(text: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    offset = whole(arguments.get("offset"), 0)
    count = whole(arguments.get("char_count"), RESULT_CHARS_MAX)
    if offset and offset >= len(text):
        return failure(f"the text has {len(text)} characters; offset {offset} is behind its end")
    part = cut_text(text[offset : offset + count])
    end = offset + len(part)
    result: dict[str, JsonValue] = {
        "text": part,
        "offset": offset,
        "total_chars": len(text),
        "cut": offset > 0 or end < len(text),
    }
    if end < len(text):
        result["next_offset"] = end
    return result


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cost(value: JsonValue, text: str) -> int:
    return json_chars(text) if isinstance(value, str) else len(text)
