import enum
from collections import OrderedDict, namedtuple
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from reprise.canonical import NotCanonical, canonical_json
from reprise.context.plain_json import plain_json
from tests.strategies import json_values

Pair = namedtuple("Pair", "a b")


class Kind(enum.StrEnum):
    A = "a"


@given(json_values)
def test_json_values_are_taken_as_they_are(value: object) -> None:
    assert plain_json(value) == (value, None)


@pytest.mark.parametrize(
    ("value", "plain", "change"),
    [
        ((1, 2), [1, 2], "$ is a tuple, not a list"),
        (Pair(1, 2), [1, 2], "$ is a Pair, not a list"),
        ({"a": {3: 1}}, {"a": {"3": 1}}, "$.a has the key 3, which is no text"),
        ({True: 1, None: 2, 1.5: 3}, {"true": 1, "null": 2, "1.5": 3}, "$ has the key True, which"),
        (OrderedDict(a=1), {"a": 1}, "$ is a OrderedDict, not a dict"),
        ([Kind.A], ["a"], "$[0] is of type Kind, not str"),
        ([np.float64(0.5)], [0.5], "$[0] is of type float64, not float"),
        ([np.float32(0.5)], [0.5], "$[0] is of type float32, not float"),
        ([np.int64(3)], [3], "$[0] is of type int64, not int"),
    ],
)
def test_what_json_holds_otherwise_is_turned_into_it_and_told(
    value: object, plain: object, change: str
) -> None:
    found, told = plain_json(value)

    assert found == plain
    assert canonical_json(found)
    assert told is not None
    assert told.startswith(change)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([float("inf")], "$[0] is inf, which JSON cannot hold"),
        ({"a": "\ud800"}, "$.a holds a lone surrogate at character 0"),
        ({"\ud800": 1}, "a key of $ holds a lone surrogate at character 0"),
        ({(1, 2): 1}, "the key (1, 2) of $ is of type tuple, which JSON cannot hold"),
        ({1: 1, "1": 2}, "$ has two keys that JSON writes as '1'"),
        ([Fraction(1, 3)], "$[0] is of type Fraction, which JSON cannot hold"),
        ([{1, 2}], "$[0] is of type set, which JSON cannot hold"),
    ],
)
def test_what_json_cannot_hold_is_refused(value: object, said: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        plain_json(value)
    assert str(caught.value) == said


def test_what_is_nested_in_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)

    with pytest.raises(NotCanonical, match="nested deeper than 200 levels"):
        plain_json(value)
