"""Where a new shot begins: hard cuts and dissolves, from frame signatures.

A hard cut is a single jump that stands out from its neighbourhood (so a whip pan is none) and after
which the picture stays another one (so a flash is none). A dissolve is a stretch in which each
frame is the weighted mean of both ends, block by block, while the contrast dips in its middle, as
it does when two unrelated pictures are added; a pan or zoom does neither.

To change a rule: `tests/unit/media/test_shots.py` has the synthetic cases, and
`tests/integration/test_video_analyzer_shots.py` the generated clips with known cuts.

Source: specification V5, V6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reprise.media.frame_features import SIGNATURE_SIZE, Bytes, Floats

CUT_SCORE_MIN = 7.0
"""Least score of a hard cut at threshold 1."""
CUT_RATIO = 3.0
"""How many times its neighbourhood's median a cut's score is."""
FLASH_SECONDS = 0.2
"""A change that is undone within this time is a flash, not a cut."""
DISSOLVE_CHANGE_MIN = 9.0
"""Least mean change of the signature over a dissolve at threshold 1."""
DISSOLVE_HALF_SECONDS = (0.12, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0)
"""Half lengths that are tried; longer dissolves are seen by their steepest part."""
AREA_MIN = 0.35
"""Share of the picture that changes at a cut or dissolve; less is an object or a title."""
ISOLATED_RATIO = 3.0
"""A peak so many times higher than all around it is a cut whatever its area: a jump cut."""
BEND_MAX = 0.28
"""Distance of a dissolve's inner frames from the mean of its ends, as a share of its change."""
OUTSIDE_RATIO = 1.5
"""How many times the change inside a dissolve is that of as many frames beside it."""
CONTRAST_RATIO = 0.85
"""A dissolve's middle has at most this share of the luma variance of its ends."""
BLOCK_FRAMES = 512
"""Frames that are searched at once."""

