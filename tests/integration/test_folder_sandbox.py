"""A sandbox in a folder: links, devices, modes, locks, and what is left behind."""

import fcntl
import hashlib
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from reprise.errors import RepriseError, SandboxRefused, StoreError, StoreTimeout, StoreUnusable
from reprise.model.sandbox import SandboxFault, SandboxLimits
from resources.sandbox import FolderSandbox
from tests.child_process import can_mount, run_python, start_python

Act = Callable[[FolderSandbox, str], object]


def _write(sandbox: FolderSandbox, path: str) -> None:
    sandbox.update(path, lambda _: b"overwritten", create=True)


ACTS: dict[str, Act] = {
    "read": lambda sandbox, path: sandbox.read(path),
    "edit": lambda sandbox, path: sandbox.update(path, lambda _: b"overwritten"),
    "write": _write,
    "remove": lambda sandbox, path: sandbox.remove(
        path, digest=hashlib.sha256(b"secret").hexdigest()
    ),
    "resolved": lambda sandbox, path: sandbox.resolved(path),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_bytes(b"inside")
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder beside the sandbox whose name begins with the sandbox's."""
    outside = tmp_path / "ws-evil"
    outside.mkdir()
    (outside / "secret.txt").write_bytes(b"secret")
    yield outside
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret.txt": b"secret"}


@pytest.fixture
def sandbox(root: Path) -> FolderSandbox:
    return FolderSandbox(root)


def fault_of(call: Callable[[], object]) -> str:
    with pytest.raises(SandboxRefused) as caught:
        call()
    return caught.value.code


def paths(sandbox: FolderSandbox) -> list[str]:
    return [file.path for file in sandbox.list()]


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# ------------------------------------------------------------------------------------------ links


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("link", "../ws-evil/secret.txt", "link"),
        ("src/link", "../../ws-evil/secret.txt", "src/link"),
        ("link", "src/../../ws-evil/secret.txt", "link"),
        ("link", "../ws-evil", "link/secret.txt"),
        ("link", "../ws-evil", "link/new.txt"),
        ("link", "../ws-evil/new.txt", "link"),
        ("link", "..", "link/ws-evil/secret.txt"),
        ("link", "../ws/src/a.txt", "link"),
        ("link", "../../../../../../../../../../etc/passwd", "link"),
        ("link", "/etc/passwd", "link"),
        ("link", "/dev/null", "link"),
        ("link", "/proc/self/environ", "link"),
        ("link", "/none", "link"),
        ("link", "/", "link/etc/passwd"),
        ("link", "src/node_modules/x", "link"),
        ("link", ".git/config", "link"),
        ("link", "src/a\\b", "link"),
        ("link", "src/\udc80", "link"),
    ],
)
def test_a_link_that_leads_out_is_refused(
    sandbox: FolderSandbox, root: Path, outside: Path, link: str, target: str, path: str, act: str
) -> None:
    (root / link).symlink_to(target)
    assert fault_of(lambda: ACTS[act](sandbox, path)) == SandboxFault.OUTSIDE
    assert paths(sandbox) == ["src/a.txt"]
    assert (root / link).readlink() == Path(target)


@pytest.mark.parametrize("act", ACTS)
def test_an_absolute_link_is_refused_even_to_the_inside(
    sandbox: FolderSandbox, root: Path, act: str
) -> None:
    (root / "link").symlink_to(root / "src" / "a.txt")
    assert fault_of(lambda: ACTS[act](sandbox, "link")) == SandboxFault.OUTSIDE
    assert sandbox.read("src/a.txt") == b"inside"


def test_links_of_links_are_each_looked_at(
    sandbox: FolderSandbox, root: Path, outside: Path
) -> None:
    (root / "src" / "up").symlink_to("..")
    (root / "one").symlink_to("src/up/two")
    (root / "two").symlink_to("src/up/../ws-evil")
    assert sandbox.read("src/up/src/up/src/a.txt") == b"inside"
    assert fault_of(lambda: sandbox.read("one/secret.txt")) == SandboxFault.OUTSIDE


