"""A file of a sandbox, read and replaced by its name in an open folder.

New bytes go into a temporary file in the same folder, reach the disk, and then take the name, after
one more look at what they replace. A killed process leaves at most a `.part-…` file, which no
listing shows and which the next writer in that folder removes.

Source: specification E1, E8; STYLE habit 10.
"""

import errno
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from reprise.model.sandbox import SandboxFault
from reprise.model.sandbox_path import PART_PREFIX, check_size, refused, stale
from resources.sandbox.descent import Descent, names_in, sync_folder
from resources.sandbox.typed_errors import check_kind

CHUNK_BYTES = 2**20
NEW_FILE_MODE = 0o644

# Neither waits for the other end of what became a pipe, nor follows what became a link.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PART_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What opening answers for a link, a pipe, a socket and a device.
_REPLACED = frozenset({errno.ELOOP, errno.ENXIO, errno.EOPNOTSUPP, errno.ENODEV})
_PART_NAME = re.compile(re.escape(PART_PREFIX) + "[0-9a-f]{16}")


@dataclass(frozen=True)
class Present:
    """A file's bytes as they were read."""

    data: bytes
    """All of them."""
    status: os.stat_result
    """Its status when it was opened."""


@contextmanager
def opened(folder: int, name: str, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """Give a descriptor of a regular file for reading, and its status.

    Raises:
        SandboxRefused: It is something else, or has further names.
        OSError: It is not there or cannot be opened.
    """
    # Looked at first: opening some devices does something.
    check_kind(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
    try:
        handle = os.open(name, _READ_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in _REPLACED:
            raise stale(path) from error
        raise
    try:
        status = os.fstat(handle)
        check_kind(path, status)
        yield handle, status
    finally:
        os.close(handle)


def read_present(place: Descent, *, size_bytes_max: int) -> Present | None:
    """Return the file, or None where there is none.

    Raises:
        SandboxRefused: It cannot be used, or has more bytes.
        OSError: It cannot be read.
    """
    if place.missing:
        return None
    try:
        with opened(place.folder, place.name, place.path) as (handle, status):
            data = b"".join(chunks(handle, size_bytes_max + 1))
    except FileNotFoundError:
        return None
    check_size(place.path, len(data), size_bytes_max)
    return Present(data, status)


def chunks(handle: int, size_bytes_max: int) -> Iterator[bytes]:
    """Yield a file's bytes, so many at most."""
    left = size_bytes_max
    while left > 0 and (chunk := os.read(handle, min(left, CHUNK_BYTES))):
        left -= len(chunk)
        yield chunk


def write_whole(place: Descent, data: bytes, present: Present | None) -> None:
    """Give a file new bytes whole or not at all; only while it is what it was.

    Args:
        place: The file; its folders are there.
        data: Its new bytes.
        present: What it was when the new bytes were made of it; None: it was not there.

    Raises:
        SandboxRefused: It is stale; we changed nothing that another did not change too.
        OSError: It could not be written; nothing was changed.
    """
    _remove_leftovers(place.folder)
    part = f"{PART_PREFIX}{secrets.token_hex(8)}"
    handle = os.open(part, _PART_FLAGS, 0o600, dir_fd=place.folder)
    try:
        _fill(handle, data)
        _take_over(place, handle)
        os.fsync(handle)
        # As late as can be: bringing bytes to the disk took its time.
        _check_unchanged(place, present)
        os.replace(part, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        # A program may have put something else in the temporary file's place.
        there = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        if not os.path.samestat(there, os.fstat(handle)):
            raise stale(place.path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=place.folder)
        raise
    finally:
        os.close(handle)
    sync_folder(place.folder)


def check_writable(path: str, status: os.stat_result) -> None:
    """Check that a file is meant to be written: giving its name to another would ask nobody.

    Raises:
        SandboxRefused: `denied`.
    """
    if not status.st_mode & 0o222:
        problem = "it is read-only (its permissions allow nobody to write); choose another file"
        raise refused(path, SandboxFault.DENIED, problem)


def _check_unchanged(place: Descent, present: Present | None) -> None:
    limit = 0 if present is None else len(present.data)
    try:
        with opened(place.folder, place.name, place.path) as (handle, _):
            data = b"".join(chunks(handle, limit + 1))
    except FileNotFoundError:
        if present is None:
            return
        raise stale(place.path) from None
    if present is None or data != present.data:
        raise stale(place.path)


def _fill(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _take_over(place: Descent, handle: int) -> None:
    try:
        with opened(place.folder, place.name, place.path) as (old, status):
            own = os.fstat(handle)
            if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
                with suppress(OSError):  # Giving a file away takes rights; its bytes matter more.
                    os.fchown(handle, status.st_uid, status.st_gid)
            _copy_attributes(old, handle)
    except FileNotFoundError:
        os.fchmod(handle, NEW_FILE_MODE)
    else:
        os.fchmod(handle, status.st_mode & 0o777)


def _copy_attributes(old: int, new: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # Not every file system has any.
            for name in os.listxattr(old):
                # The others mean something to the system (rights of a program, for one).
                if name.startswith("user."):
                    os.setxattr(new, name, os.getxattr(old, name))


def _remove_leftovers(folder: int) -> None:
    # Only one writes at a time: whoever made them is dead.
    for name in names_in(folder):
        if _PART_NAME.fullmatch(name):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
