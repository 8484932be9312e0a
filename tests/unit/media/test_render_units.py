"""A plan's render units: what is in them, what changes their keys, which plans are refused."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.errors import MediaError
from reprise.media.render_units import (
    OverlaySpan,
    PictureBox,
    picture_box,
    picture_units,
    plan_clock,
    sound_pieces,
    track_timescale,
    unit_key,
)
from reprise.model.render import Caption, RenderCut, RenderPlan, RenderSource


def source(id: str = "v1", **changes: Any) -> RenderSource:
    fields: dict[str, Any] = {
        "id": id,
        "path": Path("a.mp4"),
        "content_digest": "0" * 64,
        "frame_rate": "25",
        "frame_count": 500,
        "width": 640,
        "height": 360,
        "has_audio": True,
    }
    return RenderSource(**{**fields, **changes})


def plan(*spans: tuple[str, int, int], **changes: Any) -> RenderPlan:
    fields: dict[str, Any] = {
        "sources": (source("v1"), source("v2", has_audio=False)),
        "cuts": tuple(RenderCut(source_id=i, start_frame=a, end_frame=b) for i, a, b in spans),
        "frame_rate": "25",
        "width": 640,
        "height": 360,
    }
    return RenderPlan(**{**fields, **changes})


def caption(start: float, end: float, text: str = "Hello") -> Caption:
    return Caption(start_seconds=start, end_seconds=end, text=text)


def test_a_caption_over_a_cut_is_in_both_units_in_their_own_frames() -> None:
    made = plan(("v1", 0, 50), ("v2", 0, 50), captions=(caption(1.6, 2.4),))
    first, second = picture_units(made, plan_clock(made))
    assert first.overlays == (OverlaySpan("caption", "Hello", 40, 50),)
    assert second.overlays == (OverlaySpan("caption", "Hello", 0, 10),)


def test_the_title_lies_over_the_first_seconds_and_fades() -> None:
    made = plan(("v1", 0, 100), title="  Film ", title_seconds=2.0)
    assert picture_units(made, plan_clock(made))[0].overlays == (
        OverlaySpan("title", "Film", 0, 50, fade_in_frames=8, fade_out_frames=8),
    )


def test_a_title_that_outlasts_the_first_cut_goes_on_in_the_next() -> None:
    made = plan(("v1", 0, 30), ("v1", 90, 150), title="Film")
    first, second = picture_units(made, plan_clock(made))
    assert first.overlays == (OverlaySpan("title", "Film", 0, 30, 8, 0),)
    assert second.overlays == (OverlaySpan("title", "Film", 0, 20, 0, 8),)


def test_a_title_adds_no_time_to_the_film() -> None:
    assert plan_clock(plan(("v1", 0, 100), title="Film")).frame_count == 100


def test_a_unit_that_only_moved_in_the_film_stays_as_it_was() -> None:
    before = plan(("v1", 0, 50), ("v2", 10, 60), captions=(caption(2.4, 3.0),))
    after = plan(("v1", 0, 75), ("v2", 10, 60), captions=(caption(3.4, 4.0),))
    moved = [picture_units(p, plan_clock(p))[1] for p in (before, after)]
    assert moved[0].overlays == moved[1].overlays == (OverlaySpan("caption", "Hello", 10, 25),)
    assert moved[0].frame_count == moved[1].frame_count


def test_captions_outside_of_the_film_or_without_text_are_left_out() -> None:
    made = plan(("v1", 0, 25), captions=(caption(0.2, 0.8, "  "), caption(5.0, 6.0)))
    assert picture_units(made, plan_clock(made))[0].overlays == ()


def test_a_source_without_sound_gives_silence_of_the_cuts_length() -> None:
    made = plan(("v1", 25, 50), ("v2", 0, 25))
    first, second = sound_pieces(made, plan_clock(made))
    assert (first.source_id, first.sample_count) == ("v1", 48_000)
    assert first.start_seconds == Fraction(1)
    assert (second.source_id, second.sample_count) == (None, 48_000)


def test_there_is_no_fade_between_cuts_that_lie_side_by_side_in_the_source() -> None:
    made = plan(("v1", 0, 25), ("v1", 25, 50), ("v1", 60, 85), audio_fade_seconds=0.03)
    fades = [(p.fade_in_samples, p.fade_out_samples) for p in sound_pieces(made, plan_clock(made))]
    assert fades == [(1440, 0), (0, 1440), (1440, 1440)]


def test_fades_of_a_very_short_cut_do_not_overlap() -> None:
    made = plan(("v1", 0, 1), audio_fade_seconds=0.5)
    (piece,) = sound_pieces(made, plan_clock(made))
    assert piece.fade_in_samples + piece.fade_out_samples <= piece.sample_count == 1920


@pytest.mark.parametrize(
    ("size", "frame", "expected"),
    [
        ((1920, 1080), (1280, 720), PictureBox(1280, 720, 0, 0)),
        ((640, 480), (1280, 720), PictureBox(960, 720, 160, 0)),
        ((1080, 1920), (1920, 1080), PictureBox(608, 1080, 656, 0)),
        ((1920, 1080), (1080, 1920), PictureBox(1080, 608, 0, 656)),
        ((321, 181), (640, 360), PictureBox(638, 360, 0, 0)),
        ((1, 1000), (640, 360), PictureBox(2, 360, 318, 0)),
    ],
)
def test_a_picture_fits_whole_into_the_frame(
    size: tuple[int, int], frame: tuple[int, int], expected: PictureBox
) -> None:
    assert picture_box(*size, *frame) == expected


@given(*[st.integers(1, 9000)] * 2, *[st.integers(8, 4096).map(lambda n: 2 * n)] * 2)
def test_the_box_of_a_picture_is_even_and_inside_the_frame(
    source_width: int, source_height: int, width: int, height: int
) -> None:
    box = picture_box(source_width, source_height, width, height)
    assert all(value % 2 == 0 for value in (box.width, box.height, box.x, box.y))
    assert 2 <= box.width <= width - box.x
    assert 2 <= box.height <= height - box.y


@pytest.mark.parametrize(
    ("rate", "ticks"),
    [("30000/1001", 30000), ("25", 12800), ("24000/1001", 24000), ("60", 15360), ("30", 15360)],
)
def test_every_frame_begins_on_a_whole_tick(rate: str, ticks: int) -> None:
    assert track_timescale(Fraction(rate)) == ticks
    assert (ticks / Fraction(rate)).denominator == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 641}, "The film's width is 641"),
        ({"height": 0}, "The film's height is 0"),
        ({"frame_rate": "x"}, "The film has the frame rate 'x'"),
        ({"preset": "-y"}, "x264 preset '-y'"),
        ({"sources": (source(), source())}, "source 'v1' twice"),
        ({"sources": (source(width=0), source("v2"))}, "Source 'v1' is 0x360 pixels"),
        ({"sources": (source(frame_rate="0"), source("v2"))}, "Source 'v1' has the frame rate '0'"),
        (
            {"sources": (source(frame_count=99), source("v2"))},
            "Cut 1 of source 'v1' ends at frame 100, but the source has 99 frames",
        ),
    ],
)
def test_an_impossible_plan_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MediaError, match=message):
        plan_clock(plan(("v1", 0, 100), **changes))


def test_a_units_key_depends_on_kind_toolchain_and_every_field() -> None:
    keys = {
        unit_key("picture", {"ffmpeg": "9"}, {"frames": 3, "source": "a"}),
        unit_key("sound", {"ffmpeg": "9"}, {"frames": 3, "source": "a"}),
        unit_key("picture", {"ffmpeg": "8"}, {"frames": 3, "source": "a"}),
        unit_key("picture", {"ffmpeg": "9"}, {"frames": 4, "source": "a"}),
        unit_key("picture", {"ffmpeg": "9"}, {"frames": "3", "source": "a"}),
        unit_key("picture", {"ffmpeg": "9"}, {"frames": 3, "source": None}),
        unit_key("picture", {"ffmpeg": "9"}, {"frames": 3}),
    }
    assert len(keys) == 7
    assert unit_key("picture", {"ffmpeg": "9"}, {"frames": 3, "source": "a"}) == (
        "789fea1e5b9a2086c574f94968fd7f3d6fb5bb63267b12bffa62e3da7b79f25f"
    )