@pytest.mark.parametrize(
    "target", ["src/a.txt", "./src//a.txt", "src/../src/a.txt", "src/up/src/a.txt", "other"]
)
def test_a_link_to_the_inside_changes_the_file_that_it_leads_to(
    sandbox: FolderSandbox, root: Path, target: str
) -> None:
    (root / "src" / "up").symlink_to("..")
    (root / "other").symlink_to("src/a.txt")
    (root / "link").symlink_to(target)
    assert sandbox.read("link") == b"inside"
    assert sandbox.resolved("link") == "src/a.txt"
    sandbox.update("link", lambda present: (present or b"") + b", edited", create=True)
    assert (root / "src" / "a.txt").read_bytes() == b"inside, edited"
    assert (root / "link").readlink() == Path(target)
    assert paths(sandbox) == ["src/a.txt"]


def test_a_folder_that_is_a_link_to_the_inside_is_followed(
    sandbox: FolderSandbox, root: Path
) -> None:
    (root / "link").symlink_to("src")
    _write(sandbox, "link/deep/new.txt")
    assert (root / "src" / "deep" / "new.txt").read_bytes() == b"overwritten"
    assert sandbox.resolved("link/b.txt") == "src/b.txt"
    assert paths(sandbox) == ["src/a.txt", "src/deep/new.txt"]


@pytest.mark.parametrize("target", ["none.txt", "none/a.txt", "src/../none", "src/none/../a.txt"])
def test_nothing_is_made_through_a_link_that_leads_to_nothing(
    sandbox: FolderSandbox, root: Path, target: str
) -> None:
    (root / "link").symlink_to(target)
    assert fault_of(lambda: _write(sandbox, "link")) == SandboxFault.NOT_FOUND
    assert names(root) == ["link", "src", "src/a.txt"]


def test_the_message_about_a_dangling_link_names_what_it_leads_to(
    sandbox: FolderSandbox, root: Path
) -> None:
    (root / "link").symlink_to("src/none.txt")
    with pytest.raises(SandboxRefused, match=r"'link': it is a link to 'src/none\.txt'"):
        _write(sandbox, "link")


