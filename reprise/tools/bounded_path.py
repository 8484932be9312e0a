"""JMESPath into a value, bounded: a path that a model wrote costs little time and memory.

A value that a path builds may hold one part many times (`[@,@]|[@,@]`): it is small until somebody
prints or compares it. So three things are bounded: how many times larger than its input a path can
make anything, seen from its text alone; the work of following it; the text of what it gives.

Source: specification B12.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions, signature
from jmespath.visitor import Options, TreeInterpreter
from pydantic import JsonValue

GROWTH_MAX = 100
"""Most copies of one part that a path may make of it."""

WORK_MAX = 20_000_000
"""Most characters and items that following a path may make; a visit counts as `VISIT_COST`."""

VISIT_COST = 20

TEXT_CHARS_MAX = 4_000_000
"""Longest JSON of what a path gives."""

_ALONGSIDE = frozenset(
    (
        "multi_select_list",
        "multi_select_dict",
        "function_expression",
        "comparator",
        "or_expression",
        "and_expression",
    )
)
"""Nodes whose parts all start from the same value; the others follow one upon another."""

_LESS = "take a part first, such as `sources[0].shots[:20]`, then pick its fields"


class PathTooLarge(JMESPathError):
    """A path that would take too much, with what to do."""


def followed(path: str, value: JsonValue) -> JsonValue:
    """Return what a path leads to.

    Raises:
        PathTooLarge: It could take too much time or memory.
        JMESPathError, ValueError, TypeError, RecursionError, OverflowError: It cannot be followed.
    """
    tree = jmespath.compile(path).parsed
    if growth(tree) > GROWTH_MAX:
        message = f"it could repeat a part more than {GROWTH_MAX} times; {_LESS}"
        raise PathTooLarge(message)
    found: JsonValue = _Interpreter().visit(tree, value)
    return found


def growth(node: Mapping[str, Any]) -> int:
    """Return how many copies of its input anything in an expression may hold, at most."""
    parts = [growth(child) for child in node["children"] if isinstance(child, Mapping)]
    if node["type"] == "filter_projection":
        left, right, condition = parts
        return left * max(right, condition)
    if node["type"] == "function_expression" and node["value"] == "map":
        return math.prod(parts)
    if node["type"] in _ALONGSIDE:
        # JSON within JSON escapes each quote again.
        escaped = 2 if node.get("value") == "to_string" else 1
        return escaped * max(1, sum(parts))
    return math.prod(parts)


def bounded_json(value: JsonValue) -> str:
    """Return a value as JSON.

    Raises:
        PathTooLarge: It is longer than `TEXT_CHARS_MAX`.
        ValueError: It holds a number that JSON has not.
    """
    parts, chars = [], 0
    for part in json.JSONEncoder(ensure_ascii=False, allow_nan=False).iterencode(value):
        parts.append(part)
        chars += len(part)
        if chars > TEXT_CHARS_MAX:
            message = f"it gives more than {TEXT_CHARS_MAX} characters; {_LESS}"
            raise PathTooLarge(message)
    return "".join(parts)


class _Functions(Functions):
    @signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, separator: str, array: list[str]) -> str:
        _require(len(separator) * len(array))
        return separator.join(array)


class _Interpreter(TreeInterpreter):
    """Follows a path and counts what it makes."""

    def __init__(self) -> None:
        super().__init__(Options(custom_functions=_Functions()))
        self._work = 0

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        found = super().visit(node, *args, **kwargs)
        self._work += VISIT_COST + (len(found) if isinstance(found, str | list | dict) else 0)
        _require(self._work)
        return found


def _require(work: int) -> None:
    if work > WORK_MAX:
        message = f"it takes too much work; {_LESS}"
        raise PathTooLarge(message)
