"""Tools of the group SandboxAuthoring: write, edit and undo files of a sandbox.

An edit is exact or refused. What was refused says where and how the file differs, and says more
when the same call fails again; what went through comes back as a diff with the new hash, so that
nothing has to be read again. An edit that brings new syntax errors says so and is never held back.

The names of tools that the setting `sandbox_edit_tools` withholds stand nowhere but in their own
rows and answers.

Source: specification E. Tests: tests/unit/tools/test_sandbox_authoring.py and test_edit_cases.py.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence

from pydantic import Field, JsonValue

from reprise.errors import SandboxRefused
from reprise.model.sandbox import SandboxFault
from reprise.model.sandbox_path import NO_SUCH_FILE
from reprise.tools.access import SandboxDoor
from reprise.tools.argument_schema import Arguments
from reprise.tools.edit_diff import short_diff
from reprise.tools.edit_hints import READ_AGAIN
from reprise.tools.line_endings import BOM
from reprise.tools.sandbox_change import Changed, change_file, undo_change
from reprise.tools.sandbox_lines import CUT_MARK, line_count, numbered_pairs
from reprise.tools.sandbox_outline import shown_fault
from reprise.tools.sandbox_tool import PATH_CHARS_MAX, sandbox_tool
from reprise.tools.syntax import new_syntax_errors
from reprise.tools.text_edit import (
    Edited,
    EditFault,
    EditRefusal,
    TextEdit,
    content_hash,
    edit_bytes,
    text_of,
)
from reprise.tools.tool import ARGUMENTS_CHARS_MAX, Result, refusal

CONTENT_CHARS_MAX = 200_000
"""Longest text of one writing, and of all texts of one call that edits."""

ESCAPED_CHARS_MAX = 12
"""JSON may write a character as two escapes of six."""

CALL_CHARS_MAX = ESCAPED_CHARS_MAX * CONTENT_CHARS_MAX + ARGUMENTS_CHARS_MAX
"""Longest arguments of a call that writes or edits."""

EDITS_MAX = 100
"""Most edits of one call."""

HINT_LEVEL_MAX = 2

FAILED_CALLS_MAX = 100
"""Most failing calls that are remembered."""

CUT_MARK_COPIED = "cut_mark"
"""The class of difference of a text with the mark of a cut line in it."""


class WriteArguments(Arguments):
    """Arguments of WriteSandboxFile."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox, such as `src/Root.tsx`; missing folders are made."""
    content: str = Field(max_length=CONTENT_CHARS_MAX)
    """The whole text, at most 200,000 characters; what should be larger is several files."""
    expect_hash: str = Field(default="", max_length=64)
    """The hash that the file has to have; left out, that of your last reading of it."""


class EditArguments(Arguments):
    """Arguments of EditSandboxFile."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox, such as `src/Root.tsx`."""
    old_text: str = Field(max_length=CONTENT_CHARS_MAX)
    """The text to be replaced, copied exactly, with enough around it to be there once only."""
    new_text: str = Field(max_length=CONTENT_CHARS_MAX)
    """What stands there afterwards; taken literally."""
    replace_all: bool = False
    """True: replace it at every place."""
    expect_hash: str = Field(default="", max_length=64)
    """The hash that the file has to have; left out, that of your last reading of it."""


class EditOfCall(Arguments):
    """One of the edits."""

    old_text: str = Field(max_length=CONTENT_CHARS_MAX)
    """The text to be replaced, copied exactly, with enough around it to be there once only."""
    new_text: str = Field(max_length=CONTENT_CHARS_MAX)
    """What stands there afterwards; taken literally."""
    replace_all: bool = False
    """True: replace it at every place."""


class ApplyArguments(Arguments):
    """Arguments of ApplySandboxFileEdits."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox, such as `src/Root.tsx`."""
    edits: tuple[EditOfCall, ...] = Field(min_length=1, max_length=EDITS_MAX)
    """The edits, in order: each sees what those before it made."""
    expect_hash: str = Field(default="", max_length=64)
    """The hash that the file has to have; left out, that of your last reading of it."""


class UndoArguments(Arguments):
    """Arguments of UndoSandboxFileEdit."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox, such as `src/Root.tsx`."""


