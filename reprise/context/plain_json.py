"""Values of a user's Python code as JSON values.

A value that JSON holds is taken as it is. One that JSON holds in another shape (a tuple, a
dictionary with whole numbers as keys, a number of NumPy) is turned into that shape, and the place
is told: such a result serves its run and is not stored, since what comes back would not be what
was given. Anything else is refused.

Source: specification C12.
"""

import math
from collections.abc import Mapping
from numbers import Integral, Rational, Real

from pydantic import JsonValue

from reprise.canonical import DEPTH_MAX, NotCanonical


def plain_json(value: object) -> tuple[JsonValue, str | None]:
    """Return a value as JSON holds it, and the first place that had to be changed, or None.

    Raises:
        NotCanonical: It holds something that JSON cannot, such as NaN, a set or an object.
    """
    changes: list[str] = []
    plain = _plain(value, "$", 0, changes)
    return plain, (changes[0] if changes else None)


def _plain(value: object, where: str, depth: int, changes: list[str]) -> JsonValue:
    if depth > DEPTH_MAX:
        message = f"{where[:80]} is nested deeper than {DEPTH_MAX} levels"
        raise NotCanonical(message)
    match value:
        case Mapping():
            return _mapping(value, where, depth, changes)
        case list() | tuple():
            if type(value) is not list:
                changes.append(f"{where} is a {type(value).__name__}, not a list")
            return [
                _plain(item, f"{where}[{index}]", depth + 1, changes)
                for index, item in enumerate(value)
            ]
        case _:
            return _scalar(value, where, changes)


def _mapping(
    value: Mapping[object, object], where: str, depth: int, changes: list[str]
) -> dict[str, JsonValue]:
    if type(value) is not dict:
        changes.append(f"{where} is a {type(value).__name__}, not a dict")
    plain: dict[str, JsonValue] = {}
    for key, item in value.items():
        name = _key(key, where, changes)
        if name in plain:
            message = f"{where} has two keys that JSON writes as {name!r}"
            raise NotCanonical(message)
        plain[name] = _plain(item, f"{where}.{name}", depth + 1, changes)
    return plain


def _key(key: object, where: str, changes: list[str]) -> str:
    if isinstance(key, str):
        if type(key) is not str:
            changes.append(f"{where} has a key of type {type(key).__name__}")
        return _text(key, f"a key of {where}")
    plain = _scalar(key, f"the key {key!r} of {where}", changes)
    changes.append(f"{where} has the key {key!r}, which is no text")
    words = {None: "null", True: "true", False: "false"}
    return words[plain] if plain is None or isinstance(plain, bool) else str(plain)


def _scalar(value: object, where: str, changes: list[str]) -> JsonValue:
    plain: JsonValue
    match value:
        case None | bool():
            return value
        case str():
            plain = _text(value, where)
        case Integral():
            plain = int(value)
        case Real() if not isinstance(value, Rational):
            plain = float(value)
            if not math.isfinite(plain):
                message = f"{where} is {plain!r}, which JSON cannot hold"
                raise NotCanonical(message)
        case _:
            message = f"{where} is of type {type(value).__name__}, which JSON cannot hold"
            raise NotCanonical(message)
    if type(value) is not type(plain):
        changes.append(f"{where} is of type {type(value).__name__}, not {type(plain).__name__}")
    return plain


def _text(value: str, where: str) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{where} holds a lone surrogate at character {error.start}"
        raise NotCanonical(message) from error
    return text
