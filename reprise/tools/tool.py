"""What a tool is: what a model sees of it, its revision, and the function that answers.

A tool's function takes arguments that fit the schema and answers with a JSON object that begins
with `ok`. What a model got wrong is `failure(…)`, which names the next action, and is never raised;
what is wrong with the machine (a store that does not answer) is raised, and fails the step.

Source: specification A2.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from reprise.model.conversation import ToolSchema
from reprise.tools.access import ToolAccess

RESULT_CHARS_MAX = 20_000
"""The text in a result is cut after so many characters of JSON."""

ARGUMENTS_CHARS_MAX = 100_000
"""Longest arguments of a call, in characters, unless the tool says otherwise."""

Result = dict[str, JsonValue]
"""A JSON object that begins with `ok`."""

ToolFunction = Callable[[Mapping[str, JsonValue], ToolAccess], Result]


@dataclass(frozen=True)
class Tool:
    """One tool."""

    schema: ToolSchema
    """What a model is shown."""
    revision: str
    """Part of the cache key; bump it when the same arguments would be answered otherwise."""
    function: ToolFunction
    """What answers."""
    arguments_chars_max: int = ARGUMENTS_CHARS_MAX
    """Longest arguments of a call, in characters."""


def failure(text: str) -> Result:
    """Return the result that tells a model what was wrong and what to do."""
    return {"ok": False, "error": text}


def refusal(code: str, error: str, /, **more: JsonValue) -> Result:
    """Return a failure of a kind that has a code, with what else is known of it, None left out."""
    known = {name: value for name, value in more.items() if value is not None}
    return {"ok": False, "code": code, "error": error, **known}


def whole(value: JsonValue, default: int) -> int:
    """Return an argument that is a whole number; JSON Schema takes 2.0 for one."""
    return int(value) if isinstance(value, int | float) else default


def json_chars(text: str) -> int:
    """Return how many characters a text takes as JSON, without its quotes."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


def cut_text(text: str, chars_max: int = RESULT_CHARS_MAX) -> str:
    """Return the longest beginning of a text that takes at most so many characters as JSON."""
    if json_chars(text) <= chars_max:
        return text
    low, high = 0, min(len(text), chars_max)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if json_chars(text[:middle]) <= chars_max else (low, middle - 1)
    return text[:low]


def lines_within(lines: list[str], chars_max: int = RESULT_CHARS_MAX) -> list[str]:
    """Return as many of the lines as fit into a result, at least one."""
    size = 0
    for at, line in enumerate(lines):
        size += json_chars(line) + 2
        if size > chars_max:
            return lines[: max(at, 1)]
    return lines


def items_within(items: Sequence[JsonValue], chars_max: int = RESULT_CHARS_MAX) -> list[JsonValue]:
    """Return as many of the items as fit into a result, at least one."""
    size = 0
    for at, item in enumerate(items):
        size += len(json.dumps(item, ensure_ascii=False)) + 2
        if size > chars_max:
            return list(items[: max(at, 1)])
    return list(items)
