"""Documents that agents write, and what the index knows of a project's files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.ingest import Ingest
from pipelines.project_files import ProjectFiles, Unreadable
from reprise.errors import BadInput, UnknownName
from reprise.model.heard import HeardAnalysis
from reprise.model.media import VideoAnalysis
from reprise.model.project import FileStatus, ProjectFile
from reprise.model.search import IndexedFile
from resources.media_kind import media_kind
from resources.memory_object_store import MemoryObjectStore
from resources.memory_project_index import MemoryProjectIndex
from resources.memory_projects import MemoryProjectRegistry
from tests.analyses import talk
from tests.pipelines.clock import Clock


def heard(analysis: VideoAnalysis) -> HeardAnalysis:
    return HeardAnalysis.model_validate(analysis.model_dump(mode="json"))


class Project:
    """A project `p` with a brief and a film."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = ProjectFiles(
            MemoryProjectRegistry(), MemoryObjectStore(), MemoryProjectIndex(), Clock()
        )
        self.add("brief.md", b"About butterflies.")
        self.add("talk.mp4", b"\0\0\0 ftypisom one")

    def add(self, name: str, data: bytes) -> None:
        files = self.files
        ingest = Ingest(files.registry, files.objects, files.index, media_kind, files.clock)
        (self.folder / name).write_bytes(data)
        ingest.add("p", [self.folder / name], lambda _name, _change: None)

    def row(self, name: str) -> ProjectFile:
        return next(file for file in self.files.registry.files("p") if file.name == name)

    def found(self, query: str) -> list[str]:
        return [hit.name for hit in self.files.index.search("p", query, limit=10).hits]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_written_document_is_stored_named_and_found(project: Project) -> None:
    file = project.files.write_document("p", "notes/ideas.md", "An idea: é")

    assert project.files.objects.get_bytes(file.storage_key) == "An idea: é".encode()
    row = project.row("notes/ideas.md")
    assert (row.media_type, row.size_bytes) == ("text/markdown", 11)
    assert (row.indexing_status, row.summary_status) == (FileStatus.DONE, FileStatus.PENDING)
    assert project.found("idea") == ["notes/ideas.md"]


def test_the_same_text_again_leaves_the_row_as_it_was(project: Project) -> None:
    project.files.write_document("p", "brief.md", "About butterflies.")
    before = project.files.registry.files("p")
    revision = project.files.index.revision("p")
    project.files.write_document("p", "brief.md", "About butterflies.")

    assert project.files.registry.files("p") == before
    assert project.files.index.revision("p") == revision


def test_another_text_replaces_the_document(project: Project) -> None:
    project.files.write_document("p", "brief.md", "About moths.")

    assert project.found("butterflies") == []
    assert project.found("moths") == ["brief.md"]
    assert project.files.document_text(project.row("brief.md")) == "About moths."


def test_footage_is_never_written_over(project: Project) -> None:
    before = project.row("talk.mp4")
    with pytest.raises(BadInput, match=r"'talk.mp4' is video of the project; write another name"):
        project.files.write_document("p", "talk.mp4", "x")
    assert project.row("talk.mp4") == before


def test_a_document_of_an_unknown_project_is_refused(project: Project) -> None:
    with pytest.raises(UnknownName, match="no project 'q'"):
        project.files.write_document("q", "a.md", "x")


def test_what_is_no_document_says_why_it_has_no_text(project: Project) -> None:
    project.add("paper.pdf", b"%PDF-1.7")
    for name, why in (
        ("talk.mp4", "once a VideoAnalyze step has analysed it"),
        ("paper.pdf", "nothing here reads application/pdf"),
    ):
        with pytest.raises(Unreadable, match=why):
            project.files.index_document(project.row(name))


def test_an_analysis_gives_its_transcript_to_the_file_it_is_of(project: Project) -> None:
    analysis = talk()
    row = project.row("talk.mp4")
    source = analysis.sources[0].model_copy(
        update={"file_id": row.id, "content_digest": row.content_digest}
    )
    mine = analysis.model_copy(update={"sources": (source,)})
    project.files.take_analysis("p", heard(mine))

    known = project.files.index.file("p", "talk.mp4")
    assert known is not None
    assert source.transcript is not None
    assert [p.text for p in known.passages] == [s.text for s in source.transcript.sentences]
    assert project.row("talk.mp4").indexing_status is FileStatus.DONE
    rows, revision = project.files.registry.files("p"), project.files.index.revision("p")
    project.files.take_analysis("p", heard(mine))
    assert project.files.registry.files("p") == rows
    assert project.files.index.revision("p") == revision


