"""A sandbox in a folder on a bad disk: full, read-only, without rights, without descriptors."""

import os
from pathlib import Path

import pytest

from tests.child_process import can_mount, run_python

SEEN_FROM_CHILD = """
    import os, resource, subprocess, sys
    from pathlib import Path
    from reprise.errors import RepriseError
    from resources.sandbox import FolderSandbox

    def tell(call):
        try:
            call()
            print("done")
        except RepriseError as error:
            print(type(error).__name__, getattr(error, "code", ""), str(error))

    def write(sandbox, path, data):
        tell(lambda: sandbox.update(path, lambda _: data, create=True))

    def show(root):
        print(sorted(path.relative_to(root).as_posix() for path in root.rglob("*")))

    root = Path(sys.argv[1])
"""


@pytest.mark.parametrize("how", ["tmpfs", "rlimit"])
def test_a_full_disk_is_named_and_leaves_what_was_there_and_nothing_new(
    tmp_path: Path, how: str
) -> None:
    if how == "tmpfs" and not can_mount():
        pytest.skip("needs the right to mount; the case `rlimit` covers the same code")
    code = """
    if sys.argv[2] == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(root)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, 800_000))
    (root / "ws").mkdir()
    sandbox = FolderSandbox(root / "ws")
    write(sandbox, "a.bin", b"k" * 300_000)
    write(sandbox, "a.bin", b"n" * 900_000)
    write(sandbox, "new/deep/b.bin", b"n" * 900_000)
    print(sandbox.read("a.bin") == b"k" * 300_000)
    show(root / "ws")
    write(sandbox, "new/small.bin", b"s")
    """
    out = run_python(SEEN_FROM_CHILD + code, str(tmp_path), how, own_mounts=how == "tmpfs")
    first, edited, created, kept, shown, small = out.splitlines()
    remedy = "the disk is full" if how == "tmpfs" else "larger than the system allows"
    assert first == small == "done"
    assert edited.startswith("StoreUnusable  file 'a.bin' of the sandbox: ")
    assert created.startswith("StoreUnusable  file 'new/deep/b.bin' of the sandbox: ")
    assert remedy in edited
    assert remedy in created
    assert kept == "True"
    assert shown == "['a.bin']"


def test_a_full_disk_is_named_when_a_copy_is_made(tmp_path: Path) -> None:
    code = """
    (root / "ws").mkdir()
    (root / "ws" / "a.bin").write_bytes(b"k" * 900_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, 800_000))
    tell(lambda: FolderSandbox(root / "ws").copy_to(root / "copy"))
    """
    out = run_python(SEEN_FROM_CHILD + code, str(tmp_path))
    assert out.startswith("StoreUnusable  copy of a sandbox to ")
    assert "larger than the system allows" in out


