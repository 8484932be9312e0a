"""Titles and captions as transparent pictures, drawn with the fonts in resources/fonts.

Text is drawn here and not by ffmpeg, so none of it ever stands in a filter graph, a frame looks the
same whatever fonts a machine has, and an overlay's digest is simply that of its pixels.

A letter that no font has is left out and told as missing. Scripts that need shaping (Arabic,
Devanagari, …) and Chinese, Japanese and Korean need a font of their own, given to `TextPainter`,
and are set letter by letter.

Source: specification V2, V12, V14.
"""

import functools
import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import PIL
from PIL import Image, ImageDraw, ImageFont

from reprise.media.cards import SetText, caption_bottom, caption_style, set_text, title_style
from reprise.media.render_units import OverlaySpan

_FONTS = Path(__file__).with_name("fonts")
BUNDLED_FONTS = (_FONTS / "NotoSans-SemiBold.ttf", _FONTS / "NotoEmoji-SemiBold.ttf")
"""Come with Reprise (SIL Open Font License); the first that has a letter sets it."""

_INK = (255, 255, 255, 255)
_CAPTION_BOX = (0, 0, 0, 168)
_TITLE_SCRIM = (0, 0, 0, 120)
_LINE_HEIGHT = 1.28
_NO_GLYPH = "\U0010fffe"
_INVISIBLE = frozenset(["Cc", "Cf", "Cs", "Co", "Cn"])
_COMBINING = frozenset(["Mn", "Me"])


@dataclass(frozen=True)
class OverlayPicture:
    """A drawn text and its place in the frame."""

    image: Image.Image = field(repr=False)
    """Transparent picture (RGBA)."""
    x: int
    """Its left edge in the frame."""
    y: int
    """Its top edge in the frame."""
    missing: str
    """Letters that no font has."""

    def digest(self) -> str:
        """Return the SHA-256 of its size and pixels."""
        size = f"{self.image.width}x{self.image.height};".encode()
        return hashlib.sha256(size + self.image.tobytes()).hexdigest()


class TextPainter:
    """Draws titles and captions.

    Args:
        fonts: Font files tried before the bundled ones.
    """

    def __init__(self, fonts: Sequence[Path] = ()) -> None:
        self._paths = (*fonts, *BUNDLED_FONTS)

    @functools.cached_property
    def identity(self) -> Mapping[str, str]:
        """What its pictures depend on besides the text, for the cache key."""
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self._paths]
        return {
            "fonts": hashlib.sha256("".join(digests).encode()).hexdigest(),
            "pillow": PIL.__version__,
        }

    def paint(self, span: OverlaySpan, width: int, height: int) -> OverlayPicture:
        """Draw an overlay for a frame of this size."""
        text, missing = self._drawable(span.text)
        if not text.strip():
            return OverlayPicture(Image.new("RGBA", (2, 2)), 0, 0, missing)
        if span.kind == "title":
            return self._title(text, missing, width, height)
        return self._caption(text, missing, width, height)

    def _caption(self, text: str, missing: str, width: int, height: int) -> OverlayPicture:
        placed = set_text(text, self._width, caption_style(width, height))
        pad_x, pad_y = round(placed.size * 0.5), round(placed.size * 0.22)
        line_height = round(placed.size * _LINE_HEIGHT)
        box_width = round(max(self._width(line, placed.size) for line in placed.lines))
        # Even figures: the picture is laid over 4:2:0 colour.
        box_width = _even(min(width, box_width + 2 * pad_x))
        box_height = _even(line_height * len(placed.lines) + 2 * pad_y)
        image = Image.new("RGBA", (box_width, box_height))
        draw = ImageDraw.Draw(image)
        radius = round(placed.size * 0.25)
        draw.rounded_rectangle((0, 0, box_width - 1, box_height - 1), radius, _CAPTION_BOX)
        self._lines(draw, placed, box_width / 2, pad_y)
        x = _even((width - box_width) // 2)
        return OverlayPicture(image, x, _even(caption_bottom(width, height) - box_height), missing)

    def _title(self, text: str, missing: str, width: int, height: int) -> OverlayPicture:
        placed = set_text(text, self._width, title_style(width, height))
        image = Image.new("RGBA", (width, height), _TITLE_SCRIM)
        draw = ImageDraw.Draw(image)
        block = round(placed.size * _LINE_HEIGHT) * len(placed.lines)
        top = round(height * 0.42 - block / 2)
        self._lines(draw, placed, width / 2, top)
        rule_width, rule_height = round(width * 0.08), max(2, round(min(width, height) * 0.006))
        rule_top = top + block + round(placed.size * 0.35)
        rule_left = (width - rule_width) // 2
        draw.rectangle(
            (rule_left, rule_top, rule_left + rule_width, rule_top + rule_height - 1), _INK
        )
        return OverlayPicture(image, 0, 0, missing)

    def _lines(self, draw: ImageDraw.ImageDraw, placed: SetText, middle: float, top: int) -> None:
        line_height = round(placed.size * _LINE_HEIGHT)
        for number, line in enumerate(placed.lines):
            left = middle - self._width(line, placed.size) / 2
            # Letters of several fonts share a baseline.
            baseline = top + number * line_height + line_height * 0.78
            for font, run in self._runs(line, placed.size):
                draw.text((left, baseline), run, fill=_INK, font=font, anchor="ls")
                left += font.getlength(run)

    def _width(self, text: str, size: int) -> float:
        return sum(font.getlength(run) for font, run in self._runs(text, size))

    def _runs(self, text: str, size: int) -> list[tuple[ImageFont.FreeTypeFont, str]]:
        """Part a text into runs that one font sets."""
        runs: list[tuple[ImageFont.FreeTypeFont, str]] = []
        for letter in text:
            font = _font(self._paths[self._which(letter) or 0], size)
            if runs and runs[-1][0] is font:
                runs[-1] = (font, runs[-1][1] + letter)
            else:
                runs.append((font, letter))
        return runs

    def _drawable(self, text: str) -> tuple[str, str]:
        """Return a text without what cannot be drawn, and what was left out of it."""
        kept: list[str] = []
        missing: list[str] = []
        for letter in unicodedata.normalize("NFC", text):
            if letter == "\n":
                kept.append(letter)
            elif letter.isspace():
                kept.append(" ")
            elif unicodedata.category(letter) in _INVISIBLE:
                continue
            elif self._which(letter) is not None:
                kept.append(letter)
            elif unicodedata.category(letter) not in _COMBINING:
                missing.append(letter)
        return "".join(kept), "".join(dict.fromkeys(missing))

    def _which(self, letter: str) -> int | None:
        """Return the place of the first font that has a letter."""
        found = (place for place, path in enumerate(self._paths) if _has(path, letter))
        return next(found, None)


@functools.lru_cache(maxsize=256)
def _font(path: Path, size: int) -> ImageFont.FreeTypeFont:
    # Not every build of Pillow has Raqm, which would set the same text differently.
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


@functools.lru_cache(maxsize=4096)
def _has(path: Path, letter: str) -> bool:
    """Answer whether a font can draw a letter; what it cannot looks like one that nobody has."""
    if letter == " ":
        return True
    font = _font(path, 32)
    mask, missing = font.getmask(letter), font.getmask(_NO_GLYPH)
    if mask.getbbox() is None:
        return False
    return mask.size != missing.size or bytes(mask) != bytes(missing)


def _even(value: int) -> int:
    return value - value % 2
