r"""Texts of a file that are near to one that is not in it, and how they differ; for hints alone.

A coarse form of file and text, without white space, look-alikes and case, tells in one pass whether
anything like the text is there; only where it is are the two compared closely. Else words of the
text vote for lines, and a few windows are compared. All is bounded: words, hits, windows, sizes.

To add a class, add it to `Difference` and to `_LADDER`, or to `edit_copies` where the text alone
shows it; `tests/unit/tools/test_text_edit_hints.py` has one case for each.

Source: specification E2, E11.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

CANDIDATES_MAX = 3
"""Places that are compared closely."""

WORDS_MAX = 24
"""Words of the text that are looked for, the longest first."""

HITS_MAX = 40
"""Places of one word that are looked at."""

WORDS_FROM_CHARS_MAX = 20_000
"""A longer text's words are those of its beginning."""

TOKENS_MAX = 200
"""Words and signs of two texts that are compared."""

SIMILAR_MIN = 0.5
"""A nearest text that is less alike is not shown."""

_BLANKS = " \t\r\f\v"
_FOLDS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f\u200e\u200f", ""),
    **dict.fromkeys("\u1680\u180e\u2028\u2029\u0085", " "),
    "\u2044": "/",
    "\u00d7": "x",
}
"""Characters that are taken for others, or not seen; what NFKD maps is not listed."""

_WORD = re.compile(r"\w{3,}")
_ANY_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")


class Difference(StrEnum):
    """How a text differs from the nearest one in the file: a closed set."""

    LINE_NUMBERS = "line_numbers"
    """It has the line numbers of a ranged read in it."""
    ESCAPES = "escapes"
    """It has `\\n`, `\\t` or `\\"` as two characters where the file has the one."""
    UNESCAPED = "unescaped"
    """It has a line end, tab, quote or letter where the file has its escape."""
    ENTITIES = "entities"
    """It has `&lt;` where the file has `<`, or the other way round."""
    DIFF_SIGNS = "diff_signs"
    """Its lines begin with the signs of a diff."""
    FENCE = "fence"
    """It stands between the fences of a block."""
    BLANK_LINES = "blank_lines"
    """It begins or ends with empty lines that are not there in the file."""
    CARRIAGE_RETURN = "carriage_return"
    """Lines end with a carriage return alone, in it or in the file."""
    FINAL_NEWLINE = "final_newline"
    """It ends with a line end, the file does not."""
    LINE_END_SPACE = "line_end_space"
    """White space at line ends."""
    INDENTATION = "indentation"
    """White space at the beginning of lines."""
    WHITE_SPACE = "white_space"
    """White space within lines."""
    LOOK_ALIKE = "look_alike"
    """Characters that look alike or are not seen: quotes, dashes, no-break spaces, accents."""
    CASE = "case"
    """Upper and lower case."""
    SIMILAR = "similar"
    """Its words, in part."""


@dataclass(frozen=True)
class Near:
    """A place of the file that is like the text."""

    line: int
    """Its first line, from 1."""
    text: str
    """As the file has it."""
    alike: float = 1.0
    """How alike it is, from 0 to 1."""


def exact_matches(view: str, text: str) -> list[Near]:
    """Return the first places of a text that is not white space alone."""
    if not text.strip():
        return []
    starts: list[int] = []
    at = view.find(text)
    while at >= 0 and len(starts) < CANDIDATES_MAX:
        starts.append(at)
        at = view.find(text, at + len(text))
    return [Near(line, text) for line in lines_of(view, starts)]


def _bare(text: str) -> str:
    """Return a text without blanks, look-alikes told apart only where they are not."""
    if not text.isascii():
        # Each character by itself: a whole text's normalization sorts runs of accents, and takes
        # minutes for a long one.
        found = (each for each in set(text) if not each.isascii())
        text = text.translate({ord(each): _plain(each) for each in found})
    for blank in _BLANKS:
        text = text.replace(blank, "")
    return text.replace("`", "'").replace('"', "'")


def _plain(character: str) -> str:
    plain = _FOLDS.get(character)
    return unicodedata.normalize("NFKD", character) if plain is None else plain


def _coarse(text: str) -> str:
    """Return a text's coarse form: each character's, one after the other; line ends are kept."""
    return _bare(text).casefold()


def coarse_matches(view: str, old: str) -> list[Near]:
    """Return where the file is the same but for white space in lines, look-alikes and case."""
    wanted = _coarse(old)
    if not wanted.strip():
        return []
    coarse = _coarse(view)
    starts: list[int] = []
    at = coarse.find(wanted)
    while at >= 0 and len(starts) < CANDIDATES_MAX:
        starts.append(at)
        at = coarse.find(wanted, at + len(wanted))
    if not starts:
        return []
    rows = view.split("\n")
    found = []
    for at, line in zip(starts, lines_of(coarse, starts), strict=True):
        region = "\n".join(rows[line - 1 : line + wanted.count("\n")])
        offset = at - (coarse.rfind("\n", 0, at) + 1)
        found.append(Near(line, _cut_out(region, offset, offset + len(wanted), old)))
    return found


