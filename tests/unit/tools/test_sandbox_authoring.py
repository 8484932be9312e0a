"""Writing, editing and undoing files of a sandbox: what is told, and what is refused."""

import json
from pathlib import Path

import pytest

from reprise.tools.sandbox_authoring import CONTENT_CHARS_MAX
from reprise.tools.toolbox import ANSWER_CHARS_MAX
from tests.sandbox_desk import Desk

HASH_X = "73cb3858a687a849"
"""Of `x`, a line feed."""


def test_a_file_is_created_with_its_folders(desk: Desk) -> None:
    assert desk.call("WriteSandboxFile", path="src/a.ts", content="x\n") == {
        "ok": True,
        "path": "src/a.ts",
        "hash": HASH_X,
        "totalLines": 1,
        "created": True,
    }
    assert desk.data("src/a.ts") == b"x\n"


def test_writing_over_a_file_that_was_never_read_says_what_was_replaced(desk: Desk) -> None:
    desk.put("a.ts", b"one\ntwo\n")
    answer = desk.call("WriteSandboxFile", path="a.ts", content="x\n")
    assert (answer["ok"], answer["created"], answer["replacedLines"]) == (True, False, 2)
    assert answer["diff"].splitlines()[-3:] == ["-one", "-two", "+x"]


def test_writing_over_a_file_that_changed_since_it_was_read_is_stale(desk: Desk) -> None:
    desk.put("a.ts", b"one\n")
    desk.call("ReadSandboxFileLines", path="a.ts", startLine=1, lineCount=1)
    desk.put("a.ts", b"two\n")
    answer = desk.call("WriteSandboxFile", path="a.ts", content="x\n")
    assert (answer["ok"], answer["code"]) == (False, "stale")
    assert desk.data("a.ts") == b"two\n"


def test_writing_a_file_that_is_gone_since_it_was_read_is_stale_once(desk: Desk) -> None:
    hers = desk.beside()
    hers.call("WriteSandboxFile", path="a.ts", content="one\n")
    desk.call("ReadSandboxFile", path="a.ts")
    hers.call("UndoSandboxFileEdit", path="a.ts")
    first = desk.call("WriteSandboxFile", path="a.ts", content="x\n")
    assert (first["code"], "is gone since you read it" in first["error"]) == ("stale", True)
    assert desk.call("WriteSandboxFile", path="a.ts", content="x\n")["created"] is True


def test_writing_the_same_text_again_writes_nothing(folder_desk: Desk, root: Path) -> None:
    folder_desk.put("a.ts", b"x\n")
    before = (root / "a.ts").stat()
    answer = folder_desk.call("WriteSandboxFile", path="a.ts", content="x\n")
    assert answer["note"] == "the file has this text already; nothing was written"
    assert (root / "a.ts").stat().st_ino == before.st_ino
    assert folder_desk.call("UndoSandboxFileEdit", path="a.ts")["code"] == "nothing_to_undo"


@pytest.mark.parametrize("character", ["x", "\n", "\U0001f600"])
def test_a_file_up_to_the_limit_can_be_written_however_it_is_escaped(
    desk: Desk, character: str
) -> None:
    content = character * CONTENT_CHARS_MAX
    arguments = json.dumps({"path": "a.ts", "content": content}, ensure_ascii=True)
    assert desk.raw("WriteSandboxFile", arguments)["ok"] is True
    assert desk.data("a.ts") == content.encode()


def test_a_longer_text_is_refused_and_the_limit_is_told(desk: Desk) -> None:
    answer = desk.call("WriteSandboxFile", path="a.ts", content="x" * (CONTENT_CHARS_MAX + 1))
    assert answer["error"] == (
        "the arguments do not fit: 'content' breaks the rule maxLength: 200000; see the tool's "
        "schema"
    )
    schema = next(one for one in desk.box.schemas if one.name == "WriteSandboxFile")
    assert "at most 200,000 characters" in json.dumps(schema.parameters)


def test_edits_that_are_too_long_together_are_refused(desk: Desk) -> None:
    desk.put("a.ts", b"x\n")
    answer = desk.apply("a.ts", *[("x", "y" * 50_000)] * 5)
    assert (answer["code"], answer["error"]) == (
        "too_large",
        "the edits have 250005 characters together; a call takes 200000. Part them over several "
        "calls",
    )


def test_a_text_with_a_nul_is_not_written(desk: Desk) -> None:
    assert desk.call("WriteSandboxFile", path="a.ts", content="a\0")["code"] == "binary"
    assert desk.data("a.ts") is None


