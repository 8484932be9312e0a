"""Sandboxes in a folder: what needs a disk, links, threads, processes and crashes."""

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from reprise.errors import BadInput, ObjectMissing, RepriseError, StoreError
from reprise.model.sandbox import ENTRIES_MAX, SandboxFile, SandboxSeed
from resources.sandbox import FolderSandbox
from resources.sandbox.workspaces import FolderSandboxes
from tests.child_process import run_python, start_python
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

DAY = timedelta(days=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, data in TEMPLATE.items():
        target = tmp_path / "templates" / "plain" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return tmp_path


@pytest.fixture
def template(root: Path) -> Path:
    return root / "templates" / "plain"


def opened(root: Path) -> FolderSandboxes:
    """Return the sandboxes as a new process has them."""
    return FolderSandboxes(
        root / "sandboxes",
        templates=root / "templates",
        files=FolderSandbox,
        clock=now,
        retention_days=14,
    )


@pytest.fixture
def sandboxes(root: Path) -> FolderSandboxes:
    return opened(root)


def blobs(root: Path) -> list[Path]:
    return sorted((root / "sandboxes" / "blobs").glob("*/*"))


# ------------------------------------------------------------------------------- templates


def test_what_is_installed_and_version_control_stay_where_they_are(
    sandboxes: FolderSandboxes, template: Path
) -> None:
    for name in ("node_modules/react/index.js", ".git/config", "src/node_modules/x.js"):
        (template / name).parent.mkdir(parents=True, exist_ok=True)
        (template / name).write_text("x")
    assert contents(sandboxes.open(execution("r1"))) == TEMPLATE
    assert {file.path for file in sandboxes.tree(execution("r2")).files} == set(TEMPLATE)


def test_installed_modules_may_be_a_link_to_somewhere_else(
    sandboxes: FolderSandboxes, template: Path, tmp_path: Path
) -> None:
    (template / "node_modules").symlink_to(tmp_path)
    assert contents(sandboxes.open(execution("r1"))) == TEMPLATE


def test_a_link_to_a_file_inside_becomes_a_file(sandboxes: FolderSandboxes, template: Path) -> None:
    (template / "src" / "b.txt").symlink_to("../package.json")
    foretold = sandboxes.tree(execution("r1"))
    files = sandboxes.open(execution("r1"))
    assert contents(files)["src/b.txt"] == b"{}\n"
    assert sandboxes.tree(execution("r1")) == foretold


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("/etc/hosts", "'bad': it is a link that leads out of the template; put the file itself"),
        ("../other", "'bad': it is a link that leads out of the template; put the file itself"),
        ("nowhere", "'bad': it is a link that leads nowhere; remove it"),
        ("bad", "'bad': it is a link that leads nowhere; remove it"),
        ("src", "'bad': it is a link to a folder; put the folder itself there"),
        ("node_modules/x.js", "'bad': it is a link to what is not copied; put the file itself"),
    ],
)
def test_other_links_are_refused_with_what_to_do(
    sandboxes: FolderSandboxes, template: Path, target: str, told: str
) -> None:
    (template / "node_modules").mkdir()
    (template / "node_modules" / "x.js").write_text("x")
    (template.parent / "other").write_text("x")
    (template / "bad").symlink_to(target)
    for ask in (sandboxes.tree, sandboxes.open):
        with pytest.raises(BadInput) as caught:
            ask(execution("r1"))
        assert told in str(caught.value)
    assert not list((template.parents[1]).glob("sandboxes/runs/*"))


def test_a_pipe_is_refused(sandboxes: FolderSandboxes, template: Path) -> None:
    os.mkfifo(template / "pipe")
    with pytest.raises(BadInput, match="'pipe': it is a device, a pipe or a socket; remove it"):
        sandboxes.open(execution("r1"))


def test_a_name_that_no_sandbox_holds_is_refused(
    sandboxes: FolderSandboxes, template: Path
) -> None:
    (template / "a\\b").write_text("x")
    with pytest.raises(BadInput, match="backslash; rename it"):
        sandboxes.open(execution("r1"))


