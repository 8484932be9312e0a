"""Reading an endpoint's JSON, of which nothing is certain."""

import math

from pydantic import JsonValue


def part(value: JsonValue, name: str) -> JsonValue:
    """Return an object's field; None where there is no such field or no object."""
    return value.get(name) if isinstance(value, dict) else None


def items(value: JsonValue) -> list[JsonValue]:
    """Return a list's items; none where there is no list."""
    return value if isinstance(value, list) else []


def text(value: JsonValue) -> str:
    """Return a text; empty where there is none."""
    return value if isinstance(value, str) else ""


def count(value: JsonValue, name: str) -> int:
    """Return a field that counts something; 0 where it does not."""
    number = part(value, name)
    if not isinstance(number, int | float) or not math.isfinite(number):
        return 0
    return max(0, int(number))
