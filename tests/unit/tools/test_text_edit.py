r"""Edits of bytes, case by case; the numbers are those of the list that specification E12 names.

Here: how a file and its line ends stay, and what matches. Several edits and what is refused for the
file or its size: `test_text_edit_calls.py`.
"""

import pytest

from reprise.tools.text_edit import Edited, EditFault, EditRefusal, TextEdit, edit_bytes


def edited(data: bytes, *edits: TextEdit) -> bytes:
    result = edit_bytes(data, edits)
    assert isinstance(result, Edited), result
    return result.data


def refused(data: bytes, *edits: TextEdit) -> EditRefusal:
    result = edit_bytes(data, edits)
    assert isinstance(result, EditRefusal), result
    return result


# ------------------------------------------------------------------------------------ line ends


def test_an_edit_with_line_feeds_fits_a_crlf_file_and_brings_crlf() -> None:
    """Case 1."""
    data = b"one\r\ntwo\r\nthree\r\nfour\r\n"
    edit = TextEdit("two\nthree", "two\nnew\nTHREE")
    assert edited(data, edit) == b"one\r\ntwo\r\nnew\r\nTHREE\r\nfour\r\n"


def test_an_edit_with_crlf_fits_a_file_with_line_feeds_and_brings_no_carriage_return() -> None:
    """Case 2."""
    edit = TextEdit("two\r\nthree", "two\r\nnew\r\nTHREE")
    assert edited(b"one\ntwo\nthree\n", edit) == b"one\ntwo\nnew\nTHREE\n"


def test_an_edit_of_one_line_of_a_mixed_file_changes_that_line_alone() -> None:
    """Case 3."""
    data = b"a\r\nb\nc\r\nd\ne\r\n"
    assert edited(data, TextEdit("c", "C")) == b"a\r\nb\nC\r\nd\ne\r\n"


def test_context_lines_with_differing_ends_keep_theirs() -> None:
    """Case 4."""
    data = b"a\r\nb\nc\r\nd\ne\r\n"
    edit = TextEdit("a\nb\nc\nd\n", "a\nb\nC\nd\n")
    assert edited(data, edit) == b"a\r\nb\nC\r\nd\ne\r\n"


def test_context_between_two_changed_lines_keeps_its_ends_when_lines_come_and_go() -> None:
    """Case 4."""
    data = b"a\r\nb\nc\r\nd\ne\r\n"
    edit = TextEdit("a\nb\nc\nd\ne\n", "A\nnew\nb\nd\nE\n")
    assert edited(data, edit) == b"A\r\nnew\r\nb\nd\nE\r\n"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (TextEdit("b\n", "b\nnew\n"), b"a\nb\r\nnew\r\nc\r\nd\n"),
        (TextEdit("b", "b\nnew"), b"a\nb\r\nnew\r\nc\r\nd\n"),
        (TextEdit("c", "new\nc"), b"a\nb\r\nnew\r\nc\r\nd\n"),
        (TextEdit("b\nc\n", "b\r\nnew\r\nc\r\n"), b"a\nb\r\nnew\r\nc\r\nd\n"),
    ],
)
def test_a_line_inserted_between_crlf_lines_of_a_mixed_file_ends_as_they_do(
    edit: TextEdit, expected: bytes
) -> None:
    """Case 5."""
    assert edited(b"a\nb\r\nc\r\nd\n", edit) == expected


def test_a_line_inserted_between_lines_that_end_differently_ends_as_the_one_above() -> None:
    """Case 5."""
    assert edited(b"a\r\nb\n", TextEdit("a\n", "a\nnew\n")) == b"a\r\nnew\r\nb\n"
    assert edited(b"a\nb\r\n", TextEdit("b", "new\nb")) == b"a\nnew\nb\r\n"


def test_lines_that_replace_one_line_of_a_mixed_file_end_as_it_did() -> None:
    """Case 5."""
    assert edited(b"a\nb\r\nc\n", TextEdit("b", "x\ny\nz")) == b"a\nx\r\ny\r\nz\r\nc\n"