def _cut_out(region: str, begin: int, end: int, old: str) -> str:
    """Return the part of a text whose coarse form is from `begin` to `end` of the text's."""

    def first(wanted: int, *, beyond: bool) -> int:
        low, high, low_size = 0, len(region), 0
        while low < high:
            middle = (low + high) // 2
            size = low_size + len(_coarse(region[low : middle + 1]))
            if size > wanted - (not beyond):
                high = middle
            else:
                low, low_size = middle + 1, size
        return low

    start, stop = first(begin, beyond=True), first(end, beyond=False) + 1
    if old[:1].isspace():
        while start > 0 and region[start - 1] != "\n" and not _coarse(region[start - 1]):
            start -= 1
    if old[-1:].isspace():
        while stop < len(region) and region[stop] != "\n" and not _coarse(region[stop]):
            stop += 1
    return region[start:stop]


def _by_line(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(map(change, text.split("\n")))


_LADDER: tuple[tuple[Difference, Callable[[str], str]], ...] = (
    (Difference.LINE_END_SPACE, _by_line(lambda row: row.rstrip(_BLANKS))),
    (Difference.INDENTATION, _by_line(lambda row: row.strip(_BLANKS))),
    (Difference.WHITE_SPACE, lambda text: text.translate(dict.fromkeys(map(ord, _BLANKS)))),
    (Difference.LOOK_ALIKE, _bare),
)
"""Class → what makes texts equal that differ so, or as the classes before; case is what is left."""


def difference_of(real: str, old: str) -> Difference:
    """Return how two texts differ whose coarse forms are the same."""
    for difference, same in _LADDER:
        if same(real) == same(old):
            return difference
    return Difference.CASE


def similar(view: str, old: str) -> list[Near]:
    """Return the few places that share most words with the text, the most alike first."""
    rows = view.split("\n")
    height = old.count("\n") + (not old.endswith("\n"))
    tokens = _TOKEN.findall(old[:WORDS_FROM_CHARS_MAX])[:TOKENS_MAX]
    found = []
    for line, column in _voted(view, old):
        if height == 1 and len(rows[line]) > 2 * len(old) + 200:
            text = rows[line][column : column + len(old)]
        else:
            text = "\n".join(rows[line : line + height])
        part = _TOKEN.findall(text[:WORDS_FROM_CHARS_MAX])[:TOKENS_MAX]
        alike = SequenceMatcher(None, tokens, part, autojunk=False).ratio()
        if alike >= SIMILAR_MIN:
            # 100 % would be said of texts that differ in blank lines alone.
            found.append(Near(line + 1, text, min(alike, 0.99)))
    return sorted(found, key=lambda near: -near.alike)


def _voted(view: str, old: str) -> list[tuple[int, int]]:
    """Return where the text would begin, by the words of it that the file has: line, column from 0.

    Rare words weigh more; of a word that is at many places only the first are looked at.
    """
    hits: list[tuple[int, int, int, float]] = []
    seen: set[str] = set()
    words = list(_WORD.finditer(old, 0, WORDS_FROM_CHARS_MAX))
    words = words or list(_ANY_WORD.finditer(old, 0, WORDS_FROM_CHARS_MAX))
    matches = sorted(words, key=lambda each: -len(each[0]))
    for match in matches:
        if match[0] in seen:
            continue
        if len(seen) == WORDS_MAX:
            break
        seen.add(match[0])
        starts: list[int] = []
        at = view.find(match[0])
        while at >= 0 and len(starts) < HITS_MAX:
            starts.append(at)
            at = view.find(match[0], at + 1)
        row = old.count("\n", 0, match.start())
        column = match.start() - (old.rfind("\n", 0, match.start()) + 1)
        hits += [(start, row, column, len(match[0]) / len(starts)) for start in starts]
    hits.sort()
    votes: Counter[int] = Counter()
    columns: dict[int, int] = {}
    for line, (start, row, column, weight) in zip(
        lines_of(view, [hit[0] for hit in hits]), hits, strict=True
    ):
        first = max(line - 1 - row, 0)
        votes[first] += weight  # type: ignore[assignment]  # Counter's values are typed int.
        columns.setdefault(first, max(start - view.rfind("\n", 0, start) - 1 - column, 0))
    return [(line, columns[line]) for line, _ in votes.most_common(CANDIDATES_MAX)]


def lines_of(view: str, starts: Sequence[int]) -> tuple[int, ...]:
    """Return the lines, from 1, of places that rise; one pass."""
    found = []
    at, line = 0, 1
    for start in starts:
        line += view.count("\n", at, start)
        at = start
        found.append(line)
    return tuple(found)
