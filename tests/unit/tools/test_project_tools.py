"""Tools over a project: listing, searching, reading, transcripts, writing."""

import json
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.project_files import ProjectFiles
from reprise.model.agent import ToolGroup
from reprise.model.conversation import AgentInputs
from reprise.model.project import FileStatus, MediaKind, ProjectFile
from reprise.model.search import IndexedFile, Passage, SearchAnswer
from reprise.tools.access import ProjectDoor, ToolAccess
from reprise.tools.catalog import tool_names
from reprise.tools.toolbox import ANSWER_CHARS_MAX, Toolbox
from resources.memory_object_store import MemoryObjectStore
from resources.memory_project_index import MemoryProjectIndex
from resources.memory_projects import MemoryProjectRegistry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUPS = (ToolGroup.PROJECT_READ, ToolGroup.PROJECT_WRITE)


class Desk:
    """A project `p` with documents, a film, and the tools over it."""

    def __init__(self, **texts: str) -> None:
        self.files = ProjectFiles(
            MemoryProjectRegistry(), MemoryObjectStore(), MemoryProjectIndex(), lambda: NOW
        )
        self.files.registry.add_project("p", now=NOW)
        for stem, text in texts.items():
            self.files.write_document("p", f"{stem}.md", text)
        self.film = ProjectFile(
            id="film",
            project_id="p",
            name="talk.mp4",
            storage_key="k",
            size_bytes=9,
            content_digest="f" * 64,
            media_kind=MediaKind.VIDEO,
            uploaded_at=NOW,
        )
        self.files.registry.put_file(self.film)

    def hear(self, *sentences: str, summary: str = "") -> None:
        passages = tuple(
            Passage(text=text, start_seconds=at * 10.0, end_seconds=at * 10.0 + 8)
            for at, text in enumerate(sentences)
        )
        known = IndexedFile(
            name="talk.mp4", content_digest="f" * 64, passages=passages, summary=summary
        )
        self.files.index.put("p", known)
        self.files.registry.set_status(self.film, indexing=FileStatus.DONE)

    def access(self) -> ToolAccess:
        index = self.files.index
        door = ProjectDoor(
            text=self.files.document_text,
            search=lambda query, limit: index.search("p", query, limit=limit),
            indexed=lambda name: index.file("p", name),
            rows=index.rows("p"),
            write=lambda name, text: self.files.write_document("p", name, text),
        )
        return ToolAccess(AgentInputs(files=tuple(self.files.registry.files("p"))), door)

    def run(self, tool: str, groups: Collection[ToolGroup] = GROUPS, **arguments: object) -> Any:
        return json.loads(Toolbox(groups, self.access()).run(tool, json.dumps(arguments)))


def test_a_listing_tells_what_can_be_read_heard_and_what_it_is_about() -> None:
    desk = Desk(brief="About butterflies.")
    desk.hear("Hello.", summary="A greeting.")
    assert desk.run("list_project_files") == {
        "ok": True,
        "total": 2,
        "cut": False,
        "files": [
            {"name": "brief.md", "kind": "document", "size_bytes": 18, "readable": True},
            {
                "name": "talk.mp4",
                "kind": "video",
                "size_bytes": 9,
                "readable": False,
                "has_transcript": True,
                "summary": "A greeting.",
            },
        ],
    }


def test_what_the_index_knows_of_other_bytes_is_not_told() -> None:
    desk = Desk()
    desk.hear("Hello.", summary="A greeting.")
    desk.files.registry.put_file(desk.film.model_copy(update={"content_digest": "0" * 64}))
    [row] = desk.run("list_project_files")["files"]
    assert "summary" not in row
    assert "has_transcript" not in row


def test_a_search_finds_documents_and_speech_with_their_places() -> None:
    desk = Desk(brief="One.\n\nButterflies are free.")
    desk.hear("Hello there.", "A butterfly, many butterflies.")
    assert desk.run("search_project_files", query="butterflies") == {
        "ok": True,
        "total": 2,
        "hits": [
            {
                "name": "brief.md",
                "snippet": "Butterflies are free.",
                "start_line": 3,
                "end_line": 3,
            },
            {
                "name": "talk.mp4",
                "snippet": "A butterfly, many butterflies.",
                "start_seconds": 10.0,
                "end_seconds": 18.0,
            },
        ],
        "cut": False,
    }


