"""The sandboxes of executions in a folder: workspaces, journals and snapshots.

    lock                      see store_lock.py
    runs/RUN-DIGEST/files/    the workspace of a run on a project
    runs/RUN-DIGEST/execution.json   whose it is
    runs/RUN-DIGEST/journal.jsonl    its snapshots, by time (journal.py)
    runs/RUN-DIGEST/in-use    locked by who works in it; its time is that of the last use
    latest/DIGEST.json        the last snapshot of a workflow on a project
    blobs/, trees/            see snapshots.py

A workspace is made beside its place and renamed, so it is there whole or not at all. Extend
tests/integration/test_sandboxes_contract.py, which the twin in memory passes too.

Source: specification E10.
"""

import fcntl
import logging
import os
import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from reprise.canonical import json_digest
from reprise.errors import RepriseError
from reprise.model.sandbox import (
    SandboxExecution,
    SandboxMoment,
    SandboxSeed,
    SandboxSnapshot,
    SandboxTree,
    last_snapshot,
)
from reprise.model.workflow import Step
from reprise.ports import SandboxFiles
from resources.atomic_file import store_error
from resources.sandbox import journal
from resources.sandbox.retention import EXECUTION, IN_USE, JOURNAL, LatestSnapshot, Retention
from resources.sandbox.seeding import EMPTY, Beginning, build, of_template
from resources.sandbox.snapshots import SnapshotFolder, consistent_tree, tree_of, write_file
from resources.sandbox.store_lock import held

logger = logging.getLogger(__name__)

FILES = "files"


