"""What every sandbox promises, run on each: in memory and in a folder."""

import hashlib
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reprise.errors import SandboxRefused, StoreError
from reprise.model.sandbox import SandboxFault, SandboxFile, SandboxLimits, SandboxTree
from reprise.ports import SandboxFiles
from resources.memory_sandbox import MemorySandbox
from resources.sandbox import FolderSandbox

MakeSandbox = Callable[[SandboxLimits, Mapping[str, bytes]], SandboxFiles]


def _in_memory(limits: SandboxLimits, files: Mapping[str, bytes]) -> SandboxFiles:
    return MemorySandbox(files, limits=limits)


@pytest.fixture(params=["memory", "folder"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeSandbox:
    if request.param == "memory":
        return _in_memory

    def in_folder(limits: SandboxLimits, files: Mapping[str, bytes]) -> SandboxFiles:
        root = tmp_path / "sandbox"
        root.mkdir()
        for path, data in files.items():
            (root / path).write_bytes(data)
        return FolderSandbox(root, limits=limits)

    return in_folder


@pytest.fixture
def sandbox(make: MakeSandbox) -> SandboxFiles:
    return make(SandboxLimits(), {})


def write(sandbox: SandboxFiles, path: str, data: bytes) -> None:
    sandbox.update(path, lambda _: data, create=True)


def paths(sandbox: SandboxFiles) -> list[str]:
    return [file.path for file in sandbox.list()]


def fault_of(call: Callable[[], object]) -> str:
    with pytest.raises(SandboxRefused) as caught:
        call()
    return caught.value.code


def never(_: bytes | None) -> bytes:
    raise AssertionError("must not be asked for a change")


def test_bytes_come_back_as_they_were_written(sandbox: SandboxFiles) -> None:
    data = b"\xef\xbb\xbf" + bytes(range(256)) + b"one\r\ntwo\rthree\n"
    write(sandbox, "src/deep/er/data.bin", data)
    assert sandbox.read("src/deep/er/data.bin") == data


def test_an_empty_file_is_a_file(sandbox: SandboxFiles) -> None:
    write(sandbox, "empty.txt", b"")
    assert sandbox.read("empty.txt") == b""
    assert paths(sandbox) == ["empty.txt"]


def test_a_file_that_is_not_there_is_not_found_and_is_not_made(sandbox: SandboxFiles) -> None:
    assert fault_of(lambda: sandbox.read("src/a.txt")) == SandboxFault.NOT_FOUND
    assert fault_of(lambda: sandbox.update("src/a.txt", never)) == SandboxFault.NOT_FOUND
    assert fault_of(lambda: sandbox.remove("src/a.txt", digest="0")) == SandboxFault.NOT_FOUND
    assert paths(sandbox) == []


def test_a_change_gets_the_present_bytes_or_none(sandbox: SandboxFiles) -> None:
    given: list[bytes | None] = []

    def change(present: bytes | None) -> bytes:
        given.append(present)
        return (present or b"") + b"x"

    for _ in range(3):
        sandbox.update("a.txt", change, create=True)
    assert given == [None, b"x", b"xx"]
    assert sandbox.read("a.txt") == b"xxx"


def test_a_change_of_none_leaves_the_file_and_makes_none(sandbox: SandboxFiles) -> None:
    write(sandbox, "a.txt", b"1")
    sandbox.update("a.txt", lambda _: None)
    sandbox.update("new/b.txt", lambda _: None, create=True)
    assert [(file.path, sandbox.read(file.path)) for file in sandbox.list()] == [("a.txt", b"1")]


@pytest.mark.parametrize("error", [ValueError("mine"), OSError(2, "mine"), KeyboardInterrupt()])
def test_what_a_change_raises_goes_up_and_the_file_is_untouched(
    sandbox: SandboxFiles, error: BaseException
) -> None:
    write(sandbox, "a.txt", b"1")

    def change(_: bytes | None) -> bytes:
        raise error

    for path in ("a.txt", "new/b.txt"):
        with pytest.raises(type(error)) as caught:
            sandbox.update(path, change, create=True)
        assert caught.value is error
    assert paths(sandbox) == ["a.txt"]
    assert sandbox.read("a.txt") == b"1"
    write(sandbox, "new/b.txt", b"the lock was let go of")


def test_a_file_is_removed_only_while_it_has_the_bytes(sandbox: SandboxFiles) -> None:
    write(sandbox, "a.txt", b"1")
    write(sandbox, "src/b.txt", b"2")
    wrong = hashlib.sha256(b"2").hexdigest()
    assert fault_of(lambda: sandbox.remove("a.txt", digest=wrong)) == SandboxFault.STALE
    assert sandbox.read("a.txt") == b"1"
    sandbox.remove(
        "a.txt", digest="6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    )
    assert paths(sandbox) == ["src/b.txt"]


def test_a_listing_tells_size_mode_and_digest_by_path(sandbox: SandboxFiles) -> None:
    write(sandbox, "src/b.txt", b"abc")
    write(sandbox, "a.txt", b"")
    write(sandbox, "src.txt", b"1")
    assert list(sandbox.list()) == [
        SandboxFile(
            path="a.txt",
            size_bytes=0,
            mode=0o644,
            digest="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        SandboxFile(
            path="src.txt",
            size_bytes=1,
            mode=0o644,
            digest="6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
        ),
        SandboxFile(
            path="src/b.txt",
            size_bytes=3,
            mode=0o644,
            digest="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
    ]


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "./", "/", "..", "../a", "a/../b", "a/..", "./../a", "../sandbox-evil/a"),
        *("/etc/passwd", "//etc/passwd", "a/", "src/"),
        *("a\x00b", "a\nb", "a\tb", "a\x1b[2Jb", "a\x7fb", "a\x85b", "a\u2028b", "a\udc80b"),
        *("a\\b", "..\\a", "C:\\a", "C:a", "c:/a", "\\\\host\\share"),
        *("a.", "a ", " a", "src./a", "src /a", "a...", "a\u00a0", "... /a"),
        *("node_modules/a", "src/node_modules/a", "Node_Modules/a", ".git/config", ".GIT/hooks/x"),
        *(".g\u200cit/config", ".part-0123456789abcdef", "src/.part-a"),
        *("a" * 256, "é" * 128, "/".join(["abcdefghi"] * 101), "/".join("a" * 34)),
    ],
)
def test_a_bad_path_is_refused_by_everything_and_made_by_nothing(
    sandbox: SandboxFiles, path: str
) -> None:
    assert fault_of(lambda: sandbox.read(path)) == SandboxFault.BAD_PATH
    assert fault_of(lambda: sandbox.update(path, never, create=True)) == SandboxFault.BAD_PATH
    assert fault_of(lambda: sandbox.remove(path, digest="0")) == SandboxFault.BAD_PATH
    assert fault_of(lambda: sandbox.resolved(path)) == SandboxFault.BAD_PATH
    assert paths(sandbox) == []


@pytest.mark.parametrize(
    "path",
    [
        *("a", ".env", "..a", "a..b", "a b.txt", "…/é.txt", "a~", "-rf", "$(x).txt", "a'\"b"),
        *("C", "con.txt", "ab:c", "👩‍🚀.txt", "node_modules.txt", "a" * 255, "/".join("a" * 33)),
    ],
)
def test_an_unusual_path_is_as_good_as_any(sandbox: SandboxFiles, path: str) -> None:
    write(sandbox, path, b"1")
    assert sandbox.read(path) == b"1"
    assert paths(sandbox) == [path]
    assert sandbox.resolved(path) == path


def test_dots_and_doubled_slashes_name_the_same_file(sandbox: SandboxFiles) -> None:
    write(sandbox, "./src//a.txt", b"1")
    assert paths(sandbox) == ["src/a.txt"]
    assert sandbox.read("src/./a.txt") == b"1"
    assert sandbox.resolved(".//src/./a.txt") == "src/a.txt"
    assert sandbox.resolved("./none//b.txt") == "none/b.txt"


def test_a_message_names_the_path_in_one_line_that_can_be_read(sandbox: SandboxFiles) -> None:
    with pytest.raises(SandboxRefused) as caught:
        sandbox.read("a\n\x1b[2J\u202eb")
    assert str(caught.value) == (
        "'a\\n\\x1b[2J\\u202eb': it holds a control character; "
        "use a relative path with forward slashes, such as 'src/Root.tsx'"
    )
    with pytest.raises(SandboxRefused) as caught:
        sandbox.read("x" * 1_000_000)
    assert len(str(caught.value)) < 400


def test_a_folder_is_no_file(sandbox: SandboxFiles) -> None:
    write(sandbox, "src/a.txt", b"1")
    assert fault_of(lambda: sandbox.read("src")) == SandboxFault.IS_FOLDER
    assert fault_of(lambda: sandbox.update("src", never, create=True)) == SandboxFault.IS_FOLDER
    assert fault_of(lambda: sandbox.remove("src", digest="0")) == SandboxFault.IS_FOLDER
    assert fault_of(lambda: sandbox.resolved("src")) == SandboxFault.IS_FOLDER


@pytest.mark.parametrize("path", ["src/a.txt", "src/deep/a.txt"])
def test_a_file_is_no_folder(sandbox: SandboxFiles, path: str) -> None:
    write(sandbox, "src", b"1")
    assert fault_of(lambda: sandbox.read(path)) == SandboxFault.NOT_FOUND
    assert fault_of(lambda: sandbox.update(path, never, create=True)) == SandboxFault.NOT_FOUND
    with pytest.raises(SandboxRefused, match=r"'src/.*': .*'src' is a file, not a folder"):
        write(sandbox, path, b"2")
    assert paths(sandbox) == ["src"]


@pytest.mark.parametrize(
    "path", ["SRC/b.txt", "src/A.txt", "src/a.TXT", "src/Deep/b.txt", "src/STRASSE", "src/e\u0301"]
)
def test_a_new_name_that_differs_by_case_or_form_alone_is_refused(
    sandbox: SandboxFiles, path: str
) -> None:
    for name in ("src/a.txt", "src/deep/a.txt", "src/straße", "src/é"):
        write(sandbox, name, b"1")
    before = sandbox.list()
    assert fault_of(lambda: write(sandbox, path, b"2")) == SandboxFault.CASE_CLASH
    assert sandbox.list() == before


def test_a_clash_names_the_name_that_is_there(sandbox: SandboxFiles) -> None:
    write(sandbox, "src/Root.tsx", b"1")
    with pytest.raises(SandboxRefused, match=r"'src/root\.tsx': 'src/Root\.tsx' is there"):
        write(sandbox, "src/root.tsx", b"2")


def test_a_file_up_to_the_limit_is_read_and_written_and_none_beyond(make: MakeSandbox) -> None:
    sandbox = make(SandboxLimits(file_bytes_max=100), {"big.txt": b"x" * 101})
    assert fault_of(lambda: sandbox.read("big.txt")) == SandboxFault.TOO_LARGE
    assert fault_of(lambda: sandbox.update("big.txt", never)) == SandboxFault.TOO_LARGE
    assert sandbox.read("big.txt", size_bytes_max=101) == b"x" * 101
    assert paths(sandbox) == ["big.txt"]
    write(sandbox, "new.txt", b"x" * 100)
    assert fault_of(lambda: write(sandbox, "new.txt", b"y" * 101)) == SandboxFault.TOO_LARGE
    assert fault_of(lambda: sandbox.read("new.txt", size_bytes_max=99)) == SandboxFault.TOO_LARGE
    assert sandbox.read("new.txt") == b"x" * 100


def test_a_sandbox_takes_no_more_bytes_than_its_limit(make: MakeSandbox) -> None:
    sandbox = make(SandboxLimits(tree_bytes_max=10), {})
    write(sandbox, "a.txt", b"x" * 6)
    assert fault_of(lambda: write(sandbox, "b.txt", b"x" * 5)) == SandboxFault.TOO_LARGE
    write(sandbox, "b.txt", b"x" * 4)
    assert fault_of(lambda: write(sandbox, "a.txt", b"x" * 7)) == SandboxFault.TOO_LARGE
    write(sandbox, "a.txt", b"y" * 6)
    write(sandbox, "a.txt", b"")
    write(sandbox, "b.txt", b"x" * 10)
    assert [(file.path, file.size_bytes) for file in sandbox.list()] == [
        ("a.txt", 0),
        ("b.txt", 10),
    ]


def test_a_sandbox_takes_no_more_files_and_folders_than_its_limit(make: MakeSandbox) -> None:
    sandbox = make(SandboxLimits(entries_max=4), {})
    write(sandbox, "a/b/c.txt", b"1")
    assert fault_of(lambda: write(sandbox, "d/e.txt", b"1")) == SandboxFault.TOO_LARGE
    write(sandbox, "a/b/d.txt", b"1")
    assert fault_of(lambda: write(sandbox, "e.txt", b"1")) == SandboxFault.TOO_LARGE
    write(sandbox, "a/b/d.txt", b"longer")
    assert paths(sandbox) == ["a/b/c.txt", "a/b/d.txt"]


@pytest.mark.parametrize("seed", range(15))
def test_the_twin_in_memory_answers_as_the_folder_does(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    root = tmp_path / "sandbox"
    root.mkdir()
    limits = SandboxLimits(file_bytes_max=9, tree_bytes_max=40, entries_max=9)
    twins = (MemorySandbox(limits=limits), FolderSandbox(root, limits=limits))
    answers: set[str] = set()

    def answer(sandbox: SandboxFiles, act: str, path: str, data: bytes, *, create: bool) -> str:
        try:
            if act == "read":
                return repr(sandbox.read(path, size_bytes_max=len(data)))
            if act == "resolved":
                return sandbox.resolved(path)
            if act == "remove":
                digest = hashlib.sha256(data).hexdigest()
                sandbox.remove(path, digest=digest)
            else:
                sandbox.update(path, lambda _: data, create=create)
            return "done"
        except SandboxRefused as error:
            answers.add(error.code)
            return f"{error.code}: {error}"

    for _ in range(150):
        path = "/".join(
            pick.choice(["a", "a", "b", "b", "A", "c.txt", "c.txt", ".", "", ".."])
            for _ in range(3)
        )
        data = b"x" * pick.randint(0, 10)
        act = pick.choice(["read", "resolved", "remove", "update", "update", "update"])
        create = pick.random() < 0.8
        ours, theirs = (answer(each, act, path, data, create=create) for each in twins)
        assert ours == theirs, (act, path, data)
        assert twins[0].list() == twins[1].list()
    assert len(answers) >= 4


def test_no_update_is_lost_among_threads(sandbox: SandboxFiles) -> None:
    def append(letter: bytes) -> None:
        for _ in range(20):
            sandbox.update("a.txt", lambda present: (present or b"") + letter, create=True)

    threads = [threading.Thread(target=append, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data = sandbox.read("a.txt")
    assert [len(data), *(data.count(letter) for letter in (b"a", b"b", b"c"))] == [60, 20, 20, 20]


def test_a_copy_is_what_the_listing_tells(sandbox: SandboxFiles, tmp_path: Path) -> None:
    write(sandbox, "src/deep/a.txt", b"1")
    write(sandbox, "b.txt", b"\r\n")
    tree = sandbox.copy_to(tmp_path / "copies" / "copy")
    assert tree == SandboxTree(files=tuple(sandbox.list()))
    copied = [path for path in (tmp_path / "copies" / "copy").rglob("*") if path.is_file()]
    assert {
        path.relative_to(tmp_path / "copies").as_posix(): path.read_bytes() for path in copied
    } == {
        "copy/src/deep/a.txt": b"1",
        "copy/b.txt": b"\r\n",
    }
    (tmp_path / "copies" / "copy" / "b.txt").write_bytes(b"edited")
    assert sandbox.read("b.txt") == b"\r\n"


def test_a_copy_overwrites_nothing(sandbox: SandboxFiles, tmp_path: Path) -> None:
    write(sandbox, "a.txt", b"1")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a.txt").write_bytes(b"mine")
    with pytest.raises(StoreError, match=r"copy of a sandbox to .*a\.txt"):
        sandbox.copy_to(tmp_path / "copy")
    assert (tmp_path / "copy" / "a.txt").read_bytes() == b"mine"