def test_an_edit_answers_with_a_diff_and_the_new_hash(desk: Desk) -> None:
    desk.put("a.ts", b"a\nb\n")
    assert desk.edit("a.ts", "a", "x") == {
        "ok": True,
        "path": "a.ts",
        "hash": "b99888fcd416c6ba",
        "totalLines": 2,
        "replacements": 1,
        "diff": "--- a.ts\n+++ a.ts\n@@ -1,2 +1,2 @@\n-a\n+x\n b",
    }


def test_an_edit_moves_what_the_agent_has_seen_on(desk: Desk) -> None:
    desk.put("a.ts", b"a\nb\n")
    desk.call("ReadSandboxFile", path="a.ts")
    assert desk.edit("a.ts", "a", "x")["ok"] is True
    assert desk.edit("a.ts", "b", "y")["ok"] is True
    assert desk.data("a.ts") == b"x\ny\n"


def test_an_edit_of_a_file_that_was_never_read_is_made(desk: Desk) -> None:
    desk.put("a.ts", b"a\n")
    assert desk.edit("a.ts", "a", "x")["ok"] is True


def test_one_agents_change_makes_the_others_reading_stale(desk: Desk) -> None:
    other = desk.beside()
    desk.put("a.ts", b"a\nb\n")
    other.call("ReadSandboxFile", path="a.ts")
    desk.edit("a.ts", "a", "x")
    assert other.edit("a.ts", "b", "y")["code"] == "stale"


def test_an_expected_hash_is_what_the_file_has_to_have(desk: Desk) -> None:
    desk.put("a.ts", b"x\n")
    assert desk.edit("a.ts", "x", "y", expectHash="0" * 16)["code"] == "stale"
    assert desk.edit("a.ts", "x", "y", expectHash=HASH_X)["ok"] is True
    missing = desk.call("WriteSandboxFile", path="b.ts", content="x", expectHash=HASH_X)
    assert missing["code"] == "stale"


def test_an_expected_hash_of_the_present_content_goes_before_an_older_reading(desk: Desk) -> None:
    desk.put("a.ts", b"a\n")
    desk.call("ReadSandboxFile", path="a.ts")
    desk.put("a.ts", b"x\n")
    assert desk.edit("a.ts", "x", "y", expectHash=HASH_X)["ok"] is True


def test_undo_puts_back_one_change_after_the_other(desk: Desk) -> None:
    desk.put("a.ts", b"a\r\n")
    desk.edit("a.ts", "a", "b")
    desk.edit("a.ts", "b", "c")
    undone = desk.call("UndoSandboxFileEdit", path="a.ts")
    assert (undone["ok"], desk.data("a.ts")) == (True, b"b\r\n")
    assert undone["diff"].splitlines()[-2:] == ["-c", "+b"]
    assert desk.call("UndoSandboxFileEdit", path="a.ts")["ok"] is True
    assert desk.data("a.ts") == b"a\r\n"
    assert desk.call("UndoSandboxFileEdit", path="a.ts")["code"] == "nothing_to_undo"
    assert desk.edit("a.ts", "a", "z")["ok"] is True


def test_undo_of_a_creation_removes_the_file(desk: Desk) -> None:
    desk.call("WriteSandboxFile", path="a.ts", content="x")
    assert desk.call("UndoSandboxFileEdit", path="a.ts") == {
        "ok": True,
        "path": "a.ts",
        "removed": True,
        "note": "the change had created the file; it is removed",
    }
    assert desk.data("a.ts") is None
    assert desk.call("WriteSandboxFile", path="a.ts", content="y")["created"] is True


def test_undo_of_a_file_that_somebody_else_changed_since_is_stale(desk: Desk) -> None:
    desk.put("a.ts", b"a\n")
    desk.edit("a.ts", "a", "b")
    desk.call("WriteSandboxFile", path="new.ts", content="x\n")
    for path in ("a.ts", "new.ts"):
        desk.put(path, b"hers\n")
        assert desk.call("UndoSandboxFileEdit", path=path)["code"] == "stale"
        assert desk.data(path) == b"hers\n"


def test_undo_is_the_agents_own(desk: Desk) -> None:
    desk.put("a.ts", b"a\n")
    desk.edit("a.ts", "a", "b")
    other = desk.beside()
    assert other.call("UndoSandboxFileEdit", path="a.ts")["code"] == "nothing_to_undo"


