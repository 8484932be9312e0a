"""What the system answers about a sandbox's file, as SandboxRefused or StoreError."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from reprise.model.sandbox import SandboxFault
from reprise.model.sandbox_path import is_folder, refused, shown
from resources.atomic_file import store_error

_REFUSALS: dict[int, tuple[SandboxFault, str]] = {
    errno.ENOENT: (
        SandboxFault.STALE,
        "it, or a folder on its way, was removed meanwhile; list the files and try again",
    ),
    errno.ELOOP: (SandboxFault.STALE, "it became a link meanwhile; read it again"),
    errno.ENOTDIR: (SandboxFault.STALE, "a folder on its way was replaced meanwhile; try again"),
    errno.EISDIR: (SandboxFault.IS_FOLDER, "it is a folder; name a file in it"),
    errno.EEXIST: (SandboxFault.STALE, "it was made by another meanwhile; read it first"),
    errno.EACCES: (SandboxFault.DENIED, "its permissions do not allow it; choose another file"),
    errno.EPERM: (SandboxFault.DENIED, "the system does not allow it; choose another file"),
    errno.ENAMETOOLONG: (SandboxFault.BAD_PATH, "it is too long; choose a shorter name"),
}


@contextmanager
def typed_errors(path: str) -> Iterator[None]:
    """Turn the system's errors into SandboxRefused, or StoreError for what is wrong with a disk."""
    try:
        yield
    except OSError as error:
        known = _REFUSALS.get(error.errno or 0)
        if known is None:
            raise store_error(error, f"file {shown(path)} of the sandbox") from error
        raise refused(path, *known) from error


def check_kind(path: str, status: os.stat_result) -> None:
    """Check that a thing can be used as a file of a sandbox.

    Raises:
        SandboxRefused: It is no regular file, or has further names.
    """
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise is_folder(path)
    if stat.S_ISLNK(mode):
        raise refused(path, *_REFUSALS[errno.ELOOP])
    if not stat.S_ISREG(mode):
        problem = "it is a device, a pipe or a socket; choose another path"
        raise refused(path, SandboxFault.NOT_A_FILE, problem)
    if status.st_nlink > 1:
        problem = (
            "the file has further names (hard links), which may be outside; choose another path"
        )
        raise refused(path, SandboxFault.HARD_LINK, problem)