def test_a_cut_search_says_so_and_what_was_not_searched() -> None:
    desk = Desk(brief="\n\n".join(["word"] * 40))
    found = desk.run("search_project_files", query="word", limit=3)
    assert (len(found["hits"]), found["total"], found["cut"]) == (3, 40, True)
    assert found["note"] == (
        "the best 3 of 40; use rarer words, or another limit; "
        "not searched, since not indexed: talk.mp4"
    )


def test_a_text_that_nothing_here_reads_says_so_in_each_tool() -> None:
    desk = Desk()
    others = [
        ("huge.txt", MediaKind.DOCUMENT, "text/plain", 16 * 2**20 + 1),
        ("paper.pdf", MediaKind.OTHER, "application/pdf", 9),
        ("data.bin", MediaKind.OTHER, "application/octet-stream", 9),
    ]
    for name, kind, media_type, size in others:
        update = {"name": name, "media_kind": kind, "media_type": media_type, "size_bytes": size}
        desk.files.registry.put_file(desk.film.model_copy(update={**update, "id": name}))
    listed = {row["name"]: row for row in desk.run("list_project_files")["files"]}
    told = {name: (row["readable"], row.get("not_indexed")) for name, row in listed.items()}
    too_large = "it is larger than 16 MiB; add it in parts"
    no_reader = "nothing here reads application/pdf; add its text as .md or .txt"
    assert told == {
        "data.bin": (False, None),
        "huge.txt": (False, too_large),
        "paper.pdf": (False, no_reader),
        "talk.mp4": (False, None),
    }
    assert desk.run("search_project_files", query="x")["note"] == (
        "not searched, since not indexed: huge.txt, paper.pdf, talk.mp4"
    )
    assert [desk.run("read_project_file", name=name)["error"] for name, *_ in others] == [
        f"'huge.txt' cannot be read: {too_large}",
        f"'paper.pdf' cannot be read: {no_reader}; go on without it",
        "'data.bin' (other) holds no text that can be read; go on without it",
    ]


def test_hits_of_replaced_and_removed_files_are_left_out() -> None:
    desk = Desk(brief="About moths.", other="Moths too.", third="And moths.")
    known = desk.files.index.file("p", "brief.md")
    assert known is not None
    desk.files.write_document("p", "brief.md", "About butterflies.")
    desk.files.index.put("p", known)
    desk.files.registry.remove_file("p", "other.md")
    found = desk.run("search_project_files", query="moths")
    assert [hit["name"] for hit in found["hits"]] == ["third.md"]
    assert (found["total"], found["cut"]) == (1, False)
    assert found["note"] == (
        "2 left out, of files that were replaced or removed since; "
        "not searched, since not indexed: brief.md, talk.mp4"
    )


def test_a_search_in_a_lost_index_says_what_was_not_searched() -> None:
    desk = Desk(brief="About moths.")
    desk.hear("Moths.")
    desk.files.index.remove_project("p")
    found = desk.run("search_project_files", query="moths")
    assert found["total"] == 0
    assert found["note"] == "not searched, since not indexed: brief.md, talk.mp4"


def test_what_the_agent_wrote_is_searched() -> None:
    access = Desk().access()
    box = Toolbox(GROUPS, access)
    box.run("write_project_file", json.dumps({"name": "a.md", "text": "Moths."}))
    found = json.loads(box.run("search_project_files", '{"query": "moths"}'))
    assert [hit["name"] for hit in found["hits"]] == ["a.md"]
    assert found["note"] == "not searched, since not indexed: talk.mp4"


def test_a_search_elsewhere_is_told_of_by_the_statuses() -> None:
    desk = Desk(brief="About moths.")
    access = desk.access()
    assert access.project is not None
    access.project = replace(access.project, rows=(), searches_rows=False)
    found = json.loads(Toolbox(GROUPS, access).run("search_project_files", '{"query": "moths"}'))
    assert found["note"] == "not searched, since not indexed: talk.mp4"


