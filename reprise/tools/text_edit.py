r"""Edits of a file's bytes: exact text replaced by exact text, and no byte beside it.

An edit is looked for in a view of the file in which each line end is `\n`, character by character:
no pattern, no folding, no similarity. Of what it replaces, only the part that differs is touched;
line ends that it keeps stay as they were, and those that it brings take their neighbour's. Edits of
one call see what those before them made, in memory; when one is refused there is no result at all.
What cannot be applied is told with the line, the real text and what differs (`edit_hints`).

To extend, add to the numbered cases in `tests/unit/tools/test_text_edit.py`; the machine in
`test_text_edit_machine.py` compares with a naive model.

Source: specification E1, E2, E4, E5, E9, E11.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reprise.model.sandbox import FILE_BYTES_MAX
from reprise.tools.edit_hints import Hint, ambiguity_hint, missing_hint
from reprise.tools.edit_nearest import Difference
from reprise.tools.edit_splice import Draft, planned, spliced
from reprise.tools.line_endings import BOM, joined, parted

REPLACEMENTS_MAX = 100_000
"""Most replacements of one call: bounds its time."""

MATCHES_COUNTED_MAX = 100
"""An ambiguous edit's places are counted up to here."""


class EditFault(StrEnum):
    """Why an edit is refused: a closed set, `code` in a tool's answer."""

    BINARY = "binary"
    """The file, or what would be written, has a NUL byte."""
    NOT_UTF8 = "not_utf8"
    """The file is no UTF-8."""
    TOO_LARGE = "too_large"
    """The file, the result or the number of replacements is beyond its limit."""
    LONE_SURROGATE = "lone_surrogate"
    """A text of the edit has half of a surrogate pair, which no file can hold."""
    EMPTY_OLD = "empty_old"
    """There is nothing to look for."""
    NO_CHANGE = "no_change"
    """The edit would replace a text by itself."""
    NOT_FOUND = "not_found"
    """The file does not have the text."""
    AMBIGUOUS = "ambiguous"
    """It has the text more than once."""
    NO_NET_CHANGE = "no_net_change"
    """The edits together leave the file as it was."""


@dataclass(frozen=True)
class TextEdit:
    """One replacement, in either kind of line ends."""

    old_text: str
    """What is looked for, literally."""
    new_text: str
    """What stands there afterwards, literally."""
    replace_all: bool = False
    """True: at each place, left to right, what was put in not looked at again."""


@dataclass(frozen=True)
class Edited:
    """What edits made of a file."""

    data: bytes
    """The file's new bytes."""
    replacements: tuple[int, ...]
    """How many replacements each edit made."""
    own_output: tuple[int, ...]
    """Indexes of the edits that replaced text which an edit before them had made."""


@dataclass(frozen=True)
class EditRefusal:
    """Why edits were not applied: nothing was changed."""

    code: EditFault
    """What is wrong."""
    edit: int
    """Index of the edit; 0 where the file itself cannot be edited."""
    error: str
    """What is wrong, where, and what to do; for a model."""
    difference: Difference | None = None
    """How the nearest text of the file differs from what was looked for."""
    line: int | None = None
    """Line from 1 at which the nearest text begins."""
    text: str | None = None
    """The nearest text as the file has it, with `\\n` as line ends."""
    count: int | None = None
    """At how many places the text is, counted to `MATCHES_COUNTED_MAX`."""
    lines: tuple[int, ...] = ()
    """Lines from 1 of the places, or of the nearest texts; the best first, a few."""
    already: bool = False
    """True when the file has the new text already, and the old one not."""