class FolderSandboxes:
    """`Sandboxes` in a folder; safe among threads and processes.

    Args:
        root: The folder; made on the first write.
        templates: Folder of the templates.
        files: A workspace's folder → its files.
        clock: Answers the time; aware, UTC.
        retention_days: After so many days without use, workspaces and snapshots go.
    """

    def __init__(
        self,
        root: Path,
        *,
        templates: Path,
        files: Callable[[Path], SandboxFiles],
        clock: Callable[[], datetime],
        retention_days: float,
    ) -> None:
        self._root = root
        self._templates = templates
        self._files = files
        self._clock = clock
        self._kept = SnapshotFolder(root)
        self._retention = Retention(root, self._kept, retention_days)
        self._uses: dict[str, dict[Path, int]] = {}
        self._uses_lock = threading.Lock()

    def open(self, execution: SandboxExecution) -> SandboxFiles:
        """Return an execution's files; see `Sandboxes`."""
        folder = self._folder(execution.run_id, execution.project_id)
        with self._locked(alone=False):
            is_there = folder.is_dir()
            if is_there:
                self._use(execution.run_id, folder)
        if not is_there:
            with self._locked(alone=True):
                self._make(execution, folder)
                self._use(execution.run_id, folder)
            self._sweep_in_passing()
        return self._files(folder / FILES)

    def tree(self, execution: SandboxExecution) -> SandboxTree:
        """Return the files that there are, or would be; see `Sandboxes`."""
        folder = self._folder(execution.run_id, execution.project_id)
        if folder.is_dir():
            return tree_of(self._files(folder / FILES))
        return self._beginning(execution).tree

    def snapshot(
        self, execution: SandboxExecution, step: Step, moment: SandboxMoment
    ) -> SandboxTree:
        """Keep the files as they are; see `Sandboxes`."""
        folder = self._folder(execution.run_id, execution.project_id)
        with self._locked(alone=False):
            tree = consistent_tree(
                self._files(folder / FILES), self._kept.holds_file, self._kept.keep_file
            )
            self._kept.keep_tree(tree)
            now = self._clock()
            line = SandboxSnapshot(
                order=step.order,
                label=step.label,
                moment=moment,
                digest=tree.digest,
                taken_at=now,
            )
            with _typed_errors(f"journal of the sandbox of run {execution.run_id}"):
                journal.append(folder / JOURNAL, line)
                self._note_latest(execution, line)
        return tree

    def snapshots(self, run_id: str, project_id: str) -> Sequence[SandboxSnapshot]:
        """Return what was kept of an execution; see `Sandboxes`."""
        with _typed_errors(f"journal of the sandbox of run {run_id}"):
            return journal.read(self._folder(run_id, project_id) / JOURNAL)

    def kept_tree(self, digest: str) -> SandboxTree:
        """Return the files of a snapshot; see `Sandboxes`."""
        return self._kept.tree(digest)

    def kept_file(self, digest: str) -> bytes:
        """Return the bytes of a file of a snapshot; see `Sandboxes`."""
        return self._kept.file(digest)

    def release(self, run_id: str) -> None:
        """Say that a run has ended; see `Sandboxes`."""
        with self._uses_lock:
            handles = self._uses.pop(run_id, {})
        for handle in handles.values():
            os.close(handle)

    def sweep(self, *, now: datetime, running: Collection[str] = ()) -> int:
        """Remove what is old; see `Sandboxes`."""
        if not self._root.is_dir():
            return 0
        with self._locked(alone=True), _typed_errors(f"sandboxes in {str(self._root)!r}"):
            return self._retention.sweep(now=now, running=running)

    def _folder(self, run_id: str, project_id: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9-]", "_", run_id)[:60]
        return self._root / "runs" / f"{plain}-{json_digest([run_id, project_id])[:16]}"

    def _latest(self, execution: SandboxExecution) -> Path:
        digest = json_digest([execution.workflow_id, execution.project_id])
        return self._root / "latest" / f"{digest[:32]}.json"

    @contextmanager
    def _locked(self, *, alone: bool) -> Iterator[None]:
        with held(self._root / "lock", alone=alone):
            yield

    def _make(self, execution: SandboxExecution, folder: Path) -> None:
        if folder.is_dir():
            return
        beginning = self._beginning(execution)
        with _typed_errors(f"sandbox of run {execution.run_id}"):
            part = folder.with_name(f".new-{secrets.token_hex(8)}")
            build(beginning, part / FILES)
            write_file(part / EXECUTION, execution.model_dump_json().encode())
            part.rename(folder)
        logger.debug("the sandbox of run %s begins with %s", execution.run_id, beginning.origin)

    def _beginning(self, execution: SandboxExecution) -> Beginning:
        for earlier in execution.earlier:
            found = last_snapshot(
                self.snapshots(earlier.run_id, execution.project_id), earlier.before_order
            )
            if found is not None:
                return self._of_snapshot(found.digest, f"run {earlier.run_id[:8]}")
        if execution.earlier:
            runs = ", ".join(earlier.run_id[:8] for earlier in execution.earlier)
            logger.info("no sandbox of run %s is kept, which this run goes on from", runs)
        if execution.seed is SandboxSeed.PREVIOUS:
            previous = self._previous(execution)
            if previous is not None:
                return previous
        if execution.template is None:
            return EMPTY
        with _typed_errors(f"template {execution.template!r}"):
            return of_template(self._templates / execution.template)

    def _previous(self, execution: SandboxExecution) -> Beginning | None:
        with _typed_errors("the sandbox of the previous run"):
            latest = LatestSnapshot.read(self._latest(execution))
        if latest is None:
            return None
        if self._kept.whole_tree(latest.digest) is None:
            logger.warning(
                "what run %s left is lost or damaged; this sandbox begins with the template",
                latest.run_id[:8],
            )
            return None
        return self._of_snapshot(latest.digest, f"run {latest.run_id[:8]}")

    def _of_snapshot(self, digest: str, origin: str) -> Beginning:
        kept = self._kept
        return Beginning(origin, kept.tree(digest), lambda file: kept.file(file.digest))

    def _note_latest(self, execution: SandboxExecution, line: SandboxSnapshot) -> None:
        if line.moment is not SandboxMoment.AFTER:
            return
        latest = LatestSnapshot(
            run_id=execution.run_id,
            digest=line.digest,
            taken_at=line.taken_at,
            seed=execution.seed,
        )
        latest.write(self._latest(execution))

    def _use(self, run_id: str, folder: Path) -> None:
        with _typed_errors(f"sandbox of run {run_id}"), self._uses_lock:
            of_run = self._uses.setdefault(run_id, {})
            if folder not in of_run:
                handle = os.open(folder / IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                of_run[folder] = handle
                # Nobody holds it alone: who does that has the store's lock alone.
                fcntl.flock(handle, fcntl.LOCK_SH)
            os.utime(of_run[folder])

    def _sweep_in_passing(self) -> None:
        """Remove old ones where no nightly job does; a fault is logged."""
        try:
            with self._locked(alone=True), _typed_errors(f"sandboxes in {str(self._root)!r}"):
                self._retention.sweep_if_due(now=self._clock())
        except RepriseError as error:
            logger.warning("old sandboxes are not removed: %s", error)


@contextmanager
def _typed_errors(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise store_error(error, where) from error
