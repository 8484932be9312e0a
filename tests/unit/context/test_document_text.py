"""Documents and transcripts as passages: places that lead back to the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.context.document_text import (
    PASSAGE_CHARS_MAX,
    PASSAGES_MAX,
    document_passages,
    document_text,
)
from reprise.model.search import Passage


def test_blocks_of_lines_say_where_they_stand() -> None:
    text = "# Title\n\nOne line,\nanother.\n\n\n  \nLast\n"
    assert document_passages("a.md", text) == (
        Passage(text="# Title", start_line=1, end_line=1),
        Passage(text="One line,\nanother.", start_line=3, end_line=4),
        Passage(text="Last", start_line=8, end_line=8),
    )


def test_a_long_block_and_a_long_line_are_several_passages() -> None:
    block = document_passages("a.csv", "\n".join(["x" * 400] * 5))
    assert [(p.start_line, p.end_line) for p in block] == [(1, 2), (3, 4), (5, 5)]
    line = document_passages("a.json", "short\n" + "y" * 2_500 + "\nend")
    assert [(p.start_line, p.end_line, len(p.text)) for p in line] == [
        (1, 1, 5),
        (2, 2, 1000),
        (2, 2, 1000),
        (2, 2, 500),
        (3, 3, 3),
    ]


SRT = (
    "1\r\n00:00:01,500 --> 00:00:03,000\r\n<i>Hello</i>\r\nthere\r\n\r\n"
    "2\r\n1:00:00,000 --> 1:00:01,5\r\n{\\an8}Bye\r\n"
)
VTT = (
    "WEBVTT - x\n\nNOTE not said\n\nSTYLE\n::cue {}\n\n"
    "intro\n00:01.500 --> 00:03.000 align:start\n<v Ann>Hi.\n"
)


def test_subtitles_are_cues_with_times_and_lines() -> None:
    assert document_passages("a.SRT", SRT) == (
        Passage(text="Hello\nthere", start_line=3, end_line=4, start_seconds=1.5, end_seconds=3.0),
        Passage(text="Bye", start_line=8, end_line=8, start_seconds=3600.0, end_seconds=3601.5),
    )
    assert document_passages("a.vtt", VTT) == (
        Passage(text="Hi.", start_line=10, end_line=10, start_seconds=1.5, end_seconds=3.0),
    )


def test_a_subtitle_file_without_cues_is_a_text() -> None:
    assert document_passages("a.srt", "just text") == (
        Passage(text="just text", start_line=1, end_line=1),
    )


def test_passages_are_bounded() -> None:
    assert len(document_passages("a.txt", "x\n\n" * (PASSAGES_MAX + 5))) == PASSAGES_MAX


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfplain \xc3\xa9", "plain é"),
        ("é".encode("utf-16"), "é"),
        (b"a\0b\xff", "a b\N{REPLACEMENT CHARACTER}"),
        (b"", ""),
    ],
)
def test_bytes_are_read_as_text(data: bytes, text: str) -> None:
    assert document_text(data) == text


@given(st.binary(max_size=400), st.sampled_from(["a.md", "a.srt", "a.vtt"]))
def test_any_bytes_give_passages_that_can_be_kept(data: bytes, name: str) -> None:
    text = document_text(data)
    for passage in document_passages(name, text):
        assert 0 < len(passage.text) <= PASSAGE_CHARS_MAX + 1
        passage.text.encode()
        assert passage.start_line is not None
        assert passage.end_line is not None
        assert 1 <= passage.start_line <= passage.end_line


@given(st.text(alphabet="ab \n", max_size=200))
def test_lines_of_a_passage_hold_its_text(text: str) -> None:
    lines = text.split("\n")
    passages = document_passages("a.md", text)
    for passage in passages:
        assert passage.start_line is not None
        assert "\n".join(lines[passage.start_line - 1 : passage.end_line]) == passage.text
    assert (
        "".join(p.text.replace("\n", "") for p in passages).split()
        == "".join(line for line in lines if line.strip()).split()
    )
