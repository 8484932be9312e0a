"""Texts and values that UTF-8 can hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from reprise.agents.surrogates import scrubbed, scrubbed_json, scrubbed_value

ANY_TEXT = st.text(st.characters(categories=("L", "Cs", "P")) | st.sampled_from("\ud83d\ude00"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud83d", "\ufffd"),
        ("a\ud83d b", "a\ufffd b"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd😀\ufffd"),
    ],
)
def test_half_a_pair_is_replaced_and_a_pair_is_joined(text: str, expected: str) -> None:
    assert scrubbed(text) == expected


@given(ANY_TEXT)
def test_a_scrubbed_text_is_utf_8_and_stays_as_it_is(text: str) -> None:
    clean = scrubbed(text)
    assert clean.encode().decode() == clean
    assert scrubbed(clean) is clean


def test_a_clean_value_is_the_same_object() -> None:
    value: JsonValue = {"é": [1, None, {"a": "😀"}]}
    assert scrubbed_value(value) is value


def test_keys_and_values_are_scrubbed_at_any_depth() -> None:
    value: JsonValue = {"a": 1, "b\ud83d": [{"c": ["\ude00", {"\ud800": True}]}]}
    assert scrubbed_value(value) == {"a": 1, "b\ufffd": [{"c": ["\ufffd", {"\ufffd": True}]}]}


@pytest.mark.parametrize(
    "text",
    ["{}", '{"a": 1.10}', '{"a": "\\ud83d\\ude00"}', '{"a": "\\\\ud83d"}', '{"a": "\\ud83d', "no"],
)
def test_a_json_text_without_lone_surrogates_is_kept_as_written(text: str) -> None:
    assert scrubbed_json(text) is text


def test_escapes_of_lone_surrogates_are_replaced_in_a_json_text() -> None:
    text = '{"\\uDC00": ["\\ud83d", 123456789012345678901]}'
    assert scrubbed_json(text) == '{"\ufffd": ["\ufffd", 123456789012345678901]}'
    assert json.loads(scrubbed_json(text)) == {"\ufffd": ["\ufffd", 123456789012345678901]}