def test_new_text_with_both_line_ends_takes_those_of_the_file() -> None:
    """Case 5."""
    edit = TextEdit("b", "x\r\ny\nz\r\nw")
    assert edited(b"a\nb\n", edit) == b"a\nx\ny\nz\nw\n"
    assert edited(b"a\r\nb\r\n", edit) == b"a\r\nx\r\ny\r\nz\r\nw\r\n"


def test_a_file_without_line_ends_gets_line_feeds() -> None:
    """Case 5."""
    assert edited(b"ab", TextEdit("a", "a\r\n")) == b"a\nb"


@pytest.mark.parametrize("odd", ["\r", "\f", "\v", "\x1c", "\u0085", "\u2028", "\u2029"])
def test_what_is_no_line_end_is_a_character_like_others(odd: str) -> None:
    """Case 6."""
    data = f"a{odd}b\nc{odd}d\n".encode()
    assert edited(data, TextEdit(f"b\nc{odd}", f"B\nC{odd}")) == f"a{odd}B\nC{odd}d\n".encode()
    assert refused(data, TextEdit("a\nb", "x")).code is EditFault.NOT_FOUND


def test_a_lone_carriage_return_before_a_crlf_is_kept() -> None:
    """Case 6."""
    assert edited(b"a\r\r\nb\r\n", TextEdit("b", "B")) == b"a\r\r\nB\r\n"
    assert edited(b"a\r\r\nb\r\n", TextEdit("a\r\r\n", "A\r\r\n")) == b"A\r\r\nb\r\n"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (TextEdit("\nb", "\nB"), b"a\r\nB\r\nc\r\n"),
        (TextEdit("b\n", "B\n"), b"a\r\nB\r\nc\r\n"),
        (TextEdit("\nb", ""), b"a\r\nc\r\n"),
        (TextEdit("b\n", ""), b"a\r\nc\r\n"),
        (TextEdit("\nb\n", "\n"), b"a\r\nc\r\n"),
        (TextEdit("\nb\n", ""), b"ac\r\n"),
        (TextEdit("c\n", "c"), b"a\r\nb\r\nc"),
    ],
)
def test_an_old_text_that_begins_or_ends_with_a_line_end_leaves_no_half_crlf(
    edit: TextEdit, expected: bytes
) -> None:
    """Case 7."""
    assert edited(b"a\r\nb\r\nc\r\n", edit) == expected


def test_half_a_crlf_is_not_found() -> None:
    """Case 7."""
    assert refused(b"a\r\nb", TextEdit("a\r", "x")).code is EditFault.NOT_FOUND


def test_a_carriage_return_put_before_a_line_end_is_left_out() -> None:
    """Case 7: it would make the file's line feed a CRLF."""
    assert edited(b"a\nb\n", TextEdit("a", "x\r")) == b"x\nb\n"
    assert edited(b"a\r\nb\r\n", TextEdit("a", "x\r")) == b"x\r\nb\r\n"


def test_a_line_end_that_a_removal_completes_is_one_for_the_next_edit() -> None:
    """Case 7."""
    edits = (TextEdit("Z", ""), TextEdit("a\nb", "a\nB"))
    assert edited(b"a\rZ\nb\n", *edits) == b"a\r\nB\n"


def test_texts_that_differ_by_line_ends_alone_change_nothing() -> None:
    """Case 8."""
    for data in (b"a\r\nb\r\n", b"a\nb\n"):
        refusal = refused(data, TextEdit("a\nb", "a\r\nb"))
        assert refusal.code is EditFault.NO_CHANGE


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (TextEdit("import a", "import b"), b"\xef\xbb\xbfimport b;\n"),
        (TextEdit("\ufeffimport a", "import b"), b"\xef\xbb\xbfimport b;\n"),
        (TextEdit("\ufeffimport a", "\ufeffimport b"), b"\xef\xbb\xbfimport b;\n"),
        (TextEdit("import a", "\ufeffimport b"), b"\xef\xbb\xbfimport b;\n"),
        (TextEdit("import a", "// x\nimport a"), b"\xef\xbb\xbf// x\nimport a;\n"),
        (TextEdit("\ufeffimport", "// x\n\ufeffimport"), b"\xef\xbb\xbf// x\nimport a;\n"),
        (TextEdit("\ufeffimport a;\n", ""), b"\xef\xbb\xbf"),
    ],
)
def test_a_byte_order_mark_is_there_exactly_once_after_an_edit(
    edit: TextEdit, expected: bytes
) -> None:
    """Case 9."""
    assert edited(b"\xef\xbb\xbfimport a;\n", edit) == expected


