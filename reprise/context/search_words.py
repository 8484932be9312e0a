"""The words of a query and of a text, and the part of a passage that is shown for a hit.

A word is a run of letters and digits; case and accents do not count. No character of a query has
a meaning of its own, so that nothing a user or a model types is an error.

Source: specification W8.
"""

import re
import unicodedata
from collections.abc import Collection

TERMS_MAX = 32
"""Most different words of a query that count; the rest is passed over."""

SNIPPET_CHARS_MAX = 320
"""Longest snippet, in characters, without the marks of what was left out."""

_BEFORE_CHARS = 80
_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Return the words of a text as they are compared, in order."""
    return [_folded(word) for word in _WORD.findall(unicodedata.normalize("NFC", text))]


def query_terms(query: str) -> tuple[str, ...]:
    """Return the different words of a query, in order, at most `TERMS_MAX`."""
    return tuple(dict.fromkeys(words(query)))[:TERMS_MAX]


def snippet(text: str, terms: Collection[str]) -> str:
    """Return the part of a text around the first word that is among the terms, on one line."""
    wanted = frozenset(terms)
    plain = unicodedata.normalize("NFC", " ".join(text.split()))
    if len(plain) <= SNIPPET_CHARS_MAX:
        return plain
    found = (match.start() for match in _WORD.finditer(plain) if _folded(match[0]) in wanted)
    start = max(0, next(found, 0) - _BEFORE_CHARS)
    end = start + SNIPPET_CHARS_MAX
    head, tail = "…" if start else "", "…" if end < len(plain) else ""
    return f"{head}{plain[start:end].strip()}{tail}"


def _folded(word: str) -> str:
    parts = unicodedata.normalize("NFD", word.lower())
    return "".join(part for part in parts if not unicodedata.combining(part))
