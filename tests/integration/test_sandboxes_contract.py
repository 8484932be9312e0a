"""What every adapter of `Sandboxes` keeps to: workspaces, snapshots, retention."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from reprise.errors import BadInput, ObjectMissing
from reprise.model.sandbox import EarlierRun, SandboxSeed, SandboxTree
from reprise.ports import Sandboxes
from resources.memory_sandbox import MemorySandbox
from resources.sandbox import FolderSandbox
from resources.sandbox.memory_workspaces import MemorySandboxes
from resources.sandbox.workspaces import FolderSandboxes
from tests.sandbox_executions import (
    AFTER,
    BEFORE,
    TEMPLATE,
    contents,
    execution,
    kept,
    now,
    put,
    step,
)

PREVIOUS = SandboxSeed.PREVIOUS
DAY = timedelta(days=1)


def in_folder(root: Path) -> Sandboxes:
    for path, data in TEMPLATE.items():
        target = root / "templates" / "plain" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return FolderSandboxes(
        root / "sandboxes",
        templates=root / "templates",
        files=FolderSandbox,
        clock=now,
        retention_days=14,
    )


def in_memory(_root: Path) -> Sandboxes:
    return MemorySandboxes(
        {"plain": TEMPLATE}.get, new_files=MemorySandbox, clock=now, retention_days=14
    )


@pytest.fixture(params=[in_folder, in_memory])
def sandboxes(request: pytest.FixtureRequest, tmp_path: Path) -> Sandboxes:
    make: Callable[[Path], Sandboxes] = request.param
    return make(tmp_path)


def worked(sandboxes: Sandboxes, run_id: str, text: bytes, **more: object) -> SandboxTree:
    """Let a run write a file in its first step; return what it left."""
    which = execution(run_id, **more)  # type: ignore[arg-type]  # As the test gives.
    files = sandboxes.open(which)
    sandboxes.snapshot(which, step(), BEFORE)
    put(files, "src/a.txt", text)
    return sandboxes.snapshot(which, step(), AFTER)


def test_a_sandbox_begins_with_its_template(sandboxes: Sandboxes) -> None:
    assert contents(sandboxes.open(execution("r1"))) == TEMPLATE


def test_without_a_template_it_begins_empty(sandboxes: Sandboxes) -> None:
    assert contents(sandboxes.open(execution("r1", template=None))) == {}


def test_a_template_that_is_gone_is_told(sandboxes: Sandboxes) -> None:
    for ask in (sandboxes.open, sandboxes.tree):
        with pytest.raises(BadInput, match="template 'gone'"):
            ask(execution("r1", template="gone"))


def test_what_is_opened_again_is_what_was_left(sandboxes: Sandboxes) -> None:
    put(sandboxes.open(execution("r1")), "b.txt", b"new")
    assert contents(sandboxes.open(execution("r1"))) == {**TEMPLATE, "b.txt": b"new"}


@pytest.mark.parametrize("other", [execution("r2"), execution("r1", "q"), execution("r1/..", "p")])
def test_two_executions_never_see_each_others_files(sandboxes: Sandboxes, other: object) -> None:
    put(sandboxes.open(execution("r1")), "src/a.txt", b"mine")
    assert contents(sandboxes.open(other)) == TEMPLATE  # type: ignore[arg-type]  # One of those above.


def test_the_tree_is_told_before_there_is_one_and_is_the_same_after(sandboxes: Sandboxes) -> None:
    foretold = sandboxes.tree(execution("r1"))
    files = sandboxes.open(execution("r1"))
    assert sandboxes.tree(execution("r1")) == foretold
    put(files, "src/a.txt", b"two\n")
    assert sandboxes.tree(execution("r1")).digest != foretold.digest
    assert sandboxes.tree(execution("r2")) == foretold


def test_a_snapshot_is_what_the_files_were(sandboxes: Sandboxes) -> None:
    tree = worked(sandboxes, "r1", b"two\n")
    put(sandboxes.open(execution("r1")), "src/a.txt", b"three\n")
    assert kept(sandboxes, tree) == {**TEMPLATE, "src/a.txt": b"two\n"}


def test_snapshots_are_told_by_time_with_their_step(sandboxes: Sandboxes) -> None:
    which = execution("r1")
    sandboxes.open(which)
    for order, moment in ((1, BEFORE), (1, AFTER), (2, BEFORE)):
        sandboxes.snapshot(which, step(order), moment)
    lines = sandboxes.snapshots("r1", "p")
    assert [(line.order, line.label, line.moment) for line in lines] == [
        (1, "step-1", BEFORE),
        (1, "step-1", AFTER),
        (2, "step-2", BEFORE),
    ]
    assert list(sandboxes.snapshots("r1", "q")) == []


def test_what_was_never_kept_is_missing(sandboxes: Sandboxes) -> None:
    for ask in (sandboxes.kept_tree, sandboxes.kept_file):
        with pytest.raises(ObjectMissing):
            ask("0" * 64)


def test_previous_begins_with_what_the_workflows_last_run_on_the_project_left(
    sandboxes: Sandboxes,
) -> None:
    worked(sandboxes, "r1", b"two\n", seed=PREVIOUS)
    worked(sandboxes, "r2", b"other workflow\n", workflow_id="v")
    begun = contents(sandboxes.open(execution("r3", seed=PREVIOUS)))
    assert begun == {**TEMPLATE, "src/a.txt": b"two\n"}
    assert contents(sandboxes.open(execution("r4", "q", seed=PREVIOUS))) == TEMPLATE
    assert contents(sandboxes.open(execution("r5"))) == TEMPLATE


def test_a_run_goes_on_from_an_earlier_one_as_that_was_last(sandboxes: Sandboxes) -> None:
    worked(sandboxes, "r1", b"two\n")
    again = execution("r2", "p", EarlierRun(run_id="none"), EarlierRun(run_id="r1"))
    assert sandboxes.tree(again).digest == sandboxes.tree(execution("r1")).digest
    files = sandboxes.open(again)
    assert contents(files)["src/a.txt"] == b"two\n"
    put(files, "src/a.txt", b"three\n")
    assert contents(sandboxes.open(execution("r1")))["src/a.txt"] == b"two\n"


@pytest.mark.parametrize(
    ("order", "text"), [(1, b"one\n"), (2, b"first\n"), (3, b"second\n"), (9, b"second\n")]
)
def test_a_run_goes_on_from_an_earlier_one_as_that_was_before_a_step(
    sandboxes: Sandboxes, order: int, text: bytes
) -> None:
    which = execution("r1")
    for at, data in ((1, b"first\n"), (2, b"second\n")):
        files = sandboxes.open(which)
        sandboxes.snapshot(which, step(at), BEFORE)
        put(files, "src/a.txt", data)
        sandboxes.snapshot(which, step(at), AFTER)
    alone = execution("r2", "p", EarlierRun(run_id="r1", before_order=order))
    assert contents(sandboxes.open(alone))["src/a.txt"] == text


def test_what_is_old_goes_when_its_run_has_ended(sandboxes: Sandboxes) -> None:
    tree = worked(sandboxes, "r1", b"two\n")
    (file,) = (file for file in tree.files if file.path == "src/a.txt")
    later = now() + 15 * DAY
    assert sandboxes.sweep(now=now() + 13 * DAY) == 0
    assert sandboxes.sweep(now=later) == 0, "it is in use"
    sandboxes.release("r1")
    assert sandboxes.sweep(now=later, running={"r1"}) == 0
    assert kept(sandboxes, tree)["src/a.txt"] == b"two\n"

    assert sandboxes.sweep(now=later) == 1

    assert list(sandboxes.snapshots("r1", "p")) == []
    for ask, digest in ((sandboxes.kept_tree, tree.digest), (sandboxes.kept_file, file.digest)):
        with pytest.raises(ObjectMissing):
            ask(digest)
    assert contents(sandboxes.open(execution("r1"))) == TEMPLATE


def test_what_a_kept_snapshot_names_stays(sandboxes: Sandboxes) -> None:
    worked(sandboxes, "r1", b"two\n")
    sandboxes.release("r1")
    tree = worked(sandboxes, "r2", b"two\n")
    later = now() + 15 * DAY
    assert sandboxes.sweep(now=later) == 1
    assert kept(sandboxes, tree) == {**TEMPLATE, "src/a.txt": b"two\n"}


def test_the_last_snapshot_of_a_workflow_that_goes_on_from_it_does_not_grow_old(
    sandboxes: Sandboxes,
) -> None:
    worked(sandboxes, "r1", b"two\n", seed=PREVIOUS)
    sandboxes.release("r1")
    assert sandboxes.sweep(now=now() + 99 * DAY) == 1
    files = sandboxes.open(execution("r2", seed=PREVIOUS))
    assert contents(files) == {**TEMPLATE, "src/a.txt": b"two\n"}


def test_a_sweep_of_nothing_removes_nothing(sandboxes: Sandboxes) -> None:
    assert sandboxes.sweep(now=now()) == 0