def test_a_file_without_a_byte_order_mark_gets_none() -> None:
    """Case 9."""
    assert edited(b"a\n", TextEdit("a", "\ufeffb")) == b"b\n"
    assert refused(b"a\n", TextEdit("\ufeffa", "b")).code is EditFault.NOT_FOUND


def test_taking_the_byte_order_mark_away_is_no_change() -> None:
    """Case 9."""
    data = b"\xef\xbb\xbfa\n"
    assert refused(data, TextEdit("\ufeffa", "a")).code is EditFault.NO_CHANGE
    assert refused(data, TextEdit("\ufeff", "")).code is EditFault.EMPTY_OLD


def test_a_file_without_a_final_line_end_stays_so() -> None:
    """Case 10."""
    assert edited(b"a\nb", TextEdit("b", "c")) == b"a\nc"
    assert edited(b"a\r\nb", TextEdit("b", "b\nc")) == b"a\r\nb\r\nc"
    assert refused(b"a\nb", TextEdit("b\n", "c\n")).code is EditFault.NOT_FOUND


def test_the_whole_content_can_be_replaced_and_removed() -> None:
    assert edited(b"a\r\nb\n", TextEdit("a\nb\n", "x\ny\nz\n")) == b"x\r\ny\r\nz\n"
    assert edited(b"a\r\nb\n", TextEdit("a\nb\n", "")) == b""


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a\n", b"b\nc\r\nd"), ("b\n", b"a\r\nc\r\nd"), ("c\n", b"a\r\nb\nd"), ("\nd", b"a\r\nb\nc")],
)
def test_a_line_removed_from_a_mixed_file_leaves_the_ends_of_the_others(
    line: str, expected: bytes
) -> None:
    assert edited(b"a\r\nb\nc\r\nd", TextEdit(line, "")) == expected


# ------------------------------------------------------------------------------------- matching


@pytest.mark.parametrize(
    ("data", "old"),
    [
        (b"a  \nb\n", "a\nb"),  # 11
        (b"\tfoo();\n", "    foo();"),  # 12
        ("a\u00a0b\n".encode(), "a b"),  # 13
        ("say \u201chi\u201d\n".encode(), 'say "hi"'),  # 14
        ("cafe\u0301\n".encode(), "caf\u00e9"),  # 16
        ("a\u200bb\n".encode(), "ab"),  # 17
        ("a\ufeffb\n".encode(), "ab"),  # 17
        (b"foo\n", "Foo"),
    ],
)
def test_what_is_only_nearly_there_is_not_found(data: bytes, old: str) -> None:
    """Cases 11 to 14, 16, 17; what differs is told, see the tests of hints."""
    assert refused(data, TextEdit(old, "x")).code is EditFault.NOT_FOUND


def test_typographic_characters_and_emoji_are_written_as_given() -> None:
    """Case 15."""
    new = (
        "\u201cquoted\u201d \u2018it\u2019s\u2019 \u2026 \U0001f469\u200d\U0001f4bb e\u0301 \u00a0"
    )
    assert edited(b'"a" b\n', TextEdit("b", new)) == b'"a" ' + new.encode() + b"\n"


def test_characters_beside_an_edit_are_not_normalized() -> None:
    """Cases 14 and 16."""
    data = "“x” cafe\u0301 \u00a0 = 1\n".encode()
    assert edited(data, TextEdit("= 1", "= 2")) == "“x” cafe\u0301 \u00a0 = 2\n".encode()


