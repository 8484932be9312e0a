"""The local object store with links, files in the way, a full disk and a killed writer."""

import os
from pathlib import Path

import pytest

from reprise.errors import BadInput, StoreError, StoreUnusable
from resources.local_object_store import LocalObjectStore
from tests.child_process import can_mount, run_python, start_python


def files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()
    )


def test_making_and_reading_a_store_makes_no_folder(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path / "objects")
    assert store.head("a") is None
    assert list(store.scan("")) == []
    assert list(tmp_path.iterdir()) == []


def test_the_local_path_and_the_url_are_the_file(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path / "objects")
    store.put_bytes("p1/film.mp4", b"film")
    path = store.local_path("p1/film.mp4")
    assert path == tmp_path / "objects" / "p1" / "film.mp4"
    assert store.url("p1/film.mp4") == str(path)
    assert path.read_bytes() == b"film"


@pytest.mark.parametrize("link", ["folder", "file", "loop"])
def test_a_link_that_leads_out_is_not_followed(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_bytes(b"secret")
    root = tmp_path / "objects"
    store = LocalObjectStore(root)
    store.put_bytes("p1/a.txt", b"1")
    key = "p1/link/secret.txt" if link == "folder" else "p1/link"
    targets = {"folder": outside, "file": outside / "secret.txt", "loop": root / "p1" / "link"}
    (root / "p1" / "link").symlink_to(targets[link])
    for call in (
        lambda: store.head(key),
        lambda: store.get_bytes(key),
        lambda: store.put_bytes(key, b"overwritten"),
        lambda: store.delete(key),
        lambda: store.fetch(key, tmp_path / "target"),
        lambda: store.local_path(key),
    ):
        with pytest.raises((BadInput, StoreError), match=r"link leads out|links cannot"):
            call()
    assert [info.key for info in store.scan("")] == ["p1/a.txt"]
    assert (outside / "secret.txt").read_bytes() == b"secret"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "objects").symlink_to(tmp_path / "disk")
    store = LocalObjectStore(tmp_path / "objects")
    store.put_bytes("p1/a.txt", b"1")
    assert store.get_bytes("p1/a.txt") == b"1"
    assert [info.key for info in store.scan("")] == ["p1/a.txt"]


def test_a_folder_is_no_object(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path)
    store.put_bytes("p1/a/b.txt", b"1")
    assert store.head("p1/a") is None
    assert store.local_path("p1/a") is None
    store.delete("p1/a")
    assert store.get_bytes("p1/a/b.txt") == b"1"
    with pytest.raises(StoreUnusable, match="a folder is where a file is needed"):
        store.put_bytes("p1/a", b"2")
    assert files(tmp_path) == ["p1/a/b.txt"]


def test_an_object_where_a_folder_is_needed_is_named(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path)
    store.put_bytes("p1", b"1")
    with pytest.raises(StoreUnusable, match=r"object 'p1/a\.txt'.*a file is where a folder"):
        store.put_bytes("p1/a.txt", b"2")
    assert files(tmp_path) == ["p1"]


def test_deleting_the_last_object_removes_its_folders_but_not_the_root(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    store = LocalObjectStore(root)
    store.put_bytes("p1/a/b/c.txt", b"1")
    store.put_bytes("p1/d.txt", b"1")
    store.delete("p1/a/b/c.txt")
    assert sorted(path.name for path in root.rglob("*")) == ["d.txt", "p1"]
    store.delete("p1/d.txt")
    assert list(root.iterdir()) == []


def test_an_unfinished_file_is_no_object(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path)
    store.put_bytes("p1/a.txt", b"1")
    (tmp_path / "p1" / ".part-0123").write_bytes(b"half")
    assert [info.key for info in store.scan("p1/")] == ["p1/a.txt"]


def test_a_pipe_as_source_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no regular file"):
        LocalObjectStore(tmp_path / "objects").put_file("a", tmp_path / "pipe")


def test_a_replacement_in_the_same_tick_has_a_later_time(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path)
    store.put_bytes("a.txt", b"one")
    future_ns = 4_000_000_000_000_000_000
    os.utime(tmp_path / "a.txt", ns=(future_ns, future_ns))
    before = store.head("a.txt")
    after = store.put_bytes("a.txt", b"two")
    assert before is not None
    assert after.etag != before.etag
    assert (tmp_path / "a.txt").stat().st_mtime_ns == future_ns + 1


FILL = """
    import resource, subprocess, sys
    from pathlib import Path
    from reprise.errors import StoreUnusable
    from resources.local_object_store import LocalObjectStore

    folder, how = Path(sys.argv[1]), sys.argv[2]
    if how == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, 800_000))
    store = LocalObjectStore(folder / "objects")
    store.put_bytes("p1/kept.bin", b"k" * 300_000)
    try:
        store.put_bytes("p1/kept.bin", b"n" * 900_000)
    except StoreUnusable as error:
        print(error)
    try:
        store.put_bytes("p2/deep/new.bin", b"n" * 900_000)
    except StoreUnusable as error:
        print(error)
    assert store.get_bytes("p1/kept.bin") == b"k" * 300_000
    assert store.head("p2/deep/new.bin") is None
    store.put_bytes("p1/small.bin", b"s")
    print(sorted(path.name for path in folder.rglob("*") if path.is_file()))
"""


@pytest.mark.parametrize("how", ["tmpfs", "rlimit"])
def test_a_full_disk_is_named_and_leaves_what_was_there_and_no_part(
    tmp_path: Path, how: str
) -> None:
    if how == "tmpfs" and not can_mount():
        pytest.skip("needs the right to mount; the case `rlimit` covers the same code")
    out = run_python(FILL, str(tmp_path), how, own_mounts=how == "tmpfs").splitlines()
    remedy = "the disk is full" if how == "tmpfs" else "larger than the system allows"
    assert [remedy in line for line in out] == [True, True, False]
    assert out[2] == "['kept.bin', 'small.bin']"


def test_a_read_only_file_system_is_named_and_can_be_read(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("needs the right to mount")
    LocalObjectStore(tmp_path).put_bytes("p1/a.txt", b"1")
    out = run_python(
        """
        import subprocess, sys
        from pathlib import Path
        from reprise.errors import StoreUnusable
        from resources.local_object_store import LocalObjectStore

        folder = Path(sys.argv[1])
        subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        store = LocalObjectStore(folder)
        print(store.get_bytes("p1/a.txt"))
        for call in (lambda: store.put_bytes("p1/b.txt", b"2"), lambda: store.delete("p1/a.txt")):
            try:
                call()
            except StoreUnusable as error:
                print(error)
        """,
        str(tmp_path),
        own_mounts=True,
    ).splitlines()
    assert out[0] == "b'1'"
    assert ["read-only; choose another folder" in line for line in out[1:]] == [True, True]


def test_a_killed_writer_leaves_the_earlier_object_whole(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path)
    code = """
        import sys
        from pathlib import Path
        from resources.local_object_store import LocalObjectStore
        store = LocalObjectStore(Path(sys.argv[1]))
        index = 0
        while True:
            store.put_bytes("p1/a.bin", bytes([index % 256]) * 3_000_000)
            index += 1
            print(index, flush=True)
    """
    for _ in range(3):
        with start_python(code, str(tmp_path)) as child:
            assert child.stdout is not None
            for _ in range(5):
                assert child.stdout.readline()
            child.kill()
        data = store.get_bytes("p1/a.bin")
        assert data == data[:1] * 3_000_000
        assert [info.key for info in store.scan("")] == ["p1/a.bin"]
