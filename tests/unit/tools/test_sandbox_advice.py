"""What tools tell a model so that its next call is right: with the tools that it has."""

from pathlib import Path

import pytest

from reprise.model.agent import ToolGroup
from reprise.tools.text_edit import REPLACEMENTS_MAX
from resources.memory_sandbox import MemorySandbox
from resources.sandbox import FolderSandbox
from tests.sandbox_desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk(MemorySandbox({"a.txt": b"one two three\nx\n", "empty.txt": b""}))


@pytest.fixture
def author() -> Desk:
    """An agent that writes and cannot read."""
    files = MemorySandbox({"a.txt": b"one two three\nx\n"})
    return Desk(files, groups=[ToolGroup.SANDBOX_AUTHORING])


@pytest.mark.parametrize(
    "old", ["one two four", "nothing like it", "one[cut: 12 more characters]", "x\ny"]
)
def test_who_cannot_read_is_named_no_tool_that_reads(author: Desk, old: str) -> None:
    for _ in range(4):
        error = author.edit("a.txt", old, "new")["error"]
        assert "ReadSandbox" not in error
        assert "read the file" not in error


def test_who_cannot_read_is_told_to_write_what_cannot_be_found(author: Desk) -> None:
    assert author.edit("a.txt", "nothing like it", "new")["error"] == (
        "oldText is not in the file, nor anything like it; you cannot read it: WriteSandboxFile "
        "writes it anew"
    )


def test_a_refused_edit_after_others_says_that_it_sees_their_work(desk: Desk) -> None:
    answer = desk.apply("a.txt", ("one", "x"), ("x", "y"))
    assert (answer["code"], answer["edit"], answer["lines"]) == ("ambiguous", 1, [1, 2])
    assert answer["error"].startswith(
        "edit 1, which sees the file as the edits before it would leave it (none was made): oldText"
    )


def test_an_empty_file_is_said_to_be_empty(desk: Desk) -> None:
    answer = desk.edit("empty.txt", "a", "b")
    assert answer["error"] == "the file is empty; WriteSandboxFile gives it a text"


def test_a_path_under_a_file_or_through_a_dead_link_is_not_told_to_be_written(
    tmp_path: Path,
) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.txt").write_bytes(b"x")
    (root / "dead.txt").symlink_to("gone.txt")
    desk = Desk(FolderSandbox(root))
    under = desk.edit("a.txt/b.txt", "x", "y")
    assert under["error"] == "'a.txt/b.txt': there is none: 'a.txt' is a file, not a folder"
    dead = desk.edit("dead.txt", "x", "y")
    assert dead["error"].startswith("'dead.txt': it is a link to 'gone.txt', which is not there")


def test_a_file_with_a_second_name_is_not_told_to_be_copied(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.txt").write_bytes(b"x")
    (tmp_path / "outside.txt").hardlink_to(root / "a.txt")
    answer = Desk(FolderSandbox(root)).edit("a.txt", "x", "y")
    assert answer["error"].endswith("which may be outside; choose another path")


@pytest.mark.parametrize(
    ("before", "content", "note"),
    [
        (
            b"a\r\nb\r\n",
            "a\nc\n",
            "the line ends were \\r\\n and are \\n now; write \\r\\n if they",
        ),
        (b"\xef\xbb\xbfa\n", "b\n", "the file's byte order mark is gone; begin the text with it"),
        (b"a\n", "1| a\n2| b\n", "the text holds line numbers, `12| `, as a reading shows them"),
        (b"a\n", "a[cut: 9 more characters]\n", "the text holds `[cut: …]`, the mark of a line"),
    ],
)
def test_what_a_writing_loses_or_copies_unseen_is_noted_and_written_as_given(
    desk: Desk, before: bytes, content: str, note: str
) -> None:
    desk.put("b.txt", before)
    answer = desk.call("WriteSandboxFile", path="b.txt", content=content)
    assert answer["note"].startswith(note)
    assert desk.data("b.txt") == content.encode()


def test_an_edit_that_copies_line_numbers_is_noted(desk: Desk) -> None:
    answer = desk.edit("a.txt", "x", "8| x\n9| y")
    assert (answer["ok"], "line numbers" in answer["note"]) == (True, True)


@pytest.mark.parametrize(
    ("before", "content"),
    [
        (b"a\r\nb\n", "a\nc\n"),
        (b"a\r\n", "b\r\n"),
        (b"a\r\n", "b"),
        (b"1| a\n2| b\n", "1| a\n2| c\n"),
        (b"a\n", "| 1| a |\n7| b\n"),
    ],
)
def test_nothing_is_noted_where_nothing_is_odd(desk: Desk, before: bytes, content: str) -> None:
    desk.put("b.txt", before)
    assert "note" not in desk.call("WriteSandboxFile", path="b.txt", content=content)


def test_the_replacements_of_a_call_are_bounded_together(desk: Desk) -> None:
    half = REPLACEMENTS_MAX // 2 + 1
    desk.put("b.txt", b"a" * half)
    edits = [
        {"oldText": old, "newText": new, "replaceAll": True}
        for old, new in [("a", "b"), ("b", "c")]
    ]
    answer = desk.call("ApplySandboxFileEdits", path="b.txt", edits=edits)
    assert (answer["code"], answer["edit"]) == ("too_large", 1)
    assert desk.data("b.txt") == b"a" * half
