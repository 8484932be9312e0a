"""The short diff of an edit."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.tools.edit_diff import cut_at, short_diff


def test_a_change_is_shown_with_two_lines_around_it() -> None:
    before = b"a\nb\nc\nd\ne\nf\ng\n"
    assert short_diff(before, before.replace(b"d", b"D\nnew"), "src/a.ts") == (
        "--- src/a.ts\n+++ src/a.ts\n@@ -2,5 +2,6 @@\n b\n c\n-d\n+D\n+new\n e\n f"
    )


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    before = b"".join(b"row %d\n" % index for index in range(1, 30))
    after = before.replace(b"row 3\n", b"").replace(b"row 20\n", b"row 20\nnew\n")
    assert short_diff(before, after, "a") == (
        "--- a\n+++ a\n"
        "@@ -1,5 +1,4 @@\n row 1\n row 2\n-row 3\n row 4\n row 5\n"
        "@@ -19,4 +18,5 @@\n row 19\n row 20\n+new\n row 21\n row 22"
    )


def test_line_ends_of_a_crlf_file_are_not_shown() -> None:
    assert short_diff(b"a\r\nb\r\n", b"a\r\nB\r\n", "a") == (
        "--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n-b\n+B"
    )


def test_a_change_of_line_ends_is_shown() -> None:
    assert short_diff(b"a\r\nb\r\n", b"a\r\nb\n", "a") == (
        "--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\\r\n-b\\r\n+b"
    )


def test_a_missing_final_line_end_is_shown() -> None:
    assert short_diff(b"a\nb", b"a\nb\n", "a") == (
        "--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b"
    )


def test_a_new_file_and_an_emptied_one_are_shown() -> None:
    assert short_diff(b"", b"a\n", "a") == "--- a\n+++ a\n@@ -0,0 +1,1 @@\n+a"
    assert short_diff(b"a\n", b"", "a") == "--- a\n+++ a\n@@ -1,1 +0,0 @@\n-a"
    assert short_diff(b"a\n", b"a\n", "a") == ""


def test_a_byte_order_mark_that_stays_is_not_shown() -> None:
    assert short_diff(b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n", "a") == (
        "--- a\n+++ a\n@@ -1,1 +1,1 @@\n-a\n+b"
    )


def test_characters_that_would_break_a_line_are_escaped() -> None:
    after = "\tb\r\x0c\x1b\u0085\u2028é\U0001f469\u200d\U0001f4bb\n".encode()
    assert short_diff(b"a\n", after, "a").split("\n")[-1] == (
        "+\tb\\r\\x0c\\x1b\\x85\\u2028é\U0001f469\u200d\U0001f4bb"
    )


def test_a_long_line_is_shown_where_it_was_changed() -> None:
    before = b"x" * 5000 + b"OLD" + b"y" * 5000 + b"\n"
    removed, added = short_diff(before, before.replace(b"OLD", b"NEWER"), "a").split("\n")[-2:]
    assert removed == "-…(4960 characters) " + "x" * 40 + "OLD" + "y" * 157 + " …(4843 characters)"
    assert added == "+…(4960 characters) " + "x" * 40 + "NEWER" + "y" * 155 + " …(4845 characters)"


def test_a_diff_that_is_cut_says_so() -> None:
    before = b"".join(b"row %d\n" % index for index in range(1000))
    diff = short_diff(before, before.upper(), "a", chars_max=300)
    assert len(diff) <= 300
    assert diff.split("\n")[:4] == ["--- a", "+++ a", "@@ -1,1000 +1,1000 @@", "-row 0"]
    assert diff.endswith("\n… the diff is cut here; read the file to see the rest")


def test_what_is_no_text_is_said_so() -> None:
    assert short_diff(b"\xff", b"a", "a.png") == "a.png is not text: 1 bytes before, 1 after"


@pytest.mark.parametrize(
    ("text", "most", "at"),
    [
        ("abc", 2, 2),
        ("abc", 9, 3),
        ("ae\u0301b", 2, 1),
        ("a\U0001f469\u200d\U0001f4bbb", 2, 1),
        ("a\U0001f469\u200d\U0001f4bbb", 3, 1),
        ("a\U0001f44d\U0001f3fdb", 2, 1),
        ("a\U0001f1e9\U0001f1eab", 2, 1),
        ("e" + "\u0301" * 90, 60, 60),
    ],
)
def test_a_text_is_not_cut_within_what_is_seen_as_one(text: str, most: int, at: int) -> None:
    assert cut_at(text, most) == at


rows = st.lists(st.sampled_from(["", "a", "b", "c\r", "}"]), max_size=30)


@settings(max_examples=100, deadline=None)
@given(rows, rows, st.sampled_from(["", "\n"]))
def test_a_diff_applied_to_the_first_state_gives_the_second(
    old: list[str], new: list[str], end: str
) -> None:
    before, after = "\n".join(old) + end, "\n".join(new) + end
    diff = short_diff(before.encode(), after.encode(), "a", chars_max=100_000)
    assert _patched(before, diff) == after.replace("\r", "")


def _patched(before: str, diff: str) -> str:
    """Apply a diff as its format says, on text without carriage returns."""
    source = before.replace("\r", "").split("\n")
    result: list[str] = []
    at, is_open = 0, not before.endswith("\n")
    lines = diff.split("\n")[2:]
    for index, line in enumerate(lines):
        sign, body = line[:1], line[1:].removesuffix("\\r")
        if sign == "@":
            start, count = map(int, line.split(" ")[1][1:].split(","))
            upto = start - (count > 0)
            result += source[at:upto]
            at = upto
        elif sign == "\\":
            is_open = lines[index - 1][:1] != "-"
        elif sign == "+":
            result.append(body)
            is_open = False
        else:
            assert source[at] == body
            at += 1
            if sign == " ":
                result.append(body)
    rest = source[at:]
    if not diff:
        return before.replace("\r", "")
    if len(rest) == 0 or rest == [""]:
        return "\n".join(result) + ("" if is_open or not result else "\n")
    return "\n".join(result + rest)


def test_every_escape_is_of_a_control_character() -> None:
    shown = "".join(map(chr, range(0xA0, 0x250)))
    assert short_diff(b"", shown.encode(), "a").split("\n")[3] == f"+{shown}"[:201] + (
        f" …({len(shown) - 200} characters)"
    )
    assert {unicodedata.category(each) for each in "\r\x1b\u0085"} == {"Cc"}
