"""`{{name}}` in prompts, requests and configs: which names a text uses, and putting values in.

Source: specification W2.
"""

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from reprise.canonical import canonical_json
from reprise.errors import InputUnresolved
from reprise.model.variables import VARIABLE, variable_names


def names_in(value: JsonValue) -> set[str]:
    """Return the variable names that the texts in a value use, at any depth."""
    return {name for text in _texts(value) for name in variable_names(text)}


def substitute(text: str, variables: Mapping[str, JsonValue], *, where: str) -> str:
    """Return the text with each `{{name}}` replaced; a value that is no text goes in as its JSON.

    Args:
        text: The text.
        variables: Values by name.
        where: Place of the text, for the message.

    Raises:
        InputUnresolved: A name has no value.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in variables:
            known = ", ".join(sorted(variables)) or "none"
            message = f"{where}: variable {name!r} has no value; known variables: {known}"
            raise InputUnresolved(message)
        value = variables[name]
        return value if isinstance(value, str) else canonical_json(value)

    return VARIABLE.sub(value_of, text)


def substitute_all(
    value: JsonValue, variables: Mapping[str, JsonValue], *, where: str
) -> JsonValue:
    """Return the value with `substitute` applied to every text in it, at any depth."""
    if isinstance(value, str):
        return substitute(value, variables, where=where)
    if isinstance(value, list):
        return [substitute_all(item, variables, where=where) for item in value]
    if isinstance(value, dict):
        return {k: substitute_all(v, variables, where=where) for k, v in value.items()}
    return value


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
