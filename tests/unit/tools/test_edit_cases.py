r"""The 42 cases of edit tools that corrupted files elsewhere, by the tools as agents call them.

Each number is one of the table of test cases that specification E12 names. What the pure engine
does with them is in test_text_edit.py; here it is JSON in, JSON out, and the bytes in the sandbox.
"""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from reprise.model.sandbox import FILE_BYTES_MAX
from tests.sandbox_desk import Desk

PATH = "src/a.tsx"


def edited(desk: Desk, data: bytes, old: str, new: str, **more: object) -> bytes | None:
    """Return what an edit that goes through makes of a file."""
    desk.put(PATH, data)
    answer = desk.beside().edit(PATH, old, new, **more)
    assert answer["ok"] is True, answer
    return desk.data(PATH)


def refused(desk: Desk, data: bytes, old: str, new: str, **more: object) -> dict[str, Any]:
    """Return why an edit is refused; the file is as it was."""
    desk.put(PATH, data)
    answer = desk.beside().edit(PATH, old, new, **more)
    assert answer["ok"] is False, answer
    assert desk.data(PATH) == data
    return answer


def test_case_1_an_lf_text_edits_a_crlf_file_and_the_new_lines_are_crlf(desk: Desk) -> None:
    found = edited(desk, b"a\r\nb\r\nc\r\nd\r\n", "b\nc", "b\nx\nc")
    assert found == b"a\r\nb\r\nx\r\nc\r\nd\r\n"


def test_case_2_a_crlf_text_edits_an_lf_file_and_brings_no_cr(desk: Desk) -> None:
    assert edited(desk, b"a\nb\nc\n", "a\r\nb", "a\r\nx\r\nb") == b"a\nx\nb\nc\n"


def test_case_3_in_a_mixed_file_only_the_edited_line_changes(desk: Desk) -> None:
    assert edited(desk, b"a\r\nb\nc\r\nd\n", "c", "x") == b"a\r\nb\nx\r\nd\n"


