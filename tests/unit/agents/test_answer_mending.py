"""What an answer's bounds make of an answer that stays beyond them."""

import jsonschema
import pytest
from hypothesis import given, settings
from pydantic import JsonValue

from reprise.agents.answer_mending import CHANGES_MAX, mended
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
        "ids": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "picks": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": {"enum": ["a", "b"]}}},
        },
        "one": {"type": ["string", "null"], "enum": ["a", "b", None]},
        "none": {"type": "null"},
    },
}


@pytest.mark.parametrize(
    ("answer", "expected", "change"),
    [
        ({"scores": [7.5, 0.5]}, {"scores": [1, 0.5]}, "$.scores[0]: 7.5 became its bound 1"),
        ({"scores": [0, 1, 0.5]}, {"scores": [0, 1]}, "$.scores: cut from 3 to 2 items"),
        (
            {"scores": [0], "title": "a long one"},
            {"scores": [0], "title": "a lo"},
            "$.title: cut from 10 to 4 characters",
        ),
        ({"scores": [], "mood": "good"}, {"scores": []}, '$: left out "mood"'),
        ({"scores": [], "cut": 0}, {"scores": [], "cut": 1}, "$.cut: 0 became its bound 1"),
        (
            {"scores": [], "ids": ["x", "a", "y", "b"]},
            {"scores": [], "ids": ["a", "b"]},
            '$.ids: left out an item with "y", which there is not',
        ),
        (
            {"scores": [], "picks": [{"id": "a"}, {"id": "x"}]},
            {"scores": [], "picks": [{"id": "a"}]},
            '$.picks: left out an item with "x", which there is not',
        ),
        (
            {"scores": [], "one": "x"},
            {"scores": [], "one": None},
            '$.one: "x", which there is not, became null',
        ),
        (
            {"scores": [], "none": "x"},
            {"scores": [], "none": None},
            '$.none: "x", where there is nothing to name, became null',
        ),
    ],
)
def test_what_breaks_the_schema_is_put_right_and_told(
    answer: JsonValue, expected: JsonValue, change: str
) -> None:
    done = mended(answer, SCHEMA)
    assert done is not None
    assert (done.value, done.changes[0]) == (expected, change)
    assert change in done.told()


@pytest.mark.parametrize("answer", ["text", 3, None, True, [], {"scores": "none"}, {}])
def test_what_has_no_plain_remedy_stays_wrong(answer: JsonValue) -> None:
    assert mended(answer, SCHEMA) is None


def test_the_answer_itself_is_not_changed_and_many_changes_are_counted() -> None:
    answer: dict[str, JsonValue] = {"scores": [], "ids": ["x"] * 8}
    done = mended(answer, SCHEMA)
    assert done is not None
    assert answer == {"scores": [], "ids": ["x"] * 8}
    assert done.told().endswith("; and 3 more")
    assert mended({"scores": [], "ids": ["x"] * (CHANGES_MAX + 1)}, SCHEMA) is None


@given(json_values)
@settings(max_examples=60, deadline=None)
def test_what_is_mended_fits(value: JsonValue) -> None:
    done = mended({"scores": value, "ids": value, "one": value}, SCHEMA)
    assert done is None or jsonschema.Draft202012Validator(SCHEMA).is_valid(done.value)