def test_half_of_a_surrogate_pair_reaches_no_index() -> None:
    desk = Desk(brief="About moths.")
    access = desk.access()
    assert access.project is not None
    queries: list[str] = []

    def search(query: str, limit: int) -> SearchAnswer:
        queries.append(query)
        return desk.files.index.search("p", query, limit=limit)

    access.project = replace(access.project, search=search)
    arguments = '{"query": "\\ud800 moths"}'
    found = json.loads(Toolbox(GROUPS, access).run("search_project_files", arguments))
    assert queries == ["? moths"]
    assert found["total"] == 1


def test_without_an_index_a_search_says_what_to_do() -> None:
    toolbox = Toolbox(GROUPS, ToolAccess())
    assert json.loads(toolbox.run("search_project_files", '{"query": "x"}')) == {
        "ok": False,
        "error": "there is no search here; list the files and read them",
    }


def test_a_transcript_is_read_by_time() -> None:
    desk = Desk()
    desk.hear("Zero.", "Ten.", "Twenty.", "Thirty.")
    found = desk.run("read_project_transcript", name="talk.mp4", start_seconds=9, end_seconds=20)
    assert found == {
        "ok": True,
        "name": "talk.mp4",
        "total": 2,
        "ends_seconds": 38.0,
        "sentences": [
            {"start_seconds": 10.0, "end_seconds": 18.0, "text": "Ten."},
            {"start_seconds": 20.0, "end_seconds": 28.0, "text": "Twenty."},
        ],
        "cut": False,
    }


def test_a_long_transcript_is_read_page_by_page_to_its_end() -> None:
    desk = Desk()
    desk.hear(*[f"{at} " + "word " * 100 for at in range(90)])
    said: list[str] = []
    offset = 0
    while True:
        page = desk.run("read_project_transcript", name="talk.mp4", offset=offset)
        said += [sentence["text"].split()[0] for sentence in page["sentences"]]
        if not page["cut"]:
            break
        offset = page["next_offset"]
    assert said == [str(at) for at in range(90)]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("talk.mp4", "'talk.mp4' has no transcript yet; a VideoAnalyze step makes it"),
        ("brief.md", "'brief.md' has no times; read it with read_project_file"),
        ("talk.mp", "there is no file 'talk.mp'; did you mean 'talk.mp4'?"),
    ],
)
def test_what_has_no_transcript_names_the_next_action(name: str, error: str) -> None:
    found = Desk(brief="x").run("read_project_transcript", name=name)
    assert found == {"ok": False, "error": error}


def test_subtitles_beside_footage_are_read_by_time_and_pointed_at() -> None:
    desk = Desk()
    desk.files.write_document("p", "talk.SRT", "1\n00:00:01,000 --> 00:00:02,500\nHello.\n")
    pointed = desk.run("read_project_transcript", name="talk.mp4")
    assert pointed["error"] == (
        "'talk.mp4' has no transcript of its own; read the subtitles 'talk.SRT'"
    )
    read = desk.run("read_project_transcript", name="talk.SRT")
    assert read["sentences"] == [{"start_seconds": 1.0, "end_seconds": 2.5, "text": "Hello."}]


