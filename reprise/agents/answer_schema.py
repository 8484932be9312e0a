"""The form of an answer for one request: an agent's schema, with the ids that there are filled in.

In an agent's schema a text with `format: sentence-id` or `format: shot-id` names a sentence or a
shot of the footage. Where the agent reads an analysis, the text becomes an `enum` of the ids in it,
so that an endpoint that decodes by the schema cannot invent one, and any other is told which ids
exist. A list that could hold nothing valid is to be empty.

The form depends on schema and analysis alone; it stands in the cache key in the schema's place.
To add a kind of id: its row in `ids_of`, and a case in tests/unit/agents/test_answer_schema.py.

Source: specification A3, C2.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from reprise.model.conversation import PriorOutput
from reprise.model.workflow import StepType

IDS_MAX = 400
"""A longer list of ids is left out: it would outgrow the answer that it helps to give."""

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