def test_a_template_is_refused_whose_files_and_folders_are_too_many(
    sandboxes: FolderSandboxes, template: Path
) -> None:
    for at in range(ENTRIES_MAX // 2):
        (template / f"d{at}").mkdir()
        (template / f"d{at}" / "f").touch()
    with pytest.raises(BadInput, match="at most 5,000 files and folders"):
        sandboxes.open(execution("r1"))


def test_modes_are_kept_and_files_are_of_their_own(
    sandboxes: FolderSandboxes, template: Path
) -> None:
    script = template / "run.sh"
    script.write_text("x")
    script.chmod(0o755)
    files = sandboxes.open(execution("r1"))
    (file,) = (file for file in files.list() if file.path == "run.sh")
    assert file.mode == 0o755
    put(files, "run.sh", b"y")
    assert script.read_text() == "x"


# -------------------------------------------------------------------------- who comes first


def test_threads_that_open_one_sandbox_at_once_get_the_same(root: Path) -> None:
    stores = [opened(root) for _ in range(4)]

    def write(at: int) -> None:
        put(stores[at % 4].open(execution("r1")), f"{at}.txt", b"x")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(16)))

    expected = {*TEMPLATE, *(f"{at}.txt" for at in range(16))}
    assert set(contents(stores[0].open(execution("r1")))) == expected


OPENER = """
    import sys
    from pathlib import Path
    from resources.sandbox import FolderSandbox
    from resources.sandbox.workspaces import FolderSandboxes
    from tests.sandbox_executions import AFTER, execution, now, put, step

    root, name = Path(sys.argv[1]), sys.argv[2]
    store = FolderSandboxes(
        root / "sandboxes", templates=root / "templates", files=FolderSandbox, clock=now,
        retention_days=14,
    )
    sys.stdin.readline()
    for at in range(5):
        put(store.open(execution("r1")), f"{name}-{at}.txt", name.encode())
        store.snapshot(execution("r1"), step(), AFTER)
"""


def test_processes_that_open_one_sandbox_at_once_get_the_same(root: Path) -> None:
    children = [start_python(OPENER, str(root), name) for name in ("a", "b", "c")]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    errors = [child.communicate(timeout=120)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], errors

    store = opened(root)
    wanted = {*TEMPLATE, *(f"{name}-{at}.txt" for name in "abc" for at in range(5))}
    assert set(contents(store.open(execution("r1")))) == wanted
    lines = store.snapshots("r1", "p")
    assert len(lines) == 15
    assert set(kept(store, lines[-1].digest)) == wanted


def test_a_process_that_dies_while_it_makes_a_sandbox_leaves_none(root: Path) -> None:
    run_python(
        """
        import os, sys
        from pathlib import Path
        from resources.sandbox import FolderSandbox, seeding
        from resources.sandbox.workspaces import FolderSandboxes
        from tests.sandbox_executions import execution, now

        root = Path(sys.argv[1])
        os.fchmod = lambda *_: os._exit(0)  # After the first file was written.
        FolderSandboxes(
            root / "sandboxes", templates=root / "templates", files=FolderSandbox, clock=now,
            retention_days=14,
        ).open(execution("r1"))
        """,
        str(root),
    )
    runs = root / "sandboxes" / "runs"
    assert [path.name.startswith(".new-") for path in runs.iterdir()] == [True]
    store = opened(root)

    assert contents(store.open(execution("r1"))) == TEMPLATE

    store.sweep(now=now())
    assert [path.name.startswith("r1-") for path in runs.iterdir()] == [True]


# ------------------------------------------------------------------------------- snapshots


def test_a_file_that_did_not_change_is_not_written_again(
    sandboxes: FolderSandboxes, root: Path
) -> None:
    which = execution("r1")
    files = sandboxes.open(which)
    sandboxes.snapshot(which, step(), BEFORE)
    before = {path: path.stat().st_mtime_ns for path in blobs(root)}
    put(files, "src/a.txt", b"two\n")

    sandboxes.snapshot(which, step(), AFTER)

    after = {path: path.stat().st_mtime_ns for path in blobs(root)}
    assert len(after) == len(before) + 1
    assert {path: after[path] for path in before} == before


class _Restless(FolderSandbox):
    """Lets something happen after each of the first few listings."""

    def __init__(self, root: Path, happens: Sequence[Callable[[], None]]) -> None:
        super().__init__(root)
        self._happens = iter(happens)

    def list(self) -> Sequence[SandboxFile]:
        listed = super().list()
        next(self._happens, lambda: None)()
        return listed


