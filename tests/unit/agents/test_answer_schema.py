"""The form of an answer: ids of the footage in place of what stands for them."""

import json
from typing import Any

import jsonschema
import pytest
from pydantic import JsonValue

from reprise.agents.answer_schema import IDS_MAX, answer_schema, ids_of, sent_schema
from reprise.model.conversation import PriorOutput
from reprise.model.media import VideoAnalysis
from tests.analyses import silent_film, talk

SENTENCE: dict[str, JsonValue] = {"type": "string", "maxLength": 16, "format": "sentence-id"}
SHOT: dict[str, JsonValue] = {"type": ["string", "null"], "maxLength": 16, "format": "shot-id"}


def schema_of(item: JsonValue, **changes: JsonValue) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "required": ["ids"],
        "properties": {"ids": {"type": "array", "maxItems": 4, "items": item, **changes}},
    }


def footage(analysis: VideoAnalysis, order: int = 1) -> PriorOutput:
    output = analysis.model_dump(mode="json")
    return PriorOutput(order=order, label="look", type="VideoAnalyze", output=output)


def items_of(schema: dict[str, JsonValue] | None) -> JsonValue:
    assert schema is not None
    found: JsonValue = json.loads(json.dumps(schema))["properties"]["ids"]
    return found


def test_a_sentence_is_one_of_those_that_are_spoken() -> None:
    items = items_of(answer_schema(schema_of(SENTENCE), [footage(talk(lines=[("Hi.", 1.0)] * 2))]))
    assert items == {
        "type": "array",
        "maxItems": 4,
        "items": {"type": "string", "enum": ["v1.t001", "v1.t002"]},
    }


def test_a_shot_that_may_be_null_stays_so() -> None:
    film = silent_film(shot_starts=(0.0, 6.0))
    assert items_of(answer_schema(schema_of(SHOT), [footage(film)])) == {
        "type": "array",
        "maxItems": 4,
        "items": {"type": ["string", "null"], "enum": ["v1.s001", "v1.s002", None]},
    }


@pytest.mark.parametrize(
    "item",
    [SENTENCE, {"type": "object", "required": ["id"], "properties": {"id": SENTENCE}}],
)
def test_a_list_of_what_there_is_not_is_empty(item: dict[str, JsonValue]) -> None:
    narrowed = answer_schema(schema_of(item, minItems=1), [footage(silent_film())])
    assert narrowed is not None
    validator = jsonschema.Draft202012Validator(narrowed)
    assert validator.is_valid({"ids": []})
    assert not validator.is_valid({"ids": ["v1.t001"]})


def test_what_may_be_left_out_or_null_does_not_empty_a_list() -> None:
    item: JsonValue = {"type": "object", "properties": {"id": SENTENCE, "shot": SHOT}}
    narrowed = answer_schema(schema_of(item), [footage(silent_film())])
    assert narrowed is not None
    validator = jsonschema.Draft202012Validator(narrowed)
    assert validator.is_valid({"ids": [{"shot": "v1.s001"}, {"shot": None}]})
    assert not validator.is_valid({"ids": [{"id": "v1.t001"}]})


def test_a_schema_that_nothing_could_fit_stays_as_it_is() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": SENTENCE},
    }
    assert answer_schema(schema, [footage(silent_film())]) is schema


def test_without_an_analysis_the_schema_is_the_agents_own() -> None:
    schema = schema_of(SENTENCE)
    other = PriorOutput(order=1, label="a", type="Agent", output={"sources": []})
    assert answer_schema(schema, [other]) is schema
    assert answer_schema(None, [footage(talk())]) is None


def test_the_agents_own_schema_is_not_changed() -> None:
    schema = schema_of(SENTENCE)
    before = json.dumps(schema)
    answer_schema(schema, [footage(talk())])
    assert json.dumps(schema) == before


def test_a_list_of_ids_that_would_be_too_long_is_left_out() -> None:
    starts = [float(each) for each in range(IDS_MAX + 1)]
    analysis = silent_film(seconds=IDS_MAX + 1.0, shot_starts=starts)
    assert len(ids_of([analysis.model_dump(mode="json")])["shot-id"]) == IDS_MAX + 1
    schema = schema_of(SHOT)
    assert answer_schema(schema, [footage(analysis)]) == schema


@pytest.mark.parametrize(
    "output", [None, "text", 3, {}, {"sources": None}, {"sources": [3, {"shots": "no"}]}]
)
def test_an_output_that_is_no_analysis_has_no_ids(output: JsonValue) -> None:
    assert ids_of([output]) == {"shot-id": [], "sentence-id": []}


@pytest.mark.parametrize(
    ("number", "sent"),
    [
        (
            {"type": "number", "minimum": 0, "maximum": 1, "description": "Share."},
            {"type": "number", "description": "Share.", "enum": [n / 20 for n in range(21)]},
        ),
        (
            {"type": "number", "minimum": 0.5, "maximum": 600},
            {"type": "integer", "minimum": 1, "maximum": 600},
        ),
        (
            {"type": ["number", "null"], "minimum": 1, "maximum": 600},
            {"type": ["integer", "null"], "minimum": 1, "maximum": 600},
        ),
        ({"type": ["number", "null"]}, {"type": ["number", "null"]}),
        (
            {"type": "integer", "minimum": 1, "maximum": 16},
            {"type": "integer", "minimum": 1, "maximum": 16},
        ),
        ({"enum": [{"type": "number", "minimum": 0, "maximum": 1}]},) * 2,
    ],
)
def test_an_endpoint_is_sent_numbers_that_a_grammar_knows(number: Any, sent: Any) -> None:
    """llama.cpp decodes by the bounds of whole numbers, not by those of others."""
    assert items_of(sent_schema(schema_of(number))) == items_of(schema_of(sent))


def test_free_text_has_no_schema_to_send() -> None:
    assert sent_schema(None) is None
