"""Texts drawn with the bundled fonts."""

from pathlib import Path

import numpy as np
import pytest

from reprise.media.render_units import OverlaySpan
from resources.text_overlays import BUNDLED_FONTS, OverlayPicture, TextPainter


def paint(text: str, kind: str = "caption", size: tuple[int, int] = (1280, 720)) -> OverlayPicture:
    span = OverlaySpan("title" if kind == "title" else "caption", text, 0, 50)
    return TextPainter().paint(span, *size)


def ink(picture: OverlayPicture) -> int:
    """Count pixels that are opaque white."""
    return int((np.asarray(picture.image).min(axis=2) > 250).sum())


@pytest.mark.parametrize(
    "text", ["Größe, Šárka, Łódź", "Привет", "Ελλάδα", "“…” – ½ €", "🎬 😀 ♥ 🚀"]
)
def test_common_letters_are_drawn(text: str) -> None:
    picture = paint(text)
    assert picture.missing == ""
    assert ink(picture) > 50


def test_letters_that_no_font_has_are_left_out_and_told_once() -> None:
    picture = paint("a漢b漢字c")
    assert picture.missing == "漢字"
    assert picture.digest() == paint("abc").digest()


def test_invisible_letters_are_left_out_in_silence() -> None:
    picture = paint("a\u200b\u202eb\x00\ufe0f")
    assert picture.missing == ""
    assert picture.digest() == paint("ab").digest()


@pytest.mark.parametrize("text", ["", "  \n ", "漢字", "\u200b"])
@pytest.mark.parametrize("kind", ["title", "caption"])
def test_nothing_to_draw_is_an_invisible_picture(text: str, kind: str) -> None:
    assert np.asarray(paint(text, kind).image)[:, :, 3].max() == 0


@pytest.mark.parametrize("size", [(1920, 1080), (1080, 1920), (720, 720), (320, 180), (16, 16)])
@pytest.mark.parametrize("kind", ["title", "caption"])
def test_overlays_lie_inside_the_frame_on_even_pixels(kind: str, size: tuple[int, int]) -> None:
    picture = paint("A longer text, which may take " + "two or more lines " * 9, kind, size)
    assert picture.x % 2 == picture.y % 2 == 0
    assert picture.image.width % 2 == picture.image.height % 2 == 0
    assert 0 <= picture.x <= picture.x + picture.image.width <= size[0]
    assert picture.y + picture.image.height <= size[1]


def test_a_caption_keeps_its_two_lines() -> None:
    two = paint("The family of Dashwood had\nbeen long settled in Sussex,")
    one = paint("The family of Dashwood had")
    assert two.image.height > 1.7 * one.image.height - 20


def test_the_same_text_gives_the_same_pixels_and_another_text_others() -> None:
    assert paint("Hello").digest() == paint("Hello").digest()
    assert paint("Hello").digest() != paint("Hallo").digest()


def test_the_fonts_come_with_their_licence() -> None:
    assert [path.name for path in BUNDLED_FONTS] == [
        "NotoSans-SemiBold.ttf",
        "NotoEmoji-SemiBold.ttf",
    ]
    for name in ("OFL-NotoSans.txt", "OFL-NotoEmoji.txt"):
        licence = BUNDLED_FONTS[0].with_name(name).read_text(encoding="utf-8")
        assert "SIL OPEN FONT LICENSE Version 1.1" in licence


def test_another_font_changes_the_identity() -> None:
    assert TextPainter().identity != TextPainter([Path(BUNDLED_FONTS[1])]).identity
