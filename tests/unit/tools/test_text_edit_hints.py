"""What a refusal tells: the class, the line, the real text, the nearest places. Numbers: E12."""

import pytest

from reprise.tools.edit_nearest import Difference
from reprise.tools.text_edit import EditFault, EditRefusal, TextEdit, edit_bytes

TSX = b"""import {AbsoluteFill} from 'remotion';

export const Title = ({text}: {text: string}) => {
\tconst size = 80;
\treturn <AbsoluteFill style={{fontSize: size}}>{text}</AbsoluteFill>;
};

export const Outro = () => {
\treturn <AbsoluteFill>The end</AbsoluteFill>;
};
"""


def refusal(data: bytes, old: str, new: str = "other", *, level: int = 0) -> EditRefusal:
    result = edit_bytes(data, [TextEdit(old, new)], hint_level=level)
    assert isinstance(result, EditRefusal), result
    return result


@pytest.mark.parametrize(
    ("data", "old", "difference", "line", "text"),
    [
        pytest.param("x\na  \nb\n", "a\nb", "line_end_space", 2, "a  \nb", id="11"),
        pytest.param("x\na\nb\n", "a \nb", "line_end_space", 2, "a\nb", id="11 reversed"),
        pytest.param("x\n\tf();\n", "    f();", "indentation", 2, "\tf();", id="12"),
        pytest.param("x\n  f(\n    1);", "f(\n  1);", "indentation", 2, "f(\n    1);", id="12 two"),
        pytest.param("f(a,  b)\n", "f(a, b)", "white_space", 1, "f(a,  b)", id="12 within"),
        pytest.param("x\na\u00a0b\n", "a b", "look_alike", 2, "a\u00a0b", id="13"),
        pytest.param("“hi” x\n", '"hi"', "look_alike", 1, "“hi”", id="14"),
        pytest.param("it’s — ok\n", "it's - ok", "look_alike", 1, "it’s — ok", id="14 dash"),
        pytest.param("'hi' x\n", "`hi`", "look_alike", 1, "'hi'", id="14 backtick"),
        pytest.param("x cafe\u0301 y", "caf\u00e9", "look_alike", 1, "cafe\u0301", id="16"),
        pytest.param("x caf\u00e9 y", "cafe\u0301", "look_alike", 1, "caf\u00e9", id="16 reversed"),
        pytest.param("a\u200bb\n", "ab", "look_alike", 1, "a\u200bb", id="17"),
        pytest.param("x\na\ufeffb\n", "ab", "look_alike", 2, "a\ufeffb", id="17 mark"),
        pytest.param("a\n", "\ufeffa", "look_alike", 1, "a", id="9"),
        pytest.param("x\nconst Foo\n", "const foo", "case", 2, "const Foo", id="case"),
        pytest.param("x\na\nb", "b\n", "final_newline", 3, "b", id="10"),
        pytest.param("x\nf()\ng()\n", "2| f()\n3| g()", "line_numbers", 2, "f()\ng()", id="40"),
        pytest.param("x\nf(1);\n", "  2| f(1);\n", "line_numbers", 2, "f(1);\n", id="40 end"),
        pytest.param("f\n\ng", "1| f\n2| \n3| g", "line_numbers", 1, "f\n\ng", id="40 empty"),
        pytest.param("x\nf(1);\ng();\n", "f(1);\\ng();", "escapes", 2, "f(1);\ng();", id="42"),
        pytest.param("x\nf;\r\ng;\n", "f;\\r\\ng;", "escapes", 2, "f;\ng;", id="42 crlf"),
        pytest.param('f("a");\n', 'f(\\"a\\");', "escapes", 1, 'f("a");', id="42 quotes"),
    ],
)  # fmt: skip
def test_a_near_text_is_told_with_its_class_line_and_what_the_file_has(
    data: str, old: str, difference: str, line: int, text: str
) -> None:
    """Cases 9 to 17, 40, 42; the id is the case's number."""
    found = refusal(data.encode(), old)
    assert found.code is EditFault.NOT_FOUND
    assert (found.difference, found.line, found.text) == (difference, line, text)
    assert found.lines == (line,)


def test_the_text_of_a_hint_is_found_when_it_is_looked_for() -> None:
    """What a model copies from a hint applies."""
    data = TSX.replace(b"\n", b"\r\n")
    found = refusal(data, "const size = 80;\n    return <absolutefill style={{fontSize: size}}>")
    assert found.text == "const size = 80;\n\treturn <AbsoluteFill style={{fontSize: size}}>"
    done = edit_bytes(data, [TextEdit(found.text, "x")])
    assert not isinstance(done, EditRefusal)


def test_where_two_texts_part_is_named_by_character() -> None:
    assert "line 2: the file has U+00A0 NO-BREAK SPACE, oldText U+0020 SPACE" in (
        refusal("x\nconst a =\u00a01;\n".encode(), "const a = 1;").error
    )


