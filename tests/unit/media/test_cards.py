"""Setting of texts: breaks and sizes."""

from hypothesis import given
from hypothesis import strategies as st

from reprise.media.cards import SetText, TextStyle, caption_style, set_text

STYLE = TextStyle(size=20, size_min=10, width_max=200, lines_max=2)


def half(text: str, size: int) -> float:
    """Measure letters that are half as wide as high."""
    return len(text) * size / 2


def test_a_short_text_stays_in_one_line() -> None:
    assert set_text("Hello", half, STYLE) == SetText(("Hello",), 20)


def test_lines_come_out_even() -> None:
    assert set_text("one two three four five six", half, STYLE) == SetText(
        ("one two three", "four five six"), 20
    )


def test_line_breaks_that_fit_are_kept() -> None:
    assert set_text("one\ntwo three four", half, STYLE).lines == ("one", "two three four")


def test_a_longer_text_is_set_smaller() -> None:
    placed = set_text("one two three four five six seven eight nine", half, STYLE)
    assert len(placed.lines) == 2
    assert placed.size == 17


def test_a_text_that_never_fits_ends_in_an_ellipsis() -> None:
    placed = set_text("word " * 50, half, STYLE)
    assert len(placed.lines) == 2
    assert placed.lines[1].endswith("word…")


def test_a_word_that_is_longer_than_a_line_is_broken() -> None:
    placed = set_text("https://example.org/a/very/long/address/of/a/page", half, STYLE)
    assert "".join(placed.lines) == "https://example.org/a/very/long/address/of/a/page"


def test_forty_two_letters_fit_into_a_line_of_a_caption_in_any_frame() -> None:
    for width, height in ((1920, 1080), (1080, 1920), (1080, 1080), (640, 360)):
        style = caption_style(width, height)
        # Letters of the bundled font are 0.56 of its size wide on average.
        assert 42 * style.size * 0.56 <= style.width_max


@given(st.text(max_size=300))
def test_any_text_is_set_within_its_bounds(text: str) -> None:
    placed = set_text(text, half, STYLE)
    assert len(placed.lines) <= 2
    assert all(half(line, placed.size) <= 200 for line in placed.lines)
    assert 10 <= placed.size <= 20