def test_an_analysis_of_other_bytes_or_without_speech_gives_nothing(project: Project) -> None:
    row = project.row("talk.mp4")
    source = (
        talk()
        .sources[0]
        .model_copy(update={"file_id": row.id, "content_digest": row.content_digest})
    )
    for changes in ({"content_digest": "0" * 64}, {"file_id": "x"}, {"transcript": None}):
        other = source.model_copy(update=changes)
        project.files.take_analysis("p", heard(talk().model_copy(update={"sources": (other,)})))

    assert project.files.index.file("p", "talk.mp4") is None
    assert project.row("talk.mp4").indexing_status is FileStatus.PENDING


def test_a_removed_file_is_not_found_any_more(project: Project) -> None:
    project.files.write_document("p", "a.md", "moths")
    files = project.files
    ingest = Ingest(files.registry, files.objects, files.index, media_kind, files.clock)
    ingest.remove_files("p", ["a.md"])
    assert project.found("moths") == []
    files.write_document("p", "a.md", "moths")
    ingest.remove_project("p")
    assert project.found("moths") == []


class Raced(MemoryProjectIndex):
    """An index that somebody else is at between the look at a row and the put."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens: Callable[[], object] | None = happens

    def put(self, project_id: str, file: IndexedFile) -> None:
        happens, self._happens = self._happens, None
        if happens is not None:
            happens()
        super().put(project_id, file)


def raced(project: Project, happens: Callable[[ProjectFiles], object]) -> ProjectFiles:
    index = Raced(lambda: happens(project.files))
    project.files = replace(project.files, index=index)
    return project.files


def test_an_indexing_that_comes_late_leaves_the_newer_text_findable(project: Project) -> None:
    old = project.row("brief.md")
    files = raced(project, lambda its: its.write_document("p", "brief.md", "About moths."))

    assert not files.keep(old, files.index_document(old))
    assert project.found("butterflies") == []
    assert project.found("moths") == ["brief.md"]


def test_an_indexing_that_comes_late_leaves_a_removed_file_removed(project: Project) -> None:
    files = raced(project, lambda its: its.registry.remove_file("p", "brief.md"))
    files.index_document(project.row("brief.md"))
    assert files.index.rows("p") == []


def test_a_transcript_that_comes_late_says_nothing_of_other_bytes(project: Project) -> None:
    row = project.row("talk.mp4")
    update = {"file_id": row.id, "content_digest": row.content_digest}
    [source] = heard(talk()).sources[:1]
    files = raced(project, lambda _: project.add("talk.mp4", b"\0\0\0 ftypisom two"))
    files.take_transcript(row, source.model_copy(update=update))
    assert files.index.file("p", "talk.mp4") is None
    assert project.row("talk.mp4").indexing_status is FileStatus.PENDING


def test_a_document_that_is_removed_while_it_is_written_is_told(project: Project) -> None:
    class Removing(MemoryProjectRegistry):
        def put_file(self, file: ProjectFile) -> None:
            super().put_file(file)
            self.remove_file(file.project_id, file.name)

    registry = Removing()
    registry.add_project("p", now=project.files.clock())
    files = replace(project.files, registry=registry)
    with pytest.raises(BadInput, match=r"'a.md' was removed or replaced while it was written"):
        files.write_document("p", "a.md", "moths")


def test_the_same_text_again_is_indexed_when_the_index_was_lost(project: Project) -> None:
    project.files.write_document("p", "brief.md", "About butterflies.")
    project.files.registry.set_status(project.row("brief.md"), summary=FileStatus.DONE)
    project.files.index.remove_project("p")
    project.files.write_document("p", "brief.md", "About butterflies.")
    assert project.found("butterflies") == ["brief.md"]
    row = project.row("brief.md")
    assert (row.indexing_status, row.summary_status) == (FileStatus.DONE, FileStatus.PENDING)