def test_a_text_with_line_numbers_that_is_not_there_either_is_said_so() -> None:
    """Case 40."""
    found = refusal(TSX, "3| nowhere at all")
    assert (found.difference, found.text) == (Difference.LINE_NUMBERS, None)
    assert "`12| `" in found.error


def test_a_literal_backslash_n_that_the_file_has_is_not_taken_for_a_line_end() -> None:
    """Case 42."""
    result = edit_bytes(b'print("a\\n");\n', [TextEdit('"a\\n"', '"b\\n"')])
    assert not isinstance(result, EditRefusal)
    assert result.data == b'print("b\\n");\n'


def test_a_stale_text_is_told_with_the_nearest_lines() -> None:
    old = (
        "\tconst size = 60;\n\treturn <AbsoluteFill style={{fontSize: size}}>{text}</AbsoluteFill>;"
    )
    found = refusal(TSX, old)
    assert (found.difference, found.line) == (Difference.SIMILAR, 4)
    assert found.text == (
        "\tconst size = 80;\n\treturn <AbsoluteFill style={{fontSize: size}}>{text}</AbsoluteFill>;"
    )
    assert found.lines == (4,)
    assert "% alike" in found.error


def test_a_text_like_nothing_in_the_file_says_to_read_it_again() -> None:
    found = refusal(TSX, "def main():\n    pass")
    assert (found.difference, found.line, found.text) == (None, None, None)
    assert "read the file again" in found.error


def test_an_edit_that_was_applied_before_is_told() -> None:
    """Case 41."""
    found = refusal(TSX, "const size = 60;", "const size = 80;")
    assert (found.code, found.already, found.line) == (EditFault.NOT_FOUND, True, 4)


@pytest.mark.parametrize("new", ["", "};", "const"])
def test_a_removal_or_a_text_that_is_there_by_chance_is_not_told_as_applied(new: str) -> None:
    """Case 41."""
    assert not refusal(TSX, "const nothing = 60;", new).already


def test_an_edit_whose_new_text_is_there_but_the_old_one_near_is_not_told_as_applied() -> None:
    """Case 41."""
    found = refusal(TSX, "    return <AbsoluteFill>The end</AbsoluteFill>;", "const size = 80;")
    assert (found.already, found.difference, found.line) == (False, Difference.INDENTATION, 9)


def test_the_second_time_the_whole_block_is_shown() -> None:
    found = refusal(TSX, "    const size = 80;", level=1)
    assert found.line == 3
    assert found.text == "\n".join(TSX.decode().split("\n")[2:6])


def test_the_third_time_a_ranged_read_is_told() -> None:
    found = refusal(TSX, "    return <AbsoluteFill>The end</AbsoluteFill>;", level=2)
    assert "ReadSandboxFileLines with startLine 3 and lineCount 60" in found.error


def test_the_second_time_places_of_an_ambiguous_text_are_shown() -> None:
    assert refusal(TSX, "</AbsoluteFill>").text is None
    found = refusal(TSX, "</AbsoluteFill>", level=1)
    assert (found.count, found.lines, found.line) == (2, (5, 9), 3)
    assert found.text is not None
    assert "The end" in found.text


def test_a_text_at_very_many_places_is_counted_to_a_limit() -> None:
    found = refusal(b"ab\n" * 1000, "ab")
    assert (found.count, found.lines) == (100, tuple(range(1, 11)))
    assert "more than 100 times" in found.error


@pytest.mark.parametrize(
    ("data", "old"),
    [
        pytest.param("ab c " * 20_000 + "Hello World", "hello world", id="one long line"),
        pytest.param("word " * 20_000, "word other word", id="one long line of a word"),
        pytest.param("foo(bar, baz);\n" * 100_000, "foo(bar, bat);\n" * 50, id="equal lines"),
        pytest.param("foo(bar, baz);\n" * 100_000, "FOO(bar, baz);\n" * 9000, id="long old"),
        pytest.param("\n" * 1_900_000, "foo\n", id="empty lines"),
        pytest.param("a" * 1_900_000, "a" * 100_000 + "b", id="one letter"),
        pytest.param("e" + "\u0301\u0323" * 400_000, "e\u0300x", id="accents"),
        pytest.param("\ufdfa" * 600_000, "abc", id="ligatures"),
        pytest.param("a\r\r\n" * 400_000, "b", id="carriage returns"),
        pytest.param("\\n" * 900_000, "\\n\\n\\nx", id="backslashes"),
        pytest.param("1| " * 600_000, "1| 2| 3| x", id="line numbers"),
    ],
)
def test_a_hint_for_an_odd_file_is_short(data: str, old: str) -> None:
    """That it is quick too, the suite's own time shows: it would not end."""
    found = refusal(data.encode(), old, level=1)
    assert len(found.text or "") <= 4000
    assert len(found.error) < 900
    assert len(found.lines) <= 10
