r"""What a refusal tells a model of a text that is not in a file, or there too often.

Never what to apply: where the nearest text is, how it reads there, and what to do. What is nearest
is found in `edit_nearest`, what a text was copied from in `edit_copies`.

Source: specification E2, E11.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from reprise.tools.edit_copies import copied
from reprise.tools.edit_diff import cut_at
from reprise.tools.edit_nearest import (
    CANDIDATES_MAX,
    Difference,
    Near,
    coarse_matches,
    difference_of,
    lines_of,
    similar,
)
from reprise.tools.line_endings import BOM, shared_start

TEXT_CHARS_MAX = (1_500, 4_000, 4_000)
"""Length of the nearest text in a hint, by level."""

LINES_SHOWN_MAX = 10
BLOCK_LINES_MAX = 40
"""Lines of a whole block on either side."""

ALREADY_CHARS_MIN = 8
"""A new text with fewer characters than so, white space aside, may be in a file by chance."""

READ_AGAIN = "read the file again and copy the exact text"
"""What to do where no text can be shown."""

_NAMES = {
    Difference.LINE_NUMBERS: "oldText has line-number prefixes (`12| `), which are not in the file",
    Difference.ESCAPES: 'oldText has a literal backslash-n (or \\t, \\", \\\\, \\u00e9) where the '
    "file has a line break, tab, quote or letter: it was escaped once too often",
    Difference.UNESCAPED: "oldText has a line break, tab, quote or letter where the file has its "
    'escape (\\n, \\t, \\", \\\\, \\u00e9): it was escaped once too little',
    Difference.ENTITIES: "one of the two has & < > as entities (&lt;), the other as characters",
    Difference.DIFF_SIGNS: "its lines begin with the signs of a diff, which are not in the file",
    Difference.FENCE: "it stands between the fences of a code block, which are not in the file",
    Difference.BLANK_LINES: "it begins or ends with line breaks that are not there in the file",
    Difference.CARRIAGE_RETURN: "a carriage return (\\r) alone ends lines in one of the two",
    Difference.FINAL_NEWLINE: "oldText ends with a line break, and the file ends without one",
    Difference.LINE_END_SPACE: "white space at line ends differs",
    Difference.INDENTATION: "the indentation differs (tabs, blanks or their number)",
    Difference.WHITE_SPACE: "white space within a line differs",
    Difference.LOOK_ALIKE: "characters differ that look alike or are not seen",
    Difference.CASE: "upper and lower case differ",
}

_CONTROLS = {
    "\t": "TAB",
    "\r": "CARRIAGE RETURN",
    "\v": "VERTICAL TAB",
    "\f": "FORM FEED",
    "\b": "BACKSPACE",
    "\x1b": "ESCAPE",
    "\x85": "NEXT LINE",
}
"""Control characters, to which Unicode gives no names."""

_TOLD_WITHOUT_CHARACTERS = frozenset(
    {
        Difference.LINE_NUMBERS,
        Difference.ESCAPES,
        Difference.ENTITIES,
        Difference.DIFF_SIGNS,
        Difference.FENCE,
        Difference.BLANK_LINES,
        Difference.FINAL_NEWLINE,
    }
)
"""Their names say all; the first character that differs would lead astray."""


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


def ambiguity_hint(view: str, starts: Sequence[int], counted_max: int, level: int) -> Hint:
    """Return what to say of a text that is at several places; they rise."""
    lines = tuple(dict.fromkeys(lines_of(view, starts[:LINES_SHOWN_MAX])))
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
    if view.removeprefix(BOM) == "":
        return Hint("the file is empty; WriteSandboxFile gives it a text")
    difference, nears = copied(view, old)
    if difference is None:
        nears = coarse_matches(view, old)
        if nears:
            difference = difference_of(nears[0].text, old)
    if (nears and nears[0].text == new) or (not nears and _has_already(view, new)):
        return _already(view, new)
    if difference is None:
        nears = similar(view, old)
        difference = Difference.SIMILAR if nears else None
    if not nears:
        error = (
            f"{_NAMES[difference]}, and without that it is not there either"
            if difference is not None
            else "oldText is not in the file, nor anything like it"
        )
        return Hint(_ranged(f"{error}; {READ_AGAIN}", level, None), difference)
    return _told(view, old, difference or Difference.SIMILAR, nears, level)


def _told(view: str, old: str, difference: Difference, nears: Sequence[Near], level: int) -> Hint:
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
        f"to have been applied. If so, go on with the next; else {READ_AGAIN}",
        line=line,
        lines=(line,),
        already=True,
    )


def _has_already(view: str, new: str) -> bool:
    return len("".join(new.split())) >= ALREADY_CHARS_MIN and new in view


def _block(rows: Sequence[str], first: int, last: int, *, around: int) -> tuple[int, str]:
    """Return lines with those around them up to empty ones: the first's number, and the text."""
    begin, end = first - 1, min(last, len(rows))
    while begin > max(0, first - 1 - around) and rows[begin - 1].strip():
        begin -= 1
    while end < min(len(rows), last + around) and rows[end].strip():
        end += 1
    return begin + 1, "\n".join(rows[begin:end])


def _first_difference(near: Near, old: str, difference: Difference) -> str:
    """Return where the two texts part, with the characters by name where they are hard to see."""
    if difference in _TOLD_WITHOUT_CHARACTERS:
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
    name = _CONTROLS.get(character) or unicodedata.name(character, "without a name")
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
