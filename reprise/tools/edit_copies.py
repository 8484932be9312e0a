r"""What a text that is not in a file was copied from, seen from the text itself; for hints alone.

A model copies line numbers, signs of a diff or the fence of a block into a text, escapes it once
too often or not often enough, adds empty lines. Each row of `_REWRITES` takes one such thing back:
where what is left is in the file, that is what is wrong.

To extend, add a row, and a case to `tests/unit/tools/test_edit_copies.py`.

Source: specification E2, E11.
"""

import html
import re
from collections.abc import Callable, Iterator

from reprise.tools.edit_nearest import Difference, Near, coarse_matches, exact_matches

LINES_MAX = 20
"""In longer texts no single line end is tried as an escape."""


_NUMBER = re.compile(r"^[ \t]*\d+(?:\| ?|\t|→|: ?)", re.MULTILINE)
_SIGN = re.compile(r"^[-+ ]", re.MULTILINE)
_FENCE = re.compile(r"\A\s*(?:```|~~~)[^\n]*\n(.*?)\n?(?:```|~~~)\s*\Z", re.DOTALL)
_CODE_POINT = re.compile(r"\\u([0-9a-fA-F]{4})")
_SHORT = {"\\n": "\n", "\\r": "\r", "\\t": "\t", '\\"': '"', "\\'": "'", "\\\\": "\\"}
_ESCAPE = re.compile(r"""\\[nrt"'\\]""")


def copied(view: str, old: str) -> tuple[Difference | None, list[Near]]:
    """Return what the text itself shows to be wrong with it, and the places without that.

    Line numbers are told also where the text without them is not in the file.
    """
    bare = next(_without_numbers(old), None)
    if bare is not None:
        return Difference.LINE_NUMBERS, exact_matches(view, bare) or coarse_matches(view, bare)
    bare = old.rstrip("\n")
    if bare != old and bare.strip() and view.endswith(bare):
        line = view.count("\n", 0, len(view) - len(bare)) + 1
        return Difference.FINAL_NEWLINE, [Near(line, bare)]
    for difference, rewrites in _REWRITES:
        for rewritten in rewrites(old):
            found = exact_matches(view, rewritten) if rewritten != old else []
            if found:
                return difference, found
    return None, []


def _without_numbers(old: str) -> Iterator[str]:
    body = old.removesuffix("\n").split("\n")
    # A copy that begins within a line has no number in its first.
    if sum(_NUMBER.match(row) is not None for row in body) >= max(len(body) - 1, 1):
        yield _NUMBER.sub("", old)


def _unescaped(old: str) -> Iterator[str]:
    if "\\" in old:
        yield (
            old.replace("\\r\\n", "\n")
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace('\\"', '"')
        )
        yield _ESCAPE.sub(lambda match: _SHORT[match[0]], old).replace("\r\n", "\n")
        yield old.replace("\\\\", "\\")
        yield _CODE_POINT.sub(_character, old)


def _character(match: re.Match[str]) -> str:
    # Half of a pair is no character that a file holds.
    found = chr(int(match[1], 16))
    return match[0] if "\ud800" <= found <= "\udfff" else found


def _escaped(old: str) -> Iterator[str]:
    yield old.replace("\t", "\\t")
    yield old.replace("\\", "\\\\")
    yield old.replace('"', '\\"')
    yield "".join(each if each < "\x80" else f"\\u{ord(each):04x}" for each in old)
    rows = old.split("\n")
    if len(rows) <= LINES_MAX:
        for at in range(1, len(rows)):
            yield "\n".join(rows[:at]) + "\\n" + "\n".join(rows[at:])
        yield "\\n".join(rows)


def _of_entities(old: str) -> Iterator[str]:
    yield html.unescape(old)
    yield html.escape(old, quote=False)
    yield html.escape(old)


def _without_signs(old: str) -> Iterator[str]:
    rows = old.removesuffix("\n").split("\n")
    if all(map(_SIGN.match, rows)) and any(row[0] in "-+" for row in rows):
        yield _SIGN.sub("", old)


def _without_fence(old: str) -> Iterator[str]:
    match = _FENCE.match(old)
    if match:
        yield match[1]


def _without_blank_lines(old: str) -> Iterator[str]:
    yield old.rstrip("\n") + "\n" * old.endswith("\n")
    yield old.lstrip("\n")
    yield old.strip("\n")


def _of_other_ends(old: str) -> Iterator[str]:
    yield old.replace("\n", "\r")
    yield old.replace("\r", "\n")


_REWRITES: tuple[tuple[Difference, Callable[[str], Iterator[str]]], ...] = (
    (Difference.ESCAPES, _unescaped),
    (Difference.UNESCAPED, _escaped),
    (Difference.ENTITIES, _of_entities),
    (Difference.DIFF_SIGNS, _without_signs),
    (Difference.FENCE, _without_fence),
    (Difference.BLANK_LINES, _without_blank_lines),
    (Difference.CARRIAGE_RETURN, _of_other_ends),
)
"""What is wrong → the texts that it may have been, the likeliest first."""
