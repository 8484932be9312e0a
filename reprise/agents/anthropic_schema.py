"""A JSON Schema in the part that Anthropic's structured output takes.

Bounds (`maxLength`, `minimum`, …) are refused there, and every object must be closed. What is left
out here is still in the system prompt, and the loop checks the answer by the whole schema. A schema
that cannot be said in that part (an object with names of its own choice, a value of any type) gives
None: then the prompt alone asks for it.
"""

from collections.abc import Mapping

from pydantic import JsonValue

KEPT = ("$ref", "const", "description", "enum", "title")
"""Keywords that are taken as they are."""

COMBINED: Mapping[str, str] = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
"""Keywords that hold alternatives or parts → their names there."""

FORMATS = (
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
)
"""Formats of a text that are taken."""


class _NotSaid(Exception):
    """A schema cannot be said in the part that is taken."""


def native_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Return the schema as the protocol takes it, or None where it cannot be said."""
    try:
        return _object_of(_native(dict(schema)))
    except (_NotSaid, RecursionError):
        return None


def _native(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict):
        raise _NotSaid
    native: dict[str, JsonValue] = {name: schema[name] for name in KEPT if name in schema}
    definitions = schema.get("$defs")
    if definitions is not None:
        native["$defs"] = _each(definitions)
    for name, taken in COMBINED.items():
        if name in schema:
            parts = schema[name]
            native[taken] = [_native(part) for part in parts] if isinstance(parts, list) else []
    kind = schema.get("type")
    if isinstance(kind, list):
        native["anyOf"] = [_native({**schema, "type": one}) for one in kind]
        return {name: native[name] for name in native if name in ("$defs", "anyOf")}
    if isinstance(kind, str):
        native |= {"type": kind, **_typed(kind, schema)}
    elif not native.keys() - {"$defs", "description", "title"}:
        raise _NotSaid
    return native


def _typed(kind: str, schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the keywords that go with a type."""
    if kind == "object":
        if schema.get("additionalProperties") not in (None, False) or "properties" not in schema:
            raise _NotSaid
        closed: dict[str, JsonValue] = {"properties": _each(schema["properties"])}
        if "required" in schema:
            closed["required"] = schema["required"]
        return {**closed, "additionalProperties": False}
    if kind == "array":
        items: dict[str, JsonValue] = {"items": _native(schema.get("items"))}
        least = schema.get("minItems")
        return items if least not in (0, 1) else {**items, "minItems": least}
    named = schema.get("format")
    return {"format": named} if kind == "string" and named in FORMATS else {}


def _each(schemas: JsonValue) -> dict[str, JsonValue]:
    return {name: _native(schema) for name, schema in _object_of(schemas).items()}


def _object_of(value: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise _NotSaid
    return value
