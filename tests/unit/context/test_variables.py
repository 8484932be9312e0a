import pytest

from reprise.context.variables import names_in, substitute, substitute_all
from reprise.errors import InputUnresolved


def test_names_are_found_at_any_depth() -> None:
    assert names_in({"a": ["{{x}} and {{ y }}", {"b": "{{z}}"}], "c": 1}) == {"x", "y", "z"}


def test_text_goes_in_as_it_is_and_other_values_as_json() -> None:
    text = substitute("{{a}} {{b}} {{c}}", {"a": "x", "b": [1, None], "c": True}, where="here")
    assert text == "x [1,null] true"


def test_a_value_is_not_scanned_again() -> None:
    assert substitute("{{a}}", {"a": "{{b}}"}, where="here") == "{{b}}"


def test_an_unknown_name_says_where_and_what_is_known() -> None:
    with pytest.raises(InputUnresolved, match=r"step 3: variable 'b'.*known variables: a"):
        substitute("{{b}}", {"a": 1}, where="step 3")


def test_every_text_of_a_value_is_substituted() -> None:
    assert substitute_all({"a": ["{{x}}"], "b": 2}, {"x": "y"}, where="here") == {
        "a": ["y"],
        "b": 2,
    }
