r"""Why a text is not in a file: where the nearest one is, and how it differs. Never what to apply.

A coarse form of file and text, without white space, look-alikes and case, tells in one pass whether
anything like the text is there; only where it is are the two compared closely. Else words of the
text vote for lines, and a few windows are compared. All is bounded: words, hits, windows, sizes.

To add a class, add it to `Difference` and to `_LADDER`, or to `_copied` where the text alone shows
it; `tests/unit/tools/test_text_edit_hints.py` has one case for each.

Source: specification E2, E11.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from reprise.tools.edit_diff import cut_at
from reprise.tools.line_endings import shared_start

TEXT_CHARS_MAX = (1_500, 4_000, 4_000)
"""Length of the nearest text in a hint, by level."""

LINES_SHOWN_MAX = 10
BLOCK_LINES_MAX = 40
"""Lines of a whole block on either side."""

CANDIDATES_MAX = 3
WORDS_MAX = 24
HITS_MAX = 40
"""Places of one word that are looked at."""
WORDS_FROM_CHARS_MAX = 20_000
TOKENS_MAX = 200
SIMILAR_MIN = 0.5
"""A nearest text that is less alike is not shown."""

ALREADY_CHARS_MIN = 8
"""A new text with fewer characters than so, white space aside, may be in a file by chance."""

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

_NUMBERED = re.compile(r"^[ \t]*\d+\|(?: |$)", re.MULTILINE)
_WORD = re.compile(r"\w{3,}")
_TOKEN = re.compile(r"\w+|[^\w\s]")


class Difference(StrEnum):
    """How a text differs from the nearest one in the file: a closed set."""

    LINE_NUMBERS = "line_numbers"
    """It has the line numbers of a ranged read in it."""
    ESCAPES = "escapes"
    """It has `\\n`, `\\t` or `\\"` as two characters where the file has the one."""
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


_NAMES = {
    Difference.LINE_NUMBERS: "oldText has line-number prefixes (`12| `), which are not in the file",
    Difference.ESCAPES: 'oldText has a literal backslash-n (or \\t, \\") where the file has a line '
    "break, tab or quote: it was escaped once too often",
    Difference.FINAL_NEWLINE: "oldText ends with a line break, and the file ends without one",
    Difference.LINE_END_SPACE: "white space at line ends differs",
    Difference.INDENTATION: "the indentation differs (tabs, blanks or their number)",
    Difference.WHITE_SPACE: "white space within a line differs",
    Difference.LOOK_ALIKE: "characters differ that look alike or are not seen",
    Difference.CASE: "upper and lower case differ",
}


@dataclass(frozen=True)
class Hint:
    """What a refusal says of a text that is not there, or there too often."""

    error: str
    """For a model: what is wrong, where, what to do."""
    difference: Difference | None = None
    line: int | None = None
    """Line from 1 at which `text` begins."""
    text: str | None = None
    """The nearest text, as the file has it."""
    count: int | None = None
    lines: tuple[int, ...] = ()
    already: bool = False


@dataclass(frozen=True)
class _Near:
    """A place of the file that is like the text."""

    line: int
    text: str
    alike: float = 1.0


def ambiguity_hint(view: str, starts: Sequence[int], counted_max: int, level: int) -> Hint:
    """Return what to say of a text that is at several places; they rise."""
    lines = tuple(dict.fromkeys(_lines_of(view, starts[:LINES_SHOWN_MAX])))
    many = len(starts) > counted_max
    count = min(len(starts), counted_max)
    error = (
        f"oldText is in the file {'more than ' if many else ''}{count} times, at line "
        f"{_listed(lines, len(starts) > LINES_SHOWN_MAX)}; add lines around the one that is meant "
        "until it is the only one, or set replaceAll to change each"
    )
    if level <= 0:
        return Hint(error, line=lines[0], count=count, lines=lines)
    rows = view.split("\n")
    shown = [_block(rows, line, line, around=2) for line in lines[:CANDIDATES_MAX]]
    text, is_cut = _cut("\n⋮\n".join(each for _, each in shown), level)
    first = shown[0][0]
    error += f". `text` has the first places with the lines around them{_cut_note(is_cut)}"
    return Hint(_ranged(error, level, first), None, first, text, count, lines)


def missing_hint(view: str, old: str, new: str, level: int) -> Hint:
    """Return what to say of a text that is not in the file."""
    difference, nears = _copied(view, old)
    if difference is None:
        nears = _coarse_matches(view, old)
        if nears:
            difference = _difference(nears[0].text, old)
    if (nears and nears[0].text == new) or (not nears and _has_already(view, new)):
        return _already(view, new)
    if difference is None:
        nears = _similar(view, old)
        difference = Difference.SIMILAR if nears else None
    if not nears:
        error = (
            f"{_NAMES[difference]}, and without that it is not there either"
            if difference is not None
            else "oldText is not in the file, nor anything like it"
        )
        advice = "; read the file again and copy the exact text"
        return Hint(_ranged(error + advice, level, None), difference)
    return _told(view, old, difference or Difference.SIMILAR, nears, level)


def _told(view: str, old: str, difference: Difference, nears: Sequence[_Near], level: int) -> Hint:
    near = nears[0]
    if difference is Difference.SIMILAR:
        error = (
            f"oldText is not in the file; the nearest text, {near.alike:.0%} alike, begins at line "
            f"{near.line}"
        )
    else:
        error = f"oldText is not in the file at line {near.line} as given: {_NAMES[difference]}"
    error += _first_difference(near, old, difference)
    lines = tuple(each.line for each in nears)
    line, shown = near.line, near.text
    if level > 0:
        last = near.line + near.text.count("\n")
        line, shown = _block(view.split("\n"), near.line, last, around=BLOCK_LINES_MAX)
    text, is_cut = _cut(shown, level)
    error += (
        f". `text` has {'the block around it' if level > 0 else 'it'} as it is in the file"
        f"{_cut_note(is_cut)}; copy from there exactly"
    )
    return Hint(_ranged(error, level, line), difference, line, text, None, lines)


def _already(view: str, new: str) -> Hint:
    at = view.find(new)
    line = view.count("\n", 0, at) + 1
    return Hint(
        f"oldText is not in the file, and newText is there already, at line {line}: the edit seems "
        "to have been applied. If so, go on with the next; else read the file again and copy the "
        "exact text",
        line=line,
        lines=(line,),
        already=True,
    )


def _has_already(view: str, new: str) -> bool:
    return len("".join(new.split())) >= ALREADY_CHARS_MIN and new in view


def _copied(view: str, old: str) -> tuple[Difference | None, list[_Near]]:
    """Return what the text itself shows to be wrong with it, and the places without that."""
    rows = old.split("\n")
    body = rows[:-1] if rows[-1] == "" else rows
    numbered = sum(_NUMBERED.match(row) is not None for row in body)
    # A copy that begins within a line has no number in its first.
    if numbered and numbered >= len(body) - 1:
        bare = _NUMBERED.sub("", old)
        return Difference.LINE_NUMBERS, _exact(view, bare) or _coarse_matches(view, bare)
    if "\\" in old:
        plain = old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
        found = _exact(view, plain.replace("\\r\n", "\n"))
        if plain != old and found:
            return Difference.ESCAPES, found
    bare = old.rstrip("\n")
    if bare != old and bare.strip() and view.endswith(bare):
        line = view.count("\n", 0, len(view) - len(bare)) + 1
        return Difference.FINAL_NEWLINE, [_Near(line, bare)]
    return None, []


def _exact(view: str, text: str) -> list[_Near]:
    if not text.strip():
        return []
    starts: list[int] = []
    at = view.find(text)
    while at >= 0 and len(starts) < CANDIDATES_MAX:
        starts.append(at)
        at = view.find(text, at + len(text))
    return [_Near(line, text) for line in _lines_of(view, starts)]


def _bare(text: str) -> str:
    """Return a text without blanks, look-alikes told apart only where they are not."""
    if not text.isascii():
        for character, plain in _FOLDS.items():
            text = text.replace(character, plain)
        text = unicodedata.normalize("NFKD", text)
    for blank in _BLANKS:
        text = text.replace(blank, "")
    return text.replace("`", "'")


def _coarse(text: str) -> str:
    """Return a text's coarse form: each character's, one after the other; line ends are kept."""
    return _bare(text).casefold()


def _coarse_matches(view: str, old: str) -> list[_Near]:
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
    for at, line in zip(starts, _lines_of(coarse, starts), strict=True):
        region = "\n".join(rows[line - 1 : line + wanted.count("\n")])
        offset = at - (coarse.rfind("\n", 0, at) + 1)
        found.append(_Near(line, _cut_out(region, offset, offset + len(wanted), old)))
    return found


def _cut_out(region: str, begin: int, end: int, old: str) -> str:
    """Return the part of a text whose coarse form is from `begin` to `end` of the text's."""

    def first(wanted: int, *, beyond: bool) -> int:
        low, high = 0, len(region)
        while low < high:
            middle = (low + high) // 2
            size = len(_coarse(region[:middle]))
            low, high = (low, middle) if size > wanted - (not beyond) else (middle + 1, high)
        return low

    start, stop = first(begin, beyond=True) - 1, first(end, beyond=False)
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


