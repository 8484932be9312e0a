"""Setting of texts in a frame: where lines break and how large the letters are.

Pure: the width of a text comes in as a function, so that the same rules work with any font.

Source: specification V12, V14.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Measure = Callable[[str, int], float]
"""Width in pixels of a text set at a size."""

ELLIPSIS = "…"
TEXT_CHARS_MAX = 400
"""More of a text is not even tried."""


@dataclass(frozen=True)
class SetText:
    """A text as it is set."""

    lines: tuple[str, ...]
    """Its lines."""
    size: int
    """Size of the letters in pixels."""


@dataclass(frozen=True)
class TextStyle:
    """Sizes and margins of a kind of text, in pixels of a frame."""

    size: int
    """Wanted size of the letters."""
    size_min: int
    """Smallest size that a long text may be set at."""
    width_max: int
    """Longest line."""
    lines_max: int
    """Most lines."""


def caption_style(width: int, height: int) -> TextStyle:
    """Return how captions are set: a line of 42 letters fits into a frame of any shape."""
    size = max(8, min(round(height * 0.052), round(width * 0.9 / 25)))
    return TextStyle(size, max(6, size // 2), round(width * 0.9), 2)


def title_style(width: int, height: int) -> TextStyle:
    """Return how a title is set."""
    size = max(10, min(round(height * 0.12), round(width * 0.085)))
    return TextStyle(size, max(8, size // 3), round(width * 0.84), 3)


def caption_bottom(width: int, height: int) -> int:
    """Return the lowest pixel row of captions: upright frames keep more free, for players' bars."""
    return round(height * (0.93 if width >= height else 0.82))


def set_text(text: str, measure: Measure, style: TextStyle) -> SetText:
    """Set a text: at the wanted size if it fits, else smaller; a text that never fits is cut.

    Line breaks of the text are kept when its lines fit as they are; else it is broken anew.
    """
    given = tuple(" ".join(line.split()) for line in text.splitlines() if line.strip())
    if (
        0 < len(given) <= style.lines_max
        and max(measure(line, style.size) for line in given) <= style.width_max
        and len(given) > 1
    ):
        return SetText(given, style.size)
    words = " ".join(given)[:TEXT_CHARS_MAX].split(" ")
    lines: tuple[str, ...] = ()
    for size in _sizes(style):
        at_size = functools.partial(_at_size, measure, size)
        lines = _greedy(words, at_size, style.width_max)
        if len(lines) <= style.lines_max:
            return SetText(_balanced(words, at_size, lines, style.width_max), size)
    kept = list(lines[: style.lines_max])
    while kept[-1] and measure(kept[-1] + ELLIPSIS, style.size_min) > style.width_max:
        kept[-1] = kept[-1][:-1]
    kept[-1] = kept[-1].rstrip() + ELLIPSIS
    return SetText(tuple(kept), style.size_min)


def _at_size(measure: Measure, size: int, text: str) -> float:
    return measure(text, size)


def _sizes(style: TextStyle) -> list[int]:
    """Return the sizes that are tried, in steps of a twentieth; the smallest comes last."""
    step = max(1, style.size // 20)
    return [*range(style.size, style.size_min, -step), style.size_min]


def _balanced(
    words: Sequence[str],
    measure: Callable[[str], float],
    lines: tuple[str, ...],
    width_max: float,
) -> tuple[str, ...]:
    """Break words anew so that the longest of their lines is as short as can be."""
    low, high = width_max / 4, width_max
    for _ in range(12):
        middle = (low + high) / 2
        tried = _greedy(words, measure, middle)
        if len(tried) == len(lines) and max(map(measure, tried), default=0) <= middle:
            lines, high = tried, middle
        else:
            low = middle
    return lines


def _greedy(
    words: Sequence[str], measure: Callable[[str], float], width_max: float
) -> tuple[str, ...]:
    lines: list[str] = []
    line = ""
    for piece in (piece for word in words for piece in _pieces(word, measure, width_max)):
        joined = f"{line} {piece}" if line else piece
        if line and measure(joined) > width_max:
            lines.append(line)
            line = piece
        else:
            line = joined
    return (*lines, line) if line else tuple(lines)


def _pieces(word: str, measure: Callable[[str], float], width_max: float) -> list[str]:
    """Break a word that is longer than a line, such as a web address."""
    pieces = []
    while len(word) > 1 and measure(word) > width_max:
        length = len(word) - 1
        while length > 1 and measure(word[:length]) > width_max:
            length -= 1
        pieces.append(word[:length])
        word = word[length:]
    return [*pieces, word]
