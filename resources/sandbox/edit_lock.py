"""One writer of a sandbox at a time, among threads and processes.

One lock for the whole sandbox, not one for each file: how many files there are, and which names
they have, concerns them all. It is held for the time that one file takes to be written.

The lock is a file beside the sandbox's folder, never in it. The kernel lets go of it however a
process ends. See docs/decisions/sandbox-by-descriptors.md.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprise.errors import StoreTimeout
from resources.atomic_file import store_error

WAIT_SECONDS_MAX = 30.0
_POLL_SECONDS = 0.002
_POLL_SECONDS_MAX = 0.05


@contextmanager
def edit_lock(path: Path, *, wait_seconds: float = WAIT_SECONDS_MAX) -> Iterator[None]:
    """Hold the lock.

    Args:
        path: The lock's file; made when it is not there, and left there.
        wait_seconds: Most seconds to wait for another writer.

    Raises:
        StoreTimeout: Another held it all the time.
        StoreError: The file cannot be made or locked.
    """
    handle = _taken(path, time.monotonic() + wait_seconds)
    if handle is None:
        message = (
            f"sandbox lock {str(path)!r}: another writer has held it for {wait_seconds:g} s; "
            "try again, or end the process that hangs"
        )
        raise StoreTimeout(message)
    try:
        yield
    finally:
        # By name, not only by closing: a child that was forked meanwhile has it open too.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _taken(path: Path, end: float) -> int | None:
    pause_seconds = _POLL_SECONDS
    while True:
        try:
            handle = _tried(path)
        except OSError as error:
            raise store_error(error, f"sandbox lock {str(path)!r}") from error
        if handle is not None or time.monotonic() >= end:
            return handle
        time.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 1.5, _POLL_SECONDS_MAX)


def _tried(path: Path) -> int | None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever removed the sandbox may have removed the lock's file before it was locked.
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
