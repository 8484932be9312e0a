"""Executions with sandboxes, for tests."""

from collections.abc import Mapping
from datetime import UTC, datetime

from reprise.model.sandbox import (
    EarlierRun,
    SandboxExecution,
    SandboxMoment,
    SandboxSeed,
    SandboxTree,
)
from reprise.model.workflow import Step, StepType
from reprise.ports import Sandboxes, SandboxFiles

BEFORE, AFTER = SandboxMoment.BEFORE, SandboxMoment.AFTER
TEMPLATE: Mapping[str, bytes] = {"src/a.txt": b"one\n", "package.json": b"{}\n"}


def execution(
    run_id: str,
    project_id: str = "p",
    *earlier: EarlierRun,
    template: str | None = "plain",
    seed: SandboxSeed = SandboxSeed.TEMPLATE,
    workflow_id: str = "w",
) -> SandboxExecution:
    return SandboxExecution(
        run_id=run_id,
        project_id=project_id,
        workflow_id=workflow_id,
        template=template,
        seed=seed,
        earlier=earlier,
    )


def step(order: int = 1) -> Step:
    return Step(order=order, label=f"step-{order}", type=StepType.AGENT, agent="a")


def put(files: SandboxFiles, path: str, data: bytes) -> None:
    files.update(path, lambda _before: data, create=True)


def contents(files: SandboxFiles) -> dict[str, bytes]:
    return {file.path: files.read(file.path) for file in files.list()}


def kept(sandboxes: Sandboxes, tree: SandboxTree | str) -> dict[str, bytes]:
    digest = tree if isinstance(tree, str) else tree.digest
    files = sandboxes.kept_tree(digest).files
    return {file.path: sandboxes.kept_file(file.digest) for file in files}


def now() -> datetime:
    return datetime.now(UTC)
