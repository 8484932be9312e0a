"""One change of a sandbox file by an agent: guarded by what it last read, kept for undo.

A file that is not what the agent last read or wrote is not changed: it is `stale`. What a change
replaced is kept with the door, within bounds, and put back only while nobody else changed the file.

Source: specification E1, E11. Tests: tests/unit/tools/test_sandbox_change.py.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from reprise.errors import SandboxRefused
from reprise.model.sandbox import SandboxFault
from reprise.tools.access import Replacement, SandboxDoor
from reprise.tools.sandbox_tool import BAD_ARGUMENTS
from reprise.tools.text_edit import content_hash
from reprise.tools.tool import Result, refusal

UNDO_CHANGES_MAX = 50
"""Most changes that are kept for undo, of all files together."""

UNDO_BYTES_MAX = 32 * 2**20
"""Most bytes that are kept for undo; the last change is kept in any case."""

HASH_DIGITS = 16
"""Digits of a hash as `content_hash` gives it."""

_HASH = re.compile(f"[0-9a-f]{{{HASH_DIGITS}}}|[0-9a-f]{{64}}")
_NO_HASH = (
    f"is no hash, which has {HASH_DIGITS} hex digits; give the one that an answer named, or leave "
    "it out: then that of your last reading counts"
)

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
        expect_hash: The hash that the file has to have, or all of its SHA-256; empty takes that of
            the last read.
        create: True makes a file where there is none.

    Raises:
        SandboxRefused: The path or the file cannot be used; nothing was changed.
    """
    key = door.files.resolved(path)
    named = expect_hash.strip().lower()
    if named and not _HASH.fullmatch(named):
        return refusal(BAD_ARGUMENTS, f"expectHash {expect_hash!r} {_NO_HASH}", path=path)
    change = _Change(door, path, decide, named)
    door.files.update(path, change, create=create)
    if change.answer is not None:
        if change.is_stale and change.before is None:
            # Told once; whoever then writes it anew means it.
            door.saw(path, None)
        return change.answer
    door.saw(path, content_hash(change.after))
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
        try:
            door.files.remove(path, digest=last.digest)
        except SandboxRefused as error:
            if error.code != SandboxFault.STALE:
                raise
            return _not_undone(path, content_hash(present))
        door.saw(path, None)
    else:
        undone = _Undo(path, last)
        door.files.update(path, undone)
        if undone.answer is not None:
            return undone.answer
        present = undone.present
        door.saw(path, content_hash(last.before))
    del door.replaced[at]
    return last.before, present


class _Change:
    """What is done to a file while it is locked; its outcome is read afterwards."""

    def __init__(self, door: SandboxDoor, path: str, decide: Decide, named: str) -> None:
        self._door = door
        self._path = path
        self._decide = decide
        self._named = named
        self._expected = named or door.known(path)
        self.answer: Result | None = None
        self.before: bytes | None = None
        self.after = b""
        self.is_stale = False

    def __call__(self, data: bytes | None) -> bytes | None:
        self.before = data
        digest = None if data is None else _digest(data)
        is_same = digest is not None and self._expected in (digest, digest[:HASH_DIGITS])
        self.is_stale = bool(self._expected) and not is_same
        decided = (
            self._stale(digest and digest[:HASH_DIGITS]) if self.is_stale else self._decide(data)
        )
        if isinstance(decided, bytes):
            self.after = decided
            return decided
        self.answer = decided
        return None

    def _stale(self, found: str | None) -> Result:
        path = self._path
        if found is None and self._named:
            what = f"there is no file {path!r} to have the hash {self._named}; leave out expectHash"
        elif found is None:
            what = f"{path!r} is gone since you read it; nothing was changed. Write it anew if you "
            what += "still mean it"
        else:
            why = "was changed by somebody else since you read it"
            if self._named:
                why = f"is not what expectHash names, {self._named}"
            what = f"{path!r} {why} (its hash is {found} now); nothing was changed. "
            what += _advice(self._door, found)
        return refusal(SandboxFault.STALE, what, path=path, hash=found)


class _Undo:
    """Puts a file's former bytes back while it is locked."""

    def __init__(self, path: str, last: Replacement) -> None:
        self._path = path
        self._last = last
        self.answer: Result | None = None
        self.present = b""

    def __call__(self, data: bytes | None) -> bytes | None:
        if data is None or _digest(data) != self._last.digest:
            self.answer = _not_undone(self._path, content_hash(data or b""))
            return None
        self.present = data
        return self._last.before


def _advice(door: SandboxDoor, found: str) -> str:
    if door.can_read:
        return "Read it again, then say the change for what it holds now"
    return f"You cannot read it; if the change is meant nonetheless, say it with expectHash {found}"


def _not_undone(path: str, found: str) -> Result:
    what = (
        f"{path!r} was changed by somebody else since your change (its hash is {found} now), which "
        "would be lost; nothing was changed. Change what it holds now instead"
    )
    return refusal(SandboxFault.STALE, what, path=path, hash=found)


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