def test_case_4_context_lines_of_a_mixed_file_keep_their_ends(desk: Desk) -> None:
    found = edited(desk, b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nX\nd")
    assert found == b"a\r\nb\nX\r\nd\n"


def test_case_5_an_inserted_line_takes_its_neighbours_end(desk: Desk) -> None:
    found = edited(desk, b"a\nb\r\nc\r\nd\n", "b\nc", "b\nnew\nc")
    assert found == b"a\nb\r\nnew\r\nc\r\nd\n"


@pytest.mark.parametrize("mark", ["\r", "\f", "\v", "\x1c", "\u0085", "\u2028", "\u2029"])
def test_case_6_what_only_looks_like_a_line_end_is_kept_and_counts_no_line(
    desk: Desk, mark: str
) -> None:
    found = edited(desk, f"a{mark}b\nc\n".encode(), "c", "x")
    assert found == f"a{mark}b\nx\n".encode()
    assert desk.call("ReadSandboxFileLines", path=PATH)["text"] == f"1| a{mark}b\n2| x"


@pytest.mark.parametrize(("old", "new"), [("\nb", "\nx"), ("b\n", "x\n")])
def test_case_7_a_text_with_a_line_end_at_its_edge_leaves_no_orphan_cr(
    desk: Desk, old: str, new: str
) -> None:
    assert edited(desk, b"a\r\nb\r\nc\r\n", old, new) == b"a\r\nx\r\nc\r\n"


def test_case_8_texts_that_differ_by_line_ends_alone_change_nothing(desk: Desk) -> None:
    assert refused(desk, b"a\r\nb\r\n", "a\nb", "a\r\nb")["code"] == "no_change"


@pytest.mark.parametrize("old", ["a", "\ufeffa"])
def test_case_9_a_byte_order_mark_is_kept_exactly_once(desk: Desk, old: str) -> None:
    assert edited(desk, b"\xef\xbb\xbfa\nb\n", old, "x") == b"\xef\xbb\xbfx\nb\n"


def test_case_10_a_missing_final_newline_stays_missing(desk: Desk) -> None:
    assert edited(desk, b"a\nb", "b", "x") == b"a\nx"
    answer = refused(desk, b"a\nb", "b\n", "x\n")
    assert (answer["code"], answer["difference"]) == ("not_found", "final_newline")


@pytest.mark.parametrize(
    ("number", "data", "old", "difference"),
    [
        (11, "let a = 1;  \nlet b = 2;\n", "let a = 1;\nlet b = 2;", "line_end_space"),
        (12, "if (x) {\n\treturn 1;\n}\n", "if (x) {\n    return 1;\n}", "indentation"),
        (13, "const\u00a0a = 1;\n", "const a = 1;", "look_alike"),
        (14, "say(\u201chello\u201d);\n", 'say("hello");', "look_alike"),
        (16, "let cafe\u0301 = 1;\n", "let caf\u00e9 = 1;", "look_alike"),
        (17, "let ab\u200bcd = 1;\n", "let abcd = 1;", "look_alike"),
        (17, "let ab\ufeffcd = 1;\n", "let abcd = 1;", "look_alike"),
    ],
)
def test_cases_11_to_17_a_near_miss_is_refused_with_its_class_and_the_real_text(
    desk: Desk, number: int, data: str, old: str, difference: str
) -> None:
    answer = refused(desk, data.encode(), old, "x")
    assert (answer["code"], answer["difference"], answer["line"]) == ("not_found", difference, 1)
    assert answer["text"] in data, number


def test_case_15_quotes_and_emoji_are_written_as_they_are(desk: Desk) -> None:
    new = "\u201chi\u201d \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2019"
    assert edited(desk, b"a\n", "a", new) == f"{new}\n".encode()


@pytest.mark.parametrize(
    "arguments",
    [
        r'{"path": "src/a.tsx", "oldText": "a\ud800", "newText": "x"}',
        r'{"path": "src/a.tsx", "oldText": "a", "newText": "\udc00x"}',
    ],
)
def test_case_18_half_a_character_is_an_error_and_writes_nothing(
    desk: Desk, arguments: str
) -> None:
    desk.put(PATH, b"a\n")
    assert desk.raw("EditSandboxFile", arguments)["code"] == "lone_surrogate"
    assert desk.data(PATH) == b"a\n"


def test_case_19_overlapping_places_are_ambiguous(desk: Desk) -> None:
    answer = refused(desk, b"aaa\n", "aa", "b")
    assert (answer["code"], answer["count"], answer["lines"]) == ("ambiguous", 2, [1])


def test_case_20_replace_all_goes_left_to_right_and_does_not_look_again(desk: Desk) -> None:
    desk.put(PATH, b"aaaa\n")
    assert desk.edit(PATH, "aa", "a", replaceAll=True)["replacements"] == 2
    assert desk.data(PATH) == b"aa\n"


def test_case_21_a_new_text_that_holds_the_old_one_does_not_grow(desk: Desk) -> None:
    desk.put(PATH, b"x\nx\r\ny\n")
    assert desk.edit(PATH, "x\n", "xx\n", replaceAll=True)["replacements"] == 2
    assert desk.data(PATH) == b"xx\nxx\r\ny\n"


def test_case_22_what_other_tools_substitute_is_literal_in_the_new_text(desk: Desk) -> None:
    new = r"$& $1 \1 \g<0> $$ $' ${x} \\ \n"
    assert edited(desk, b"a\n", "a", new) == new.encode() + b"\n"


def test_case_23_a_pattern_is_literal_in_the_old_text(desk: Desk) -> None:
    assert edited(desk, b"axxb [x] (\n.*b [x] (\n", ".*b [x] (", "y") == b"axxb [x] (\ny\n"


def test_case_24_an_empty_text_is_refused_and_white_space_alone_is_looked_for(desk: Desk) -> None:
    assert refused(desk, b"a\n", "", "x")["code"] == "empty_old"
    assert refused(desk, b"", "", "x")["code"] == "empty_old"
    assert refused(desk, b"ab\n", " \t ", "x")["code"] == "not_found"


def test_case_25_the_same_text_twice_is_no_change(desk: Desk) -> None:
    assert refused(desk, b"a\n", "a", "a")["code"] == "no_change"


def test_case_26_one_refused_edit_of_three_writes_none(folder_desk: Desk, root: Path) -> None:
    folder_desk.put(PATH, b"a\nb\nc\n")
    before = (root / PATH).stat()
    answer = folder_desk.apply(PATH, ("a", "x"), ("zzz", "y"), ("c", "z"))
    assert (answer["ok"], answer["code"], answer["edit"]) == (False, "not_found", 1)
    after = (root / PATH).stat()
    assert folder_desk.data(PATH) == b"a\nb\nc\n"
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_case_27_an_edit_of_what_an_earlier_one_made_is_made_and_told(desk: Desk) -> None:
    desk.put(PATH, b"one\n")
    answer = desk.apply(PATH, ("one", "two"), ("two", "three"))
    assert (answer["ok"], answer["matchedOwnOutput"]) == (True, [1])
    assert answer["replacementsByEdit"] == [1, 1]
    assert desk.data(PATH) == b"three\n"


def test_case_28_edits_that_cancel_out_write_nothing(desk: Desk) -> None:
    desk.put(PATH, b"one\n")
    assert desk.apply(PATH, ("one", "two"), ("two", "one"))["code"] == "no_net_change"
    assert desk.data(PATH) == b"one\n"


def test_case_29_a_file_that_changed_since_it_was_read_is_stale(desk: Desk) -> None:
    desk.put(PATH, b"a\n")
    desk.call("ReadSandboxFile", path=PATH)
    desk.put(PATH, b"a\nb\n")
    answer = desk.edit(PATH, "a", "x")
    assert (answer["code"], answer["hash"]) == ("stale", "911169ddaaf146af")
    assert desk.data(PATH) == b"a\nb\n"
    assert desk.call("ReadSandboxFile", path=PATH)["hash"] == "911169ddaaf146af"
    assert desk.edit(PATH, "a", "x")["ok"] is True


def test_case_30_parallel_edits_of_one_file_are_all_made_or_stale(desk: Desk) -> None:
    names = [f"n{at:02d}" for at in range(8)]
    desk.put(PATH, "".join(f"{name}=0\n" for name in names).encode())
    answers: dict[str, dict[str, Any]] = {}

    def work(name: str) -> None:
        mine = desk.beside()
        mine.call("ReadSandboxFile", path=PATH)
        answers[name] = mine.edit(PATH, f"{name}=0", f"{name}=1")

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = (desk.data(PATH) or b"").decode()
    made = {name for name in names if f"{name}=1\n" in text}
    assert made == {name for name, answer in answers.items() if answer["ok"]}
    assert {answer.get("code") for answer in answers.values()} <= {None, "stale"}
    assert made


def test_case_31_a_file_keeps_its_mode(folder_desk: Desk, root: Path) -> None:
    folder_desk.put(PATH, b"a\n")
    (root / PATH).chmod(0o755)
    assert folder_desk.edit(PATH, "a", "x")["ok"] is True
    assert stat.S_IMODE((root / PATH).stat().st_mode) == 0o755


def test_case_32_a_link_to_outside_is_refused(folder_desk: Desk, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("a\n")
    (root / "file").symlink_to(outside / "a.txt")
    (root / "folder").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "new.txt")
    for path in ("file", "folder/a.txt"):
        assert folder_desk.call("ReadSandboxFile", path=path)["code"] == "outside"
        assert folder_desk.edit(path, "a", "x")["code"] == "outside"
    for path in ("file", "folder/a.txt", "folder/new.txt", "dangling"):
        written = folder_desk.call("WriteSandboxFile", path=path, content="x")
        assert written["code"] == "outside"
    assert [each.name for each in outside.iterdir()] == ["a.txt"]
    assert (outside / "a.txt").read_text() == "a\n"


def test_case_33_a_link_to_inside_edits_what_it_leads_to(folder_desk: Desk, root: Path) -> None:
    folder_desk.put("real.ts", b"a\n")
    (root / "link.ts").symlink_to("real.ts")
    assert folder_desk.edit("link.ts", "a", "x")["ok"] is True
    assert (root / "link.ts").is_symlink()
    assert (root / "real.ts").read_text() == "x\n"


def test_case_34_a_file_with_a_further_name_is_refused(folder_desk: Desk, root: Path) -> None:
    outside = root.parent / "outside.txt"
    outside.write_text("a\n")
    os.link(outside, root / "inside.txt")
    assert folder_desk.edit("inside.txt", "a", "x")["code"] == "hard_link"
    written = folder_desk.call("WriteSandboxFile", path="inside.txt", content="x")
    assert written["code"] == "hard_link"
    assert outside.read_text() == "a\n"


@pytest.mark.parametrize(
    "path",
    [
        "../a.txt",
        "src/../../a.txt",
        "/etc/passwd",
        "a\0b",
        "a\\b",
        "C:\\a",
        "C:/a",
        "trailing.",
        "trailing./a",
        "",
        ".",
        "..",
        "src/..",
    ],
)
def test_case_35_a_path_that_leaves_or_that_no_file_has_is_refused(desk: Desk, path: str) -> None:
    assert desk.call("ReadSandboxFile", path=path)["code"] == "bad_path"
    assert desk.edit(path, "a", "x")["code"] == "bad_path"
    assert desk.call("WriteSandboxFile", path=path, content="x")["code"] == "bad_path"
    assert desk.call("UndoSandboxFileEdit", path=path)["code"] == "bad_path"


def test_case_35_a_folder_whose_name_begins_alike_is_outside(folder_desk: Desk, root: Path) -> None:
    evil = root.parent / "ws-evil"
    evil.mkdir()
    (evil / "a.txt").write_text("a\n")
    answer = folder_desk.edit(str(evil / "a.txt"), "a", "x")
    assert answer["code"] == "bad_path"
    assert folder_desk.edit("../ws-evil/a.txt", "a", "x")["code"] == "bad_path"
    assert (evil / "a.txt").read_text() == "a\n"


def test_case_35_a_name_that_differs_by_letter_case_alone_is_refused(desk: Desk) -> None:
    desk.put("Root.tsx", b"a\n")
    written = desk.call("WriteSandboxFile", path="root.tsx", content="x")
    assert written["code"] == "case_clash"


def test_case_36_a_pipe_and_a_folder_are_refused_and_nothing_hangs(
    folder_desk: Desk, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    for path, code in (("pipe", "not_a_file"), ("folder", "is_folder")):
        assert folder_desk.call("ReadSandboxFile", path=path)["code"] == code
        assert folder_desk.edit(path, "a", "x")["code"] == code
        assert folder_desk.call("WriteSandboxFile", path=path, content="x")["code"] == code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x89PNG\r\n\x00\x00a", "binary"),
        ("let a\n".encode("utf-16"), "binary"),
        ("caf\u00e9 a\n".encode("latin-1"), "not_utf8"),
    ],
)
def test_case_37_what_is_no_utf_8_text_is_never_rewritten(
    desk: Desk, data: bytes, code: str
) -> None:
    assert refused(desk, data, "a", "x")["code"] == code
    assert desk.call("ReadSandboxFile", path=PATH)["code"] == code
    assert desk.call("ReadSandboxFileLines", path=PATH)["code"] == code
    assert desk.call("WriteSandboxFile", path=PATH, content="x")["code"] == code
    assert desk.data(PATH) == data


