import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.ingest import Change, Ingest, collect
from reprise.errors import BadInput, StoreError, StoreTimeout, UnknownName
from reprise.model.project import MediaKind
from reprise.model.stored import ObjectInfo
from resources.local_object_store import LocalObjectStore
from resources.media_kind import media_kind
from resources.memory_project_index import MemoryProjectIndex
from resources.sqlite_projects import SqliteProjectRegistry
from tests.pipelines.clock import Clock


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    registry = SqliteProjectRegistry(tmp_path / "home" / "projects.db")
    objects = LocalObjectStore(tmp_path / "home" / "objects")
    return Ingest(registry, objects, MemoryProjectIndex(), media_kind, Clock())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "footage"
    (made / "inner").mkdir(parents=True)
    (made / "brief.md").write_text("# Brief")
    (made / "inner" / "notes.txt").write_text("notes")
    (made / ".hidden").write_text("not this")
    return made


def add(ingest: Ingest, *paths: Path) -> dict[str, Change]:
    done: dict[str, Change] = {}
    ingest.add("p", list(paths), done.__setitem__)
    return done


def test_a_folder_is_added_with_everything_but_hidden_files(ingest: Ingest, folder: Path) -> None:
    assert add(ingest, folder) == {"brief.md": Change.ADDED, "inner/notes.txt": Change.ADDED}
    (file, _) = ingest.registry.files("p")
    assert (file.name, file.media_kind, file.size_bytes) == ("brief.md", MediaKind.DOCUMENT, 7)
    assert ingest.objects.get_bytes(file.storage_key) == b"# Brief"


def test_adding_the_same_file_again_changes_nothing(ingest: Ingest, folder: Path) -> None:
    add(ingest, folder)
    before = ingest.registry.files("p")
    os.utime(folder / "brief.md", (1, 1))

    assert set(add(ingest, folder).values()) == {Change.UNCHANGED}
    assert ingest.registry.files("p") == before


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_seen(
    ingest: Ingest, folder: Path
) -> None:
    add(ingest, folder)
    status = (folder / "brief.md").stat()
    (folder / "brief.md").write_text("# Brile")
    os.utime(folder / "brief.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    before = {file.name: file for file in ingest.registry.files("p")}

    assert add(ingest, folder)["brief.md"] is Change.REPLACED
    after = {file.name: file for file in ingest.registry.files("p")}
    assert after["brief.md"].id == before["brief.md"].id
    assert after["brief.md"].content_digest != before["brief.md"].content_digest
    assert after["brief.md"].uploaded_at > before["brief.md"].uploaded_at


def test_an_object_that_went_is_put_back(ingest: Ingest, folder: Path) -> None:
    add(ingest, folder)
    key = ingest.registry.files("p")[0].storage_key
    ingest.objects.delete(key)

    add(ingest, folder)

    assert ingest.objects.head(key) is not None


def test_the_project_has_a_copy_of_its_own(ingest: Ingest, folder: Path) -> None:
    add(ingest, folder)
    key = ingest.registry.files("p")[0].storage_key
    (folder / "brief.md").write_text("changed behind its back")

    assert ingest.objects.get_bytes(key) == b"# Brief"


def test_a_path_that_is_not_there_adds_nothing(ingest: Ingest, folder: Path) -> None:
    with pytest.raises(BadInput, match="nowhere is not there"):
        add(ingest, folder, folder / "nowhere")
    assert ingest.registry.project("p") is None


def test_two_files_of_one_name_are_refused(folder: Path) -> None:
    other = folder / "inner" / "brief.md"
    other.write_text("x")
    with pytest.raises(BadInput, match=r"would both be 'brief\.md'"):
        collect([folder / "brief.md", other])


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds no files"):
        collect([tmp_path / "empty"])


def test_a_fifo_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    with pytest.raises(BadInput, match="no regular file"):
        collect([tmp_path / "pipe.mp4"])


def test_removing_a_file_removes_its_bytes_unless_another_has_them(
    ingest: Ingest, folder: Path
) -> None:
    (folder / "copy.md").write_text("# Brief")
    add(ingest, folder)
    keys = {file.name: file.storage_key for file in ingest.registry.files("p")}
    assert keys["brief.md"] == keys["copy.md"]

    ingest.remove_files("p", ["brief.md"])
    assert ingest.objects.head(keys["copy.md"]) is not None
    ingest.remove_files("p", ["copy.md"])
    assert ingest.objects.head(keys["copy.md"]) is None


def test_an_unknown_file_removes_nothing(ingest: Ingest, folder: Path) -> None:
    add(ingest, folder)
    with pytest.raises(UnknownName, match=r"no file 'nope.md'; its files: brief.md"):
        ingest.remove_files("p", ["brief.md", "nope.md"])
    assert len(ingest.registry.files("p")) == 2


def test_removing_a_project_removes_its_objects(ingest: Ingest, folder: Path) -> None:
    add(ingest, folder)
    ingest.remove_project("p")
    assert ingest.registry.projects() == []
    assert list(ingest.objects.scan("projects/p/")) == []


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.mp4", b"\0\0\0\x20ftypisom", MediaKind.VIDEO),
        ("a.bin", b"\0\0\0\x20ftypisom", MediaKind.VIDEO),
        ("a.m4a", b"\0\0\0\x20ftypM4A ", MediaKind.AUDIO),
        ("a.mkv", b"\x1aE\xdf\xa3....", MediaKind.VIDEO),
        ("a.wav", b"RIFF....WAVE", MediaKind.AUDIO),
        ("a.png", b"\x89PNG\r\n\x1a\n", MediaKind.IMAGE),
        ("a.md", b"", MediaKind.DOCUMENT),
        ("README", "Grüße".encode(), MediaKind.DOCUMENT),
        ("a.mp4", b"#EXTM3U", MediaKind.VIDEO),
        ("a.mp4", b"", MediaKind.VIDEO),
        ("a.dat", b"\0\1\2\3", MediaKind.OTHER),
    ],
)
def test_a_file_is_what_its_bytes_say_else_its_name(
    tmp_path: Path, name: str, data: bytes, kind: MediaKind
) -> None:
    (tmp_path / name).write_bytes(data)
    assert media_kind(tmp_path / name, name)[0] is kind


