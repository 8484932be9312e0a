"""A process's own folder for work in progress, which the next process removes when it died.

    scratch/1f3a….lock      held with flock as long as the process lives
    scratch/1f3a…/          its work

The lock tells the living from the dead: the kernel lets go of it however a process ends, and a
process number that is used again, or that another container has too, confuses nobody.

Source: STYLE habit 10; specification V4.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from pathlib import Path

from resources.atomic_file import store_error

_LOCK = ".lock"


class ScratchFolder:
    """A new folder under `parent`; what dead processes left there is removed first.

    Args:
        parent: Where the folders of all processes are; made when it is not there.

    Raises:
        StoreError: It cannot be made.
    """

    def __init__(self, parent: Path) -> None:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(parent)
            self.path = parent / secrets.token_hex(8)
            self._lock: int | None = _new_lock(self.path)
            self.path.mkdir()
        except OSError as error:
            raise store_error(error, f"scratch folder {str(parent)!r}") from error

    def close(self) -> None:
        """Remove the folder; what a thread still writes there goes at the next start."""
        if self._lock is None:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if not self.path.exists():
            _lock_path(self.path).unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None


def is_in_use(folder: Path) -> bool:
    """Answer whether the process whose scratch folder this is still lives on this machine."""
    try:
        handle = os.open(_lock_path(folder), os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def remove_leftovers(parent: Path) -> None:
    """Remove the folders of processes that are gone, as far as rights allow."""
    for lock in sorted(parent.glob(f"*{_LOCK}")):
        with contextlib.suppress(OSError):
            _remove_if_dead(lock)


def _remove_if_dead(lock: Path) -> None:
    handle = os.open(lock, os.O_RDWR)
    try:
        if _try_lock(handle):
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink()
    finally:
        os.close(handle)


def _new_lock(folder: Path) -> int:
    path = _lock_path(folder)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Another process may have taken the file for a leftover before it was locked.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _lock_path(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)
