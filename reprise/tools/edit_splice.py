r"""Putting a new text in the place of an old one, in a view with its line ends.

What old and new begin and end with alike is not touched. Line ends: one that is kept stays as it
is; lines between the first and the last change are paired with the old ones of the same text; a
line end without a partner takes its neighbour's. A file without any takes `\n`.

Source: specification E4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from reprise.tools.line_endings import BOM, CRLF, is_mixed, shared_start

PAIRED_LINES_MAX = 500
"""Longer replacements have their lines paired in order; finding equal ones would take too long."""


@dataclass
class Draft:
    """A text while it is edited."""

    view: str
    """The text with `\\n` as line ends."""
    ends: bytearray
    """What each line end is (`line_endings`)."""
    made: bytearray | None = field(default=None)
    """For each character 1 when an edit made it, 2 when one removed something before it, 3 for
    both; None before the first edit."""

    def has_made(self, starts: Sequence[int], size: int) -> bool:
        """Tell whether a text of this size at one of the places is in part an edit's work."""
        if self.made is None or not any(self.made):
            return False
        made = self.made
        return any(made[at] & 1 or any(made[at + 1 : at + size]) for at in starts)


@dataclass(frozen=True)
class Change:
    """What differs between an old and a new text."""

    skip: int
    """Characters that both begin with."""
    old: str
    """What is taken out."""
    new: str
    """What is put in."""
    old_breaks: int
    """Line ends in `old`."""
    partners: tuple[int | None, ...]
    """For each line end of `new` the one of `old` whose kind it takes; None: its neighbour's."""


def planned(old: str, new: str, ends: bytearray) -> Change:
    """Return what differs between two texts, for a text with these line ends."""
    skip = shared_start(old, new)
    old, new = old[skip:], new[skip:]
    tail = shared_start(old[::-1], new[::-1])
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    breaks = new.count("\n")
    if breaks and is_mixed(ends):
        partners = _partners(old.split("\n"), new.split("\n"))
    else:
        partners = (None,) * breaks
    return Change(skip, old, new, old.count("\n"), partners)


def spliced(draft: Draft, starts: Sequence[int], change: Change) -> None:
    """Put the new text at each place; places are where the old text begins, rising."""
    view, ends = draft.view, draft.ends
    texts: list[str] = []
    marks = bytearray()
    made: list[bytes | bytearray] = []
    was = draft.made or bytearray(len(view))
    at = line = 0
    for place in starts:
        begin, end, new = _fitted(view, place + change.skip, change)
        kept = view[at:begin]
        texts += (kept, new)
        until = line + kept.count("\n")
        marks += ends[line:until]
        marks += _new_ends(view, ends, begin, until, change)
        made += (was[at:begin], b"\1" * len(new))
        at, line = end, until + change.old_breaks
        if new == "" and at < len(view):
            was[at] |= 2
    texts.append(view[at:])
    marks += ends[line:]
    made.append(was[at:])
    draft.view, draft.ends, draft.made = "".join(texts), marks, bytearray().join(made)
    _settle(draft)


def _fitted(view: str, begin: int, change: Change) -> tuple[int, int, str]:
    """Return where a change begins and ends here, and what is put in.

    A byte order mark at the beginning of the text is neither taken out nor put in. A carriage
    return before a line end would become part of it, so it is left out, as each of a line end is.
    """
    end, new = begin + len(change.old), change.new
    head = 1 if view.startswith(BOM) else 0
    begin, end = max(begin, head), max(end, head)
    if begin == head:
        new = new.lstrip(BOM)
    if view.startswith("\n", end):
        new = new.rstrip("\r")
    return begin, end, new


def _new_ends(view: str, ends: bytearray, begin: int, line: int, change: Change) -> bytearray:
    """Return what the line ends are that a change puts in; `line` of them are before it."""
    if not change.partners:
        return bytearray()
    after_line = line > 0 and view[begin - 1] == "\n"
    if line < len(ends) and not (change.old == "" and after_line):
        last = ends[line]
    else:
        last = ends[line - 1] if line else 0
    found = bytearray()
    for partner in change.partners:
        last = last if partner is None else ends[line + partner]
        found.append(last)
    return found


def _partners(old: Sequence[str], new: Sequence[str]) -> tuple[int | None, ...]:
    """Return for each line end of the new lines the old one it continues; the last has none."""
    found: list[int | None] = [None] * len(new)
    if max(len(old), len(new)) > PAIRED_LINES_MAX:
        blocks = [(0, len(old), 0, len(new))]
    else:
        blocks = [
            (block[1], block[2], block[3], block[4])
            for block in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        ]
    for old_from, old_to, new_from, new_to in blocks:
        for step in range(min(old_to - old_from, new_to - new_from)):
            if old_from + step < len(old) - 1:
                found[new_from + step] = old_from + step
    return tuple(found[:-1])


def _settle(draft: Draft) -> None:
    r"""Make `\r\n` one line end again where a change brought a lone `\r` and a `\n` together."""
    if "\r\n" not in draft.view:
        return
    made = draft.made or bytearray(len(draft.view))
    parts = draft.view.split("\n")
    kept: list[bytearray] = []
    at = size = 0
    for index, part in enumerate(parts[:-1]):
        size += len(part) + 1
        if part.endswith("\r") and not draft.ends[index]:
            parts[index], draft.ends[index] = part[:-1], CRLF
            kept.append(made[at : size - 2])
            at = size - 1
    kept.append(made[at:])
    draft.view, draft.made = "\n".join(parts), bytearray().join(kept)
