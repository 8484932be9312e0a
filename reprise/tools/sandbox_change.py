"""One change of a sandbox file by an agent: guarded by what it last read, kept for undo.

A file that is not what the agent last read or wrote is not changed: it is `stale`. What a change
replaced is kept with the door, within bounds, and put back only while nobody else changed the file.

Source: specification E1, E11. Tests: tests/unit/tools/test_sandbox_change.py.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from reprise.model.sandbox import SandboxFault
from reprise.tools.access import Replacement, SandboxDoor
from reprise.tools.text_edit import content_hash
from reprise.tools.tool import Result, refusal

UNDO_CHANGES_MAX = 50
"""Most changes that are kept for undo, of all files together."""

UNDO_BYTES_MAX = 32 * 2**20
"""Most bytes that are kept for undo; the last change is kept in any case."""

NOTHING_TO_UNDO = "nothing_to_undo"
"""No change of this file is kept."""

Decide = Callable[[bytes | None], bytes | Result]
"""Present bytes, None where there is no file → the new ones, or the answer that leaves it."""


@dataclass(frozen=True)
class Changed:
    """What a change did."""

    key: str
    """The file, as `SandboxFiles.resolved` names it."""
    before: bytes | None
    """What was there; None where there was no file."""
    after: bytes
    """What is there."""


def change_file(
    door: SandboxDoor, path: str, decide: Decide, *, expect_hash: str = "", create: bool = False
) -> Changed | Result:
    """Change a file, unless it is stale or `decide` answers instead.

    Args:
        door: The sandbox.
        path: The file.
        decide: Makes the new bytes of the present ones.
        expect_hash: The hash that the file has to have; empty takes that of the last read.
        create: True makes a file where there is none.

    Raises:
        SandboxRefused: The path or the file cannot be used; nothing was changed.
    """
    key = door.files.resolved(path)
    change = _Change(path, decide, expect_hash or door.seen.get(key, ""))
    door.files.update(path, change, create=create)
    if change.answer is not None:
        if change.is_stale and change.before is None:
            # Told once; whoever then writes it anew means it.
            door.seen.pop(key, None)
        return change.answer
    door.seen[key] = content_hash(change.after)
    door.replaced.append(Replacement(key, change.before, _digest(change.after)))
    _forget(door.replaced)
    return Changed(key, change.before, change.after)


def undo_change(door: SandboxDoor, path: str) -> tuple[bytes | None, bytes] | Result:
    """Put back what the last change of a file replaced.

    Returns:
        What was put back (None: the file is gone again) and what was there before, or why not.

    Raises:
        SandboxRefused: The path or the file cannot be used, or is stale; nothing was changed.
    """
    key = door.files.resolved(path)
    at = next((at for at, one in _last_first(door) if one.path == key), None)
    if at is None:
        return refusal(
            NOTHING_TO_UNDO,
            f"{path!r}: no change of this file in this step is kept (the last {UNDO_CHANGES_MAX} "
            "are); read the file and write what it shall be",
            path=path,
        )
    last = door.replaced[at]
    if last.before is None:
        present = door.files.read(path)
        door.files.remove(path, digest=last.digest)
        door.seen.pop(key, None)
    else:
        undone = _Undo(path, last)
        door.files.update(path, undone)
        if undone.answer is not None:
            return undone.answer
        present = undone.present
        door.seen[key] = content_hash(last.before)
    del door.replaced[at]
    return last.before, present


class _Change:
    """What is done to a file while it is locked; its outcome is read afterwards."""

    def __init__(self, path: str, decide: Decide, expected: str) -> None:
        self._path = path
        self._decide = decide
        self._expected = expected
        self.answer: Result | None = None
        self.before: bytes | None = None
        self.after = b""
        self.is_stale = False

    def __call__(self, data: bytes | None) -> bytes | None:
        self.before = data
        found = None if data is None else content_hash(data)
        self.is_stale = bool(self._expected) and found != self._expected
        decided = _stale(self._path, found) if self.is_stale else self._decide(data)
        if isinstance(decided, bytes):
            self.after = decided
            return decided
        self.answer = decided
        return None


class _Undo:
    """Puts a file's former bytes back while it is locked."""

    def __init__(self, path: str, last: Replacement) -> None:
        self._path = path
        self._last = last
        self.answer: Result | None = None
        self.present = b""

    def __call__(self, data: bytes | None) -> bytes | None:
        if data is None or _digest(data) != self._last.digest:
            self.answer = _stale(self._path, None if data is None else content_hash(data))
            return None
        self.present = data
        return self._last.before


def _stale(path: str, found: str | None) -> Result:
    if found is None:
        return refusal(
            SandboxFault.STALE,
            f"{path!r} is gone since you read it; nothing was changed. Look what there is before "
            "you write it anew",
            path=path,
        )
    return refusal(
        SandboxFault.STALE,
        f"{path!r} was changed by somebody else since you read it (its hash is {found} now); "
        "nothing was changed. Read it again, then say the change for what it holds now",
        path=path,
        hash=found,
    )


def _last_first(door: SandboxDoor) -> list[tuple[int, Replacement]]:
    return list(enumerate(door.replaced))[::-1]


def _forget(replaced: list[Replacement]) -> None:
    """Forget the oldest changes beyond the bounds."""
    del replaced[:-UNDO_CHANGES_MAX]
    size = sum(len(one.before or b"") for one in replaced)
    while size > UNDO_BYTES_MAX and len(replaced) > 1:
        size -= len(replaced[0].before or b"")
        del replaced[0]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