def write_sandbox_file(arguments: WriteArguments, door: SandboxDoor) -> Result:
    """Create a file, or replace it whole."""
    path, data = arguments.path, arguments.content.encode()

    def written(present: bytes | None) -> bytes | Result:
        unfit = text_of(data)
        if isinstance(unfit, EditRefusal):
            return refusal(unfit.code, f"{path!r} cannot be written: {unfit.error}", path=path)
        there = text_of(present or b"")
        if isinstance(there, EditRefusal):
            what = f"{path!r} is not written over: {there.error}. Write to another path"
            return refusal(there.code, what, path=path)
        if present == data:
            note = "the file has this text already; nothing was written"
            return {"ok": True, **_state(path, data), "created": False, "note": note}
        return data

    change = change_file(door, path, written, expect_hash=arguments.expect_hash, create=True)
    if isinstance(change, dict):
        if change["ok"]:
            door.saw(path, content_hash(data))
        return change
    result: Result = {"ok": True, **_state(path, data), "created": change.before is None}
    if change.before is not None:
        result["replacedLines"] = line_count(change.before)
    return {**result, **_brought(path, change)}


def edit_sandbox_file(arguments: EditArguments, door: SandboxDoor) -> Result:
    """Replace a text of a file that is there once."""
    edit = TextEdit(arguments.old_text, arguments.new_text, arguments.replace_all)
    return _edited(door, arguments.path, [edit], arguments.expect_hash)


def apply_sandbox_file_edits(arguments: ApplyArguments, door: SandboxDoor) -> Result:
    """Apply several edits of a file, or none."""
    edits = [TextEdit(one.old_text, one.new_text, one.replace_all) for one in arguments.edits]
    chars = sum(len(edit.old_text) + len(edit.new_text) for edit in edits)
    if chars > CONTENT_CHARS_MAX:
        return refusal(
            EditFault.TOO_LARGE,
            f"the edits have {chars} characters together; a call takes {CONTENT_CHARS_MAX}. "
            "Part them over several calls",
            path=arguments.path,
        )
    return _edited(door, arguments.path, edits, arguments.expect_hash)


def undo_sandbox_file_edit(arguments: UndoArguments, door: SandboxDoor) -> Result:
    """Put back what the agent's last change of a file replaced."""
    path = arguments.path
    undone = undo_change(door, path)
    if isinstance(undone, dict):
        return undone
    restored, replaced = undone
    if restored is None:
        note = "the change had created the file; it is removed"
        return {"ok": True, "path": path, "removed": True, "note": note}
    return {"ok": True, **_state(path, restored), "diff": short_diff(replaced, restored, path)}


TOOLS = (
    sandbox_tool(
        "WriteSandboxFile",
        "Create a text file of the sandbox, or replace the whole text of the one at this path. "
        "What the new text leaves out is gone: `replacedLines` and `diff` say what was there.",
        WriteArguments,
        write_sandbox_file,
        "1",
        CALL_CHARS_MAX,
    ),
    sandbox_tool(
        "EditSandboxFile",
        "Replace one text in a file of the sandbox; prefer it to writing the file anew for any "
        "change of a file that there is. oldText has to be there exactly once, character by "
        "character (\\n and \\r\\n are taken for the same); nothing in it or in newText is a "
        "pattern. A refusal changes nothing and says what the file really holds.",
        EditArguments,
        edit_sandbox_file,
        "1",
        CALL_CHARS_MAX,
    ),
    sandbox_tool(
        "ApplySandboxFileEdits",
        "Make several edits in one file of the sandbox, in order, each as EditSandboxFile does. "
        "When one is refused none is made; `edit` says which, from 0.",
        ApplyArguments,
        apply_sandbox_file_edits,
        "1",
        CALL_CHARS_MAX,
    ),
    sandbox_tool(
        "UndoSandboxFileEdit",
        "Put back what your last change of a file of the sandbox replaced; again for the one "
        "before it. A file that the change had created is removed.",
        UndoArguments,
        undo_sandbox_file_edit,
        "1",
    ),
)
"""The group's tools."""


def _edited(door: SandboxDoor, path: str, edits: Sequence[TextEdit], expect_hash: str) -> Result:
    """Apply edits; a call that failed before is told more."""
    call = _call_key(path, edits)
    level_max = HINT_LEVEL_MAX if door.can_read else HINT_LEVEL_MAX - 1
    applied = _Applied(door, path, edits, min(door.failed.get(call, 0), level_max))
    try:
        change = change_file(door, path, applied, expect_hash=expect_hash)
    except SandboxRefused as error:
        if NO_SUCH_FILE not in str(error):
            raise
        what = f"{path!r}: {NO_SUCH_FILE} to edit; WriteSandboxFile creates one"
        return refusal(SandboxFault.NOT_FOUND, what, path=path)
    if isinstance(change, dict):
        door.failed[call] = door.failed.pop(call, 0) + 1
        while len(door.failed) > FAILED_CALLS_MAX:
            del door.failed[next(iter(door.failed))]
        return change
    door.failed.pop(call, None)
    result: Result = {"ok": True, **_state(path, change.after), **applied.counts}
    return {**result, **_brought(path, change)}


