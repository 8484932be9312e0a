"""Several edits of a call, and what is refused; the numbers are the cases of specification E12."""

import hashlib
from collections.abc import Sequence

import pytest

from reprise.tools.text_edit import (
    REPLACEMENTS_MAX,
    Edited,
    EditFault,
    EditRefusal,
    TextEdit,
    content_hash,
    edit_bytes,
    text_of,
)

MEGABYTE = 2**20


def edited(data: bytes, *edits: TextEdit) -> bytes:
    result = edit_bytes(data, edits)
    assert isinstance(result, Edited), result
    return result.data


def refused(data: bytes, *edits: TextEdit) -> EditRefusal:
    result = edit_bytes(data, edits)
    assert isinstance(result, EditRefusal), result
    return result


# -------------------------------------------------------------------------------- several edits


def test_the_edit_that_fails_is_named_and_there_is_no_result() -> None:
    """Case 26."""
    edits = (TextEdit("a", "A"), TextEdit("nowhere", "x"), TextEdit("b", "B"))
    refusal = refused(b"a\nb\n", *edits)
    assert (refusal.code, refusal.edit) == (EditFault.NOT_FOUND, 1)


def test_an_edit_of_what_an_edit_before_it_made_is_told() -> None:
    """Case 27."""
    edits = (TextEdit("one", "two"), TextEdit("two", "three"), TextEdit("end", "END"))
    assert edit_bytes(b"one\nend\n", edits) == Edited(b"three\nEND\n", (1, 1, 1), (1,))


def test_an_edit_across_what_an_edit_before_it_removed_is_told() -> None:
    """Case 27."""
    edits = (TextEdit("-", ""), TextEdit("ab", "x"), TextEdit("c", "y"))
    assert edit_bytes(b"a-bc", edits) == Edited(b"xy", (1, 1, 1), (1,))


def test_an_edit_beside_what_an_edit_before_it_made_is_not_told() -> None:
    """Case 27: `(` and `)` were there before."""
    edits = (TextEdit("f(a)", "f(b)"), TextEdit("f(", "g("), TextEdit(")", "]"))
    assert edit_bytes(b"f(a)\n", edits) == Edited(b"g(b]\n", (1, 1, 1), ())


def test_edits_that_cancel_out_are_refused() -> None:
    """Case 28."""
    edits = (TextEdit("a", "b"), TextEdit("b", "a"))
    assert refused(b"a\n", *edits).code is EditFault.NO_NET_CHANGE


# ----------------------------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"abc\0def", EditFault.BINARY, "NUL at byte 3"),
        ("hi".encode("utf-16"), EditFault.BINARY, "UTF-16"),
        ("caf\u00e9 x".encode("latin-1"), EditFault.NOT_UTF8, "byte 3 (0xe9, line 1)"),
        (b"a\nb\xed\xa0\x80", EditFault.NOT_UTF8, "byte 3 (0xed, line 2)"),
        (b"a\xc0\x80", EditFault.NOT_UTF8, "byte 1"),
    ],
)
def test_a_file_that_is_no_text_is_refused(data: bytes, code: EditFault, said: str) -> None:
    """Case 37."""
    refusal = refused(data, TextEdit("a", "b"))
    assert refusal.code is code
    assert said in refusal.error
    assert text_of(data) == refusal


def test_a_nul_is_not_written() -> None:
    """Case 37."""
    assert refused(b"a", TextEdit("a", "b\0")).code is EditFault.BINARY


def test_a_file_over_the_limit_is_refused() -> None:
    """Case 38."""
    assert refused(b"a" * (2 * MEGABYTE + 1), TextEdit("a", "b")).code is EditFault.TOO_LARGE


@pytest.mark.parametrize(
    ("data", "edit"),
    [
        (b"ab", TextEdit("a", "x" * 2 * MEGABYTE)),
        (b"ab" + b"a" * 90_000, TextEdit("a", "x" * 1000, replace_all=True)),
        (b"ab", TextEdit("a", "\u20ac" * MEGABYTE)),
    ],
)
def test_a_result_over_the_limit_is_refused(data: bytes, edit: TextEdit) -> None:
    """Case 38."""
    assert refused(data, edit).code is EditFault.TOO_LARGE


def test_more_replacements_than_the_limit_are_refused() -> None:
    """Case 38."""
    edit = TextEdit("a", "b", replace_all=True)
    assert edited(b"a" * REPLACEMENTS_MAX, edit) == b"b" * REPLACEMENTS_MAX
    assert refused(b"a" * (REPLACEMENTS_MAX + 1), edit).code is EditFault.TOO_LARGE


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_twenty_edits_of_a_large_file_are_made(end: bytes) -> None:
    """Case 38."""
    rows = [b"row %06d of the file" % index for index in range(80_000)]
    edits = [TextEdit(f"row {index * 3999:06d} of", f"ROW {index}\n of") for index in range(1, 21)]
    expected = list(rows)
    for index in range(1, 21):
        expected[index * 3999] = b"ROW %d" % index + end + b" of the file"
    assert edited(end.join(rows), *edits) == end.join(expected)


def test_a_file_is_named_by_16_digits_of_its_digest() -> None:
    assert content_hash(b"abc") == "ba7816bf8f01cfea"
    assert hashlib.sha256(b"abc").hexdigest().startswith("ba7816bf8f01cfea")


def test_the_text_of_a_file_keeps_its_mark_and_line_ends() -> None:
    assert text_of(b"\xef\xbb\xbfa\r\nb\r") == "\ufeffa\r\nb\r"


def test_no_edits_are_no_change() -> None:
    edits: Sequence[TextEdit] = ()
    assert refused(b"a", *edits).code is EditFault.NO_NET_CHANGE
