"""A sandbox's folder that others change while it is used: nothing outside is read or written."""

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprise.errors import RepriseError, SandboxRefused
from reprise.model.sandbox import SandboxFault
from resources.sandbox import FolderSandbox
from tests.child_process import ROOT, start_python
from tests.sandbox_intruder import CALLS, DEEDS, INSIDE, SECRET

STEPS_MIN = 4


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


Outcomes = Callable[[str], tuple[Path, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def outcomes_of(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Each call with every deed at every step of it, tried once: where, and how each ended."""
    return functools.cache(lambda call: _tried(tmp_path_factory.mktemp(call), call))


def _tried(folder: Path, call: str) -> tuple[Path, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox_intruder", str(folder), call],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("call", CALLS)
def test_whatever_is_swapped_at_whatever_step_the_outside_is_neither_read_nor_written(
    outcomes_of: Outcomes, call: str
) -> None:
    folder, outcomes = outcomes_of(call)
    secret = hashlib.sha256(SECRET).hexdigest()
    for outcome in outcomes:
        case = folder / f"{outcome['deed']} {outcome['step']}"
        assert files(case / "out") == {"deep/a.txt": SECRET, "secret.txt": SECRET}, outcome
        assert secret not in outcome["answer"], outcome
        assert SECRET.decode() not in outcome["answer"], outcome
        assert SECRET not in files(case / "copy").values(), outcome
    # The deeds were done within the calls, and each was tried at each step.
    assert {outcome["deed"] for outcome in outcomes} == set(DEEDS)
    assert max(outcome["step"] for outcome in outcomes) > STEPS_MIN
    assert {outcome["fault"] for outcome in outcomes if outcome["deed"] == "nothing"} == {None}


def test_what_took_the_temporary_file_s_place_is_not_called_written(
    outcomes_of: Outcomes,
) -> None:
    folder, outcomes = outcomes_of("edit")
    for outcome in outcomes:
        if outcome["deed"] in ("part for link", "part for hard link"):
            case = folder / f"{outcome['deed']} {outcome['step']}"
            written = case / "ws" / "src" / "deep" / "a.txt"
            applied = not written.is_symlink() and written.read_bytes() == b"edited, longer"
            assert applied == (outcome["fault"] is None), outcome
    assert SandboxFault.STALE in {
        outcome["fault"] for outcome in outcomes if outcome["deed"] == "part for link"
    }


@pytest.mark.parametrize("call", ["edit", "write", "copy"])
def test_a_call_that_is_not_killed_leaves_no_temporary_file(
    outcomes_of: Outcomes, call: str
) -> None:
    folder, outcomes = outcomes_of(call)
    for outcome in outcomes:
        if outcome["deed"] != "killed":
            case = folder / f"{outcome['deed']} {outcome['step']}"
            assert not list(case.rglob(".part-*")), outcome


@pytest.mark.parametrize("call", ["edit", "write", "remove"])
def test_a_writer_that_is_killed_at_any_step_leaves_the_old_or_the_new(
    outcomes_of: Outcomes, call: str
) -> None:
    before = {"src/deep/a.txt": INSIDE, "src/secret.txt": INSIDE}
    after = {
        "edit": {**before, "src/deep/a.txt": b"edited, longer"},
        "write": {**before, "src/new/deep/a.txt": b"written"},
        "remove": {"src/secret.txt": INSIDE},
    }[call]
    seen = []
    folder, outcomes = outcomes_of(call)
    for outcome in outcomes:
        if outcome["deed"] != "killed":
            continue
        root = folder / f"killed {outcome['step']}" / "ws"
        sandbox = FolderSandbox(root)
        found = {file.path: sandbox.read(file.path) for file in sandbox.list()}
        assert found in (before, after), outcome
        seen.append(found)
        # Neither its lock nor what it left is in the way of the next.
        CALLS["write"](sandbox, root)
        assert sandbox.read("src/new/deep/a.txt") == b"written"
        assert not list((root / "src" / "new").rglob(".part-*"))
    assert seen[0] == before
    assert seen[-1] == after


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_thread_that_swaps_a_folder_or_file_for_a_link_gets_nothing_out(
    tmp_path: Path, swapped: str
) -> None:
    root, outside = tmp_path / "ws", tmp_path / "ws-evil"
    for folder, data in ((root / "src", INSIDE), (outside, SECRET)):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_bytes(data)
    place, kept = (
        (root / "src", root / "kept")
        if swapped == "folder"
        else (root / "src" / "a.txt", root / "src" / "kept.txt")
    )
    target = "../ws-evil" if swapped == "folder" else "../../ws-evil/a.txt"
    ended = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not ended.is_set():
            with contextlib.suppress(OSError):
                place.rename(kept)
                place.symlink_to(target)
                place.unlink()
                kept.rename(place)
                swaps += 1
                continue
            # The sandbox made a new one meanwhile, in place of what was swapped away.
            shutil.rmtree(kept, ignore_errors=True)
            kept.unlink(missing_ok=True)

    thread = threading.Thread(target=swap)
    thread.start()
    sandbox = FolderSandbox(root)
    done, faults = 0, set()
    read: set[bytes] = set()
    calls: tuple[Callable[[], object], ...] = (
        lambda: read.add(sandbox.read("src/a.txt")),
        lambda: sandbox.update("src/a.txt", lambda present: (present or b"") + b".", create=True),
        lambda: sandbox.update("src/new.txt", lambda _: os.urandom(4), create=True),
        sandbox.list,
    )
    try:
        for index in range(400):
            try:
                calls[index % 4]()
                done += 1
            except RepriseError as error:
                faults.add(getattr(error, "code", type(error).__name__))
    finally:
        ended.set()
        thread.join()
    assert files(outside) == {"a.txt": SECRET}
    assert not any(SECRET in data for data in read)
    assert swaps > 10
    assert done > 10
    assert faults <= {"outside", "stale", "not_found_file", "case_clash"}


# ------------------------------------------------------------------------------- writers at once


APPEND = """
    import sys
    from pathlib import Path
    from resources.sandbox import FolderSandbox

    sandbox, letter = FolderSandbox(Path(sys.argv[1])), sys.argv[2].encode()
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(40):
        sandbox.update("a.txt", lambda present: present + letter)
"""


def test_no_update_is_lost_among_processes(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_bytes(b"")
    children = [start_python(APPEND, str(tmp_path / "ws"), letter) for letter in "ab"]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.communicate("go\n", timeout=120) == ("", "")
    data = (tmp_path / "ws" / "a.txt").read_bytes()
    assert (len(data), data.count(b"a"), data.count(b"b")) == (80, 40, 40)


def test_of_edits_that_were_made_of_the_same_bytes_one_is_applied_and_one_stale(
    tmp_path: Path,
) -> None:
    """Two that each read, think, and write only what they read: the second is told."""
    (tmp_path / "a.txt").write_bytes(b"")
    sandbox = FolderSandbox(tmp_path)
    both_read = threading.Barrier(2)
    told: list[str] = []

    def edit(letter: bytes) -> None:
        for _ in range(25):
            seen = sandbox.read("a.txt")
            both_read.wait(timeout=60)

            def change(present: bytes | None, seen: bytes = seen) -> bytes:
                if present != seen:
                    raise SandboxRefused("changed since it was read", code=SandboxFault.STALE)
                return seen + letter

            try:
                sandbox.update("a.txt", change)
            except SandboxRefused as error:
                told.append(error.code)
            both_read.wait(timeout=60)

    threads = [threading.Thread(target=edit, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["stale"] * 25
    assert len(sandbox.read("a.txt")) == 25


def test_readers_see_whole_files_while_writers_replace_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"0" * 300_000)
    sandbox = FolderSandbox(tmp_path)
    ended = threading.Event()

    def write() -> None:
        for digit in b"123456789" * 5:
            sandbox.update("a.txt", lambda _, digit=digit: bytes([digit]) * 300_000)  # type: ignore[misc]  # Bound by its default.
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not ended.is_set():
            data = sandbox.read("a.txt")
            assert data == data[:1] * 300_000
            assert [file.path for file in sandbox.list()] == ["a.txt"]
    finally:
        thread.join()


# ---------------------------------------------------------------------------------- kernel's word


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


OPENAT2, RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH = 437, 0x02, 0x08


def kernel_reads(root: Path, path: str) -> bytes | None:
    """What the kernel reads beneath a folder; None where it refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    how = _OpenHow(os.O_RDONLY | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        handle = libc.syscall(
            OPENAT2, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
        )
    finally:
        os.close(folder)
    if handle < 0:
        error = ctypes.get_errno()
        if error in (errno.ENOSYS, errno.EPERM, errno.EINVAL):
            pytest.skip("this kernel has no openat2")
        return None
    try:
        return os.read(handle, 100)
    except IsADirectoryError:
        return None
    finally:
        os.close(handle)


@pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux's")
@pytest.mark.parametrize("seed", range(12))
def test_the_same_paths_lead_to_the_same_files_as_the_kernel_says(
    tmp_path: Path, seed: int
) -> None:
    """A thicket of folders, files and links into each other, inside and out."""
    pick = random.Random(seed)
    root = tmp_path / "a"
    root.mkdir()
    folders = [root, tmp_path]
    for index in range(40):
        place = pick.choice(folders) / pick.choice("abcd")
        if os.path.lexists(place):
            continue
        kind = pick.choice(["folder", "file", "link", "link", "link"])
        if kind == "folder":
            place.mkdir()
            folders.append(place)
        elif kind == "file":
            place.write_bytes(b"%d" % index)
        else:
            parts = [pick.choice(["a", "b", "c", "d", "..", "..", "."]) for _ in range(4)]
            target = "/".join(parts[: pick.randint(1, 4)]) + pick.choice(["", "", "", "/"])
            place.symlink_to(pick.choice([target, target, target, target, f"{root}/{target}"]))
    sandbox = FolderSandbox(root)
    agreed = []
    for _ in range(400):
        path = "/".join(pick.choice("abcd") for _ in range(pick.randint(1, 5)))
        try:
            ours: bytes | None = sandbox.read(path)
        except SandboxRefused:
            ours = None
        assert ours == kernel_reads(root, path), path
        agreed.append(ours)
    assert None in agreed