def test_text_cut_inside_a_character_is_still_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("é" * 5000)
    assert media_kind(tmp_path / "x", "x")[0] is MediaKind.DOCUMENT


class Meeting(LocalObjectStore):
    """Lets another call do its work just after a HEAD."""

    then: Callable[[], None] | None = None

    def head(self, key: str) -> ObjectInfo | None:
        found = super().head(key)
        then, self.then = self.then, None
        if then is not None:
            then()
        return found


def test_removing_a_file_while_the_same_bytes_are_added_leaves_row_and_bytes(
    tmp_path: Path, folder: Path
) -> None:
    registry = SqliteProjectRegistry(tmp_path / "home" / "projects.db")
    objects = Meeting(tmp_path / "home" / "objects")
    ingest = Ingest(registry, objects, MemoryProjectIndex(), media_kind, Clock())
    add(ingest, folder / "brief.md")
    ingest.registry.remove_file("p", "brief.md")
    # The bytes are there without a row: an adder finds them, then the row of a third one goes.
    (file,) = [*objects.scan("projects/p/")]

    def meanwhile() -> None:
        add(ingest, folder / "brief.md")
        ingest.remove_files("p", ["brief.md"])
        assert objects.head(file.key) is None

    objects.then = meanwhile
    assert add(ingest, folder / "brief.md") == {"brief.md": Change.ADDED}
    (row,) = registry.files("p")
    assert objects.get_bytes(row.storage_key) == b"# Brief"


def test_removing_a_project_while_it_is_added_again_leaves_row_and_bytes(
    tmp_path: Path, folder: Path
) -> None:
    registry = SqliteProjectRegistry(tmp_path / "home" / "projects.db")
    objects = Meeting(tmp_path / "home" / "objects")
    ingest = Ingest(registry, objects, MemoryProjectIndex(), media_kind, Clock())
    add(ingest, folder / "brief.md")
    registry.remove_file("p", "brief.md")

    def meanwhile() -> None:
        # The adder has found the bytes of a file without a row; now all of the project goes.
        ingest.remove_project("p")
        assert list(objects.scan("projects/p/")) == []
        registry.add_project("p", now=Clock()())

    objects.then = meanwhile
    assert add(ingest, folder / "brief.md") == {"brief.md": Change.ADDED}
    (row,) = registry.files("p")
    assert objects.get_bytes(row.storage_key) == b"# Brief"


def test_files_added_while_a_project_goes_go_with_it_or_wait(tmp_path: Path, folder: Path) -> None:
    """Another command adds a file each time that the objects to remove have been listed."""
    path = tmp_path / "home" / "projects.db"
    done: list[str] = []

    class Listing(LocalObjectStore):
        def scan(self, prefix: str) -> Iterator[ObjectInfo]:
            yield from super().scan(prefix)
            other = SqliteProjectRegistry(path, busy_seconds=0.05)
            late = Ingest(other, plain, MemoryProjectIndex(), media_kind, Clock())
            try:
                done.extend(add(late, folder / "brief.md"))
            except StoreTimeout:
                done.append("waits")

    plain = LocalObjectStore(tmp_path / "home" / "objects")
    registry = SqliteProjectRegistry(path)
    objects = Listing(tmp_path / "home" / "objects")
    ingest = Ingest(registry, objects, MemoryProjectIndex(), media_kind, Clock())
    add(ingest, folder)
    ingest.remove_project("p")

    assert done == ["brief.md", "waits"]
    assert registry.project("p") is None
    assert list(plain.scan("projects/")) == []


def test_a_project_whose_objects_cannot_be_removed_can_be_removed_again(
    tmp_path: Path, folder: Path
) -> None:
    class Failing(LocalObjectStore):
        failures = 1

        def delete(self, key: str) -> None:
            if self.failures and "/artifacts/" in key:
                self.failures -= 1
                raise StoreError(key)
            super().delete(key)

    objects = Failing(tmp_path / "home" / "objects")
    registry = SqliteProjectRegistry(tmp_path / "home" / "projects.db")
    ingest = Ingest(registry, objects, MemoryProjectIndex(), media_kind, Clock())
    add(ingest, folder)
    objects.put_bytes("projects/p/artifacts/aa/b/c.json", b"{}", media_type="application/json")
    with pytest.raises(StoreError):
        ingest.remove_project("p")
    ingest.remove_project("p")
    assert list(objects.scan("projects/")) == []
