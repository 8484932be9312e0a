"""From frames to stretches of time: black, frozen, and the figures of shots.

Source: specification V5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reprise.media.frame_features import SIGNATURE_SIZE, Bytes, Floats, FrameFigures

BLACK_SHARE_MIN = 0.98
"""Share of black pixels that makes a frame black, as in ffmpeg's blackdetect."""
FREEZE_MEAN_MAX = 0.5
"""Largest mean change of a frozen picture's signature from its first frame, in 8-bit levels."""
FREEZE_BLOCK_MAX = 3
"""Largest change of one block of a frozen picture: a moving mouth is more."""

_LUMA = np.s_[: SIGNATURE_SIZE * 2 // 3]

SpanSeconds = tuple[float, float]
"""Start and end in seconds."""


@dataclass(frozen=True)
class ShotFigures:
    """Means over a shot's frames; see `reprise.model.media.Shot`."""

    luma: float
    """0 to 255."""
    saturation: float
    """0 to 1."""
    clipped: float
    """0 to 1."""
    motion: float
    """0 to 255; the jump at its beginning does not count."""
    motion_x: float
    """0 left to 1 right; 0.5 when nothing moves."""


class FreezeFinder:
    """Marks frozen frames while they arrive: those that look like the first of their stretch.

    Comparing with the first, not with the one before, keeps a slow zoom from being frozen.
    """

    def __init__(self) -> None:
        self._reference: NDArray[np.int16] | None = None
        self._marks: list[NDArray[np.bool_]] = []

    def add(self, signatures: Bytes) -> None:
        """Add frames that follow those before; shape (frames, SIGNATURE_SIZE)."""
        marks = np.zeros(len(signatures), np.bool_)
        for index, values in enumerate(signatures[:, _LUMA].astype(np.int16)):
            if self._reference is not None:
                change = np.abs(values - self._reference)
                marks[index] = (
                    int(change.max()) <= FREEZE_BLOCK_MAX
                    and float(change.mean()) <= FREEZE_MEAN_MAX
                )
            if not marks[index]:
                self._reference = values
        self._marks.append(marks)

    def repeats(self) -> NDArray[np.bool_]:
        """Return for each frame whether it repeats the first of its stretch."""
        return np.concatenate(self._marks or [np.zeros(0, np.bool_)])


def black_spans(
    black: Floats, times: NDArray[np.float64], end_seconds: float, seconds_min: float
) -> list[SpanSeconds]:
    """Return the black stretches.

    Args:
        black: Share of black pixels of each frame.
        times: When each frame is shown, in seconds, rising.
        end_seconds: When the last frame ends.
        seconds_min: Shorter ones are left out.
    """
    return _spans(black >= BLACK_SHARE_MIN, times, end_seconds, seconds_min)


def freeze_spans(
    repeats: NDArray[np.bool_],
    times: NDArray[np.float64],
    end_seconds: float,
    seconds_min: float,
) -> list[SpanSeconds]:
    """Return the frozen stretches, their first frame included; arguments as in `black_spans`."""
    if len(repeats) == 0:
        return []
    starts = np.flatnonzero(~repeats)
    spans = []
    for start, end in zip(starts, [*starts[1:].tolist(), len(repeats)], strict=True):
        until = float(times[end]) if end < len(times) else end_seconds
        if end - start > 1 and until - float(times[start]) >= seconds_min:
            spans.append((float(times[start]), until))
    return spans


def _spans(
    marks: NDArray[np.bool_],
    times: NDArray[np.float64],
    end_seconds: float,
    seconds_min: float,
) -> list[SpanSeconds]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], marks, [False])).astype(np.int8)))
    spans = []
    for start, end in edges.reshape(-1, 2).tolist():
        until = float(times[end]) if end < len(times) else end_seconds
        if until - float(times[start]) >= seconds_min:
            spans.append((float(times[start]), until))
    return spans


def frame_numbers(times: NDArray[np.float64], rate: Fraction) -> NDArray[np.int64]:
    """Return each frame's number at this rate, from its time; the first is 0, none falls.

    Source: specification V5: times come from the demuxer, never n / fps.
    """
    if len(times) == 0:
        return np.zeros(0, np.int64)
    numbers = np.rint((times - times[0]) * float(rate)).astype(np.int64)
    return np.maximum.accumulate(numbers)


def shot_edges(
    starts: Sequence[int], numbers: NDArray[np.int64], frame_count: int
) -> list[tuple[int, int, int, int]]:
    """Return the shots that these starts make; they cover the whole source, none is empty.

    Args:
        starts: Indexes of the decoded frames that begin a shot, without 0.
        numbers: Number of each decoded frame at the source's rate.
        frame_count: Frames at that rate.

    Returns:
        First and end index among decoded frames, then first and end frame at the source's rate.
    """
    indexes = [0]
    frames = [0]
    for index in sorted(starts):
        number = int(numbers[index])
        if frames[-1] < number < frame_count:
            indexes.append(index)
            frames.append(number)
    ends = [*indexes[1:], len(numbers)]
    return list(zip(indexes, ends, frames, [*frames[1:], frame_count], strict=True))


def shot_figures(figures: FrameFigures, start: int, end: int) -> ShotFigures:
    """Return the means over these decoded frames."""
    inner = slice(min(start + 1, end - 1), end)
    weight = float(figures.motion_weight[inner].sum())
    moment = float(figures.motion_moment[inner].sum())
    return ShotFigures(
        luma=_mean(figures.luma[start:end]),
        saturation=_mean(figures.saturation[start:end]),
        clipped=_mean(figures.clipped[start:end]),
        motion=_mean(figures.motion[inner]) if end - start > 1 else 0.0,
        motion_x=round(min(max(moment / weight, 0.0), 1.0), 3) if weight > 0 else 0.5,
    )


def _mean(values: Floats) -> float:
    return round(float(values.mean(dtype=np.float64)), 3) if len(values) else 0.0
