import json
import math
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprise.canonical import (
    DEPTH_MAX,
    NotCanonical,
    canonical_json,
    digest_fields,
    encode_fields,
)
from reprise.model.workflow import StepType
from tests.strategies import field_sets, json_values


def test_fields_do_not_collide_by_concatenation() -> None:
    assert encode_fields({"A": "ab", "B": "c"}) != encode_fields({"A": "a", "B": "bc"})


def test_null_empty_text_and_absence_are_three_things() -> None:
    encodings = {encode_fields({"A": None}), encode_fields({"A": ""}), encode_fields({})}
    assert len(encodings) == 3


def test_text_and_bytes_of_the_same_content_differ() -> None:
    assert encode_fields({"A": "ab"}) != encode_fields({"A": b"ab"})


def test_a_renamed_field_is_another_field() -> None:
    assert encode_fields({"A": "x"}) != encode_fields({"B": "x"})


def test_the_order_of_fields_does_not_matter() -> None:
    assert encode_fields({"A": "1", "B": "2"}) == encode_fields({"B": "2", "A": "1"})


def test_the_encoding_is_pinned() -> None:
    assert encode_fields({"b": "é", "a": None}) == b"2;1:an0:1:bs2:\xc3\xa9"


def test_the_digest_is_pinned() -> None:
    assert (
        digest_fields({"schema_version": "1", "resolved_input": "ab"})
        == "bfa132c570d32d3641ea3fd8d157082988754c1dc7ba5fdf7ca9c284fe0329c0"
    )


@given(field_sets, field_sets)
def test_different_field_sets_never_share_an_encoding(
    one: dict[str, str | bytes | None], other: dict[str, str | bytes | None]
) -> None:
    same = one == other and all(type(one[name]) is type(other[name]) for name in one)
    assert (encode_fields(one) == encode_fields(other)) == same


@given(json_values)
def test_canonical_json_survives_a_round_trip(value: object) -> None:
    text = canonical_json(value)  # type: ignore[arg-type]  # Hypothesis gives object.
    assert canonical_json(json.loads(text)) == text


@given(json_values)
def test_canonical_json_is_what_the_standard_library_writes(value: object) -> None:
    assert canonical_json(value) == json.dumps(  # type: ignore[arg-type]  # As above.
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


@given(st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20))
@example(1e-4)
@example(0.00009999999999999999)
@example(9999999999999998.0)
@example(1e16)
@example(-0.0)
@example('\x00\x1f\x7f\x80\u2028\\/"\U0001f600')
def test_numbers_and_texts_are_laid_out_as_the_standard_library_does(value: float | str) -> None:
    assert canonical_json([value]) == json.dumps([value], ensure_ascii=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        (1e16, "1e+16"),
        (1e-5, "1e-05"),
        ({"\U0001f600": 1, "\uff5e": 2}, '{"\uff5e":2,"\U0001f600":1}'),
        (True, "true"),
        (1.0, "1.0"),
        ("1", '"1"'),
        (None, "null"),
        ("None", '"None"'),
        ([1], "[1]"),
        ({"a": 1}, '{"a":1}'),
        ([["a", 1]], '[["a",1]]'),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("e\u0301", '"e\u0301"'),
    ],
)
def test_values_of_different_types_have_different_texts(value: object, text: str) -> None:
    assert canonical_json(value) == text  # type: ignore[arg-type]  # A table of objects.


@pytest.mark.parametrize(
    "value",
    [
        *(
            (1,),
            {1: "a"},
            math.nan,
            math.inf,
            object(),
            {"a": {1, 2}},
            b"x",
            "\ud83d",
            {"\udc00": 1},
        ),
        *(StepType.AGENT, {StepType.AGENT: 1}, [datetime(2026, 1, 1, tzinfo=UTC)], UUID(int=1)),
    ],
)
def test_what_does_not_survive_json_is_refused(value: object) -> None:
    with pytest.raises(NotCanonical):
        canonical_json(value)  # type: ignore[arg-type]  # That is the point.


def test_nesting_is_bounded() -> None:
    value: object = 1
    for _ in range(DEPTH_MAX + 1):
        value = [value]
    with pytest.raises(NotCanonical, match="nested deeper than 200"):
        canonical_json(value)  # type: ignore[arg-type]  # Built as object.