@pytest.mark.parametrize("target", ["link", "./link", "src/../link", "two"])
def test_links_in_a_circle_are_refused(sandbox: FolderSandbox, root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    (root / "two").symlink_to("link")
    for act in ACTS.values():
        with pytest.raises(SandboxRefused, match="more than 40 links follow each other") as caught:
            act(sandbox, "link")
        assert caught.value.code == SandboxFault.OUTSIDE


def test_many_links_on_one_way_are_followed_and_too_many_refused(
    sandbox: FolderSandbox, root: Path
) -> None:
    for index in range(41):
        (root / f"link{index}").symlink_to(f"link{index - 1}" if index else "src/a.txt")
    assert sandbox.read("link39") == b"inside"
    assert fault_of(lambda: sandbox.read("link40")) == SandboxFault.OUTSIDE


@pytest.mark.parametrize("target", ["src/a.txt/", "src/a.txt/.", "src/a.txt/../a.txt"])
def test_a_link_that_takes_a_file_for_a_folder_leads_nowhere(
    sandbox: FolderSandbox, root: Path, target: str
) -> None:
    (root / "link").symlink_to(target)
    assert fault_of(lambda: sandbox.read("link")) == SandboxFault.NOT_FOUND


@pytest.mark.parametrize("target", ["src", "src/", ".", "src/..", "src/."])
def test_a_link_to_a_folder_is_no_file(sandbox: FolderSandbox, root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    for act in ACTS.values():
        assert fault_of(partial(act, sandbox, "link")) == SandboxFault.IS_FOLDER


def test_a_link_to_a_path_that_is_too_long_or_deep_is_refused(
    sandbox: FolderSandbox, root: Path
) -> None:
    deep = root.joinpath(*"d" * 20)
    deep.mkdir(parents=True)
    (deep / "again").symlink_to("/".join([".."] * 20 + ["d"] * 20 + ["e"] * 13))
    (root.joinpath(*"d" * 20, *"e" * 13)).mkdir(parents=True)
    (root.joinpath(*"d" * 20, *"e" * 13) / "a.txt").write_bytes(b"deep")
    path = "/".join(["d"] * 20 + ["again", "a.txt"])
    assert fault_of(lambda: sandbox.read(path)) == SandboxFault.BAD_PATH
    path = path.replace("a.txt", "new.txt")
    assert fault_of(lambda: _write(sandbox, path)) == SandboxFault.BAD_PATH
    long = root / ("l" * 250) / ("m" * 250) / ("n" * 250)
    (long / ("o" * 250)).mkdir(parents=True)
    (long / ("o" * 250) / "a.txt").write_bytes(b"long")
    (root / "long").symlink_to(long.relative_to(root))
    assert fault_of(lambda: sandbox.read(f"long/{'o' * 250}/a.txt")) == SandboxFault.BAD_PATH
    assert fault_of(lambda: _write(sandbox, f"long/{'p' * 250}/a.txt")) == SandboxFault.BAD_PATH
    assert paths(sandbox) == ["src/a.txt"]


def test_the_folder_itself_may_be_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("ws")
    sandbox = FolderSandbox(tmp_path / "link")
    _write(sandbox, "src/a.txt")
    assert (root / "src" / "a.txt").read_bytes() == b"overwritten"


def test_links_that_the_kernel_makes_up_are_refused(tmp_path: Path) -> None:
    """A sandbox in which /proc is mounted: its links lead elsewhere than they say."""
    if not can_mount():
        pytest.skip("needs the right to mount")
    out = run_python(
        """
        import subprocess, sys
        from pathlib import Path
        from reprise.errors import RepriseError
        from resources.sandbox import FolderSandbox

        root = Path(sys.argv[1])
        (root / "proc").mkdir()
        subprocess.run(["mount", "--bind", "/proc", str(root / "proc")], check=True)
        secret = open(sys.argv[0] if sys.argv[0] != "-c" else "/etc/hostname", "rb")
        for path in ("proc/self/root/etc/passwd", f"proc/self/fd/{secret.fileno()}",
                     "proc/self/cwd/pyproject.toml", "proc/self/exe", "proc/self/fd/0"):
            try:
                print("read", path, FolderSandbox(root).read(path)[:9])
            except RepriseError as error:
                print(error.code)
        """,
        str(tmp_path),
        own_mounts=True,
    ).splitlines()
    assert out[:4] == ["outside"] * 4
    assert out[4] in ("outside", "not_found_file")


# --------------------------------------------------------------------------- what is not a file


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # The address of a socket holds about a hundred bytes.
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("needs the right to make devices")


@pytest.mark.parametrize("make", [_fifo, _socket, _device])
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("path", ["thing", "link"])
def test_what_is_no_regular_file_is_refused_before_it_can_block(
    sandbox: FolderSandbox, root: Path, make: Callable[[Path], None], act: str, path: str
) -> None:
    make(root / "thing")
    (root / "link").symlink_to("thing")
    before = (root / "thing").lstat()
    assert fault_of(lambda: ACTS[act](sandbox, path)) == SandboxFault.NOT_A_FILE
    assert (root / "thing").lstat() == before
    assert paths(sandbox) == ["src/a.txt"]


@pytest.mark.parametrize("make", [_fifo, _socket, _device])
def test_what_is_no_folder_is_not_entered(
    sandbox: FolderSandbox, root: Path, make: Callable[[Path], None]
) -> None:
    make(root / "thing")
    assert fault_of(lambda: sandbox.read("thing/a.txt")) == SandboxFault.NOT_FOUND
    assert fault_of(lambda: _write(sandbox, "thing/a.txt")) == SandboxFault.NOT_FOUND


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_file_with_further_names_is_refused(
    sandbox: FolderSandbox, root: Path, outside: Path, act: str, where: str
) -> None:
    source = outside / "secret.txt" if where == "outside" else root / "src" / "a.txt"
    before = source.read_bytes()
    (root / "hard").hardlink_to(source)
    (root / "link").symlink_to("hard")
    for path in ("hard", "link"):
        assert fault_of(partial(ACTS[act], sandbox, path)) == SandboxFault.HARD_LINK
    assert source.read_bytes() == before
    assert "hard" not in paths(sandbox)


def test_neither_list_nor_copy_looks_into_what_is_no_part_of_a_sandbox(
    sandbox: FolderSandbox, root: Path, outside: Path, tmp_path: Path
) -> None:
    for folder in ("node_modules", "src/node_modules", ".git", "Node_Modules"):
        (root / folder).mkdir()
        (root / folder / "x.js").write_bytes(b"x")
    (root / "file").symlink_to("src/a.txt")
    (root / "folder").symlink_to("src")
    (root / "out").symlink_to(outside)
    (root / "hard").hardlink_to(outside / "secret.txt")
    _fifo(root / "pipe")
    (root / "odd\nname").write_bytes(b"x")
    (root / "back\\slash").write_bytes(b"x")
    (root / "blank ").write_bytes(b"x")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff")).write_bytes(b"x")
    (root / "src" / ".part-0123456789abcdef").write_bytes(b"half")
    root.joinpath(*"d" * 33).mkdir(parents=True)
    root.joinpath(*"d" * 33, "too-deep.txt").write_bytes(b"x")
    root.joinpath(*"d" * 32, "deep.txt").write_bytes(b"deep")
    assert paths(sandbox) == ["/".join("d" * 32) + "/deep.txt", "src/a.txt"]
    tree = sandbox.copy_to(tmp_path / "copy")
    assert [file.path for file in tree.files] == paths(sandbox)
    copied = [path for path in (tmp_path / "copy").rglob("*") if not path.is_dir()]
    assert sorted(path.name for path in copied) == ["a.txt", "deep.txt"]


def test_a_folder_with_too_many_entries_is_refused_and_can_be_shrunk(root: Path) -> None:
    sandbox = FolderSandbox(root, limits=SandboxLimits(entries_max=10))
    for index in range(20):
        (root / f"link{index}").symlink_to("src")
    assert fault_of(sandbox.list) == SandboxFault.TOO_LARGE
    assert fault_of(lambda: _write(sandbox, "new.txt")) == SandboxFault.TOO_LARGE
    sandbox.update("src/a.txt", lambda _: b"less")
    assert (root / "src" / "a.txt").read_bytes() == b"less"


def test_a_file_that_is_mostly_holes_is_refused_unread(root: Path, tmp_path: Path) -> None:
    sandbox = FolderSandbox(root)
    with (root / "big.bin").open("wb") as stream:
        stream.truncate(2**40)
    assert fault_of(lambda: sandbox.read("big.bin")) == SandboxFault.TOO_LARGE
    assert fault_of(sandbox.list) == SandboxFault.TOO_LARGE
    assert fault_of(lambda: sandbox.remove("big.bin", digest="0")) == SandboxFault.TOO_LARGE
    assert fault_of(lambda: sandbox.copy_to(tmp_path / "copy")) == SandboxFault.TOO_LARGE


def test_files_beyond_the_edit_limit_are_listed_and_copied(
    sandbox: FolderSandbox, root: Path, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 20_000
    (root / "film.bin").write_bytes(data)
    digests = {file.path: file.digest for file in sandbox.list()}
    assert digests["film.bin"] == hashlib.sha256(data).hexdigest()
    sandbox.copy_to(tmp_path / "copy")
    assert (tmp_path / "copy" / "film.bin").read_bytes() == data


# ------------------------------------------------------------------------------ modes and owners


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640, 0o777, 0o200])
def test_an_edit_keeps_the_mode(sandbox: FolderSandbox, root: Path, mode: int) -> None:
    if mode == 0o200 and os.geteuid() != 0:
        pytest.skip("only root reads what nobody may read")
    file = root / "src" / "a.txt"
    file.chmod(mode)
    _write(sandbox, "src/a.txt")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert [each.mode for each in sandbox.list()] == [mode]


def test_an_edit_does_not_keep_a_program_s_borrowed_rights(
    sandbox: FolderSandbox, root: Path
) -> None:
    file = root / "src" / "a.txt"
    file.chmod(0o6755)
    _write(sandbox, "src/a.txt")
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


def test_a_new_file_has_the_same_mode_whatever_the_mask(sandbox: FolderSandbox, root: Path) -> None:
    mask = os.umask(0o077)
    try:
        _write(sandbox, "new.txt")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((root / "new.txt").stat().st_mode) == 0o644


def test_an_edit_keeps_owner_and_attributes_where_it_can(
    sandbox: FolderSandbox, root: Path
) -> None:
    file = root / "src" / "a.txt"
    try:
        os.chown(file, 12345, 23456)
    except PermissionError:
        pytest.skip("needs the right to give files away")
    if sys.platform == "linux":
        os.setxattr(file, "user.note", b"kept")
    _write(sandbox, "src/a.txt")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)
    if sys.platform == "linux":
        assert os.getxattr(file, "user.note") == b"kept"