@pytest.mark.parametrize(
    "edit", [TextEdit("a\ud800", "b"), TextEdit("a", "b\udfff"), TextEdit("a", "\ud83dx")]
)
def test_half_of_a_surrogate_pair_is_refused(edit: TextEdit) -> None:
    """Case 18."""
    assert refused(b"a\n", edit).code is EditFault.LONE_SURROGATE


def test_places_that_overlap_are_ambiguous() -> None:
    """Case 19."""
    refusal = refused(b"aaa", TextEdit("aa", "b"))
    assert (refusal.code, refusal.count, refusal.lines) == (EditFault.AMBIGUOUS, 2, (1,))


def test_the_places_of_an_ambiguous_text_are_told() -> None:
    refusal = refused(b"x\na\ny\r\na\n", TextEdit("a\n", "b\n"))
    assert (refusal.code, refusal.count, refusal.lines) == (EditFault.AMBIGUOUS, 2, (2, 4))


def test_all_places_are_replaced_left_to_right() -> None:
    """Case 20."""
    result = edit_bytes(b"aaaa-aaa", [TextEdit("aa", "ba", replace_all=True)])
    assert result == Edited(b"baba-baa", (3,), ())


def test_what_was_put_in_is_not_looked_at_again() -> None:
    """Case 21."""
    result = edit_bytes(b"a\r\na\nba\r\n", [TextEdit("a", "aa", replace_all=True)])
    assert result == Edited(b"aa\r\naa\nbaa\r\n", (3,), ())


def test_replacing_all_takes_each_places_own_line_ends() -> None:
    """Case 21."""
    data = b"f(\r\n);\r\nx\nf(\n);\ny\r\nf(\r\n);\n"
    edit = TextEdit("f(\n);", "g(\n  1,\n);", replace_all=True)
    assert edited(data, edit) == (b"g(\r\n  1,\r\n);\r\nx\ng(\n  1,\n);\ny\r\ng(\r\n  1,\r\n);\n")


def test_replacing_all_line_ends_of_a_mixed_file() -> None:
    """Case 21."""
    data = b"a\r\n\r\nb\n\nc"
    assert edited(data, TextEdit("\n\n", "\n", replace_all=True)) == b"a\r\nb\nc"
    assert edited(data, TextEdit("\n", ",", replace_all=True)) == b"a,,b,,c"


@pytest.mark.parametrize(
    "literal", ["$& $1 \\1 $$ $' $` ${x}", "\\n \\\\ \\g<0>", "%s {0} \\u0041"]
)
def test_nothing_in_a_new_text_is_a_pattern(literal: str) -> None:
    """Case 22."""
    assert edited(b"[a]", TextEdit("a", literal)) == b"[" + literal.encode() + b"]"
    replaced = edited(b"aa", TextEdit("a", literal, replace_all=True))
    assert replaced == literal.encode() * 2


def test_nothing_in_an_old_text_is_a_pattern() -> None:
    """Case 23."""
    assert edited(b"ab xb .*b [x] (\n", TextEdit(".*b [x] (", "!")) == b"ab xb !\n"
    assert refused(b"ab x (\n", TextEdit(".*b [x] (", "!")).code is EditFault.NOT_FOUND


def test_an_empty_old_text_is_refused() -> None:
    """Case 24."""
    for data in (b"", b"a\n"):
        assert refused(data, TextEdit("", "x")).code is EditFault.EMPTY_OLD
        assert refused(data, TextEdit("", "x", replace_all=True)).code is EditFault.EMPTY_OLD


def test_white_space_that_is_not_in_the_file_is_not_found() -> None:
    """Case 24."""
    assert refused(b"ab\n", TextEdit("  ", "x", replace_all=True)).code is EditFault.NOT_FOUND


def test_a_text_replaced_by_itself_is_no_change() -> None:
    """Case 25."""
    assert refused(b"a\n", TextEdit("a", "a")).code is EditFault.NO_CHANGE
