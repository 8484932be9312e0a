"""What an answer's bounds make of an answer that stays beyond them."""

import jsonschema
import pytest
from hypothesis import given, settings
from pydantic import JsonValue

from reprise.agents.answer_mending import within_bounds
from tests.strategies import json_values

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["scores"],
    "properties": {
        "scores": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "title": {"type": ["string", "null"], "maxLength": 4},
        "cut": {"type": "integer", "minimum": 1, "maximum": 16},
    },
}


@pytest.mark.parametrize(
    ("answer", "mended"),
    [
        ({"scores": [7.5, -2, 0.5]}, {"scores": [1, 0]}),
        ({"scores": [0.25], "title": "a long one"}, {"scores": [0.25], "title": "a lo"}),
        ({"scores": [], "title": None, "mood": "good"}, {"scores": [], "title": None}),
        ({"scores": [], "cut": 0}, {"scores": [], "cut": 1}),
    ],
)
def test_what_is_beyond_a_bound_goes_back_to_it(answer: JsonValue, mended: JsonValue) -> None:
    assert within_bounds(answer, SCHEMA) == mended
    jsonschema.Draft202012Validator(SCHEMA).validate(mended)


@pytest.mark.parametrize("answer", ["text", 3, None, True, [], {"scores": "none"}, {}])
def test_what_has_no_plain_remedy_stays_wrong(answer: JsonValue) -> None:
    mended = within_bounds(answer, SCHEMA)
    assert mended == answer
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(mended)


@given(json_values)
@settings(max_examples=60, deadline=None)
def test_mending_twice_changes_nothing_more(value: JsonValue) -> None:
    once = within_bounds(value, SCHEMA)
    assert within_bounds(once, SCHEMA) == once
