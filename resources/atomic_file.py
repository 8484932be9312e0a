"""Writing a local file whole or not at all.

The bytes go into a temporary file beside the target, reach the disk, and then take the target's
name. An error leaves neither a partial target nor the temporary file; a killed process leaves at
most a `.part-…` file, which no reader takes for an object.

Source: STYLE habit 10; specification W9.
"""

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from reprise.errors import StoreError, StoreUnusable
from resources.object_key import PART_PREFIX

FOLDER_ATTEMPTS_MAX = 5

_REMEDIES = {
    errno.ENOSPC: "the disk is full; free space, or choose another folder",
    errno.EDQUOT: "the disk quota is used up; free space, or choose another folder",
    errno.EFBIG: "the file would be larger than the system allows; raise the limit",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "access is denied; make the folder readable and writable",
    errno.EPERM: "access is denied; make the folder readable and writable",
    errno.ENOTDIR: "a file is where a folder is needed; move it away, or choose another folder",
    errno.EEXIST: "a file is where a folder is needed; move it away, or choose another folder",
    errno.EISDIR: "a folder is where a file is needed; move it away",
}


def write_whole(target: Path, fill: Callable[[BinaryIO], None]) -> os.stat_result:
    """Fill a new file and give it the target's name; folders are made.

    The modification time is later than that of the file it replaces, so that the two can be told
    apart even within one tick of the file system's clock.

    Returns:
        The status of the new file.

    Raises:
        OSError: It could not be written; nothing is left behind.
    """
    part, stream = _open_part(target.parent)
    try:
        with stream:
            fill(stream)
            stream.flush()
            _outdate(target, stream.fileno())
            os.fsync(stream.fileno())
            status = os.fstat(stream.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return status


def store_error(error: OSError, where: str) -> StoreError:
    """Return a file system's error as one of ours: where it was, what it is, what to do."""
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return StoreError(f"{where}: {error.strerror or error}; check the disk and the folder")
    return StoreUnusable(f"{where}: {remedy}")


def _open_part(folder: Path) -> tuple[Path, BinaryIO]:
    attempts_left = FOLDER_ATTEMPTS_MAX
    while True:
        part = folder / f"{PART_PREFIX}{secrets.token_hex(8)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return part, part.open("xb")
        except FileNotFoundError:
            # Another process removed the empty folder in between.
            attempts_left -= 1
            if attempts_left == 0:
                raise


def _outdate(target: Path, handle: int) -> None:
    try:
        replaced = target.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return
    status = os.fstat(handle)
    if status.st_mtime_ns <= replaced:
        os.utime(handle, ns=(status.st_atime_ns, replaced + 1))