def content_hash(data: bytes) -> str:
    """Return what names a file's content in tools: 16 hex digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def text_of(data: bytes) -> str | EditRefusal:
    """Return a file's text, its byte order mark and line ends as they are, or why it has none."""
    if len(data) > FILE_BYTES_MAX:
        return _too_large(0, f"the file has {len(data)} bytes")
    nul = data.find(b"\0")
    if nul >= 0:
        kind = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "a binary file"
        return EditRefusal(
            EditFault.BINARY,
            0,
            f"the file is {kind} (NUL at byte {nul}), not UTF-8 text; only text files are read "
            "and edited",
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return EditRefusal(
            EditFault.NOT_UTF8,
            0,
            f"the file is not UTF-8: byte {error.start} (0x{data[error.start]:02x}, line {line}) "
            "fits no character; it is left as it is, since saving it would lose bytes",
            line=line,
        )


def edit_bytes(
    data: bytes, edits: Sequence[TextEdit], *, hint_level: int = 0
) -> Edited | EditRefusal:
    """Return what edits make of a file, each applied to the result of the one before.

    Args:
        data: The file's bytes.
        edits: The edits, in order.
        hint_level: How much a refusal shows: 0 the nearest text, 1 the whole block around it, 2
            with the ranged read that shows it. For a call that failed before.

    Returns:
        The new bytes, or the refusal of the first edit that cannot be applied.
    """
    text = text_of(data)
    if isinstance(text, EditRefusal):
        return text
    draft = Draft(*parted(text))
    counts: list[int] = []
    own: list[int] = []
    for index, edit in enumerate(edits):
        done = _applied(draft, edit, index, hint_level)
        if isinstance(done, EditRefusal):
            return done
        count, is_own = done
        counts.append(count)
        if sum(counts) > REPLACEMENTS_MAX:
            what = f"with this edit the call has more than {REPLACEMENTS_MAX} replacements"
            return _too_large(index, what)
        own += [index] * is_own
    result = joined(draft.view, draft.ends).encode()
    last = max(len(edits) - 1, 0)
    if len(result) > FILE_BYTES_MAX:
        return _too_large(last, f"the result would have {len(result)} bytes")
    if result == data:
        return EditRefusal(
            EditFault.NO_NET_CHANGE,
            last,
            "the edits together leave the file as it was; nothing was written. If that is meant, "
            "go on without them",
        )
    return Edited(result, tuple(counts), tuple(own))


def _applied(
    draft: Draft, edit: TextEdit, index: int, hint_level: int
) -> tuple[int, bool] | EditRefusal:
    """Apply an edit; return its replacements and whether one took text that was made before."""
    problem = _unusable(edit, index)
    if problem is not None:
        return problem
    old, new = _viewed(edit)
    if old == new:
        return _unchanged(index)
    starts = _places(draft.view, old, overlapping=not edit.replace_all)
    if not starts:
        return _refused(EditFault.NOT_FOUND, index, missing_hint(draft.view, old, new, hint_level))
    if len(starts) > 1 and not edit.replace_all:
        hint = ambiguity_hint(draft.view, starts, MATCHES_COUNTED_MAX, hint_level)
        return _refused(EditFault.AMBIGUOUS, index, hint)
    if len(starts) > REPLACEMENTS_MAX:
        return _too_large(index, f"the edit has more than {REPLACEMENTS_MAX} places")
    if len(draft.view) + len(starts) * (len(new) - len(old)) > FILE_BYTES_MAX:
        return _too_large(index, "the result would be larger")
    is_own = draft.has_made(starts, len(old))
    before = draft.view
    spliced(draft, starts, planned(old, new, draft.ends))
    return _unchanged(index) if draft.view == before else (len(starts), is_own)


def _unusable(edit: TextEdit, index: int) -> EditRefusal | None:
    for name, text in (("oldText", edit.old_text), ("newText", edit.new_text)):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return EditRefusal(
                EditFault.LONE_SURROGATE,
                index,
                f"{name} has a lone surrogate (U+{ord(text[error.start]):04X}) at character "
                f"{error.start}, which no file can hold; write the whole character",
            )
    if "\0" in edit.new_text:
        return EditRefusal(
            EditFault.BINARY,
            index,
            "newText has a NUL character, with which the file would be no text; leave it out",
        )
    if edit.old_text.removeprefix(BOM) == "":
        return EditRefusal(
            EditFault.EMPTY_OLD,
            index,
            "oldText is empty; copy the text to be replaced from the file. To insert, take a line "
            "beside the place as oldText and give it again in newText with what is new; "
            "WriteSandboxFile creates a file",
        )
    return None


def _viewed(edit: TextEdit) -> tuple[str, str]:
    """Return the texts with each line end as in the view."""
    old, new = edit.old_text.replace("\r\n", "\n"), edit.new_text.replace("\r\n", "\n")
    if "\r\n" not in old:
        # Lines that were converted twice; only a file that has such lines keeps them.
        while "\r\n" in new:
            new = new.replace("\r\n", "\n")
    return old, new


def _places(view: str, old: str, *, overlapping: bool) -> list[int]:
    """Return where a text is, up to one place more than would be used."""
    most, step = (MATCHES_COUNTED_MAX, 1) if overlapping else (REPLACEMENTS_MAX, len(old))
    starts: list[int] = []
    at = view.find(old)
    while at >= 0 and len(starts) <= most:
        starts.append(at)
        at = view.find(old, at + step)
    return starts


def _refused(code: EditFault, index: int, hint: Hint) -> EditRefusal:
    return EditRefusal(
        code,
        index,
        hint.error,
        hint.difference,
        hint.line,
        hint.text,
        hint.count,
        hint.lines,
        hint.already,
    )


def _unchanged(index: int) -> EditRefusal:
    return EditRefusal(
        EditFault.NO_CHANGE,
        index,
        "oldText and newText are the same text (a line end's kind and a byte order mark at the "
        "beginning stay as the file has them), so nothing would change; give the text that is to "
        "stand there as newText",
    )


def _too_large(index: int, what: str) -> EditRefusal:
    return EditRefusal(
        EditFault.TOO_LARGE,
        index,
        f"{what}; a file has at most {FILE_BYTES_MAX} bytes and a call at most {REPLACEMENTS_MAX} "
        "replacements. Part the file, or edit less at once",
    )