def test_undo_and_staleness_know_a_file_by_all_its_links(folder_desk: Desk, root: Path) -> None:
    folder_desk.put("real.ts", b"a\n")
    (root / "link.ts").symlink_to("real.ts")
    folder_desk.call("ReadSandboxFile", path="link.ts")
    folder_desk.put("real.ts", b"b\n")
    assert folder_desk.edit("real.ts", "b", "c")["code"] == "stale"
    folder_desk.call("ReadSandboxFile", path="real.ts")
    assert folder_desk.edit("link.ts", "b", "c")["ok"] is True
    assert folder_desk.call("UndoSandboxFileEdit", path="./real.ts")["ok"] is True
    assert (root / "real.ts").read_text() == "b\n"


def test_only_the_last_fifty_changes_can_be_undone(desk: Desk) -> None:
    for at in range(60):
        desk.call("WriteSandboxFile", path="a.ts", content=f"{at}\n")
    undone = 0
    while desk.call("UndoSandboxFileEdit", path="a.ts")["ok"]:
        undone += 1
    assert (undone, desk.data("a.ts")) == (50, b"9\n")


def test_what_is_kept_for_undo_is_bounded_in_bytes(desk: Desk) -> None:
    desk.put("a.ts", b"1\n" + b"a" * 2_000_000)
    for at in range(30):
        old, new = ("1\n", "2\n") if at % 2 == 0 else ("2\n", "1\n")
        assert desk.edit("a.ts", old, new)["ok"]
    kept = sum(len(one.before or b"") for one in desk.door.replaced)
    assert 30_000_000 < kept <= 32 * 2**20


def test_the_same_failing_call_is_told_more_each_time(desk: Desk) -> None:
    body = "".join(f"  const v{at} = {at};\n" for at in range(30))
    desk.put("a.ts", f"function f() {{\n{body}}}\n".encode())
    answers = [desk.edit("a.ts", "const v7 = 8;", "x") for _ in range(3)]
    texts = [answer["text"].count("\n") for answer in answers]
    assert texts[0] == 0
    assert texts[1] > 20
    assert "ReadSandboxFileLines" not in answers[1]["error"]
    assert "call ReadSandboxFileLines with startLine" in answers[2]["error"]


def test_another_failing_call_begins_anew(desk: Desk) -> None:
    desk.put("a.ts", b"function f() {\n  const a = 1;\n}\n")
    desk.edit("a.ts", "const a = 2;", "x")
    assert desk.edit("a.ts", "const a = 3;", "x")["text"].count("\n") == 0


def test_a_call_that_went_through_is_forgotten(desk: Desk) -> None:
    desk.put("a.ts", b"function f() {\n  const a = 1;\n}\n")
    desk.edit("a.ts", "const a = 2;", "x")
    desk.put("a.ts", b"function f() {\n  const a = 2;\n}\n")
    assert desk.edit("a.ts", "const a = 2;", "x")["ok"] is True
    assert desk.door.failed == {}


def test_failing_calls_are_not_remembered_without_end(desk: Desk) -> None:
    desk.put("a.ts", b"a\n")
    for at in range(150):
        desk.edit("a.ts", f"nothing {at}", "x")
    assert len(desk.door.failed) == 100


def test_the_mark_of_a_cut_line_in_a_text_is_named(desk: Desk) -> None:
    desk.put("a.ts", b"x" * 1500 + b"\n")
    shown = desk.call("ReadSandboxFileLines", path="a.ts")["text"].removeprefix("1| ")
    answer = desk.edit("a.ts", shown, "y")
    assert (answer["code"], answer["difference"]) == ("not_found", "cut_mark")
    assert answer["error"].startswith("oldText holds the mark `[cut: …]` of a line that was shown")


def test_a_file_that_holds_such_a_mark_is_edited(desk: Desk) -> None:
    desk.put("a.ts", b"say [cut: 5 more characters]\n")
    assert desk.edit("a.ts", "[cut: 5 more characters]", "y")["ok"] is True


def test_a_refused_edit_leaves_no_trace_in_what_was_seen(desk: Desk) -> None:
    desk.put("a.ts", b"a\n")
    assert desk.edit("a.ts", "zzz", "x")["ok"] is False
    assert desk.door.seen == {}
    assert desk.door.replaced == []


def test_long_lines_and_odd_characters_keep_answers_bounded(desk: Desk) -> None:
    desk.put("a.ts", ("\x01" * 1999 + "\n").encode() * 50 + b"needle one\n")
    for old in ("needle onf", "\x01" * 300, "zzz"):
        for _ in range(3):
            arguments = json.dumps({"path": "a.ts", "oldText": old, "newText": "\x02" * 9000})
            answer = desk.box.run("EditSandboxFile", arguments)
            assert len(answer) <= ANSWER_CHARS_MAX
            assert "ask for less" not in answer
