"""What every registry of projects promises, run on each."""

import contextlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reprise.errors import BadInput, StoreError, UnknownName
from reprise.model.project import FileStatus, MediaKind, ProjectFile
from reprise.ports import ProjectRegistry
from resources.memory_projects import MemoryProjectRegistry
from resources.sqlite import METADATA_APPLICATION_ID
from resources.sqlite_history import SqliteHistory
from resources.sqlite_projects import SqliteProjectRegistry
from tests.step_records import NOW, record

LATER = NOW + timedelta(hours=1)


def shared_file(folder: Path) -> ProjectRegistry:
    SqliteHistory(folder / "metadata.sqlite").append(record())
    return SqliteProjectRegistry(folder / "metadata.sqlite")


REGISTRIES: dict[str, Callable[[Path], ProjectRegistry]] = {
    "memory": lambda _: MemoryProjectRegistry(),
    "sqlite": lambda folder: SqliteProjectRegistry(folder / "new" / "projects.sqlite"),
    "sqlite-shared-file": shared_file,
}


@pytest.fixture(params=REGISTRIES)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> ProjectRegistry:
    return REGISTRIES[request.param](tmp_path)


def film(project_id: str = "p1", **changes: object) -> ProjectFile:
    plain = ProjectFile(
        id=f"{project_id}-film",
        project_id=project_id,
        name="footage/film é.mp4",
        storage_key=f"projects/{project_id}/film.mp4",
        size_bytes=5_000_000_000,
        content_digest="a" * 64,
        media_kind=MediaKind.VIDEO,
        media_type="video/mp4",
        uploaded_at=NOW,
    )
    return ProjectFile.model_validate({**plain.model_dump(), **changes})


def names(registry: ProjectRegistry) -> list[str]:
    return [project.name for project in registry.projects()]


def test_a_new_registry_is_empty(registry: ProjectRegistry) -> None:
    assert list(registry.projects()) == []
    assert registry.project("p1") is None
    assert list(registry.files("p1")) == []
    assert registry.remove_project("p1") is False
    assert registry.remove_file("p1", "a.mp4") is False


def test_a_project_is_made_once_and_found_again(registry: ProjectRegistry) -> None:
    made = registry.add_project("summer-2026_v1.0", now=NOW)
    assert (made.id, made.name, made.created_at) == ("summer-2026_v1.0", "summer-2026_v1.0", NOW)
    assert registry.add_project("summer-2026_v1.0", now=LATER) == made
    assert registry.project("summer-2026_v1.0") == made
    assert list(registry.projects()) == [made]


@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a/b", "../a", ".", "..", ".a", "-a", "_a", "é", "a\n", "a\0", "a" * 101],
)
def test_a_name_that_no_partition_could_have_is_refused(
    registry: ProjectRegistry, name: str
) -> None:
    with pytest.raises(BadInput, match="project name"):
        registry.add_project(name, now=NOW)
    assert list(registry.projects()) == []


def test_names_are_told_apart_by_letter_case_and_sorted(registry: ProjectRegistry) -> None:
    for name in ("promo", "Promo", "10", "9", "a" * 100):
        registry.add_project(name, now=NOW)
    assert names(registry) == ["10", "9", "Promo", "a" * 100, "promo"]
    assert registry.project("PROMO") is None
    assert registry.remove_project("Promo") is True
    assert names(registry) == ["10", "9", "a" * 100, "promo"]


def test_a_project_has_the_owner_that_made_it(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW, owner_id="ann")
    registry.add_project("p2", now=NOW)
    registry.add_project("p1", now=LATER, owner_id="ben")
    assert [project.owner_id for project in registry.projects()] == ["ann", None]


def test_a_project_is_given_to_another_user(registry: ProjectRegistry) -> None:
    for name in ("p1", "p2"):
        registry.add_project(name, now=NOW, owner_id="ann")
    assert registry.set_owner("p1", "ben") is True
    assert registry.set_owner("p2", None) is True
    assert registry.set_owner("p3", "ben") is False
    assert [project.owner_id for project in registry.projects()] == ["ben", None]