@pytest.mark.parametrize("act", ["edit", "write", "remove"])
def test_a_read_only_file_is_not_written_even_where_the_system_would_allow_it(
    sandbox: FolderSandbox, root: Path, act: str
) -> None:
    file = root / "src" / "a.txt"
    file.write_bytes(b"secret")
    file.chmod(0o444)
    assert fault_of(lambda: ACTS[act](sandbox, "src/a.txt")) == SandboxFault.DENIED
    assert file.read_bytes() == b"secret"
    assert sandbox.read("src/a.txt") == b"secret"


def test_a_copy_has_the_modes(sandbox: FolderSandbox, root: Path, tmp_path: Path) -> None:
    (root / "src" / "a.txt").chmod(0o755)
    sandbox.copy_to(tmp_path / "copy")
    assert stat.S_IMODE((tmp_path / "copy" / "src" / "a.txt").stat().st_mode) == 0o755


# ----------------------------------------------------------------------------------- left behind


def test_the_same_bytes_again_are_not_written(sandbox: FolderSandbox, root: Path) -> None:
    before = (root / "src" / "a.txt").stat()
    sandbox.update("src/a.txt", lambda _: b"inside")
    assert (root / "src" / "a.txt").stat() == before


def test_nothing_but_the_file_is_left_in_the_folder_and_only_the_lock_beside_it(
    sandbox: FolderSandbox, root: Path, tmp_path: Path
) -> None:
    _write(sandbox, "src/a.txt")
    _write(sandbox, "new/b.txt")
    sandbox.remove("src/a.txt", digest=hashlib.sha256(b"overwritten").hexdigest())
    assert names(tmp_path) == ["ws", "ws.edit-lock", "ws/new", "ws/new/b.txt"]


