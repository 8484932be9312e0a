"""Shortening a JSON value to a rung: long texts cut, long lists capped, deep parts left out.

Every rung leaves out all that the one before it leaves out. What is left out is said in its place:
`…(+N chars)`, `…(+N more items omitted by context budget)`, `…(object with N keys omitted by
context budget)`. A value that was shortened is not shortened again at the same rung.

Source: specification B3, B13, B14.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from reprise.context.text_cut import cut_text

PROTECTED_WORDS = frozenset(
    {
        "code",
        "error",
        "id",
        "ids",
        "key",
        "path",
        "rank",
        "rating",
        "reason",
        "score",
        "status",
        "uri",
        "url",
        "uuid",
        "verdict",
    }
)
"""Last words of the keys whose texts `sampled` keeps whole: `scene_id`, `outputStorageKey`."""

PROTECTED_CHARS_MAX = 256
"""Longer texts are cut even there."""

MORE_KEYS = "…"
"""The key under which an object says how many others are left out."""

KEY_CHARS_MAX = 60
"""Longest key in an object whose keys are counted."""

FIXED_MIN, FIXED_MAX = 1e-4, 1e16
"""Numbers between these are written without an exponent."""

WIDE = 2.0**63
"""A whole number from here on may come as a float."""

TOO_LONG: Final = object()
"""The answer where a rung cannot fit."""

_MORE = re.compile(r"…\(\+\d+ more (?:items|keys) omitted by context budget\)")
_ELIDED = re.compile(r"…\((?:object with \d+ keys|list with \d+ items) omitted by context budget\)")
_MARKER_CHARS_MAX = 64
_LAST_WORD = re.compile(r"[A-Za-z][a-z0-9]*$|[A-Z0-9]+$")


@dataclass(frozen=True)
class Rung:
    """How much of a value is shown."""

    string_chars: int
    """Characters of a text."""
    items: int
    """Items of a list."""
    depth: int
    """Levels of nesting."""
    keys: int | None = None
    """Keys of an object; None for all."""


class Shortener:
    """Shortens one value to one rung; made for each.

    Args:
        rung: How much is shown.
        sampled: Take items and characters from the whole, not from the beginning alone.
    """

    def __init__(self, rung: Rung, *, sampled: bool) -> None:
        self.has_wide_number = False
        """True when a number is shown that may have been a whole one beyond 64 bits."""
        self.rung = rung
        self._limit = rung.string_chars
        self._tail = rung.string_chars // 4 if sampled else 0
        self._sampled = sampled
        self._open: list[tuple[Any, Any, Any, int]] = []

    def shortened(self, value: Any, chars_max: int) -> Any:
        """Return a value as its rung shows it, or `TOO_LONG`; the value itself stays as it is.

        Args:
            value: A JSON value.
            chars_max: Stop where its JSON is sure to be longer.
        """
        root = [value]
        made, left = self._list(root, 0, chars_max)
        while self._open and left >= 0:
            node, parent, place, depth = self._open.pop()
            if depth > self.rung.depth and node:
                parent[place] = _elided(node)
            elif type(node) is dict:
                parent[place], left = self._object(node, depth, left)
            else:
                parent[place], left = self._list(self._some_items(node), depth, left)
        return made[0] if left >= 0 else TOO_LONG

    def _object(self, node: dict[str, Any], depth: int, left: int) -> tuple[dict[str, Any], int]:
        """Return an object, its parts still to be shortened, and how much is left after it."""
        if self.rung.keys is not None and len(node) > self.rung.keys:
            node = self._with_some_keys(node, self.rung.keys)
        # Quotes, colon, comma and one character of a value for each key.
        left -= 5 * len(node)
        if left < 0:
            return node, left
        left -= sum(map(len, node))
        limit, made = self._limit, node
        for key, item in node.items():
            kind = type(item)
            if kind is str:
                if len(item) > limit and not self._is_kept(key, item):
                    made = made.copy() if made is node else made
                    item = made[key] = self._text(item)
                left -= len(item)
            elif kind is dict or kind is list:
                made = made.copy() if made is node else made
                self._open.append((item, made, key, depth + 1))
            elif kind is float and not (FIXED_MIN <= item < FIXED_MAX):
                made = made.copy() if made is node else made
                made[key] = self._number(item)
        return made, left

    def _list(self, made: list[Any], depth: int, left: int) -> tuple[list[Any], int]:
        """Return a list, its parts still to be shortened, and how much is left; changes it."""
        limit = self._limit
        for place, item in enumerate(made):
            kind = type(item)
            if kind is str:
                if len(item) > limit:
                    item = made[place] = self._text(item)
                left -= len(item)
            elif kind is dict or kind is list:
                self._open.append((item, made, place, depth + 1))
            elif kind is float and not (FIXED_MIN <= item < FIXED_MAX):
                made[place] = self._number(item)
        return made, left - 2 * len(made) + 2

    def _number(self, number: float) -> Any:
        size = abs(number)
        self.has_wide_number = self.has_wide_number or size >= WIDE
        if size == 0 or FIXED_MIN <= size < FIXED_MAX:
            return number
        # Releases of orjson lay exponents out in different ways.
        return orjson.Fragment(repr(number))

    def _text(self, text: str) -> str:
        if len(text) <= _MARKER_CHARS_MAX and _is_marker(text):
            return text
        return cut_text(text, self._limit, self._tail)

    def _some_items(self, node: list[Any]) -> list[Any]:
        limit = self.rung.items
        over = len(node) - limit
        if over <= 0 or (over == 1 and type(node[-1]) is str and _MORE.fullmatch(node[-1])):
            return node.copy()
        if self._sampled:
            made = [node[index] for index in sampled_indexes(len(node), limit)]
        else:
            made = node[:limit]
        made.append(f"…(+{over} more items omitted by context budget)")
        return made

    def _with_some_keys(self, node: dict[str, Any], limit: int) -> dict[str, Any]:
        some: dict[str, Any] = {}
        for key, item in node.items():
            if len(some) == limit:
                break
            some.setdefault(cut_text(key, KEY_CHARS_MAX), item)
        some.pop(MORE_KEYS, None)
        some[MORE_KEYS] = f"…(+{len(node) - len(some)} more keys omitted by context budget)"
        return some

    def _is_kept(self, key: str, text: str) -> bool:
        return (
            self._sampled
            and self.rung.keys is None
            and len(text) <= PROTECTED_CHARS_MAX
            and len(key) <= KEY_CHARS_MAX
            and is_protected(key)
        )


@lru_cache(maxsize=4096)
def is_protected(key: str) -> bool:
    """Answer whether a key names an id, a storage key, a score or the like, by its last word."""
    word = _LAST_WORD.search(key)
    return word is not None and word.group().lower() in PROTECTED_WORDS


@lru_cache(maxsize=256)
def sampled_indexes(count: int, limit: int) -> tuple[int, ...]:
    """Return `limit` of so many indexes, rising: first ones, last ones, evenly spaced ones.

    A larger limit adds to a smaller one's.
    """
    chosen: set[int] = set()
    for index in _by_rank(count):
        if len(chosen) == limit:
            break
        chosen.add(index)
    return tuple(sorted(chosen))


def _by_rank(count: int) -> Iterator[int]:
    """Yield indexes, the most wanted first: a third from the front, a sixth from the end."""
    front, back, spaced = 0, count - 1, 1
    while True:
        for turn in "fbsfss":
            if turn == "f":
                yield front
                front += 1
            elif turn == "b":
                yield back
                back -= 1
            else:
                yield _spaced(spaced, count)
                spaced += 1


def _spaced(rank: int, count: int) -> int:
    """Return the index at a half, a quarter, three quarters, an eighth, … of a list.

    The bits of the rank, mirrored at the point (van der Corput): every prefix is evenly spread.
    """
    bits = rank.bit_length()
    mirrored = int(f"{rank:b}"[::-1], 2)
    return mirrored * count >> bits


def _elided(node: Any) -> str:
    what = "object with {} keys" if type(node) is dict else "list with {} items"
    return f"…({what.format(len(node))} omitted by context budget)"


def _is_marker(text: str) -> bool:
    return text.startswith("…(") and bool(_MORE.fullmatch(text) or _ELIDED.fullmatch(text))
