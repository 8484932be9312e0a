"""An answer that stays wrong after its last correction, brought within its bounds where it can be.

Endpoints that decode by a schema leave out some of its bounds: llama.cpp knows no least and largest
number, hosted services no lengths. Where a value has one plain remedy it is taken: a number goes to
its bound, a text or a list ends at its length, a field that nobody asked for goes. Whatever else is
wrong stays wrong.

Source: specification A3; research/agents.md section 6.
"""

from pydantic import JsonValue


def within_bounds(value: JsonValue, schema: JsonValue) -> JsonValue:
    """Return a value with what is beyond the bounds of its schema taken back to them.

    Args:
        value: The answer, or a part of it.
        schema: JSON Schema; what is not told by `properties` and `items` is left alone.
    """
    if not isinstance(schema, dict):
        return value
    if isinstance(value, str):
        longest = _whole(schema.get("maxLength"))
        return value if longest is None else value[:longest]
    if isinstance(value, list):
        kept = value[: _whole(schema.get("maxItems"))]
        return [within_bounds(item, schema.get("items")) for item in kept]
    if isinstance(value, dict):
        return _fields(value, schema)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _clamped(value, schema.get("minimum"), schema.get("maximum"))
    return value


def _fields(value: dict[str, JsonValue], schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    known = schema.get("properties")
    if not isinstance(known, dict):
        return value
    closed = schema.get("additionalProperties") is False
    return {
        name: within_bounds(each, known.get(name))
        for name, each in value.items()
        if name in known or not closed
    }


def _clamped(value: float, least: JsonValue, largest: JsonValue) -> float:
    if isinstance(least, int | float) and value < least:
        return least
    if isinstance(largest, int | float) and value > largest:
        return largest
    return value


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
