"""An answer that breaks its schema to the last, changed until it fits, where settings ask for it.

Endpoints that decode by a schema leave out some of its bounds: llama.cpp knows no least and largest
number, hosted services no lengths. Each violation that has one plain remedy is put right: a number
goes to its bound, a text or a list ends at its length, a field that nobody asked for goes, and so
does an item of a list that is none of the values there are. Whatever else is wrong stays wrong.

Source: specification A3; research/agents.md section 6. To add a remedy: a case in `_changed`, and
one in tests/unit/agents/test_answer_mending.py.
"""

import json
from collections.abc import MutableMapping, Sequence
from typing import Any, NamedTuple, cast

import jsonschema
from pydantic import JsonValue

CHANGES_MAX = 100
"""An answer that needs more changes is no answer."""

NOTED_MAX = 5
"""Most changes that are told one by one."""

SHOWN_CHARS_MAX = 40
"""A value is cut after this many characters where it is told."""


_Holder = MutableMapping[str | int, JsonValue]
"""A list or an object: both are read and written by a place."""


class Mended(NamedTuple):
    """An answer after its changes."""

    value: JsonValue
    """It fits the schema."""
    changes: tuple[str, ...]
    """What was changed, in order."""

    def told(self) -> str:
        """Return the changes in a line."""
        more = len(self.changes) - NOTED_MAX
        rest = (f"and {more} more",) if more > 0 else ()
        return "; ".join((*self.changes[:NOTED_MAX], *rest))


def mended(value: JsonValue, schema: dict[str, JsonValue]) -> Mended | None:
    """Return an answer changed so that it fits, or None where it cannot be.

    Args:
        value: The answer; it is not changed itself.
        schema: JSON Schema that the answer was asked to fit, ids filled in.
    """
    validator = jsonschema.Draft202012Validator(schema)
    root: dict[str, JsonValue] = {"": json.loads(json.dumps(value))}
    changes: list[str] = []
    while errors := list(validator.iter_errors(root[""])):
        # Inner ones first: a list is cut after what is wrong in it has gone. Later ones first:
        # an item that goes moves those behind it.
        errors.sort(key=lambda error: [len(error.absolute_path), *_places(error)], reverse=True)
        change = next((done for e in errors if (done := _changed(root, e)) is not None), None)
        if change is None or len(changes) >= CHANGES_MAX:
            return None
        changes.append(change)
    return Mended(root[""], tuple(changes))


def _places(error: jsonschema.ValidationError) -> list[tuple[int, str]]:
    return [(at, "") if isinstance(at, int) else (-1, at) for at in error.absolute_path]


def _changed(root: dict[str, JsonValue], error: jsonschema.ValidationError) -> str | None:
    """Put one violation right; return what was done, or None where there is no remedy."""
    path = ["", *error.absolute_path]
    value: Any = error.instance
    bound: Any = error.validator_value
    schema: Any = error.schema
    where = error.json_path
    match error.validator:
        case "minimum" | "maximum":
            _set(root, path, bound)
            return f"{where}: {_shown(value)} became its bound {_shown(bound)}"
        case "maxLength" | "maxItems":
            _set(root, path, value[:bound])
            unit = "characters" if error.validator == "maxLength" else "items"
            return f"{where}: cut from {len(value)} to {bound} {unit}"
        case "additionalProperties" if bound is False:
            known = schema.get("properties", {})
            unknown = sorted(value.keys() - known.keys())
            _set(root, path, {name: each for name, each in value.items() if name in known})
            return f"{where}: left out {', '.join(_shown(name) for name in unknown)}"
        case "enum" if None in bound:
            _set(root, path, None)
            return f"{where}: {_shown(value)}, which there is not, became null"
        case "type" if bound == "null":
            _set(root, path, None)
            return f"{where}: {_shown(value)}, where there is nothing to name, became null"
        case "enum":
            return _without_item(root, path, _shown(value))
    return None


def _without_item(root: dict[str, JsonValue], path: Sequence[str | int], what: str) -> str | None:
    """Take the innermost item of a list out that a path leads into."""
    at = next((at for at in reversed(range(len(path))) if isinstance(path[at], int)), None)
    if at is None:
        return None
    del _holder(root, path[: at + 1])[path[at]]
    where = "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path[1:at])
    return f"{where}: left out an item with {what}, which there is not"


def _holder(root: dict[str, JsonValue], path: Sequence[str | int]) -> _Holder:
    """Return the list or object that the last place of a path is in."""
    found: Any = root
    for place in path[:-1]:
        found = found[place]
    return cast("_Holder", found)


def _set(root: dict[str, JsonValue], path: Sequence[str | int], value: JsonValue) -> None:
    _holder(root, path)[path[-1]] = value


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"