def test_a_snapshot_is_one_state_that_there_was(root: Path) -> None:
    """Two files that change together are never kept as one of them before, one after."""
    folder: list[Path] = []

    def both(text: bytes) -> Callable[[], None]:
        def write() -> None:
            for name in ("x.txt", "y.txt"):
                put(FolderSandbox(folder[0]), name, text)

        return write

    def files(path: Path) -> FolderSandbox:
        folder.append(path)
        return _Restless(
            path, [both(b"1"), both(b"2"), lambda: folder[0].joinpath("x.txt").unlink()]
        )

    store = FolderSandboxes(
        root / "sandboxes",
        templates=root / "templates",
        files=files,
        clock=now,
        retention_days=14,
    )
    store.open(execution("r1"))
    tree = store.snapshot(execution("r1"), step(), AFTER)
    assert kept(store, tree) == {**TEMPLATE, "y.txt": b"2"}


def test_snapshots_among_edits_hold_whole_files_alone(sandboxes: FolderSandboxes) -> None:
    which = execution("r1")
    files = sandboxes.open(which)
    put(files, "big.txt", b"0" * 100_000)
    stop = threading.Event()

    def edit() -> None:
        at = 0
        while not stop.is_set():
            at += 1
            put(files, "big.txt", str(at % 10).encode() * 100_000)

    with ThreadPoolExecutor(1) as pool:
        editing = pool.submit(edit)
        trees = []
        try:
            for _ in range(10):
                # It may find no moment of rest; what it keeps is whole.
                with contextlib.suppress(StoreError):
                    trees.append(sandboxes.snapshot(which, step(), AFTER))
        finally:
            stop.set()
        editing.result()
    for tree in trees:
        data = kept(sandboxes, tree)["big.txt"]
        assert data == data[:1] * 100_000


def test_a_damaged_file_of_a_snapshot_is_told(sandboxes: FolderSandboxes, root: Path) -> None:
    which = execution("r1")
    sandboxes.open(which)
    tree = sandboxes.snapshot(which, step(), AFTER)
    for path in (*blobs(root), *(root / "sandboxes" / "trees").glob("*/*")):
        path.write_bytes(b"other")
    with pytest.raises(StoreError, match="is damaged"):
        sandboxes.kept_file(tree.files[0].digest)
    with pytest.raises(StoreError, match="is damaged"):
        sandboxes.kept_tree(tree.digest)


def test_a_torn_last_line_of_the_journal_is_dropped(sandboxes: FolderSandboxes, root: Path) -> None:
    which = execution("r1")
    sandboxes.open(which)
    for order in (1, 2):
        sandboxes.snapshot(which, step(order), AFTER)
    (journal,) = (root / "sandboxes" / "runs").glob("*/journal.jsonl")
    whole = journal.read_bytes()
    for cut in range(len(whole) - 2, len(whole.splitlines()[0]), -1):
        journal.write_bytes(whole[:cut])
        assert [line.order for line in sandboxes.snapshots("r1", "p")] == [1]

    sandboxes.snapshot(which, step(3), AFTER)

    assert [line.order for line in sandboxes.snapshots("r1", "p")] == [1, 3]


# ------------------------------------------------------------------------------- retention


def worked(store: FolderSandboxes, run_id: str, text: bytes) -> str:
    which = execution(run_id)
    put(store.open(which), "src/a.txt", text)
    return store.snapshot(which, step(), AFTER).digest


def test_another_process_that_works_in_a_sandbox_keeps_it(root: Path) -> None:
    worker, sweeper = opened(root), opened(root)
    digest = worked(worker, "r1", b"two\n")
    assert sweeper.sweep(now=now() + 15 * DAY) == 0
    worker.release("r1")
    assert sweeper.sweep(now=now() + 15 * DAY) == 1
    with pytest.raises(ObjectMissing):
        sweeper.kept_tree(digest)


def test_a_new_sandbox_takes_the_place_of_old_ones(root: Path) -> None:
    store = opened(root)
    worked(store, "r1", b"two\n")
    store.release("r1")
    _age(root, "r1", 15)

    store.open(execution("r2"))
    assert _runs(root) == ["r1", "r2"], "somebody looked less than an hour ago"
    long_ago = now().timestamp() - 2 * 3600
    os.utime(root / "sandboxes" / "swept", (long_ago, long_ago))
    store.open(execution("r3"))

    assert _runs(root) == ["r2", "r3"]


