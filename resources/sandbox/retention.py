"""Removing workspaces and snapshots that nobody used for long.

What a kept journal or the last snapshot of a workflow names stays. A workspace is first renamed,
then removed, so that a crash in between leaves none that looks whole. The store's lock is held
alone meanwhile: nobody makes a workspace or writes a snapshot.

Source: specification E10.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from pydantic import AwareDatetime, ValidationError

from reprise.model.base import Value
from reprise.model.sandbox import SandboxExecution, SandboxSeed
from resources.sandbox import journal
from resources.sandbox.snapshots import SnapshotFolder, write_file
from resources.sandbox.store_lock import try_lock

logger = logging.getLogger(__name__)

IN_USE, JOURNAL, EXECUTION = "in-use", "journal.jsonl", "execution.json"

PASSING_HOURS = 1.0
"""A sweep in passing comes at most so often."""

PASSING_MAX = 20
"""Most workspaces that a sweep in passing removes."""


class LatestSnapshot(Value):
    """The last snapshot of a workflow on a project."""

    run_id: str
    """The run."""
    digest: str
    """Of the tree."""
    taken_at: AwareDatetime
    """When."""
    seed: SandboxSeed
    """As the workflow had it: where it is `previous`, this snapshot does not grow old."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what a file holds; None where there is none.

        Raises:
            OSError: It cannot be read.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            logger.warning("%s is damaged; the next run begins with the template", path)
            return None

    def write(self, path: Path) -> None:
        """Write it whole.

        Raises:
            OSError: It cannot be written.
        """
        write_file(path, self.model_dump_json().encode())


class Retention:
    """Removes old workspaces and what only they needed.

    Args:
        root: Folder of the sandboxes.
        kept: The snapshots.
        retention_days: After so many days without use.
    """

    def __init__(self, root: Path, kept: SnapshotFolder, retention_days: float) -> None:
        self._runs = root / "runs"
        self._latest = root / "latest"
        self._mark = root / "swept"
        self._kept = kept
        self._age = timedelta(days=retention_days)

    def sweep(
        self, *, now: datetime, running: Collection[str] = (), removals_max: int | None = None
    ) -> int:
        """Remove old workspaces, then snapshots that none names; return how many workspaces went.

        Raises:
            OSError, StoreError: Something could not be read or removed.
        """
        self._remove_leftovers()
        old = [folder for folder in self._workspaces() if self._is_old(folder, now, running)]
        gone = 0
        for folder in old[:removals_max]:
            gone += self._remove(folder)
        names = self._old_names(now)
        for path in names:
            path.unlink(missing_ok=True)
        if gone or names or removals_max is None:
            self._kept.remove_others(self._named())
        return gone

    def sweep_if_due(self, *, now: datetime) -> None:
        """Sweep a little, unless somebody did lately.

        Raises:
            OSError, StoreError: Something could not be read or removed.
        """
        if self._mark.exists() and now - _used_at(self._mark) < timedelta(hours=PASSING_HOURS):
            return
        self._mark.touch()
        self.sweep(now=now, removals_max=PASSING_MAX)

    def _workspaces(self) -> list[Path]:
        if not self._runs.is_dir():
            return []
        return sorted(path for path in self._runs.iterdir() if not path.name.startswith("."))

    def _remove_leftovers(self) -> None:
        """Remove what dead processes left half made or half removed."""
        for path in self._runs.glob(".*"):
            shutil.rmtree(path, ignore_errors=True)

    def _is_old(self, folder: Path, now: datetime, running: Collection[str]) -> bool:
        in_use = folder / IN_USE
        used_at = _used_at(in_use if in_use.exists() else folder)
        return now - used_at > self._age and not (running and _run_id(folder) in running)

    def _remove(self, folder: Path) -> int:
        handle = os.open(folder / IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not try_lock(handle, fcntl.LOCK_EX):
                return 0
            gone = folder.with_name(f".gone-{folder.name}")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
            return 1
        finally:
            os.close(handle)

    def _old_names(self, now: datetime) -> list[Path]:
        paths = self._latest.glob("*.json") if self._latest.is_dir() else ()
        found = [(path, LatestSnapshot.read(path)) for path in paths]
        return [
            path
            for path, latest in found
            if latest is None
            or (latest.seed is not SandboxSeed.PREVIOUS and now - latest.taken_at > self._age)
        ]

    def _named(self) -> set[str]:
        """Return the digests of the trees that are still named."""
        named = {
            line.digest for folder in self._workspaces() for line in journal.read(folder / JOURNAL)
        }
        for path in self._latest.glob("*.json"):
            latest = LatestSnapshot.read(path)
            if latest is not None:
                named.add(latest.digest)
        return named


def _used_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)


def _run_id(folder: Path) -> str | None:
    try:
        data = (folder / EXECUTION).read_bytes()
        return SandboxExecution.model_validate_json(data).run_id
    except (OSError, ValidationError):
        return None
