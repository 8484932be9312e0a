r"""What an edit changed, in a few lines for a model: a unified diff, capped.

Lines are parted at `\n`. The `\r` of a line end is left out unless the change is of line ends;
control characters are shown by their escapes. Time is bounded: lines are compared window by window,
and no further than what is shown.

Source: specification E3, E11.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from reprise.tools.line_endings import BOM, shared_start

LINE_CHARS_MAX = 200
"""A longer line is shown in part: where it was changed."""

CONTEXT_LINES = 2
"""Unchanged lines before and after a change."""

WINDOW_LINES = 200
"""Lines that are compared at once."""

_NO_NEWLINE = "\\ No newline at end of file"
_JOINERS = ("\u200d", "\ufe0e", "\ufe0f")


@dataclass(frozen=True)
class _Change:
    """Lines taken out and put in: half-open ranges, from 0."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def short_diff(before: bytes, after: bytes, path: str, *, chars_max: int = 4000) -> str:
    """Return the difference of two states of a file, as a unified diff.

    Args:
        before: The bytes before; empty for a new file.
        after: The bytes after.
        path: What the head calls the file.
        chars_max: Most characters, the head and the note that it was cut included.

    Returns:
        The diff; what does not fit is left out by whole lines, and the last line says so. Empty
        when nothing differs.
    """
    if before == after:
        return ""
    try:
        old, new = before.decode(), after.decode()
    except UnicodeDecodeError:
        return f"{path} is not text: {len(before)} bytes before, {len(after)} after"
    if old.startswith(BOM) and new.startswith(BOM):
        old, new = old[1:], new[1:]
    old_rows, new_rows = _rows(old), _rows(new)
    lines = _Lines(chars_max)
    if not lines.add(f"--- {path}") or not lines.add(f"+++ {path}"):
        return lines.text()
    for hunk in _hunks(_changes(old_rows, new_rows)):
        for line in _shown(hunk, old_rows, new_rows):
            if not lines.add(line):
                return lines.text()
    return lines.text()


def cut_at(text: str, chars_max: int) -> int:
    """Return where to cut a text to at most so many characters without parting what is seen as one.

    An accent stays with its letter, and an emoji whole, as far as 20 characters tell.
    """
    at = min(chars_max, len(text))
    for _ in range(20):
        if not 0 < at < len(text) or not _is_joined(text[at - 1], text[at]):
            return at
        at -= 1
    return min(chars_max, len(text))


def _is_joined(left: str, right: str) -> bool:
    if right in _JOINERS or left == "\u200d" or unicodedata.category(right) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001f3fb" <= right <= "\U0001f3ff":
        return True
    return all("\U0001f1e6" <= each <= "\U0001f1ff" for each in (left, right))


class _Lines:
    """Lines up to a number of characters."""

    def __init__(self, chars_max: int) -> None:
        self._note = "… the diff is cut here; read the file to see the rest"
        self._left = chars_max - len(self._note) - 1
        self._lines: list[str] = []

    def add(self, line: str) -> bool:
        """Add a line; False when it does not fit, and the note stands there instead."""
        self._left -= len(line) + 1
        self._lines.append(line if self._left >= 0 else self._note)
        return self._left >= 0

    def text(self) -> str:
        return "\n".join(self._lines)


def _rows(text: str) -> list[str]:
    """Return the lines with their ends, which tell a last line with one from one without."""
    rows = [f"{row}\n" for row in text.split("\n")]
    rows[-1] = rows[-1][:-1]
    return rows if rows[-1] else rows[:-1]


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    """Yield what differs, in order."""
    tail = 0
    while tail < min(len(old), len(new)) and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    at, to = 0, 0
    while at < old_end or to < new_end:
        if at < old_end and to < new_end and old[at] == new[to]:
            at, to = at + 1, to + 1
            continue
        one = old[at : min(at + WINDOW_LINES, old_end)]
        other = new[to : min(to + WINDOW_LINES, new_end)]
        blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
        block = next((each for each in blocks if each.size), blocks[-1])
        yield _Change(at, at + block.a, to, to + block.b)
        at, to = at + block.a + block.size, to + block.b + block.size


def _hunks(changes: Iterator[_Change]) -> Iterator[list[_Change]]:
    """Yield changes that are so near that their surroundings touch together."""
    hunk: list[_Change] = []
    for change in changes:
        if hunk and change.old_from - hunk[-1].old_to > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        if hunk and change.old_from == hunk[-1].old_to and change.new_from == hunk[-1].new_to:
            last = hunk.pop()
            change = _Change(last.old_from, change.old_to, last.new_from, change.new_to)
        hunk.append(change)
    if hunk:
        yield hunk


def _shown(hunk: Sequence[_Change], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield a hunk's lines."""
    first, last = hunk[0], hunk[-1]
    lead = min(CONTEXT_LINES, first.old_from, first.new_from)
    trail = min(CONTEXT_LINES, len(old) - last.old_to, len(new) - last.new_to)
    yield (
        f"@@ -{_range(first.old_from - lead, last.old_to + trail)} "
        f"+{_range(first.new_from - lead, last.new_to + trail)} @@"
    )
    ends = any(_is_of_ends(old, new, change) for change in hunk)
    at = first.old_from - lead
    for change in hunk:
        for row in old[at : change.old_from]:
            yield from _row(" ", row, 0, ends=ends)
        gone, come = old[change.old_from : change.old_to], new[change.new_from : change.new_to]
        paired = len(gone) == len(come)
        for sign, rows, others in (("-", gone, come), ("+", come, gone)):
            for index, row in enumerate(rows):
                at_least = shared_start(row, others[index]) if paired else 0
                yield from _row(sign, row, at_least, ends=ends)
        at = change.old_to
    for row in old[at : at + trail]:
        yield from _row(" ", row, 0, ends=ends)


def _is_of_ends(old: Sequence[str], new: Sequence[str], change: _Change) -> bool:
    """Tell whether lines that go and lines that come end differently."""
    rows = [*old[change.old_from : change.old_to], *new[change.new_from : change.new_to]]
    kinds = {row.endswith("\r\n") for row in rows if row.endswith("\n")}
    return len(kinds) > 1


def _range(begin: int, end: int) -> str:
    # An empty range names the line before it, as diff does.
    return f"{begin + 1 if end > begin else begin},{end - begin}"


def _row(sign: str, row: str, changed_at: int, *, ends: bool) -> Iterator[str]:
    body = row.removesuffix("\n")
    is_crlf = len(body) < len(row) and body.endswith("\r")
    body = body[:-1] if is_crlf else body
    yield sign + _escaped(_part(body, changed_at)) + ("\\r" if ends and is_crlf else "")
    if not row.endswith("\n"):
        yield _NO_NEWLINE


def _part(body: str, changed_at: int) -> str:
    """Return what is shown of a line: all, or the part that begins shortly before the change."""
    if len(body) <= LINE_CHARS_MAX:
        return body
    start = cut_at(body, max(0, min(changed_at - 40, len(body) - LINE_CHARS_MAX)))
    shown = body[start:]
    shown = shown[: cut_at(shown, LINE_CHARS_MAX)]
    before = f"…({start} characters) " if start else ""
    after = len(body) - start - len(shown)
    return before + shown + (f" …({after} characters)" if after else "")


def _escaped(text: str) -> str:
    """Return a text with what would break or hide a line shown as its escape."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each == "\t" or unicodedata.category(each) not in ("Cc", "Zl", "Zp")
        else each.encode("unicode_escape").decode()
        for each in text
    )
