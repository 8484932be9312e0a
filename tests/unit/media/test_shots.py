import weakref
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from reprise.media.frame_features import (
    FRAME_BYTES,
    HEIGHT,
    WIDTH,
    Bytes,
    Floats,
    FrameFigures,
    join_figures,
    measure,
    planes,
)
from reprise.media.shots import TransitionFinder, TransitionKind

RATE = 25.0
Picture = NDArray[np.float64]


def picture(seed: int, *, dark: int = 40, bright: int = 210) -> Picture:
    """Make a smooth random landscape, 2 x 2 times as large as a frame, so that it can be panned."""
    random = np.random.default_rng(seed)
    coarse = random.uniform(dark, bright, (10, 16))
    rows = np.linspace(0, 9, 2 * HEIGHT)
    columns = np.linspace(0, 15, 2 * WIDTH)
    across = np.array([np.interp(columns, np.arange(16), row) for row in coarse])
    smooth = np.array([np.interp(rows, np.arange(10), column) for column in across.T]).T
    grain = random.normal(0, 6, (2 * HEIGHT, 2 * WIDTH))
    made: Picture = smooth + grain
    return made


def frame(scene: Picture, left: float = 40, top: float = 40) -> Picture:
    return scene[int(top) : int(top) + HEIGHT, int(left) : int(left) + WIDTH]


def encode(frames: list[Picture]) -> Bytes:
    """Make yuv420p frames with chroma that follows the luma."""
    luma = np.clip(np.array(frames), 16, 235)
    chroma = np.clip(128 + (luma[:, ::2, ::2] - 125) / 4, 16, 240)
    parts = [luma.reshape(len(frames), -1), chroma.reshape(len(frames), -1)]
    other = (256 - chroma).reshape(len(frames), -1)
    return np.asarray(np.rint(np.concatenate([*parts, other], axis=1)), np.uint8)


def measured(frames: Bytes, batch: int = 16) -> tuple[Bytes, FrameFigures]:
    previous: Bytes | None = None
    signatures = []
    figures = []
    for start in range(0, len(frames), batch):
        part = measure(frames[start : start + batch], previous)
        previous = frames[min(start + batch, len(frames)) - 1]
        signatures.append(part.signatures)
        figures.append(part.figures)
    return np.concatenate(signatures), join_figures(figures)


def transitions(frames: list[Picture], threshold: float = 1.0) -> list[tuple[str, int]]:
    signatures, figures = measured(encode(frames))
    finder = TransitionFinder(RATE, threshold)
    finder.add(signatures, figures.score)
    return [(found.kind.value, found.index) for found in finder.finish()]


def hold(seed: int, count: int, **colours: int) -> list[Picture]:
    """Make a shot with a slow pan."""
    scene = picture(seed, **colours)
    step = min(0.4, 100 / count)
    return [frame(scene, 40 + index * step) for index in range(count)]


def test_a_hard_cut_is_found_at_its_first_frame() -> None:
    assert transitions([*hold(1, 40), *hold(2, 40)]) == [("cut", 40)]


def test_a_cut_to_black_and_back_gives_two_cuts() -> None:
    black = [np.full((HEIGHT, WIDTH), 16.0)] * 30
    assert transitions([*hold(1, 40), *black, *hold(2, 40)]) == [("cut", 40), ("cut", 70)]


def test_a_still_source_has_no_transition() -> None:
    assert transitions([frame(picture(1))] * 80) == []


@pytest.mark.parametrize("flash_frames", [1, 2, 3])
def test_a_flash_is_no_cut(flash_frames: int) -> None:
    shot = hold(1, 80)
    for index in range(40, 40 + flash_frames):
        shot[index] = shot[index] * 0.3 + 170
    assert transitions(shot) == []


def test_a_whip_pan_is_no_cut() -> None:
    scene = picture(3)
    steps = np.cumsum(np.sin(np.linspace(0, np.pi, 12)) * 18)
    places = [20.0] * 40 + list(20 + steps) + [20 + float(steps[-1])] * 40
    assert transitions([frame(scene, left) for left in places]) == []


def test_a_slow_pan_is_no_dissolve() -> None:
    scene = picture(4)
    assert transitions([frame(scene, 10 + index * 1.2) for index in range(140)]) == []


def test_an_object_that_appears_at_once_is_no_cut_when_it_moves() -> None:
    shot = hold(5, 80)
    for index in range(40, 60):
        left = (index - 40) * 9
        shot[index] = shot[index].copy()
        shot[index][30:80, left : left + 40] = 230
    assert transitions(shot) == []


@pytest.mark.parametrize("length", [12, 20, 30, 40])
def test_a_dissolve_is_found_inside_its_length(length: int) -> None:
    old, new = hold(6, 60 + length), hold(7, 60 + length)
    shares = np.arange(1, length + 1) / (length + 1)
    mixed = [
        old[60 + index] * (1 - share) + new[index] * share for index, share in enumerate(shares)
    ]
    found = transitions([*old[:60], *mixed, *new[length:]])
    assert [kind for kind, _ in found] == ["dissolve"]
    assert 60 <= found[0][1] < 60 + length


