"""Cutting texts: never inside what a reader sees as one character, and always saying how much.

A cut text has a marker `…(+N chars)`, N being the characters that are left out. A cut is only made
where it makes the text shorter, and a text that has been cut is not cut again at the same length.

Source: specification B3, B9.
"""

import re
from unicodedata import ucd_3_2_0

BACK_CHARS_MAX = 64
"""How far a cut moves to keep a character whole; beyond that it is cut."""

# One table for all: the newest one grows with each Python release, and a cut with it.
_category = ucd_3_2_0.category
FLAGS_MAX = 4_096
"""So many halves of flags in a row are counted, to tell where one begins."""

_ZERO_WIDTH_JOINER = "\u200d"
_MARKER = re.compile(r"…\(\+\d+ chars\)")
_MARKER_CHARS_MAX = 24
_MIDDLE_MARKER = re.compile(r"\n…\(\+\d+ chars\)\n")


def cut_text(text: str, chars_max: int, tail_chars: int = 0) -> str:
    """Return a text, cut to its first characters where it is longer.

    Args:
        text: The text.
        chars_max: Characters that stay, the marker apart.
        tail_chars: How many of these are taken from the end.
    """
    if len(text) <= chars_max or (
        len(text) <= chars_max + _MARKER_CHARS_MAX and _is_cut(text, chars_max)
    ):
        return text
    head = whole_before(text, chars_max - tail_chars)
    tail = whole_after(text, len(text) - tail_chars)
    marker = f"…(+{tail - head} chars)"
    return text[:head] + marker + text[tail:] if len(marker) < tail - head else text


def cut_middle(text: str, chars_max: int) -> str:
    """Return a text, its middle left out where it is longer; two thirds of the rest are its head.

    The result is no longer than `chars_max`, which is at least 40.
    """
    if len(text) <= chars_max:
        return text
    # The longest marker that this text can have.
    room = chars_max - len(f"\n…(+{len(text)} chars)\n")
    tail_chars = room // 3
    head = whole_before(text, room - tail_chars)
    tail = whole_after(text, len(text) - tail_chars)
    return f"{text[:head]}\n…(+{tail - head} chars)\n{text[tail:]}"


def has_middle_cut(text: str) -> bool:
    """Answer whether a text was cut in the middle."""
    return _MIDDLE_MARKER.search(text) is not None


def whole_before(text: str, index: int) -> int:
    """Return the largest cut at or before an index that splits no character.

    Where there is none near, the index itself.
    """
    for place in range(index, max(index - BACK_CHARS_MAX, 0), -1):
        if not _splits(text, place):
            return place
    return index


def whole_after(text: str, index: int) -> int:
    """Return the smallest cut at or after an index that splits no character, as `whole_before`."""
    for place in range(index, min(index + BACK_CHARS_MAX, len(text) + 1)):
        if not _splits(text, place):
            return place
    return index


def _is_cut(text: str, chars_max: int) -> bool:
    return any(len(text) - len(found) <= chars_max for found in _MARKER.findall(text))


def _splits(text: str, place: int) -> bool:
    """Answer whether a cut here is inside of what a reader sees as one character."""
    if not 0 < place < len(text):
        return False
    after, before = text[place], text[place - 1]
    if after < "\u0300":
        # Quick: no mark, joiner, selector or flag is that early; a joiner before it binds nothing.
        return before == "\r" and after == "\n"
    if before == _ZERO_WIDTH_JOINER or after == _ZERO_WIDTH_JOINER:
        return True
    if _is_modifier(after):
        return True
    return _is_flag(after) and _flags_before(text, place) % 2 == 1


def _is_modifier(char: str) -> bool:
    """Answer whether a character changes the one before it: a selector, a mark, a skin tone."""
    return (
        "\ufe00" <= char <= "\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
        or _category(char) in ("Mn", "Mc", "Me")
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_before(text: str, place: int) -> int:
    """Return how many halves of flags stand before a place in one row, up to a bound."""
    count = 0
    while count < FLAGS_MAX and place > count and _is_flag(text[place - count - 1]):
        count += 1
    return count