def test_a_read_only_file_system_is_named_and_can_be_read(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("needs the right to mount")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_bytes(b"1")
    code = """
    subprocess.run(["mount", "--bind", str(root / "ws"), str(root / "ws")], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", str(root / "ws")], check=True)
    sandbox = FolderSandbox(root / "ws")
    print(sandbox.read("a.txt"), len(sandbox.list()))
    write(sandbox, "a.txt", b"2")
    write(sandbox, "new/b.txt", b"2")
    tell(lambda: sandbox.remove("a.txt", digest=sandbox.list()[0].digest))
    """
    first, *others = run_python(SEEN_FROM_CHILD + code, str(tmp_path), own_mounts=True).splitlines()
    assert first == "b'1' 1"
    assert [line.split(" ")[0] for line in others] == ["StoreUnusable"] * 3
    assert all("the file system is read-only" in line for line in others)


# In a folder of its own: those above the test's are closed to others.
WITHOUT_RIGHTS = """
    import tempfile

    folder = tempfile.TemporaryDirectory()
    root = Path(folder.name)
    was_root = os.geteuid() == 0
    if was_root:
        os.chown(root, 65534, 65534)
        os.setegid(65534)
        os.seteuid(65534)
    for name in ("ws", "ws/closed", "ws/fixed"):
        (root / name).mkdir()
    for name in ("a.txt", "closed/b.txt", "fixed/c.txt"):
        (root / "ws" / name).write_bytes(b"1")
    sandbox = FolderSandbox(root / "ws")
"""
WITH_RIGHTS_AGAIN = """
    for path in ("ws", "ws/closed", "ws/fixed", "ws/a.txt"):
        (root / path).chmod(0o700)
    if was_root:
        os.seteuid(0)
    folder.cleanup()
"""


def told(code: str) -> list[str]:
    out = run_python(SEEN_FROM_CHILD + WITHOUT_RIGHTS + code + WITH_RIGHTS_AGAIN, ".")
    return out.splitlines()


def test_a_file_that_may_not_be_read_is_denied() -> None:
    read, edited, listed, copied, other = told(
        """
    (root / "ws" / "a.txt").chmod(0o200)
    tell(lambda: sandbox.read("a.txt"))
    write(sandbox, "a.txt", b"2")
    tell(sandbox.list)
    tell(lambda: sandbox.copy_to(root / "copy"))
    write(sandbox, "b.txt", b"2")
    """
    )
    for line in (read, edited, listed, copied):
        assert line.startswith("SandboxRefused denied 'a.txt': its permissions do not allow it")
    assert other == "done"


def test_a_folder_that_may_not_be_entered_is_denied() -> None:
    read, made, listed = told(
        """
    (root / "ws" / "closed").chmod(0o000)
    tell(lambda: sandbox.read("closed/b.txt"))
    write(sandbox, "closed/new/b.txt", b"2")
    tell(sandbox.list)
    """
    )
    assert read.startswith("SandboxRefused denied 'closed/b.txt': its permissions do not allow")
    assert made.startswith("SandboxRefused denied 'closed/new/b.txt': ")
    assert listed.startswith("SandboxRefused denied 'closed': ")


def test_a_folder_that_may_not_be_written_is_denied() -> None:
    read, edited, made, removed = told(
        """
    (root / "ws" / "fixed").chmod(0o555)
    tell(lambda: sandbox.read("fixed/c.txt"))
    write(sandbox, "fixed/c.txt", b"2")
    write(sandbox, "fixed/new/c.txt", b"2")
    digest = next(file.digest for file in sandbox.list() if file.path == "fixed/c.txt")
    tell(lambda: sandbox.remove("fixed/c.txt", digest=digest))
    """
    )
    assert read == "done"
    for line in (edited, made, removed):
        assert line.startswith("SandboxRefused denied 'fixed/")


def test_a_file_of_another_owner_is_edited_where_its_folder_allows_it() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the right to give files away")
    edited, mode, owner = told(
        """
    os.seteuid(0)
    os.chown(root / "ws" / "a.txt", 12345, 23456)
    (root / "ws" / "a.txt").chmod(0o666)
    os.seteuid(65534)
    write(sandbox, "a.txt", b"2")
    status = (root / "ws" / "a.txt").stat()
    print(oct(status.st_mode & 0o777))
    print(status.st_uid)
    """
    )
    assert (edited, mode, owner) == ("done", "0o666", "65534")


def test_without_descriptors_left_the_disk_is_named_and_nothing_changed(tmp_path: Path) -> None:
    """At whichever of the openings the last descriptor goes: each is tried."""
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "a.txt").write_bytes(b"1")
    code = """
    sandbox = FolderSandbox(root / "ws")
    # All that is imported late is imported now.
    write(sandbox, "src/a.txt", b"1.")
    write(sandbox, "src/a.txt", b"1")
    open_files = len(os.listdir("/dev/fd")) - 1
    for left in range(7):
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + left, 4096))
        write(sandbox, "src/a.txt", b"longer")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        if sandbox.read("src/a.txt") == b"longer":
            write(sandbox, "src/a.txt", b"1")
        show(root / "ws")
    print(open_files == len(os.listdir("/dev/fd")) - 1)
    """
    out = run_python(SEEN_FROM_CHILD + code, str(tmp_path)).splitlines()
    answers = [line.split(" ")[0] for line in out[2:-1] if not line.startswith("[")]
    assert answers[0] == "StoreError"
    assert answers[-2:] == ["done", "done"]
    assert {line for line in out if line.startswith("[")} == {"['src', 'src/a.txt']"}
    assert out[-1] == "True"
