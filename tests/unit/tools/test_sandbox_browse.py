"""Listing and reading a sandbox: exact, bounded, and with the hash of what was read."""

import json

from reprise.model.agent import ToolGroup
from reprise.tools.access import ToolAccess
from reprise.tools.toolbox import ANSWER_CHARS_MAX, Toolbox
from tests.sandbox_desk import Desk

HASH_A = "87428fc522803d31"
"""Of `a`, a line feed."""


def test_files_are_listed_by_path_with_sizes(desk: Desk) -> None:
    for path in ("src/b.ts", "a.md", "src/in/c.ts"):
        desk.put(path, b"12345")
    assert desk.call("ListSandboxFiles") == {
        "ok": True,
        "total": 3,
        "files": [
            {"path": "a.md", "sizeBytes": 5},
            {"path": "src/b.ts", "sizeBytes": 5},
            {"path": "src/in/c.ts", "sizeBytes": 5},
        ],
        "cut": False,
    }


def test_a_folder_lists_what_is_in_it_and_not_what_begins_alike(desk: Desk) -> None:
    for path in ("src/b.ts", "src2/a.ts", "src/in/c.ts"):
        desk.put(path, b"x")
    for folder in ("src", "src/", "./src"):
        found = desk.call("ListSandboxFiles", folder=folder)
        assert [file["path"] for file in found["files"]] == ["src/b.ts", "src/in/c.ts"]
    assert desk.call("ListSandboxFiles", folder=".")["total"] == 3
    nothing = desk.call("ListSandboxFiles", folder="sr")
    assert (nothing["total"], nothing["note"]) == (
        0,
        "no file's path begins with 'sr/'; list all without `folder`",
    )


def test_a_long_listing_is_paged(desk: Desk) -> None:
    for at in range(250):
        desk.put(f"f{at:03d}", b"")
    first = desk.call("ListSandboxFiles")
    assert (len(first["files"]), first["cut"], first["nextOffset"]) == (200, True, 200)
    rest = desk.call("ListSandboxFiles", offset=200)
    assert ([rest["files"][0]["path"], len(rest["files"])], rest["cut"]) == (["f200", 50], False)
    assert desk.call("ListSandboxFiles", offset=10**30)["files"] == []


def test_a_file_is_read_exactly_with_its_hash(desk: Desk) -> None:
    desk.put("a.txt", b"a\n")
    assert desk.call("ReadSandboxFile", path="a.txt") == {
        "ok": True,
        "path": "a.txt",
        "hash": HASH_A,
        "totalLines": 1,
        "totalChars": 2,
        "text": "a\n",
        "cut": False,
    }


def test_line_ends_and_byte_order_mark_are_read_as_they_are(desk: Desk) -> None:
    desk.put("a.txt", b"\xef\xbb\xbfa\r\nb\rc\n")
    assert desk.call("ReadSandboxFile", path="a.txt")["text"] == "\ufeffa\r\nb\rc\n"


def test_a_long_file_is_read_in_parts_of_whole_lines_that_make_the_file(desk: Desk) -> None:
    text = "".join(f"line {at} \u20ac\n" for at in range(6000))
    desk.put("long.txt", text.encode())
    parts, offset = [], 0
    while True:
        found = desk.call("ReadSandboxFile", path="long.txt", offset=offset)
        parts.append(found["text"])
        if not found["cut"]:
            break
        assert found["text"].endswith("\n")
        offset = found["nextOffset"]
    assert "".join(parts) == text
    assert len(parts) == 4


def test_a_line_without_an_end_is_read_in_parts_too(desk: Desk) -> None:
    desk.put("min.js", b'"' * 30_000)
    found = desk.call("ReadSandboxFile", path="min.js")
    assert (len(found["text"]), found["nextOffset"], found["totalLines"]) == (10_000, 10_000, 1)


def test_a_reading_behind_the_end_says_so(desk: Desk) -> None:
    desk.put("a.txt", b"a\n")
    found = desk.call("ReadSandboxFile", path="a.txt", offset=9)
    assert (found["text"], found["cut"]) == ("", False)
    assert found["note"] == "the file has 2 characters; offset 9 is behind its end"


def test_lines_are_read_with_their_numbers(desk: Desk) -> None:
    desk.put("a.txt", b"one\r\ntwo\nthree\r\nfour")
    found = desk.call("ReadSandboxFileLines", path="a.txt", startLine=2, lineCount=2)
    assert found == {
        "ok": True,
        "path": "a.txt",
        "hash": "41402882d928901f",
        "totalLines": 4,
        "startLine": 2,
        "endLine": 3,
        "text": "2| two\n3| three",
        "cut": True,
        "nextStartLine": 4,
    }


def test_lines_that_are_not_there_are_clamped_with_a_note(desk: Desk) -> None:
    desk.put("a.txt", b"one\ntwo\n")
    found = desk.call("ReadSandboxFileLines", path="a.txt", startLine=9, lineCount=1000)
    assert (found["text"], found["cut"]) == ("2| two", False)
    assert found["note"] == (
        "startLine 9 is not in the file, 2 was taken; lineCount is between 1 and 400, 400 was taken"
    )
    low = desk.call("ReadSandboxFileLines", path="a.txt", startLine=-3, lineCount=0)
    assert (low["startLine"], low["endLine"], low["text"]) == (1, 1, "1| one")


def test_an_empty_file_has_no_lines(desk: Desk) -> None:
    desk.put("a.txt", b"")
    found = desk.call("ReadSandboxFileLines", path="a.txt")
    assert (found["totalLines"], found["startLine"], found["endLine"]) == (0, 1, 0)
    assert (found["text"], found["note"]) == ("", "the file is empty")


def test_a_long_line_is_cut_with_a_mark_that_says_so(desk: Desk) -> None:
    desk.put("a.txt", b"x" * 1500 + b"\nshort\n")
    found = desk.call("ReadSandboxFileLines", path="a.txt")
    assert found["text"] == "1| " + "x" * 1000 + "[cut: 500 more characters]\n2| short"
    assert found["note"].startswith("lines of more than 1000 characters are cut")


def test_many_lines_are_cut_to_what_fits(desk: Desk) -> None:
    desk.put("a.txt", (b"y" * 996 + b"\n") * 100)
    found = desk.call("ReadSandboxFileLines", path="a.txt")
    assert (found["endLine"], found["nextStartLine"]) == (19, 20)


def test_a_file_that_is_not_there_is_refused(desk: Desk) -> None:
    for tool in ("ReadSandboxFile", "ReadSandboxFileLines"):
        answer = desk.call(tool, path="a.txt")
        assert (answer["ok"], answer["code"]) == (False, "not_found_file")


def test_every_answer_is_bounded(desk: Desk) -> None:
    desk.put("bad.txt", b"\x01" * 100_000 + b"\n" + b"\x02\n" * 100_000)
    for tool in ("ReadSandboxFile", "ReadSandboxFileLines"):
        text = desk.box.run(tool, '{"path": "bad.txt"}')
        assert json.loads(text)["ok"] is True
        assert len(text) <= ANSWER_CHARS_MAX


def test_without_a_sandbox_a_tool_says_so() -> None:
    box = Toolbox([ToolGroup.SANDBOX_BROWSE], ToolAccess())
    assert json.loads(box.run("ListSandboxFiles", "{}")) == {
        "ok": False,
        "code": "no_sandbox",
        "error": "there is no sandbox here; go on without its tools",
    }