def test_a_fade_to_black_is_found() -> None:
    shot = hold(8, 80)
    for index in range(50, 80):
        share = min((index - 50) / 20, 1.0)
        shot[index] = shot[index] * (1 - share) + 16 * share
    black = [np.full((HEIGHT, WIDTH), 16.0)] * 20
    found = transitions([*shot, *black])
    assert [kind for kind, _ in found] == ["dissolve"]
    assert 50 <= found[0][1] <= 70


def test_a_title_that_fades_in_over_a_shot_is_no_transition() -> None:
    shot = hold(9, 100)
    for index in range(40, 100):
        share = min((index - 40) / 20, 1.0)
        shot[index] = shot[index].copy()
        shot[index][40:64, 50:140] = shot[index][40:64, 50:140] * (1 - share) + 235 * share
    assert transitions(shot) == []


def test_a_dark_fade_in_is_no_hard_cut() -> None:
    shot = hold(10, 60, dark=18, bright=60)
    for index in range(40):
        shot[index] = 16 + (shot[index] - 16) * index / 40
    assert "cut" not in [kind for kind, _ in transitions(shot)]


def test_a_higher_threshold_finds_fewer_cuts() -> None:
    faint = hold(11, 40, dark=110, bright=130)
    frames = [*faint, *hold(12, 40, dark=118, bright=138)]
    assert transitions(frames, threshold=0.5) != []
    assert transitions(frames, threshold=10.0) == []


@pytest.mark.parametrize("shift", [0, 200, 420])
def test_where_a_block_of_the_search_ends_does_not_matter(shift: int) -> None:
    """Sources are searched in blocks of 512 frames that overlap."""
    frames = [*hold(1, 300 + shift), *hold(2, 331), *hold(3, 300)]
    assert transitions(frames) == [("cut", 300 + shift), ("cut", 631 + shift)]


def test_frames_may_come_in_batches_of_any_size() -> None:
    frames = encode([*hold(1, 50), *hold(2, 37)])
    whole_signatures, whole = measured(frames, batch=87)
    signatures, figures = measured(frames, batch=7)
    assert np.array_equal(signatures, whole_signatures)
    assert np.allclose(figures.score, whole.score)
    assert np.allclose(figures.motion_moment, whole.motion_moment)


def test_an_empty_source_has_no_transition() -> None:
    assert TransitionFinder(RATE).finish() == []


def test_the_finder_keeps_a_bounded_number_of_frames() -> None:
    finder = TransitionFinder(RATE)
    signatures, figures = measured(encode(hold(1, 64)))
    held = []
    for _ in range(60):
        # Of its own each time, so that what lives on is what the finder keeps.
        batch = signatures.copy()
        held.append(weakref.ref(batch))
        finder.add(batch, figures.score)
        del batch
    assert 64 * sum(reference() is not None for reference in held) < 1200


def test_transition_kinds_have_the_names_of_the_report() -> None:
    assert [kind.value for kind in TransitionKind] == ["cut", "dissolve"]


def flat(luma: int, blue: int = 128, red: int = 128) -> Bytes:
    quarter = WIDTH * HEIGHT // 4
    return np.array([luma] * (4 * quarter) + [blue] * quarter + [red] * quarter, np.uint8).reshape(
        1, FRAME_BYTES
    )


def one(figure: Callable[[FrameFigures], Floats], frames: Bytes) -> list[float]:
    return [round(float(value), 3) for value in figure(measure(frames, None).figures)]


def test_luma_is_told_in_full_range() -> None:
    frames = np.concatenate([flat(16), flat(235), flat(125)])
    assert one(lambda figures: figures.luma, frames) == [0.0, 255.0, 126.918]


def test_grey_has_no_saturation_and_a_pure_colour_has_much() -> None:
    frames = np.concatenate([flat(125), flat(81, 90, 240)])
    assert one(lambda figures: figures.saturation, frames) == [0.0, 1.0]


def test_black_and_white_are_clipped_and_grey_is_not() -> None:
    frames = np.concatenate([flat(16), flat(235), flat(125)])
    assert one(lambda figures: figures.clipped, frames) == [1.0, 1.0, 0.0]


def test_the_first_frame_has_neither_score_nor_motion() -> None:
    figures = measure(flat(200), None).figures
    assert (figures.score.tolist(), figures.motion.tolist()) == ([0.0], [0.0])


def test_motion_is_placed_where_it_happens() -> None:
    still, moved = np.full((HEIGHT, WIDTH), 100.0), np.full((HEIGHT, WIDTH), 100.0)
    moved[:, 144:] = 160
    figures = measure(encode([still, moved]), None).figures
    assert round(float(figures.motion_moment[1] / figures.motion_weight[1]), 3) == 0.875


def test_a_torn_last_frame_is_left_out() -> None:
    assert planes(bytes(2 * FRAME_BYTES + 5)).shape == (2, FRAME_BYTES)
