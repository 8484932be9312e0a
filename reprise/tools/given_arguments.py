r"""What a model wrote as arguments, read as what it can only have meant, and what is wrong with it.

Models write JSON with raw line ends in it, `"3"` for 3, `"true"` for true, null for what they leave
out, a list as a text of JSON, one object for a list of one, `old_text` for `oldText`. Where the
schema leaves one reading that is taken. A text is never touched where a text is wanted, and nothing
is guessed: what stays unfit is told with its place.

Source: specification A2, E3. Tests: tests/unit/tools/test_given_arguments.py.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping

import jsonschema
from pydantic import JsonValue

PROBLEM_CHARS_MAX = 300
DEPTH_MAX = 8
"""Arguments are read anew no deeper than so."""

Schema = Mapping[str, JsonValue]

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_TRUTHS = {"true": True, "false": False}
_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def parsed(text: str) -> JsonValue:
    """Return the value of a JSON text; line ends and tabs may stand raw in its strings.

    Raises:
        ValueError, RecursionError: It is no JSON.
    """
    value: JsonValue = json.loads(text, strict=False)
    return value


def read_as_meant(value: JsonValue, schema: Schema, depth: int = 0) -> JsonValue:
    """Return arguments as the schema can only mean them; what fits already is left as it is."""
    wanted = schema.get("type")
    if depth > DEPTH_MAX or not isinstance(wanted, str):
        return value
    if isinstance(value, str):
        value = _of_text(value, wanted)
    if wanted == "array":
        return _as_list(value, schema.get("items"), depth)
    if wanted == "object" and isinstance(value, dict):
        return _as_object(value, schema, depth)
    return value


def problem_of(values: JsonValue, schema: Schema) -> str | None:
    """Return what is wrong with arguments and where; None when they fit."""
    found = next(jsonschema.Draft202012Validator(schema).iter_errors(values), None)
    if found is None:
        return None
    where = _place(found)
    if found.validator == "type":
        kind = _KINDS.get(type(found.instance), "number")
        return f"{where or 'what was sent'} is of type {kind}, not {found.validator_value}"
    if found.validator == "additionalProperties":
        return _within(where) + _unknown(found)
    if found.validator in ("maxLength", "maxItems") or len(found.message) > PROBLEM_CHARS_MAX:
        return f"{where} breaks the rule {found.validator}: {found.validator_value!s:.100}"
    return f"{_within(where)}{found.message}"


def _unknown(problem: jsonschema.ValidationError) -> str:
    """Return which names there are instead of those that were made up."""
    assert isinstance(problem.schema, dict)
    assert isinstance(problem.instance, dict)
    known = problem.schema.get("properties", {})
    odd = ", ".join(repr(name[:60]) for name in problem.instance if name not in known)
    return (
        f"there is no argument {odd[:PROBLEM_CHARS_MAX]}; there are: {', '.join(known) or 'none'}"
    )


def _of_text(text: str, wanted: str) -> JsonValue:
    bare = text.strip()
    if wanted == "integer" and _WHOLE.fullmatch(bare):
        return int(bare)
    if wanted == "boolean":
        return _TRUTHS.get(bare.lower(), text)
    if (wanted, bare[:1]) in (("array", "["), ("array", "{"), ("object", "{")):
        try:
            return parsed(bare)
        except (ValueError, RecursionError):
            return text
    return text


def _as_list(value: JsonValue, items: JsonValue, depth: int) -> JsonValue:
    if not isinstance(items, dict):
        return value
    if isinstance(value, dict) and items.get("type") == "object":
        value = [value]
    if not isinstance(value, list):
        return value
    return [read_as_meant(item, items, depth + 1) for item in value]


def _as_object(value: dict[str, JsonValue], schema: Schema, depth: int) -> JsonValue:
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return value
    found: dict[str, JsonValue] = {}
    meant = _names_meant(value, properties)
    for given, item in value.items():
        name = meant.get(given, given)
        inner = properties.get(name)
        if isinstance(inner, dict):
            if item is None and name not in required and isinstance(inner.get("type"), str):
                continue
            found[name] = read_as_meant(item, inner, depth + 1)
        else:
            found[name] = item
    return found


def _names_meant(value: Mapping[str, JsonValue], properties: Schema) -> dict[str, str]:
    """Return for each name that was given the one that is meant, where that is another."""
    known = {_folded(name): name for name in properties}
    spellings = Counter(map(_folded, value))
    # Two spellings of one name would be two values of one argument.
    return {
        given: known[_folded(given)]
        for given in value
        if given not in properties and _folded(given) in known and spellings[_folded(given)] == 1
    }


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _place(problem: jsonschema.ValidationError) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.absolute_path)
    return repr("".join(parts).removeprefix(".")[:100]) if problem.absolute_path else ""


def _within(where: str) -> str:
    return f"in {where}: " if where else ""