class _Applied:
    """Applies edits to a file's bytes, and says afterwards how often each was made."""

    def __init__(
        self, door: SandboxDoor, path: str, edits: Sequence[TextEdit], hint_level: int
    ) -> None:
        self._door = door
        self._path = path
        self._edits = edits
        self._hint_level = hint_level
        self.counts: dict[str, JsonValue] = {}

    def __call__(self, data: bytes | None) -> bytes | Result:
        found = edit_bytes(data or b"", self._edits, hint_level=self._hint_level)
        if isinstance(found, Edited):
            self.counts = _counts(found)
            return found.data
        return _refused(self._door, found, self._path, self._edits)


def _lost(before: bytes, after: bytes) -> Iterator[str]:
    """Give what of a file's form its new text does not keep: a diff shows it badly."""
    if before.startswith(BOM.encode()) and not after.startswith(BOM.encode()):
        yield "the file's byte order mark is gone; begin the text with it if it has to stay"
    was_crlf = before.count(b"\r\n") == before.count(b"\n") > 0
    if was_crlf and b"\r\n" not in after and b"\n" in after:
        yield "the line ends were \\r\\n and are \\n now; write \\r\\n if they have to stay"


def _copied(change: Changed) -> Iterator[str]:
    """Give what a reading adds to lines, where a change brought it into the file."""
    before, after = (change.before or b"").decode(), change.after.decode()
    if len(CUT_MARK.findall(after)) > len(CUT_MARK.findall(before)):
        yield "the text holds `[cut: …]`, the mark of a line shown in part: undo if not meant"
    if numbered_pairs(after) > numbered_pairs(before):
        yield "the text holds line numbers, `12| `, as a reading shows them: undo if not meant"


def _counts(edited: Edited) -> dict[str, JsonValue]:
    counts: dict[str, JsonValue] = {"replacements": sum(edited.replacements)}
    if len(edited.replacements) > 1:
        counts["replacementsByEdit"] = list(edited.replacements)
    if edited.own_output:
        counts["matchedOwnOutput"] = list(edited.own_output)
    return counts


def _refused(door: SandboxDoor, found: EditRefusal, path: str, edits: Sequence[TextEdit]) -> Result:
    error, difference = found.error, found.difference and str(found.difference)
    if found.code is EditFault.NOT_FOUND and CUT_MARK.search(edits[found.edit].old_text):
        difference = CUT_MARK_COPIED
        error = (
            "oldText holds the mark `[cut: …]` of a line that was shown in part, which is not in "
            "the file; take a shorter text that does not reach it"
        )
        error += ", or read the line whole with ReadSandboxFile" if door.can_read else ""
    elif not door.can_read:
        error = error.replace(READ_AGAIN, "you cannot read it: WriteSandboxFile writes it anew")
    if found.edit and found.code in (EditFault.NOT_FOUND, EditFault.AMBIGUOUS):
        error = (
            f"edit {found.edit}, which sees the file as the edits before it would leave it (none "
            f"was made): {error}"
        )
    return refusal(
        found.code,
        error,
        path=path,
        edit=found.edit if len(edits) > 1 else None,
        difference=difference,
        line=found.line,
        text=found.text,
        count=found.count,
        lines=list(found.lines) or None,
        already=found.already or None,
    )


def _state(path: str, data: bytes) -> dict[str, JsonValue]:
    """Return what names a file as it is now."""
    return {"path": path, "hash": content_hash(data), "totalLines": line_count(data)}


def _brought(path: str, change: Changed) -> dict[str, JsonValue]:
    """Return what a change did to a file."""
    found: dict[str, JsonValue] = {}
    if change.before is not None:
        found["diff"] = short_diff(change.before, change.after, path)
    notes = [*_lost(change.before or b"", change.after), *_copied(change)]
    if notes:
        found["note"] = "; ".join(notes)
    faults = new_syntax_errors(change.before or b"", change.after, path)
    if faults:
        found["newSyntaxErrors"] = [shown_fault(fault) for fault in faults]
    return found


def _call_key(path: str, edits: Sequence[TextEdit]) -> str:
    said = [[edit.old_text, edit.new_text, edit.replace_all] for edit in edits]
    return hashlib.sha256(json.dumps([path, said]).encode()).hexdigest()
