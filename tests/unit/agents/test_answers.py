"""Answers out of hostile text: never an exception, never an unusable value."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from reprise.agents.answers import read_answer
from reprise.canonical import canonical_json


def test_nan_infinity_and_overflow_are_no_answers() -> None:
    for text in ('{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}"):
        assert read_answer(text, {"type": "object"}).problems, text[:20]


def test_deep_nesting_is_a_problem_and_no_crash() -> None:
    for depth in (500, 5_000, 100_000):
        assert read_answer("[" * depth + "]" * depth, {}).problems


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert read_answer(r'{"a": "x \ud83d y"}', {}).value == {"a": "x \ufffd y"}


def test_the_first_value_that_fits_is_taken() -> None:
    text = 'Bad: {"n": "x"} good: {"n": 1} better: {"n": 2}'
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    assert read_answer(text, schema).value == {"n": 1}


def test_a_long_value_is_cut_in_the_message() -> None:
    (problem,) = read_answer(json.dumps({"t": "x" * 5000}), _texts_of(10)).problems
    assert len(problem) < 300
    assert problem.endswith("is too long")


@given(st.text(max_size=300))
def test_any_text_gives_a_value_that_json_can_hold_or_problems(text: str) -> None:
    read = read_answer(text, {})
    if not read.problems:
        canonical_json(read.value)


@given(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=4),
    st.sampled_from(["", "Sure!\n", "```json\n", "<think>hm</think>"]),
)
def test_an_object_is_found_whatever_stands_around_it(value: dict[str, int], around: str) -> None:
    tail = "\n```" if around.startswith("```") else ""
    text = around + json.dumps(value) + tail
    assert read_answer(text, {"type": "object"}).value == json.loads(json.dumps(value))


def _texts_of(chars_max: int) -> dict[str, JsonValue]:
    return {"type": "object", "properties": {"t": {"type": "string", "maxLength": chars_max}}}