def test_a_written_document_is_seen_by_the_tools_of_the_same_agent() -> None:
    desk = Desk(brief="old")
    access = desk.access()
    toolbox = Toolbox(GROUPS, access)
    for name, text in (("notes/new.md", "an idea"), ("brief.md", "newer")):
        written = toolbox.run("write_project_file", json.dumps({"name": name, "text": text}))
        assert json.loads(written) == {"ok": True, "name": name, "size_bytes": len(text)}
    read = toolbox.run("read_project_file", '{"name": "brief.md"}')
    assert json.loads(read)["text"] == "newer"
    found = json.loads(toolbox.run("search_project_files", '{"query": "idea"}'))
    assert [hit["name"] for hit in found["hits"]] == ["notes/new.md"]
    listed = json.loads(toolbox.run("list_project_files", "{}"))
    assert [row["name"] for row in listed["files"]] == ["brief.md", "notes/new.md", "talk.mp4"]
    assert access.written == ["notes/new.md", "brief.md"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "should be non-empty"),
        ("/etc/passwd.txt", "cannot be used"),
        ("../up.md", "cannot be used"),
        ("a/../../b.md", "cannot be used"),
        ("a//b.md", "cannot be used"),
        (".hidden.md", "cannot be used"),
        ("a\\b.md", "cannot be used"),
        ("a\n.md", "cannot be used"),
        ("a .md/b.md ", "cannot be used"),
        ("c:x.md", "cannot be used"),
        ("\ud800.md", "cannot be used"),
        ("a.mp4", "has to end in one of"),
        ("notes", "has to end in one of"),
        ("x" * 300 + ".md", "'name' breaks the rule maxLength: 200"),
    ],
)
def test_a_name_that_is_not_safe_is_refused(name: str, told: str) -> None:
    desk = Desk()
    before = desk.files.registry.files("p")
    found = desk.run("write_project_file", name=name, text="x")
    assert found["ok"] is False
    assert told in found["error"]
    assert desk.files.registry.files("p") == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\0b", "NUL"),
        ("\ud800", "half of a surrogate pair"),
        ("x" * 80_001, "'text' breaks the rule maxLength: 80000"),
    ],
)
def test_a_text_that_cannot_be_kept_is_refused(text: str, told: str) -> None:
    found = Desk().run("write_project_file", name="a.md", text=text)
    assert found["ok"] is False
    assert told in found["error"]


def test_footage_keeps_its_name() -> None:
    desk = Desk()
    desk.files.registry.put_file(desk.film.model_copy(update={"name": "a.txt", "id": "a"}))
    found = desk.run("write_project_file", name="a.txt", text="x")
    assert found == {
        "ok": False,
        "error": "'a.txt' is video of the project; write another name",
    }


def test_a_writer_has_no_reading_tools() -> None:
    found = Desk(brief="x").run("read_project_file", [ToolGroup.PROJECT_WRITE], name="brief.md")
    assert found["error"] == (
        "there is no tool 'read_project_file' for you; your tools are: write_project_file"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
NAMES = ("name", "query", "limit", "text", "offset", "start_line", "start_seconds", "order", "path")


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), JSON), st.text(max_size=30))
def test_no_arguments_raise_and_every_answer_is_bounded(
    arguments: dict[str, object], text: str
) -> None:
    desk = Desk(brief="a brief\n" * 3)
    toolbox = Toolbox(ToolGroup, desk.access())
    for tool in tool_names(ToolGroup):
        for written in (json.dumps(arguments), text, json.dumps({**arguments, "name": "brief.md"})):
            answer = toolbox.run(tool, written)
            assert isinstance(json.loads(answer)["ok"], bool)
            assert len(answer) <= ANSWER_CHARS_MAX


@pytest.mark.parametrize(
    ("char", "told"),
    [
        ("\u202e", "U+202E"),
        ("\u2028", "U+2028"),
        ("\u200b", "U+200B"),
        ("\x85", "U+0085"),
        ("\ue000", "U+E000"),
        ("\ud800", "U+D800"),
    ],
)
def test_a_name_holds_no_character_that_nobody_sees(char: str, told: str) -> None:
    found = Desk().run("write_project_file", name=f"a{char}b.md", text="x")
    assert found["ok"] is False
    assert f"{told} is a control or format character; leave it out" in found["error"]


@pytest.mark.parametrize(("kept", "written"), [("é", "e\u0301"), ("e\u0301", "é")])
def test_a_name_written_in_another_way_is_the_same_file(kept: str, written: str) -> None:
    desk = Desk()
    desk.files.write_document("p", f"{kept}.md", "old")
    found = desk.run("write_project_file", name=f"{written}.md", text="newer")
    assert found == {"ok": True, "name": f"{kept}.md", "size_bytes": 5}
    assert {file.name for file in desk.files.registry.files("p")} == {f"{kept}.md", "talk.mp4"}


def test_a_new_name_is_kept_in_one_form() -> None:
    found = Desk().run("write_project_file", name="e\u0301.md", text="x")
    assert found["name"] == "é.md"
