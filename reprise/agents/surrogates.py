"""Texts and JSON values that UTF-8 can hold.

A lone surrogate comes from a cut JSON escape or a file name that is no UTF-8, and would break the
request that holds it. Half a pair becomes U+FFFD; two halves that belong together become their
character.

Source: specification M4.
"""

import json
import re
from collections.abc import Iterable

from pydantic import JsonValue

ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of a surrogate in a JSON text; a pair of them is well-formed."""


def scrubbed(text: str) -> str:
    """Return the text, or a copy without lone surrogates; the same object when there are none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def scrubbed_value(value: JsonValue) -> JsonValue:
    """Return the value, or a copy without lone surrogates, in keys as well."""
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, list):
        items = [scrubbed_value(item) for item in value]
        return items if _differ(items, value) else value
    if isinstance(value, dict):
        fields = {scrubbed(key): scrubbed_value(item) for key, item in value.items()}
        return (
            fields if _differ(fields, value) or _differ(fields.values(), value.values()) else value
        )
    return value


def scrubbed_json(text: str) -> str:
    r"""Return a JSON text without lone surrogates, be they characters or escapes such as `\ud83d`.

    A text that is no JSON keeps its escapes: they are plain characters there.
    """
    text = scrubbed(text)
    if ESCAPE.search(text) is None:
        return text
    try:
        value = json.loads(text)
        clean = scrubbed_value(value)
    except (ValueError, RecursionError):
        return text
    return text if clean is value else json.dumps(clean, ensure_ascii=False)


def _differ(ours: Iterable[object], theirs: Iterable[object]) -> bool:
    return any(one is not other for one, other in zip(ours, theirs, strict=False))
