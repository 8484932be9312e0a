"""Which stretches of footage can be shown, and how a stretch becomes whole frames.

`speech_stretch` pads a run of words, stays out of the words beside it, and begins and ends at shot
changes that are near; `shot_ranges` gives what of a shot is neither black, frozen nor silent, and
cuts no word.

Source: specification V9, V11.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from reprise.media.spoken import (
    PICTURE_SECONDS_MAX,
    SPAN_SECONDS_MAX,
    Footage,
    SpokenWord,
    overlap_seconds,
)
from reprise.model.media import Shot, Span

PAD_IN_SECONDS = 0.12
"""Sound before the first word."""
PAD_OUT_SECONDS = 0.18
"""Sound after the last word, where breath and room die away."""
EDGE_SECONDS_MAX = 0.3
"""Longest silent edge that covering a recogniser's word time may make; two of them meet."""
SNAP_SECONDS = 0.1
"""A cut is made longer by so much to reach a shot change; shorter as far as the words allow."""
RANGE_SECONDS_MIN = 0.8
"""Shorter stretches of a shot are flashes."""
WORD_MARGIN_SECONDS = 0.04
"""Room that a stretch of a shot leaves beside a word that it would cut."""
ROUNDING = 1e-6
"""Part of a frame that is a float's error, not a time."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of a source in whole frames."""

    start_frame: int
    """First frame."""
    end_frame: int
    """First frame that is not in it."""


def speech_stretch(footage: Footage, words: Sequence[SpokenWord]) -> Stretch:
    """Return the frames that carry a run of words that follow each other, none of them cut off."""
    every = footage.words
    first, last = words[0], words[-1]
    before = every[first.index - 1].end if first.index else 0.0
    after = every[last.index + 1].start if last.index + 1 < len(every) else footage.end_seconds
    start = first.start - PAD_IN_SECONDS
    if first.raw_start < start:
        start = max(first.raw_start, first.start - EDGE_SECONDS_MAX)
    end = last.end + PAD_OUT_SECONDS
    if last.raw_end > end:
        end = min(last.raw_end, last.end + EDGE_SECONDS_MAX)
    start = max(start, (before + first.start) / 2 if first.index else 0.0)
    end = min(end, (last.end + after) / 2 if last.index + 1 < len(every) else after)
    for span in (*footage.source.black, *footage.source.freeze):
        if span.end_seconds > start and span.start_seconds < first.start:
            start = min(span.end_seconds, first.start)
        if span.start_seconds < end and span.end_seconds > last.end:
            end = max(span.start_seconds, last.end)
    start = _snapped_in(footage, start, first.start, before)
    end = _snapped_out(footage, end, last.end, after)
    return _frames(footage, (start, end), (first.start, last.end))


def shot_ranges(
    footage: Footage, shot: Shot, *, whole_sentences: bool = False
) -> list[tuple[float, float]]:
    """Return the stretches of a shot that can be shown, in seconds, by rising time.

    Args:
        footage: The source.
        shot: One of its shots.
        whole_sentences: Whether to leave out parts of sentences; else only words stay whole.
    """
    ranges = [(shot.start_seconds, min(shot.end_seconds, footage.end_seconds))]
    bad = [
        span
        for span in (*footage.source.black, *footage.source.freeze)
        if _length(span) > PICTURE_SECONDS_MAX
    ]
    # A little of a silence stays, so that the words beside it are whole whatever is rounded.
    bad += [
        Span(
            start_seconds=span.start_seconds + PAD_OUT_SECONDS,
            end_seconds=span.end_seconds - PAD_IN_SECONDS,
        )
        for span in footage.silences
        if _length(span) > SPAN_SECONDS_MAX - 0.1
    ]
    for span in bad:
        ranges = [part for each in ranges for part in _minus(each, span)]
    spoken = _spoken(footage, whole_sentences=whole_sentences)
    whole = [_between(spoken, each) for each in sorted(ranges)]
    return [(start, end) for start, end in whole if end - start >= RANGE_SECONDS_MIN]


def minus_frames(
    ranges: Sequence[tuple[float, float]], used: Sequence[Stretch], rate: float
) -> list[tuple[float, float]]:
    """Return the ranges without the stretches that are used already."""
    left = list(ranges)
    for stretch in used:
        span = Span(start_seconds=stretch.start_frame / rate, end_seconds=stretch.end_frame / rate)
        left = [part for each in left for part in _minus(each, span)]
    return [(start, end) for start, end in left if end - start >= RANGE_SECONDS_MIN]