def _difference(real: str, old: str) -> Difference:
    for difference, same in _LADDER:
        if same(real) == same(old):
            return difference
    return Difference.CASE


def _similar(view: str, old: str) -> list[_Near]:
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
            found.append(_Near(line + 1, text, min(alike, 0.99)))
    return sorted(found, key=lambda near: -near.alike)


def _voted(view: str, old: str) -> list[tuple[int, int]]:
    """Return where the text would begin, by the words of it that the file has: line, column from 0.

    Rare words weigh more; of a word that is at many places only the first are looked at.
    """
    hits: list[tuple[int, int, int, float]] = []
    seen: set[str] = set()
    matches = sorted(_WORD.finditer(old[:WORDS_FROM_CHARS_MAX]), key=lambda each: -len(each[0]))
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
        _lines_of(view, [hit[0] for hit in hits]), hits, strict=True
    ):
        first = max(line - 1 - row, 0)
        votes[first] += weight  # type: ignore[assignment]  # Counter's values are typed int.
        columns.setdefault(first, max(start - view.rfind("\n", 0, start) - 1 - column, 0))
    return [(line, columns[line]) for line, _ in votes.most_common(CANDIDATES_MAX)]


def _lines_of(view: str, starts: Sequence[int]) -> tuple[int, ...]:
    """Return the lines, from 1, of places that rise; one pass."""
    found = []
    at, line = 0, 1
    for start in starts:
        line += view.count("\n", at, start)
        at = start
        found.append(line)
    return tuple(found)


