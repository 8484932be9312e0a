"""Which container a file is, from its first bytes, and the rate at which its frames are counted.

The demuxer is forced by what the bytes are, never by the name: a playlist named `talk.mp4` would
make ffmpeg open the files that it points at.

Source: specification V2, V15.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

HEAD_BYTES = 1024
"""How much of a file's beginning `demuxer_of` wants."""

_MP4_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp", b"moof")
_PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"\x1a\x45\xdf\xa3", "matroska"),
    (b"OggS", "ogg"),
    (b"fLaC", "flac"),
    (b"FLV\x01", "flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf"),
    (b"\x00\x00\x01\xba", "mpeg"),
    (b"\x06\x0e\x2b\x34\x02\x05\x01\x01", "mxf"),
    (b"ID3", "mp3"),
)
_TEXT_LISTS = (b"#EXTM3U", b"ffconcat", b"<?xml", b"<svg", b"<MPD", b"<smil", b"[playlist]")

STANDARD_RATES = tuple(
    Fraction(rate)
    for rate in (
        *("12", "12.5", "15", "24000/1001", "24", "25", "30000/1001", "30", "48"),
        *("50", "60000/1001", "60", "100", "120000/1001", "120"),
    )
)
"""Rates that a measured one is taken for when it is within 0.04 %."""
RATE_MAX = Fraction(60)
"""A source of uneven frames is read at most at this rate."""


def demuxer_of(head: bytes) -> str | None:
    """Return ffmpeg's name of the demuxer that these first bytes belong to; None when unknown."""
    if head[4:8] in _MP4_BOXES:
        return "mov"
    if head[:4] == b"RIFF":
        return {b"AVI ": "avi", b"WAVE": "wav"}.get(head[8:12])
    for prefix, demuxer in _PREFIXES:
        if head.startswith(prefix):
            return demuxer
    # A transport stream has its sync byte every 188 bytes; with time codes every 192, from 4.
    for first, step in ((0, 188), (4, 192)):
        places = range(first, len(head), step)
        if len(places) >= 3 and all(head[place] == 0x47 for place in places):
            return "mpegts"
    if len(head) > 2 and head[0] == 0xFF:
        if head[1] & 0xF6 == 0xF0:
            return "aac"
        if head[1] & 0xE0 == 0xE0:
            return "mp3"
    return None


def refusal(head: bytes) -> str:
    """Say why a file of these first bytes is not read."""
    if not head:
        return "it is empty"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(_TEXT_LISTS):
        return "it is a list or document that points at other files, not a media file"
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")) or head[8:12] == b"WEBP":
        return "it is a still picture, not a video"
    return "it is no media file of a known kind"


def is_variable(times: Sequence[float]) -> bool:
    """Tell whether frames are unevenly spaced.

    Args:
        times: When the frames are shown, in seconds, in any order.
    """
    # The last ones may lack neighbours that come later in the file.
    steps = np.diff(np.sort(np.asarray(times, np.float64))[: -16 if len(times) > 48 else None])
    if len(steps) < 3:
        return False
    typical = float(np.median(steps))
    # Matroska keeps milliseconds, so an even 30 frames a second reads 33, 33, 34.
    uneven = np.abs(steps - typical) > max(0.0021, 0.05 * typical)
    return bool(uneven.mean() > 0.02)


def film_rate(average: Fraction | None, base: Fraction | None, *, variable: bool) -> Fraction:
    """Return the rate at which a source's frames are counted.

    Args:
        average: Frames divided by length; None when unknown.
        base: Lowest rate that holds all its times, as ffmpeg guesses; None when unknown.
        variable: Its frames are unevenly spaced.
    """
    known = [rate for rate in (average, base) if rate is not None and rate > 0]
    if not known:
        return Fraction(25)
    average = average if average else known[0]
    if not variable:
        # An average over a short length may be off by a frame; the guess from all times is not.
        near = base is not None and base > 0 and abs(average - base) / base < Fraction(1, 200)
        known_average = _standard(average) in STANDARD_RATES
        return _standard(base if near and base is not None and not known_average else average)
    if base is not None and average <= base <= RATE_MAX:
        return _standard(base)
    above = [rate for rate in STANDARD_RATES if rate * Fraction(1001, 1000) >= average]
    return min([*above, RATE_MAX, Fraction(25)] if average <= 25 else [*above, RATE_MAX])


def _standard(rate: Fraction) -> Fraction:
    for standard in STANDARD_RATES:
        if abs(rate - standard) / standard < Fraction(4, 10_000):
            return standard
    return rate.limit_denominator(100_000)