def test_a_file_comes_back_field_by_field(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    file = film(summary_status=FileStatus.DONE, indexing_status=FileStatus.FAILED)
    registry.put_file(file)
    assert list(registry.files("p1")) == [file]


def test_a_file_of_an_unknown_project_is_refused(registry: ProjectRegistry) -> None:
    with pytest.raises(UnknownName, match=r"film.*no project 'p1'.*reprise project add"):
        registry.put_file(film())
    assert list(registry.files("p1")) == []


def test_adding_the_same_bytes_again_leaves_the_row_as_it_was(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    known = film(summary_status=FileStatus.DONE, indexing_status=FileStatus.RUNNING)
    registry.put_file(known)
    registry.put_file(film(uploaded_at=LATER, id="another-id"))
    assert list(registry.files("p1")) == [known]


def test_other_bytes_are_a_new_upload_with_nothing_known_of_them(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film(summary_status=FileStatus.DONE, indexing_status=FileStatus.DONE))
    replacement = film(
        id="another-id",
        content_digest="b" * 64,
        size_bytes=7,
        storage_key="projects/p1/other.mp4",
        uploaded_at=LATER,
        summary_status=FileStatus.DONE,
    )
    registry.put_file(replacement)
    assert list(registry.files("p1")) == [
        film(
            content_digest="b" * 64,
            size_bytes=7,
            storage_key="projects/p1/other.mp4",
            uploaded_at=LATER,
            summary_status=FileStatus.PENDING,
            indexing_status=FileStatus.PENDING,
        )
    ]


def test_other_bytes_within_the_same_moment_are_seen(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film(summary_status=FileStatus.DONE))
    registry.put_file(film(content_digest="b" * 64, summary_status=FileStatus.DONE))
    assert list(registry.files("p1")) == [film(content_digest="b" * 64)]


def test_a_status_moves_on_the_row_that_was_read(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film())
    read = registry.files("p1")[0]
    registry.put_file(read.model_copy(update={"summary_status": FileStatus.RUNNING}))
    assert [file.summary_status for file in registry.files("p1")] == [FileStatus.RUNNING]


def test_a_status_moves_alone(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film())
    assert registry.set_status(film(), indexing=FileStatus.DONE) is True
    assert registry.set_status(film(), summary=FileStatus.FAILED) is True
    assert list(registry.files("p1")) == [
        film(indexing_status=FileStatus.DONE, summary_status=FileStatus.FAILED)
    ]


@pytest.mark.parametrize(
    "change", [{"content_digest": "b" * 64}, {"uploaded_at": LATER}, {"name": "other.mp4"}]
)
def test_no_status_moves_for_bytes_that_are_no_longer_there(
    registry: ProjectRegistry, change: dict[str, Any]
) -> None:
    assert registry.set_status(film(), indexing=FileStatus.DONE) is False
    registry.add_project("p1", now=NOW)
    registry.put_file(film(**change))
    assert registry.set_status(film(), indexing=FileStatus.DONE) is False
    assert list(registry.files("p1")) == [film(**change)]


def test_the_same_bytes_under_another_key_are_taken_over(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film(summary_status=FileStatus.DONE))
    moved = film(storage_key="new/place.mp4", uploaded_at=LATER, summary_status=FileStatus.DONE)
    registry.put_file(moved)
    assert list(registry.files("p1")) == [moved]


def test_files_are_by_name_and_of_one_project(registry: ProjectRegistry) -> None:
    for project in ("p1", "p2"):
        registry.add_project(project, now=NOW)
    for name in ("b.mp4", "a/c.mp4", "B.mp4", "a.mp4"):
        registry.put_file(film(name=name, id=name))
    registry.put_file(film("p2"))
    assert [file.name for file in registry.files("p1")] == ["B.mp4", "a.mp4", "a/c.mp4", "b.mp4"]
    assert list(registry.files("p2")) == [film("p2")]


def test_removing_a_file_leaves_the_others(registry: ProjectRegistry) -> None:
    for project in ("p1", "p2"):
        registry.add_project(project, now=NOW)
        registry.put_file(film(project))
    assert registry.remove_file("p1", "footage/film é.mp4") is True
    assert registry.remove_file("p1", "footage/film é.mp4") is False
    assert list(registry.files("p1")) == []
    assert list(registry.files("p2")) == [film("p2")]


def test_an_object_goes_with_the_last_row_that_names_it(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    for name in ("a.mp4", "b.mp4"):
        registry.put_file(film(name=name, id=name, storage_key="same"))
    gone: list[str] = []
    registry.remove_file("p1", "a.mp4", unused=gone.append)
    assert gone == []
    registry.remove_file("p1", "b.mp4", unused=gone.append)
    registry.remove_file("p1", "b.mp4", unused=gone.append)
    assert gone == ["same"]


def test_an_object_that_cannot_be_removed_keeps_its_row(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film())

    def fail(key: str) -> None:
        raise StoreError(key)

    with pytest.raises(StoreError):
        registry.remove_file("p1", film().name, unused=fail)
    assert list(registry.files("p1")) == [film()]


def test_removing_a_project_removes_its_files_and_no_others(registry: ProjectRegistry) -> None:
    for project in ("p1", "p2"):
        registry.add_project(project, now=NOW)
        registry.put_file(film(project))
    assert registry.remove_project("p1") is True
    assert registry.remove_project("p1") is False
    assert names(registry) == ["p2"]
    assert list(registry.files("p2")) == [film("p2")]
    registry.add_project("p1", now=LATER)
    assert list(registry.files("p1")) == []


def test_what_fails_while_a_project_goes_keeps_it_and_its_files(registry: ProjectRegistry) -> None:
    registry.add_project("p1", now=NOW)
    registry.put_file(film())

    def fail() -> None:
        raise StoreError

    with pytest.raises(StoreError):
        registry.remove_project("p1", emptied=fail)
    assert names(registry) == ["p1"]
    assert list(registry.files("p1")) == [film()]
    called: list[str] = []
    assert registry.remove_project("p1", emptied=lambda: called.append("p1")) is True
    assert registry.remove_project("p1", emptied=lambda: called.append("again")) is False
    assert called == ["p1"]


def test_threads_that_register_at_once_lose_nothing(registry: ProjectRegistry) -> None:
    def work(index: int) -> None:
        registry.add_project("p1", now=NOW)
        registry.put_file(film(name=f"{index:03}.mp4", id=str(index)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    assert names(registry) == ["p1"]
    assert [file.name for file in registry.files("p1")] == [f"{i:03}.mp4" for i in range(100)]


def test_a_registry_opened_again_knows_what_was_registered(tmp_path: Path) -> None:
    first = SqliteProjectRegistry(tmp_path / "metadata.sqlite")
    project = first.add_project("p1", now=NOW)
    first.put_file(film())
    first.close()
    again = SqliteProjectRegistry(tmp_path / "metadata.sqlite")
    assert list(again.projects()) == [project]
    assert list(again.files("p1")) == [film()]


def test_a_registry_from_before_there_were_owners_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "projects.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"""
            PRAGMA application_id = {METADATA_APPLICATION_ID};
            CREATE TABLE component (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
            INSERT INTO component VALUES ('project', 1);
            CREATE TABLE project (
                id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL
            ) STRICT;
            INSERT INTO project VALUES ('old', 'old', 1767225600000000);
            CREATE TABLE project_file (
                project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
                name TEXT NOT NULL, id TEXT NOT NULL, storage_key TEXT NOT NULL,
                size_bytes INTEGER NOT NULL, content_digest TEXT NOT NULL,
                media_kind TEXT NOT NULL, media_type TEXT NOT NULL, uploaded_at INTEGER NOT NULL,
                summary_status TEXT NOT NULL, indexing_status TEXT NOT NULL,
                PRIMARY KEY (project_id, name)
            ) STRICT;
        """)
    registry = SqliteProjectRegistry(path)
    assert [(project.name, project.owner_id) for project in registry.projects()] == [("old", None)]
    registry.add_project("new", now=NOW, owner_id="ann")
    assert registry.set_owner("old", "ben") is True
    assert [project.owner_id for project in registry.projects()] == ["ann", "ben"]