def range_stretch(
    footage: Footage, part: tuple[float, float], seconds: float, *, whole_sentences: bool = False
) -> Stretch:
    """Return a stretch of a part of a shot, at most so long, in frames inside it.

    It is the middle of the part, or as near to it as what is said allows.
    """
    spoken = _spoken(footage, whole_sentences=whole_sentences)
    start, end = part
    length = min(seconds, end - start)
    middle = (start + end - length) / 2
    edges = [edge for each in spoken for edge in _beside(each) if start <= edge <= end]
    begins = {middle, start, end - length, *edges, *(edge - length for edge in edges)}
    options = [
        _between(spoken, (max(begin, start), min(begin + length, end)))
        for begin in sorted(begins, key=lambda begin: (abs(begin - middle), begin))
    ]
    # Rounded, so that of two as long ones the nearer to the middle is taken.
    inner = max(options, key=lambda option: round(option[1] - option[0], 3))
    rate = footage.rate
    first = ceil(inner[0] * rate - ROUNDING)
    last = min(floor(inner[1] * rate + ROUNDING), footage.source.frame_count)
    return Stretch(first, max(last, first + 1))


def bad_seconds(footage: Footage, stretch: Stretch) -> float:
    """Return the longest black, frozen or silent span inside a stretch."""
    rate = footage.rate
    start, end = stretch.start_frame / rate, stretch.end_frame / rate
    spans = (*footage.source.black, *footage.source.freeze, *footage.silences)
    return max((overlap_seconds(start, end, span) for span in spans), default=0.0)


def shots_in(footage: Footage, stretch: Stretch) -> tuple[str, ...]:
    """Return the shots that a stretch touches, by rising time."""
    return tuple(
        shot.id
        for shot in footage.source.shots
        if shot.start_frame < stretch.end_frame and shot.end_frame > stretch.start_frame
    )


def _length(span: Span) -> float:
    return span.end_seconds - span.start_seconds


def _minus(part: tuple[float, float], span: Span) -> list[tuple[float, float]]:
    start, end = part
    if span.end_seconds <= start or span.start_seconds >= end:
        return [part]
    left = [(start, span.start_seconds)] if span.start_seconds > start else []
    right = [(span.end_seconds, end)] if span.end_seconds < end else []
    return left + right


def _spoken(footage: Footage, *, whole_sentences: bool) -> list[tuple[float, float]]:
    """Return when words are heard, or whole sentences; by rising time."""
    if not whole_sentences:
        return [(word.start, word.end) for word in footage.words]
    return [(words[0].start, words[-1].end) for words in footage.by_sentence.values()]


def _beside(spoken: tuple[float, float]) -> tuple[float, float]:
    return spoken[0] - WORD_MARGIN_SECONDS, spoken[1] + WORD_MARGIN_SECONDS


def _between(
    spoken: Sequence[tuple[float, float]], part: tuple[float, float]
) -> tuple[float, float]:
    """Return a part made shorter so that neither of its ends lies inside what is said."""
    start, end = part
    for each in spoken:
        if each[0] < start < each[1]:
            start = _beside(each)[1]
    for each in reversed(spoken):
        if each[0] < end < each[1]:
            end = _beside(each)[0]
    return start, max(start, end)


def _snapped_in(footage: Footage, start: float, word: float, before: float) -> float:
    changes = [shot.start_seconds for shot in footage.source.shots]
    earliest = max(start - SNAP_SECONDS, before, word - EDGE_SECONDS_MAX)
    near = [at for at in changes if earliest <= at <= word]
    return near[-1] if near else start


def _snapped_out(footage: Footage, end: float, word: float, after: float) -> float:
    changes = [shot.start_seconds for shot in footage.source.shots]
    latest = min(end + SNAP_SECONDS, after, word + EDGE_SECONDS_MAX)
    near = [at for at in changes if word <= at <= latest]
    return near[0] if near else end


def _frames(footage: Footage, stretch: tuple[float, float], words: tuple[float, float]) -> Stretch:
    """Return whole frames around a stretch; the words inside stay whole whatever is rounded."""
    rate = footage.rate
    first = min(round(stretch[0] * rate), floor(words[0] * rate + ROUNDING))
    last = max(round(stretch[1] * rate), ceil(words[1] * rate - ROUNDING))
    first = min(max(first, 0), footage.source.frame_count - 1)
    return Stretch(first, max(first + 1, min(last, footage.source.frame_count)))
