"""The one encoding behind every key, fingerprint and digest.

`encode_fields` turns named values into bytes that no other set of names and values shares;
`canonical_json` turns a JSON value into one text. Golden digests in tests/unit/test_canonical.py
pin both, so an accidental change of the encoding is a red test, and a deliberate one bumps
`SCHEMA_VERSION` in reprise/cache/key.py.

Source: specification C1, C3, C12.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

import orjson
from pydantic import JsonValue

DEPTH_MAX = 200
"""Deepest nesting that is encoded; deeper values are refused, on every platform alike."""

INTEGER_BITS_MAX = 14_000
"""Longest integer that is encoded: Python writes and reads 4,300 digits unless told otherwise."""

_JSON_TYPES = frozenset({dict, list, str, int, float, bool, type(None)})
_CONTAINERS = frozenset({dict, list})
_FIXED_MIN, _FIXED_MAX = 1e-4, 1e16


class NotCanonical(ValueError):
    """A value does not survive a JSON round trip unchanged."""


def sha256_hex(data: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text's UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def canonical_json(value: JsonValue, *, sort_keys: bool = True) -> str:
    """Return the one JSON text of a value: sorted keys, no blanks, no escapes beyond need.

    Args:
        value: The value.
        sort_keys: False leaves keys in their order; two orders are two texts then.

    Raises:
        NotCanonical: The value holds a tuple, a key that is no text, NaN, an infinity, a lone
            surrogate, an arbitrary object, an integer of more than `INTEGER_BITS_MAX` bits, or is
            nested deeper than `DEPTH_MAX`.

    Performance: 22 KB of rows take about 5 times an `orjson.dumps`, a fifth of what `json.dumps`
    and a walk through the values take.
    """
    return _canonical_bytes(value, sort_keys=sort_keys).decode()


def json_digest(value: JsonValue) -> str:
    """Return the SHA-256 of a value's canonical JSON, as 64 hexadecimal digits.

    Raises:
        NotCanonical: See `canonical_json`.
    """
    return hashlib.sha256(_canonical_bytes(value)).hexdigest()


def has_wide_integer(value: JsonValue) -> bool:
    """Answer whether a value that has a canonical text holds an integer beyond 64 bits.

    `orjson.loads` would give a float for it.
    """
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def text_digest(text: str) -> str:
    """Return a digest of a text as it stands, which is no value's `json_digest`.

    Raises:
        UnicodeEncodeError: It holds a lone surrogate.
    """
    # No JSON begins with an "s".
    digest = hashlib.sha256(b"s:")
    digest.update(text.encode())
    return digest.hexdigest()


def encode_fields(fields: Mapping[str, "str | bytes | None"]) -> bytes:
    """Return bytes that name and measure each field, so that no two different field sets are equal.

    A field's value is text, bytes, or `None` (known to be null); a field that does not apply is
    left out of the mapping. All of these encode differently from each other and from the empty
    text. The order of the mapping does not matter.
    """
    parts: list[bytes] = [b"%d;" % len(fields)]
    for name in sorted(fields):
        value = fields[name]
        tag = b"n" if value is None else b"s" if isinstance(value, str) else b"b"
        body = b"" if value is None else value.encode() if isinstance(value, str) else value
        name_bytes = name.encode()
        parts.append(b"%d:%s%s%d:" % (len(name_bytes), name_bytes, tag, len(body)))
        parts.append(body)
    return b"".join(parts)


def digest_fields(fields: Mapping[str, "str | bytes | None"]) -> str:
    """Return the SHA-256 of `encode_fields`, as 64 hexadecimal digits."""
    return sha256_hex(encode_fields(fields))


def _canonical_bytes(value: JsonValue, *, sort_keys: bool = True) -> bytes:
    if type(value) is str or _is_plain(value):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None)
        except orjson.JSONEncodeError:
            # A whole number beyond 64 bits, which the slow way writes; a key that is no text or a
            # lone surrogate, which it refuses and says where.
            pass
    _check(value, "$", 0)
    text = json.dumps(
        value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"a text holds a lone surrogate at character {error.start} of its JSON"
        raise NotCanonical(message) from error


def _is_plain(value: object) -> bool:
    """Answer whether orjson writes a value just as `json` does, provided that it can.

    It takes tuples, enumerations and dates for lists and texts, NaN for null, and lays out very
    large and very small floats in its own way; keys it checks itself. Level by level, so that the
    work is done by a few calls and not by one a value.
    """
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX + 1):
        kinds = set(map(type, level))
        if not kinds <= _JSON_TYPES:
            return False
        if float in kinds and not all(_is_laid_out_alike(v) for v in level if type(v) is float):
            return False
        if kinds.isdisjoint(_CONTAINERS):
            return True
        below: list[Any] = []
        if dict in kinds:
            below += chain.from_iterable([v.values() for v in level if type(v) is dict])
        if list in kinds:
            below += chain.from_iterable([v for v in level if type(v) is list])
        level = below
    return False


def _is_laid_out_alike(number: float) -> bool:
    # `repr` turns to exponents outside of this range; NaN is in no range.
    return number == 0 or _FIXED_MIN <= abs(number) < _FIXED_MAX


def _check(value: JsonValue, where: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        message = f"{where[:80]} is nested deeper than {DEPTH_MAX} levels"
        raise NotCanonical(message)
    kind = type(value)
    if value is None or kind in (bool, str):
        return
    if isinstance(value, int | float) and kind in (int, float):
        _check_number(value, where)
        return
    if isinstance(value, dict) and kind is dict:
        for name, item in value.items():
            if type(name) is not str:
                message = f"{where} has the key {name!r}; JSON keys are text"
                raise NotCanonical(message)
            _check(item, f"{where}.{name}", depth + 1)
        return
    if isinstance(value, list) and kind is list:
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]", depth + 1)
        return
    message = f"{where} is of type {kind.__name__}, which JSON cannot hold"
    raise NotCanonical(message)


def _check_number(value: float, where: str) -> None:
    if isinstance(value, int):
        if value.bit_length() > INTEGER_BITS_MAX:
            message = f"{where} is an integer of more than {INTEGER_BITS_MAX} bits"
            raise NotCanonical(message)
    elif not math.isfinite(value):
        message = f"{where} is {value!r}, which JSON cannot hold"
        raise NotCanonical(message)