def _age(root: Path, run_id: str, days: float) -> None:
    (path,) = (root / "sandboxes" / "runs").glob(f"{run_id}-*/in-use")
    then = now().timestamp() - days * 86400
    os.utime(path, (then, then))


def _runs(root: Path) -> list[str]:
    names = (path.name for path in (root / "sandboxes" / "runs").iterdir())
    return sorted(name.rpartition("-")[0] for name in names)


def test_sweeps_beside_snapshots_never_take_what_is_named(root: Path) -> None:
    stop = threading.Event()
    errors: list[Exception] = []

    def sweep() -> None:
        store = opened(root)
        while not stop.is_set():
            try:
                store.sweep(now=now() + 15 * DAY)
            except RepriseError as error:
                errors.append(error)

    with ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(sweep)
        try:
            store = opened(root)
            for at in range(12):
                digest = worked(store, f"r{at}", f"{at}".encode())
                assert kept(store, digest)["src/a.txt"] == f"{at}".encode()
                store.release(f"r{at}")
        finally:
            stop.set()
        sweeping.result()
    assert errors == []


def test_a_sweep_that_died_half_way_leaves_no_sandbox_that_looks_whole(root: Path) -> None:
    store = opened(root)
    worked(store, "r1", b"two\n")
    (folder,) = (root / "sandboxes" / "runs").iterdir()
    folder.rename(folder.with_name(f".gone-{folder.name}"))
    assert contents(opened(root).open(execution("r1"))) == TEMPLATE


def test_a_tree_that_cannot_be_read_keeps_everything(root: Path) -> None:
    store = opened(root)
    worked(store, "r1", b"two\n")
    for path in (root / "sandboxes" / "trees").glob("*/*"):
        path.unlink()
        path.mkdir()
    before = blobs(root)
    with pytest.raises(StoreError):
        store.sweep(now=now())
    assert blobs(root) == before


def test_a_damaged_tree_does_not_keep_what_nobody_needs(root: Path) -> None:
    store = opened(root)
    worked(store, "r1", b"two\n")
    for path in (root / "sandboxes" / "trees").glob("*/*"):
        path.write_text("{}")
    store.sweep(now=now())
    assert blobs(root) == []


def test_what_was_damaged_is_kept_anew_by_the_next_snapshot(
    sandboxes: FolderSandboxes, root: Path
) -> None:
    which = execution("r1")
    sandboxes.open(which)
    tree = sandboxes.snapshot(which, step(), AFTER)
    for path in (*blobs(root), *(root / "sandboxes" / "trees").glob("*/*")):
        path.write_bytes(b"")
        read = sandboxes.kept_tree if path.suffix else sandboxes.kept_file
        with pytest.raises(ObjectMissing, match="is damaged and was removed"):
            read(path.stem)

    assert sandboxes.snapshot(which, step(), AFTER) == tree

    assert kept(sandboxes, sandboxes.kept_tree(tree.digest)) == TEMPLATE


@pytest.mark.parametrize("lost", ["blobs", "trees"])
def test_a_lost_sandbox_of_the_previous_run_begins_with_the_template(
    root: Path, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(root)
    worked(store, "r1", b"two\n")
    for path in (root / "sandboxes" / lost).glob("*/*"):
        path.unlink()
    begun = store.open(execution("r2", seed=SandboxSeed.PREVIOUS))
    assert contents(begun) == TEMPLATE
    assert "is lost or damaged; this sandbox begins with the template" in caplog.text


def test_a_damaged_note_of_the_last_run_begins_with_the_template(root: Path) -> None:
    store = opened(root)
    worked(store, "r1", b"two\n")
    (note,) = (root / "sandboxes" / "latest").iterdir()
    note.write_text("{")
    begun = store.open(execution("r2", seed=SandboxSeed.PREVIOUS))
    assert contents(begun) == TEMPLATE


# ----------------------------------------------------------------------------------- faults


def test_a_home_that_cannot_be_written_is_told(root: Path) -> None:
    (root / "sandboxes").write_text("a file")
    with pytest.raises(StoreError, match="a file is where a folder is needed"):
        opened(root).open(execution("r1"))


def test_asking_for_a_tree_writes_nothing(sandboxes: FolderSandboxes, root: Path) -> None:
    tree = sandboxes.tree(execution("r1", seed=SandboxSeed.PREVIOUS))
    assert tree.by_path["src/a.txt"].digest == hashlib.sha256(b"one\n").hexdigest()
    assert not (root / "sandboxes").exists()