_LUMA = slice(0, SIGNATURE_SIZE * 2 // 3)


class TransitionKind(StrEnum):
    """How one shot becomes the next."""

    CUT = "cut"
    DISSOLVE = "dissolve"


@dataclass(frozen=True)
class Transition:
    """A place where a new shot begins."""

    index: int
    """First frame of the new shot; of a dissolve its middle."""
    start: int
    """First frame that is not wholly the old shot."""
    end: int
    """First frame that is wholly the new shot."""
    kind: TransitionKind


@dataclass(frozen=True)
class _Windowed:
    """A dissolve candidate: its middle, half length and how good it is."""

    index: int
    half: int
    strength: float


class TransitionFinder:
    """Finds transitions while frames arrive; keeps a bounded number of signatures.

    Args:
        rate: Frames a second.
        threshold: 1 is the measured default; higher finds fewer.
    """

    def __init__(self, rate: float, threshold: float = 1.0) -> None:
        self._rate = rate
        self._threshold = threshold
        self._margin = 2 * max(_half_lengths(rate)) + _flash_frames(rate) + 1
        self._signatures: list[Bytes] = []
        self._scores: list[Floats] = []
        self._held = 0
        self._first = 0
        self._done = 0
        self._found: list[Transition] = []

    def add(self, signatures: Bytes, scores: Floats) -> None:
        """Add frames that follow those before; shapes (frames, SIGNATURE_SIZE) and (frames,)."""
        self._signatures.append(signatures)
        self._scores.append(scores)
        self._held += len(scores)
        if self._held >= BLOCK_FRAMES + 2 * self._margin:
            self._search(self._first + self._held - self._margin)

    def finish(self) -> list[Transition]:
        """Search what is left and return all transitions by rising index."""
        self._search(self._first + self._held)
        return _without_overlaps(self._found)

    def _search(self, until: int) -> None:
        signatures = np.concatenate(self._signatures or [np.zeros((0, SIGNATURE_SIZE), np.uint8)])
        scores = np.concatenate(self._scores or [np.zeros(0, np.float32)])
        for found in find_transitions(signatures, scores, self._rate, self._threshold):
            if self._done <= found.index + self._first < until:
                first = self._first
                self._found.append(
                    Transition(
                        found.index + first, found.start + first, found.end + first, found.kind
                    )
                )
        drop = max(until - self._margin - self._first, 0)
        self._signatures, self._scores = [signatures[drop:].copy()], [scores[drop:].copy()]
        self._first += drop
        self._held -= drop
        self._done = until


def find_transitions(
    signatures: Bytes, scores: Floats, rate: float, threshold: float = 1.0
) -> list[Transition]:
    """Return the transitions among these frames, by rising index.

    Args:
        signatures: Shape (frames, SIGNATURE_SIZE).
        scores: Change from the frame before, shape (frames,).
        rate: Frames a second.
        threshold: 1 is the measured default; higher finds fewer.
    """
    cuts = hard_cuts(signatures, scores, rate, threshold)
    found = [Transition(cut, cut, cut, TransitionKind.CUT) for cut in cuts]
    return _without_overlaps([*found, *dissolves(signatures, rate, threshold)])


def hard_cuts(signatures: Bytes, scores: Floats, rate: float, threshold: float = 1.0) -> list[int]:
    """Return the frames at which a new shot starts at once; frame 0 is never among them."""
    if len(scores) == 0:
        return []
    reach = max(3, round(0.2 * rate))
    padded = np.pad(scores.astype(np.float64), reach, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    candidates = np.flatnonzero(scores > CUT_SCORE_MIN * threshold)
    cuts = []
    for index in candidates[candidates > 0].tolist():
        around = np.delete(windows[index], reach)
        around = around[~np.isnan(around)]
        base = float(np.median(around)) if len(around) else 0.0
        peak = float(scores[index])
        if peak < (CUT_RATIO * base + 4.0) * threshold or peak < float(around.max(initial=0.0)):
            continue
        wide = _area(signatures[index - 1], signatures[index], 6.0) >= AREA_MIN
        alone = peak > ISOLATED_RATIO * float(around.max(initial=0.0))
        if (wide or alone) and not _is_flash(signatures, index, rate):
            cuts.append(index)
    return cuts


def dissolves(signatures: Bytes, rate: float, threshold: float = 1.0) -> list[Transition]:
    """Return the dissolves and fades; the index is the middle frame."""
    values = signatures.astype(np.int16)
    contrast = signatures[:, _LUMA].std(axis=1, dtype=np.float32)
    candidates: list[_Windowed] = []
    for half in _half_lengths(rate):
        candidates += _dissolves_of(values, contrast, half, DISSOLVE_CHANGE_MIN * threshold)
    chosen: list[_Windowed] = []
    for candidate in sorted(candidates, key=lambda item: (-item.strength, item.index, item.half)):
        if all(abs(candidate.index - one.index) > candidate.half + one.half for one in chosen):
            chosen.append(candidate)
    return [
        Transition(one.index, one.index - one.half, one.index + one.half, TransitionKind.DISSOLVE)
        for one in sorted(chosen, key=lambda item: item.index)
    ]


def _half_lengths(rate: float) -> list[int]:
    return sorted({max(3, round(seconds * rate)) for seconds in DISSOLVE_HALF_SECONDS})


def _flash_frames(rate: float) -> int:
    return max(3, round(FLASH_SECONDS * rate))


def _is_flash(signatures: Bytes, index: int, rate: float) -> bool:
    """Tell whether the picture before comes back soon after, from either side of a flash."""
    reach = _flash_frames(rate)
    before = signatures[max(index - reach, 0) : index].astype(np.int16)
    after = signatures[index : index + reach].astype(np.int16)
    jump = _distance(before[-1], after[0])
    if len(after) < 2 or len(before) < 2:
        return False
    bridges = np.abs(before[:, None, :] - after[None, :, :]).mean(axis=2)
    # The pair at the jump itself tells nothing.
    bridges[-1, 0] = np.inf
    return bool(bridges.min() < 0.4 * jump)


def _dissolves_of(
    values: NDArray[np.int16], contrast: Floats, half: int, change_min: float
) -> list[_Windowed]:
    count = len(values)
    middles = np.arange(half, count - half)
    if len(middles) == 0:
        return []
    changes = np.abs(values[2 * half :] - values[: count - 2 * half]).mean(axis=1, dtype=np.float32)
    chosen = changes >= change_min
    found = []
    for index, change in zip(middles[chosen].tolist(), changes[chosen].tolist(), strict=True):
        if not _dips(contrast, index, half):
            continue
        bend = _bend(values, index, half)
        if bend > BEND_MAX * change:
            continue
        outside = _change_outside(values, index, half)
        if change >= OUTSIDE_RATIO * outside and _is_gradual(values, index, half, change):
            found.append(_Windowed(index, half, change - 3 * bend - outside))
    return found


def _change_outside(values: NDArray[np.int16], index: int, half: int) -> float:
    """Return the larger of the changes before and after a window, each over half its length."""
    start, end = index - half, index + half
    return max(
        _distance(values[start], values[max(start - half, 0)]),
        _distance(values[end], values[min(end + half, len(values) - 1)]),
    )


def _is_gradual(values: NDArray[np.int16], index: int, half: int, change: float) -> bool:
    """Tell whether no single step makes the change, and it is not just an object or a title."""
    steps = np.abs(np.diff(values[index - half : index + half + 1], axis=0)).mean(axis=1)
    if float(steps.max()) > max(0.45, 2.5 / half) * change:
        return False
    start, middle, end = (values[index + offset][_LUMA] for offset in (-half, 0, half))
    if _area(start, end, 0.3 * change) < 0.5:
        return False
    # Without the quarter that changes most the contrast dips too, unless that quarter is a title.
    difference = np.abs(end - start)
    rest = difference <= np.percentile(difference, 75)
    ends = (float(start[rest].var()) + float(end[rest].var())) / 2
    return ends < 4.0 or float(middle[rest].var()) < 0.95 * ends


def _dips(contrast: Floats, index: int, half: int) -> bool:
    """Tell whether the contrast in the middle is lower than at the ends, or there is none."""
    ends = (float(contrast[index - half]) ** 2 + float(contrast[index + half]) ** 2) / 2
    middle = float(contrast[index]) ** 2
    return ends < 4.0 or middle < CONTRAST_RATIO * ends


def _bend(values: NDArray[np.int16], index: int, half: int) -> float:
    """Return the largest distance of the inner frames from the straight line between the ends."""
    start = values[index - half].astype(np.float32)
    end = values[index + half].astype(np.float32)
    quarter = half // 2
    bends = []
    for offset in (-quarter, 0, quarter):
        share = (offset + half) / (2 * half)
        line = start + share * (end - start)
        bends.append(float(np.abs(values[index + offset] - line).mean()))
    return max(bends)


def _area(before: NDArray[np.integer], after: NDArray[np.integer], least: float) -> float:
    """Return the share of luma blocks that change by more than `least`."""
    difference = after[_LUMA].astype(np.int16) - before[_LUMA].astype(np.int16)
    return float((np.abs(difference) > least).mean())


def _distance(left: NDArray[np.int16], right: NDArray[np.int16]) -> float:
    return float(np.abs(left - right).mean())


def _without_overlaps(found: Sequence[Transition]) -> list[Transition]:
    """Keep cuts, and dissolves that touch neither a cut nor a dissolve before them."""
    kept: list[Transition] = []
    ordered = sorted(found, key=lambda item: (item.kind != TransitionKind.CUT, item.index))
    for one in ordered:
        if all(one.end < other.start or one.start > other.end for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda item: item.index)
