"""The form of an answer for one request: an agent's schema, with the ids that there are filled in.

In an agent's schema a text with `format: sentence-id` or `format: shot-id` names a sentence or a
shot of the footage. Where the agent reads an analysis, the text becomes an `enum` of the ids in it,
so that an endpoint that decodes by the schema cannot invent one, and any other is told which ids
exist. A list that could hold nothing valid is to be empty.

What goes to an endpoint holds numbers, too, in a form that it can decode by: grammars know bounds
of whole numbers alone. Any number within its bounds is taken back.

The form depends on schema and analysis alone; it stands in the cache key in the schema's place.
To add a kind of id: its row in `ids_of`, and a case in tests/unit/agents/test_answer_schema.py.

Source: specification A3, C2.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import TypeGuard

from pydantic import JsonValue

from reprise.model.conversation import PriorOutput
from reprise.model.workflow import StepType

IDS_MAX = 400
"""A longer list of ids is left out: it would outgrow the answer that it helps to give."""

STEPS = 20
"""A number between bounds that are near each other is one of so many equal steps, or the least."""

STEPS_UP_TO = 2.0
"""Bounds that are farther apart hold whole numbers."""

Ids = Mapping[str, Sequence[str]]
"""Format → the ids that exist."""


def answer_schema(
    schema: dict[str, JsonValue] | None, prior: Sequence[PriorOutput]
) -> dict[str, JsonValue] | None:
    """Return the schema that an answer has to fit, given what the agent reads.

    Args:
        schema: The agent's own; None for free text.
        prior: The outputs that the agent reads, raw.
    """
    if schema is None:
        return None
    analyses = [item.output for item in prior if item.type == StepType.VIDEO_ANALYZE.value]
    if not analyses:
        return schema
    filled = _filled(schema, ids_of(analyses))
    return filled if isinstance(filled, dict) else schema


def sent_schema(schema: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """Return what an endpoint is to decode by: what fits it fits the schema as well.

    A number between two bounds becomes one of some steps, or a whole number.
    """
    sent = _decodable(schema)
    return sent if isinstance(sent, dict) else None


def _decodable(schema: JsonValue) -> JsonValue:
    if isinstance(schema, list):
        return [_decodable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    least, largest = schema.get("minimum"), schema.get("maximum")
    kinds = schema.get("type")
    names: list[JsonValue] = kinds if isinstance(kinds, list) else [kinds]
    if "number" in names and _is_number(least) and _is_number(largest):
        return _steps(schema, names, float(least), float(largest))
    # `enum` and `const` hold values, which may look like schemas.
    return {
        name: each if name in ("enum", "const", "default", "examples") else _decodable(each)
        for name, each in schema.items()
    }


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _steps(
    schema: dict[str, JsonValue], kinds: list[JsonValue], least: float, largest: float
) -> JsonValue:
    if largest - least > STEPS_UP_TO:
        whole = ["integer" if kind == "number" else kind for kind in kinds]
        bounds: dict[str, JsonValue] = {"minimum": ceil(least), "maximum": floor(largest)}
        kept: JsonValue = whole if len(whole) > 1 else whole[0]
        return {**schema, "type": kept, **bounds}
    values = [round(least + (largest - least) * step / STEPS, 4) for step in range(STEPS + 1)]
    rest = {name: v for name, v in schema.items() if name not in ("minimum", "maximum")}
    return {**rest, "enum": [*values, None] if "null" in kinds else [*values]}


def ids_of(analyses: Sequence[JsonValue]) -> dict[str, list[str]]:
    """Return the ids that raw analyses hold, by the format that stands for them, in their order."""
    sources = [source for analysis in analyses for source in _rows(analysis, "sources")]
    found = {
        "shot-id": [shot.get("id") for source in sources for shot in _rows(source, "shots")],
        "sentence-id": [
            sentence.get("id")
            for source in sources
            for sentence in _rows(source.get("transcript"), "sentences")
        ],
    }
    return {
        name: [each for each in dict.fromkeys(ids) if isinstance(each, str)]
        for name, ids in found.items()
    }


def _rows(value: JsonValue, name: str) -> list[dict[str, JsonValue]]:
    rows = value.get(name) if isinstance(value, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _filled(schema: JsonValue, ids: Ids) -> JsonValue:
    """Return a schema with its ids filled in; `False`, which nothing fits, where there are none."""
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("format")
    if isinstance(kind, str) and kind in ids and len(ids[kind]) <= IDS_MAX:
        return _one_of(schema, ids[kind])
    filled = dict(schema)
    if "items" in schema:
        filled["items"] = _filled(schema["items"], ids)
        if filled["items"] is False:
            filled |= {"items": schema["items"], "maxItems": 0}
            filled.pop("minItems", None)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        inner = {name: _filled(each, ids) for name, each in properties.items()}
        required = schema.get("required")
        if isinstance(required, list) and any(inner.get(str(name)) is False for name in required):
            return False
        filled["properties"] = inner
    return filled


def _one_of(schema: dict[str, JsonValue], ids: Sequence[str]) -> JsonValue:
    nullable = isinstance(schema.get("type"), list)
    if not ids:
        return {"type": "null"} if nullable else False
    kept = {n: v for n, v in schema.items() if n not in ("format", "minLength", "maxLength")}
    return {**kept, "enum": [*ids, None] if nullable else [*ids]}
