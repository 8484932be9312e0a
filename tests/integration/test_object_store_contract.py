"""What every object store promises, run on each: memory, local folder, S3 over HTTP."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from reprise.errors import BadInput, ObjectMissing, StoreError
from reprise.ports import ObjectStore
from resources.deadline import DeadlineObjectStore
from resources.local_object_store import LocalObjectStore
from resources.memory_object_store import MemoryObjectStore
from tests.s3_server import S3Server

MakeStore = Callable[[pytest.FixtureRequest, Path], ObjectStore]


def _s3(request: pytest.FixtureRequest, _: Path) -> ObjectStore:
    server: S3Server = request.getfixturevalue("s3")
    return server.store(prefix=f"{uuid4().hex}/")


STORES: dict[str, MakeStore] = {
    "memory": lambda _, __: MemoryObjectStore(),
    "local": lambda _, folder: LocalObjectStore(folder / "objects"),
    "local-with-deadline": lambda _, folder: DeadlineObjectStore(
        LocalObjectStore(folder / "objects"), head_seconds=30
    ),
    "s3": _s3,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return STORES[request.param](request, tmp_path)


def keys(store: ObjectStore, prefix: str) -> list[str]:
    return [info.key for info in store.scan(prefix)]


def test_an_object_that_was_never_put_is_known_to_be_absent(store: ObjectStore) -> None:
    assert store.head("projects/p1/none.mp4") is None
    with pytest.raises(ObjectMissing, match="none\\.mp4"):
        store.get_bytes("projects/p1/none.mp4")
    assert store.local_path("projects/p1/none.mp4") is None
    assert keys(store, "projects/") == []


def test_bytes_come_back_as_they_were_put(store: ObjectStore) -> None:
    data = bytes(range(256)) * 5
    store.put_bytes("a/b/data.bin", data, media_type="application/octet-stream")
    assert store.get_bytes("a/b/data.bin") == data


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    assert store.put_bytes("empty", b"").size_bytes == 0
    info = store.head("empty")
    assert info is not None
    assert info.size_bytes == 0
    assert store.get_bytes("empty") == b""


def test_put_tells_what_head_tells(store: ObjectStore) -> None:
    put = store.put_bytes("a.txt", b"text")
    assert put == store.head("a.txt") == next(store.scan("a.txt"))
    assert (put.key, put.size_bytes) == ("a.txt", 4)
    assert put.etag
    assert abs(datetime.now(UTC) - put.modified_at) < timedelta(minutes=5)


def test_other_bytes_of_the_same_size_have_another_etag(store: ObjectStore) -> None:
    etags = {store.put_bytes("a.txt", text).etag for text in (b"one", b"two", b"six", b"ten")}
    assert len(etags) == 4


def test_a_file_of_several_parts_comes_back_as_it_was(store: ObjectStore, tmp_path: Path) -> None:
    block = bytes(range(251)) * 4096
    source = tmp_path / "source.bin"
    source.write_bytes(block * 35)
    info = store.put_file("big.bin", source, media_type="video/mp4")
    assert info.size_bytes == len(block) * 35 > 32 * 2**20
    store.fetch("big.bin", tmp_path / "deep" / "target.bin")
    assert (tmp_path / "deep" / "target.bin").read_bytes() == source.read_bytes()


def test_editing_a_file_after_it_was_put_does_not_change_the_object(
    store: ObjectStore, tmp_path: Path
) -> None:
    source = tmp_path / "notes.md"
    source.write_bytes(b"first")
    store.put_file("notes.md", source)
    with source.open("r+b") as stream:
        stream.write(b"other")
    assert store.get_bytes("notes.md") == b"first"


def test_editing_a_fetched_file_does_not_change_the_object(
    store: ObjectStore, tmp_path: Path
) -> None:
    store.put_bytes("notes.md", b"first")
    store.fetch("notes.md", tmp_path / "notes.md")
    with (tmp_path / "notes.md").open("r+b") as stream:
        stream.write(b"other")
    assert store.get_bytes("notes.md") == b"first"


@pytest.mark.parametrize("kind", ["absent", "folder"])
def test_a_source_that_cannot_be_read_is_bad_input_and_stores_nothing(
    store: ObjectStore, tmp_path: Path, kind: str
) -> None:
    source = tmp_path / "source"
    if kind == "folder":
        source.mkdir()
    with pytest.raises(BadInput, match="source"):
        store.put_file("a.txt", source)
    assert store.head("a.txt") is None


def test_fetching_replaces_the_target_and_leaves_nothing_beside_it(
    store: ObjectStore, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "a.txt"
    target.parent.mkdir()
    target.write_bytes(b"an earlier and longer text")
    store.put_bytes("a.txt", b"new")
    store.fetch("a.txt", target)
    assert target.read_bytes() == b"new"
    assert [path.name for path in target.parent.iterdir()] == ["a.txt"]


def test_fetching_a_missing_object_leaves_the_target_as_it_was(
    store: ObjectStore, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "a.txt"
    target.parent.mkdir()
    target.write_bytes(b"earlier")
    with pytest.raises(ObjectMissing):
        store.fetch("none.txt", target)
    assert target.read_bytes() == b"earlier"
    assert [path.name for path in target.parent.iterdir()] == ["a.txt"]


def test_an_object_over_the_limit_is_refused_and_one_at_it_is_read(store: ObjectStore) -> None:
    store.put_bytes("a.txt", b"12345")
    assert store.get_bytes("a.txt", size_bytes_max=5) == b"12345"
    with pytest.raises(StoreError, match="more than 4"):
        store.get_bytes("a.txt", size_bytes_max=4)


def test_a_deleted_object_is_gone_and_deleting_it_again_is_no_error(store: ObjectStore) -> None:
    store.put_bytes("a/b/c.txt", b"1")
    store.put_bytes("a/d.txt", b"2")
    store.delete("a/b/c.txt")
    store.delete("a/b/c.txt")
    store.delete("never/was.txt")
    assert store.head("a/b/c.txt") is None
    assert keys(store, "") == ["a/d.txt"]


SCANNED_KEYS = ["a.txt", "a/b.c", "a/b/c", "a0", "b/z.txt", "b/é.txt", "c d/+?#%&=.txt"]


def test_scan_gives_all_keys_by_rising_key(store: ObjectStore) -> None:
    for name in reversed(SCANNED_KEYS):
        store.put_bytes(name, b"1")
    assert keys(store, "") == SCANNED_KEYS


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("a/", ["a/b.c", "a/b/c"]),
        ("a/b", ["a/b.c", "a/b/c"]),
        ("a/b/", ["a/b/c"]),
        ("a/b/c", ["a/b/c"]),
        ("a", ["a.txt", "a/b.c", "a/b/c", "a0"]),
        ("c d/+", ["c d/+?#%&=.txt"]),
        ("a/x", []),
        ("x/y/z", []),
    ],
)
def test_a_prefix_may_end_anywhere_in_a_key(
    store: ObjectStore, prefix: str, expected: list[str]
) -> None:
    for name in SCANNED_KEYS:
        store.put_bytes(name, b"1")
    assert keys(store, prefix) == expected


@pytest.mark.parametrize("key", SCANNED_KEYS)
def test_a_key_of_odd_characters_is_one_object(store: ObjectStore, key: str) -> None:
    store.put_bytes(key, key.encode())
    assert store.get_bytes(key) == key.encode()
    assert store.url(key).endswith(key)


BAD_KEYS = {
    "empty": "",
    "absolute": "/etc/passwd",
    "parent": "../x",
    "parent inside": "a/../../x",
    "parent last": "a/..",
    "dot": "a/./b",
    "empty segment": "a//b",
    "folder": "a/",
    "NUL": "a\0b",
    "newline": "a\nb",
    "surrogate": "a\ud800",
    "unfinished": "a/.part-0123",
    "long segment": "a" * 256,
    "long": "/".join(["a" * 100] * 11),
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_a_key_that_is_not_allowed_is_refused_everywhere(
    store: ObjectStore, tmp_path: Path, key: str
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"1")
    for call in (
        lambda: store.head(key),
        lambda: store.put_bytes(key, b"1"),
        lambda: store.put_file(key, source),
        lambda: store.get_bytes(key),
        lambda: store.fetch(key, tmp_path / "target"),
        lambda: store.local_path(key),
        lambda: store.delete(key),
        lambda: store.url(key),
    ):
        with pytest.raises(BadInput, match="object key"):
            call()
    assert keys(store, "") == []


@pytest.mark.parametrize("prefix", ["/", "/etc", "../", "a/../b", "a//", "a\0"])
def test_a_prefix_that_climbs_out_is_refused(store: ObjectStore, prefix: str) -> None:
    with pytest.raises(BadInput):
        keys(store, prefix)


def test_a_reader_never_sees_a_mixture_of_two_writes(store: ObjectStore) -> None:
    texts = [bytes([letter]) * 50_000 for letter in b"abcd"]
    store.put_bytes("shared.txt", texts[0])

    def write(text: bytes) -> None:
        for _ in range(10):
            store.put_bytes("shared.txt", text)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, text) for text in texts]
        while not all(writer.done() for writer in writers):
            assert store.get_bytes("shared.txt") in texts
        for writer in writers:
            writer.result()


def test_many_threads_use_a_new_store_at_once(store: ObjectStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: store.put_bytes(f"t/{i:02}", b"%d" % i), range(32)))
    assert keys(store, "t/") == [f"t/{i:02}" for i in range(32)]
    assert store.get_bytes("t/17") == b"17"
