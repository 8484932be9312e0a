"""The journal of an execution's snapshots: JSON lines, only ever appended to.

A line that was torn by a crash is dropped when it is read; the next one begins on a line of its
own.

Source: STYLE habit 10; specification E10.
"""

import errno
import os
from pathlib import Path

from pydantic import ValidationError

from reprise.model.sandbox import SandboxSnapshot


def append(path: Path, snapshot: SandboxSnapshot) -> None:
    """Add a line and bring it to the disk.

    Raises:
        OSError: It could not be written whole.
    """
    line = snapshot.model_dump_json().encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size_bytes = os.fstat(handle).st_size
        if size_bytes and os.pread(handle, 1, size_bytes - 1) != b"\n":
            line = b"\n" + line
        if os.write(handle, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> list[SandboxSnapshot]:
    """Return the whole lines, in their order; none where there is no journal.

    Raises:
        OSError: It cannot be read.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [snapshot for snapshot in map(_parsed, lines) if snapshot is not None]


def _parsed(line: bytes) -> SandboxSnapshot | None:
    try:
        return SandboxSnapshot.model_validate_json(line)
    except ValidationError:
        return None
