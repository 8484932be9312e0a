from fractions import Fraction

import numpy as np

from reprise.media.frame_features import SIGNATURE_SIZE, Bytes, FrameFigures
from reprise.media.spans import (
    FreezeFinder,
    black_spans,
    frame_numbers,
    freeze_spans,
    shot_edges,
    shot_figures,
)

TIMES = np.arange(10) / 10


def frozen(signatures: Bytes, seconds_min: float = 0.3) -> list[tuple[float, float]]:
    finder = FreezeFinder()
    for index in range(0, len(signatures), 3):
        finder.add(signatures[index : index + 3])
    times = np.arange(len(signatures)) / 10
    return freeze_spans(finder.repeats(), times, len(signatures) / 10, seconds_min)


def moving(count: int, step: int = 5) -> Bytes:
    levels = np.arange(count, dtype=np.uint8) * step
    return np.repeat(levels[:, None], SIGNATURE_SIZE, axis=1)


def test_a_black_span_lasts_until_the_first_frame_that_is_not_black() -> None:
    black = np.array([0, 0, 1, 1, 1, 0.97, 0, 0, 0, 0], np.float32)
    assert black_spans(black, TIMES, 1.0, 0.2) == [(0.2, 0.5)]


def test_a_black_end_lasts_until_the_source_ends() -> None:
    black = np.array([0] * 7 + [1] * 3, np.float32)
    assert black_spans(black, TIMES, 1.04, 0.2) == [(0.7, 1.04)]


def test_a_short_black_span_is_left_out() -> None:
    black = np.array([0, 1, 0, 0, 0, 0, 0, 0, 0, 0], np.float32)
    assert black_spans(black, TIMES, 1.0, 0.2) == []


def test_a_frozen_span_begins_with_the_frame_that_is_repeated() -> None:
    signatures = moving(12)
    signatures[4:9] = signatures[4]
    assert frozen(signatures) == [(0.4, 0.9)]


def test_a_source_of_one_picture_is_frozen_from_beginning_to_end() -> None:
    assert frozen(np.full((10, SIGNATURE_SIZE), 90, np.uint8)) == [(0.0, 1.0)]


def test_a_slow_zoom_is_not_frozen() -> None:
    """Each frame is like the one before, but not like the first of the stretch."""
    assert frozen(moving(30, step=1)) == []


def test_a_moving_mouth_is_not_frozen() -> None:
    signatures = np.full((12, SIGNATURE_SIZE), 90, np.uint8)
    signatures[::2, 200] = 96
    assert frozen(signatures) == []


def test_compression_noise_is_still_frozen() -> None:
    random = np.random.default_rng(1)
    signatures = np.full((10, SIGNATURE_SIZE), 90, np.uint8)
    signatures += (random.random(signatures.shape) < 0.2).astype(np.uint8)
    assert frozen(signatures) == [(0.0, 1.0)]


def test_nothing_is_frozen_in_an_empty_source() -> None:
    assert freeze_spans(FreezeFinder().repeats(), np.zeros(0), 0.0, 0.3) == []


def test_frames_are_numbered_by_their_time_and_not_by_their_order() -> None:
    times = np.array([0.0, 0.04, 0.08, 0.28, 0.32])
    assert frame_numbers(times, Fraction(25)).tolist() == [0, 1, 2, 7, 8]


def test_frame_numbers_begin_at_the_first_frame() -> None:
    times = np.array([5.0, 5 + 1001 / 30000, 5 + 2002 / 30000])
    assert frame_numbers(times, Fraction(30000, 1001)).tolist() == [0, 1, 2]


def test_an_hour_of_ntsc_frames_is_numbered_without_drift() -> None:
    count = 107_892
    times = np.round(np.arange(count) * 1001 / 30000, 3)
    assert np.array_equal(frame_numbers(times, Fraction(30000, 1001)), np.arange(count))


def test_shots_cover_the_source_without_gap() -> None:
    numbers = np.arange(100)
    assert shot_edges([30, 70], numbers, 100) == [
        (0, 30, 0, 30),
        (30, 70, 30, 70),
        (70, 100, 70, 100),
    ]


def test_a_source_without_cuts_is_one_shot() -> None:
    assert shot_edges([], np.arange(10), 10) == [(0, 10, 0, 10)]


def test_starts_that_fall_on_one_frame_number_make_no_empty_shot() -> None:
    numbers = np.array([0, 1, 1, 2, 3])
    assert shot_edges([1, 2], numbers, 4) == [(0, 1, 0, 1), (1, 5, 1, 4)]


def figures(**changes: list[float]) -> FrameFigures:
    names = (
        *("score", "motion", "motion_weight", "motion_moment"),
        *("luma", "saturation", "clipped", "black"),
    )
    values = {name: np.zeros(4, np.float32) for name in names}
    values |= {name: np.array(given, np.float32) for name, given in changes.items()}
    return FrameFigures(**values)


def test_the_jump_at_a_shots_beginning_is_no_motion_of_it() -> None:
    assert shot_figures(figures(motion=[0, 90, 2, 4]), 1, 4).motion == 3.0


def test_motion_is_placed_by_its_weight() -> None:
    made = shot_figures(figures(motion_weight=[0, 9, 3, 1], motion_moment=[0, 9, 0.6, 0.2]), 1, 4)
    assert made.motion_x == 0.2


def test_a_shot_without_motion_has_its_middle_as_its_place() -> None:
    assert shot_figures(figures(), 0, 4).motion_x == 0.5


def test_a_shot_of_one_frame_has_figures() -> None:
    made = shot_figures(figures(luma=[10, 20, 30, 40], motion=[0, 0, 50, 0]), 2, 3)
    assert (made.luma, made.motion) == (30.0, 0.0)