def test_the_lock_may_be_elsewhere(root: Path, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    _write(FolderSandbox(root, lock=tmp_path / "locks" / "ws"), "src/a.txt")
    assert names(tmp_path) == ["locks", "locks/ws", "ws", "ws/src", "ws/src/a.txt"]


def test_what_a_killed_writer_left_is_no_file_and_goes_with_the_next_write(
    sandbox: FolderSandbox, root: Path
) -> None:
    left = root / "src" / ".part-0123456789abcdef"
    left.write_bytes(b"half")
    (root / "src" / ".part-of-mine").write_bytes(b"not ours")
    assert paths(sandbox) == ["src/a.txt"]
    assert fault_of(lambda: sandbox.read("src/.part-0123456789abcdef")) == SandboxFault.BAD_PATH
    _write(sandbox, "src/a.txt")
    assert names(root) == ["src", "src/.part-of-mine", "src/a.txt"]


def test_folders_that_were_made_for_a_file_go_again_when_it_is_refused(
    root: Path, tmp_path: Path
) -> None:
    sandbox = FolderSandbox(root, limits=SandboxLimits(file_bytes_max=3))
    assert fault_of(lambda: _write(sandbox, "new/deep/b.txt")) == SandboxFault.TOO_LARGE
    assert names(root) == ["src", "src/a.txt"]


def test_refusals_leave_no_descriptor_open(
    sandbox: FolderSandbox, root: Path, outside: Path
) -> None:
    open_files = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    (root / "out").symlink_to(outside)
    (root / "circle").symlink_to("circle")
    (root / "dangling").symlink_to("src/none")
    (root / "hard").hardlink_to(outside / "secret.txt")
    (root / "folder").mkdir()
    _fifo(root / "pipe")
    (root / "read-only.txt").write_bytes(b"1")
    (root / "read-only.txt").chmod(0o444)
    limited = FolderSandbox(root, limits=SandboxLimits(entries_max=1, file_bytes_max=1))
    bad = ("out/secret.txt", "circle", "dangling", "hard", "folder", "pipe", "../x", "src/a.txt/b")

    def refuse_everything() -> int:
        count = 0
        for each in (sandbox, limited):
            for act in ACTS.values():
                for path in (*bad, "read-only.txt", "SRC/new.txt", "none/none.txt"):
                    try:
                        act(each, path)
                    except RepriseError:
                        count += 1
        with pytest.raises(SandboxRefused):
            limited.list()
        with pytest.raises(ZeroDivisionError):
            sandbox.update("src/a.txt", lambda _: bytes(1 // 0))
        return count

    assert refuse_everything() > 100
    before = len(list(open_files.iterdir()))
    for _ in range(20):
        refuse_everything()
    assert len(list(open_files.iterdir())) == before


def test_folders_that_a_removal_leaves_empty_go_and_others_stay(
    sandbox: FolderSandbox, root: Path
) -> None:
    (root / "src" / "deep" / "er").mkdir(parents=True)
    (root / "src" / "deep" / "er" / "b.txt").write_bytes(b"secret")
    (root / "empty").mkdir()
    ACTS["remove"](sandbox, "src/deep/er/b.txt")
    assert names(root) == ["empty", "src", "src/a.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_that_another_process_has_leased_is_not_waited_for(
    sandbox: FolderSandbox, root: Path
) -> None:
    """The kernel would let an opening wait for 45 seconds; a file system may have no leases."""
    code = """
        import fcntl, os, signal, sys
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        handle = os.open(sys.argv[1], os.O_RDWR)
        try:
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            print("no", flush=True)
        else:
            print("leased", flush=True)
        sys.stdin.readline()
    """
    with start_python(code, str(root / "src" / "a.txt")) as child:
        assert child.stdout is not None
        if child.stdout.readline() == "leased\n":
            for act in ("read", "edit"):
                with pytest.raises(StoreError, match=r"'src/a\.txt' of the sandbox") as caught:
                    ACTS[act](sandbox, "src/a.txt")
                assert caught.value.transient
        child.communicate("go\n")
    assert sandbox.read("src/a.txt") == b"inside"


# ----------------------------------------------------------------------------------------- locks


def test_a_writer_waits_no_longer_than_its_limit_and_names_the_lock(
    root: Path, tmp_path: Path
) -> None:
    sandbox = FolderSandbox(root, wait_seconds=0.05)
    with (tmp_path / "ws.edit-lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreTimeout, match=r"ws\.edit-lock': another writer has held it"):
            _write(sandbox, "src/a.txt")
        assert sandbox.read("src/a.txt") == b"inside"
    _write(sandbox, "src/a.txt")


def test_the_lock_is_the_same_by_whichever_link_the_folder_is_reached(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("ws")
    with (tmp_path / "ws.edit-lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreTimeout):
            _write(FolderSandbox(tmp_path / "link", wait_seconds=0.05), "src/a.txt")
    assert not (tmp_path / "link.edit-lock").exists()


def test_an_update_from_within_a_change_times_out_and_changes_nothing(root: Path) -> None:
    sandbox = FolderSandbox(root, wait_seconds=0.05)

    def change(present: bytes | None) -> bytes:
        _write(sandbox, "src/b.txt")
        return b"never"

    with pytest.raises(StoreTimeout):
        sandbox.update("src/a.txt", change)
    assert paths(sandbox) == ["src/a.txt"]
    assert sandbox.read("src/a.txt") == b"inside"


def test_a_lock_that_was_removed_while_it_was_held_keeps_nobody_out_for_ever(
    sandbox: FolderSandbox, root: Path, tmp_path: Path
) -> None:
    with (tmp_path / "ws.edit-lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (tmp_path / "ws.edit-lock").unlink()
        _write(sandbox, "src/a.txt")
    assert sandbox.read("src/a.txt") == b"overwritten"


def test_a_change_that_is_made_behind_the_lock_is_stale(sandbox: FolderSandbox, root: Path) -> None:
    def change(_: bytes | None) -> bytes:
        (root / "src" / "a.txt").write_bytes(b"a script's")
        return b"ours"

    assert fault_of(lambda: sandbox.update("src/a.txt", change)) == SandboxFault.STALE
    assert (root / "src" / "a.txt").read_bytes() == b"a script's"
    assert names(root) == ["src", "src/a.txt"]


def test_a_file_that_is_made_behind_the_lock_is_not_overwritten(
    sandbox: FolderSandbox, root: Path
) -> None:
    def change(present: bytes | None) -> bytes:
        assert present is None
        (root / "new.txt").write_bytes(b"a script's")
        return b"ours"

    assert fault_of(lambda: sandbox.update("new.txt", change, create=True)) == SandboxFault.STALE
    assert (root / "new.txt").read_bytes() == b"a script's"


def test_a_file_that_is_removed_behind_the_lock_is_stale(
    sandbox: FolderSandbox, root: Path
) -> None:
    def change(_: bytes | None) -> bytes:
        (root / "src" / "a.txt").unlink()
        return b"ours"

    assert fault_of(lambda: sandbox.update("src/a.txt", change)) == SandboxFault.STALE
    assert names(root) == ["src"]


def test_a_sandbox_whose_folder_is_gone_says_so_and_leaves_no_lock(tmp_path: Path) -> None:
    sandbox = FolderSandbox(tmp_path / "gone")
    for call in (
        lambda: sandbox.read("a.txt"),
        lambda: _write(sandbox, "a.txt"),
        lambda: sandbox.remove("a.txt", digest="0"),
        lambda: sandbox.resolved("a.txt"),
        sandbox.list,
        lambda: sandbox.copy_to(tmp_path / "copy"),
    ):
        with pytest.raises(StoreUnusable, match="gone': its folder is gone"):
            call()
    assert names(tmp_path) == []
