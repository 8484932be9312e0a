"""Who writes snapshots, who makes a workspace, who removes old ones: never at the same time.

Snapshots share the lock; making and removing workspaces hold it alone. The kernel lets go of it
however a process ends.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprise.errors import StoreTimeout
from resources.atomic_file import store_error

WAIT_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.01


@contextmanager
def held(path: Path, *, alone: bool, wait_seconds: float = WAIT_SECONDS_MAX) -> Iterator[None]:
    """Hold the lock; its file and folder are made where they are not there.

    Raises:
        StoreTimeout: Others held it all the time.
        StoreError: It cannot be made.
    """
    handle = _opened(path)
    try:
        _take(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, path, wait_seconds)
        try:
            yield
        finally:
            # A child that was forked meanwhile has it open too.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise store_error(error, f"lock {str(path)!r} of the sandboxes") from error


def _take(handle: int, kind: int, path: Path, wait_seconds: float) -> None:
    end = time.monotonic() + wait_seconds
    while not try_lock(handle, kind):
        if time.monotonic() >= end:
            message = f"lock {str(path)!r} of the sandboxes was held for {wait_seconds:g} s; retry"
            raise StoreTimeout(message)
        time.sleep(_POLL_SECONDS)


def try_lock(handle: int, kind: int) -> bool:
    """Answer whether a lock could be taken at once."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