def test_case_38_a_file_over_the_limit_is_refused(folder_desk: Desk, root: Path) -> None:
    (root / "big.txt").write_bytes(b"a\n" * (FILE_BYTES_MAX // 2 + 1))
    assert folder_desk.call("ReadSandboxFile", path="big.txt")["code"] == "too_large"
    assert folder_desk.edit("big.txt", "a", "x")["code"] == "too_large"


def test_case_39_an_edit_of_no_file_says_which_tool_creates_one(desk: Desk) -> None:
    assert desk.edit("new.ts", "a", "x") == {
        "ok": False,
        "code": "not_found_file",
        "error": "'new.ts': there is no such file to edit; WriteSandboxFile creates one",
        "path": "new.ts",
    }
    assert desk.data("new.ts") is None


def test_case_40_line_numbers_of_a_reading_are_named(desk: Desk) -> None:
    desk.put(PATH, b"let a = 1;\nlet b = 2;\n")
    shown = desk.call("ReadSandboxFileLines", path=PATH)["text"]
    assert shown == "1| let a = 1;\n2| let b = 2;"
    answer = desk.edit(PATH, shown, "x")
    assert (answer["code"], answer["difference"]) == ("not_found", "line_numbers")
    assert answer["text"] == "let a = 1;\nlet b = 2;"


def test_case_41_an_edit_that_was_made_already_says_so(desk: Desk) -> None:
    answer = refused(desk, b"let total = 2;\n", "let total = 1;", "let total = 2;")
    assert (answer["code"], answer["already"]) == ("not_found", True)


def test_case_42_a_line_end_escaped_twice_is_named_and_not_unescaped(desk: Desk) -> None:
    answer = refused(desk, b"let a = 1;\nlet b = 2;\n", r"let a = 1;\nlet b = 2;", "x")
    assert (answer["code"], answer["difference"]) == ("not_found", "escapes")


def test_every_refusal_is_json_that_begins_with_ok(desk: Desk) -> None:
    desk.put(PATH, b"a\n")
    arguments = json.dumps({"path": PATH, "oldText": "zzz", "newText": "x"})
    assert desk.box.run("EditSandboxFile", arguments).startswith('{"ok": false, "code": ')
