"""The sandboxes of executions in this process's memory: the twin of `FolderSandboxes`.

Extend tests/integration/test_sandboxes_contract.py, which both pass.

Source: specification E10.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from reprise.errors import BadInput, ObjectMissing
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
from resources.sandbox.snapshots import consistent_tree, tree_of

Item = TypeVar("Item")


class MemorySandboxes:
    """`Sandboxes` in memory; safe among threads.

    Args:
        template: Name → path → bytes; None where there is no such template.
        new_files: Makes an empty sandbox.
        clock: Answers the time; aware, UTC.
        retention_days: After so many days without use, workspaces and snapshots go.
    """

    def __init__(
        self,
        template: Callable[[str], Mapping[str, bytes] | None],
        *,
        new_files: Callable[[], SandboxFiles],
        clock: Callable[[], datetime],
        retention_days: float,
    ) -> None:
        self._template = template
        self._new_files = new_files
        self._clock = clock
        self._age = timedelta(days=retention_days)
        self._lock = threading.RLock()
        self._files: dict[tuple[str, str], SandboxFiles] = {}
        self._journals: dict[tuple[str, str], list[SandboxSnapshot]] = {}
        self._used: dict[tuple[str, str], datetime] = {}
        self._held: set[str] = set()
        self._latest: dict[tuple[str, str], tuple[SandboxSeed, SandboxSnapshot]] = {}
        self._trees: dict[str, SandboxTree] = {}
        self._blobs: dict[str, bytes] = {}

    def open(self, execution: SandboxExecution) -> SandboxFiles:
        """Return an execution's files; see `Sandboxes`."""
        key = (execution.run_id, execution.project_id)
        with self._lock:
            if key not in self._files:
                self._files[key] = self._beginning(execution)
            self._held.add(execution.run_id)
            self._used[key] = self._clock()
            return self._files[key]

    def tree(self, execution: SandboxExecution) -> SandboxTree:
        """Return the files that there are, or would be; see `Sandboxes`."""
        with self._lock:
            files = self._files.get((execution.run_id, execution.project_id))
            return tree_of(self._beginning(execution) if files is None else files)

    def snapshot(
        self, execution: SandboxExecution, step: Step, moment: SandboxMoment
    ) -> SandboxTree:
        """Keep the files as they are; see `Sandboxes`."""
        key = (execution.run_id, execution.project_id)
        with self._lock:
            tree = consistent_tree(
                self._files[key], self._blobs.__contains__, self._blobs.__setitem__
            )
            self._trees[tree.digest] = tree
            line = SandboxSnapshot(
                order=step.order,
                label=step.label,
                moment=moment,
                digest=tree.digest,
                taken_at=self._clock(),
            )
            self._journals.setdefault(key, []).append(line)
            if moment is SandboxMoment.AFTER:
                latest = (execution.workflow_id, execution.project_id)
                self._latest[latest] = (execution.seed, line)
        return tree

    def snapshots(self, run_id: str, project_id: str) -> Sequence[SandboxSnapshot]:
        """Return what was kept of an execution; see `Sandboxes`."""
        with self._lock:
            return tuple(self._journals.get((run_id, project_id), ()))

    def kept_tree(self, digest: str) -> SandboxTree:
        """Return the files of a snapshot; see `Sandboxes`."""
        return _kept(self._trees, digest)

    def kept_file(self, digest: str) -> bytes:
        """Return the bytes of a file of a snapshot; see `Sandboxes`."""
        return _kept(self._blobs, digest)

    def release(self, run_id: str) -> None:
        """Say that a run has ended; see `Sandboxes`."""
        with self._lock:
            self._held.discard(run_id)

    def sweep(self, *, now: datetime, running: Collection[str] = ()) -> int:
        """Remove what is old; see `Sandboxes`."""
        with self._lock:
            old = [
                key
                for key, used in self._used.items()
                if now - used > self._age and key[0] not in self._held and key[0] not in running
            ]
            for key in old:
                del self._files[key], self._used[key]
                self._journals.pop(key, None)
            for name, (seed, line) in list(self._latest.items()):
                if seed is not SandboxSeed.PREVIOUS and now - line.taken_at > self._age:
                    del self._latest[name]
            self._remove_unnamed()
            return len(old)

    def _remove_unnamed(self) -> None:
        named = {line.digest for lines in self._journals.values() for line in lines}
        named |= {line.digest for _seed, line in self._latest.values()}
        self._trees = {digest: self._trees[digest] for digest in named}
        files = {file.digest for tree in self._trees.values() for file in tree.files}
        self._blobs = {digest: self._blobs[digest] for digest in files}

    def _beginning(self, execution: SandboxExecution) -> SandboxFiles:
        files = self._new_files()
        for path, data in self._first_files(execution).items():
            _put(files, path, data)
        return files

    def _first_files(self, execution: SandboxExecution) -> Mapping[str, bytes]:
        for earlier in execution.earlier:
            lines = self.snapshots(earlier.run_id, execution.project_id)
            found = last_snapshot(lines, earlier.before_order)
            if found is not None:
                return self._files_of(found)
        latest = self._latest.get((execution.workflow_id, execution.project_id))
        if execution.seed is SandboxSeed.PREVIOUS and latest is not None:
            return self._files_of(latest[1])
        if execution.template is None:
            return {}
        template = self._template(execution.template)
        if template is None:
            message = f"template {execution.template!r}: there is none; correct `sandbox`"
            raise BadInput(message)
        return template

    def _files_of(self, snapshot: SandboxSnapshot) -> Mapping[str, bytes]:
        tree = self.kept_tree(snapshot.digest)
        return {file.path: self.kept_file(file.digest) for file in tree.files}


def _put(files: SandboxFiles, path: str, data: bytes) -> None:
    files.update(path, lambda _before: data, create=True)


def _kept(known: Mapping[str, Item], digest: str) -> Item:
    if digest not in known:
        message = f"snapshot {digest[:16]} is not kept any more"
        raise ObjectMissing(message)
    return known[digest]