def _block(rows: Sequence[str], first: int, last: int, *, around: int) -> tuple[int, str]:
    """Return lines with those around them up to empty ones: the first's number, and the text."""
    begin, end = first - 1, min(last, len(rows))
    while begin > max(0, first - 1 - around) and rows[begin - 1].strip():
        begin -= 1
    while end < min(len(rows), last + around) and rows[end].strip():
        end += 1
    return begin + 1, "\n".join(rows[begin:end])


def _first_difference(near: _Near, old: str, difference: Difference) -> str:
    """Return where the two texts part, with the characters by name where they are hard to see."""
    if difference in (Difference.LINE_NUMBERS, Difference.ESCAPES, Difference.FINAL_NEWLINE):
        return ""
    at = shared_start(near.text, old)
    line = near.line + near.text.count("\n", 0, at)
    real, given = near.text[at : at + 1], old[at : at + 1]
    return (
        f" (first difference in line {line}: the file has {_named(real)}, oldText {_named(given)})"
    )


def _named(character: str) -> str:
    if character == "":
        return "nothing more"
    if character == "\n":
        return "a line end"
    if "!" <= character <= "~":
        return f"`{character}`"
    name = "TAB" if character == "\t" else unicodedata.name(character, "without a name")
    return f"U+{ord(character):04X} {name}"


def _ranged(error: str, level: int, line: int | None) -> str:
    if level < 2:
        return error
    start = max((line or 1) - 5, 1)
    return (
        f"{error}. This failed before: call ReadSandboxFileLines with startLine {start} and "
        "lineCount 60, and take oldText from what it returns, without the line numbers"
    )


def _listed(lines: Sequence[int], is_cut: bool) -> str:
    return ", ".join(map(str, lines)) + (", …" if is_cut else "")


def _cut(text: str, level: int) -> tuple[str, bool]:
    most = TEXT_CHARS_MAX[min(max(level, 0), 2)]
    return (text[: cut_at(text, most)], True) if len(text) > most else (text, False)


def _cut_note(is_cut: bool) -> str:
    return ", cut to its beginning" if is_cut else ""
