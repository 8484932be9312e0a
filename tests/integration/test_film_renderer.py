"""The film renderer on real media: exact frames and samples, reuse, bad input, cancelling."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from reprise.errors import Cancelled, MediaError, MediaUnreadable
from reprise.model.render import Caption, RenderCut, RenderedFilm, RenderPlan, RenderSource
from reprise.ports import ObjectStore
from resources.ffmpeg_runner import FfmpegRunner
from resources.film_renderer import FfmpegFilmRenderer
from resources.local_object_store import LocalObjectStore
from resources.memory_object_store import MemoryObjectStore
from tests.media_files import (
    clip,
    ffmpeg_binary,
    frame_numbers,
    make_media,
    never_cancelled,
    no_progress,
    stamped,
)

HARD_TEXT = "It's 5:00, 100% [ok]; a\\b %{pts} 😀"
TONE = "sine=f=440:r=48000,volume=0.3"


def source(path: Path, *, rate: str = "25", frames: int = 100, **changes: Any) -> RenderSource:
    fields: dict[str, Any] = {
        "id": "v1",
        "path": path,
        "content_digest": hashlib.sha256(path.read_bytes()).hexdigest(),
        "frame_rate": rate,
        "frame_count": frames,
        "width": 320,
        "height": 180,
        "has_audio": False,
    }
    return RenderSource(**{**fields, **changes})


def plan(
    sources: RenderSource | Sequence[RenderSource],
    *spans: tuple[int, int] | tuple[str, int, int],
    **changes: Any,
) -> RenderPlan:
    given = (sources,) if isinstance(sources, RenderSource) else tuple(sources)
    cuts = [span if len(span) == 3 else (given[0].id, *span) for span in spans]
    fields: dict[str, Any] = {
        "sources": given,
        "cuts": tuple(RenderCut(source_id=i, start_frame=a, end_frame=b) for i, a, b in cuts),
        "frame_rate": given[0].frame_rate,
        "width": 320,
        "height": 180,
        "preset": "ultrafast",
    }
    return RenderPlan(**{**fields, **changes})


def render(
    made: RenderPlan,
    workdir: Path,
    objects: ObjectStore | None = None,
    *,
    reuse_units: bool = True,
    cancelled: Callable[[], bool] = never_cancelled,
) -> RenderedFilm:
    renderer = FfmpegFilmRenderer(FfmpegRunner(ffmpeg_binary()), objects or MemoryObjectStore())
    return renderer.render(
        made,
        workdir,
        reuse_units=reuse_units,
        unit_prefix="units",
        progress=no_progress,
        cancelled=cancelled,
    )


def samples(path: Path) -> NDArray[np.float32]:
    """Decode the left channel."""
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])


def frame_at(path: Path, index: int) -> NDArray[np.uint8]:
    """Decode one frame as RGB."""
    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number == index:
                return frame.to_ndarray(format="rgb24").astype(np.uint8)
    message = f"there is no frame {index}"
    raise AssertionError(message)


@pytest.mark.parametrize("rate", ["24000/1001", "25", "30000/1001", "30", "60"])
def test_every_cut_holds_exactly_its_frames(tmp_path: Path, rate: str) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=100, rate=rate)
    spans = [(37, 52), (0, 3), (99, 100), (11, 12), (52, 80), (1, 30)]
    film = render(plan(source(footage, rate=rate), *spans), tmp_path / "work")
    assert frame_numbers(film.path) == [n for start, end in spans for n in range(start, end)]
    assert film.frame_count == 77
    assert film.duration_seconds == float(77 / Fraction(rate))


def test_units_whose_lengths_are_no_whole_milliseconds_join_without_drift(tmp_path: Path) -> None:
    """A container rounds a unit's length to milliseconds; the next one must not begin by it."""
    footage = stamped(tmp_path / "a.mp4", frames=340, rate="24")
    spans = [(0, 57), (60, 224), (224, 340)]
    film = render(plan(source(footage, rate="24", frames=340), *spans), tmp_path / "work")
    with av.open(str(film.path)) as container:
        stream = container.streams.video[0]
        base = stream.time_base or Fraction(1)
        times = [Fraction(frame.pts or 0) * base for frame in container.decode(stream)]
    assert times == [Fraction(number, 24) for number in range(57 + 164 + 116)]
    assert frame_numbers(film.path) == [n for start, end in spans for n in range(start, end)]


@pytest.mark.parametrize("container", ["mkv", "ts"])
def test_frames_are_exact_in_containers_with_rough_or_shifted_clocks(
    tmp_path: Path, container: str
) -> None:
    rate = "30000/1001"
    footage = stamped(tmp_path / f"a.{container}", frames=90, rate=rate, sound=TONE)
    spans = [(61, 75), (0, 5), (29, 30)]
    film = render(
        plan(source(footage, rate=rate, frames=90, has_audio=True), *spans), tmp_path / "work"
    )
    assert frame_numbers(film.path) == [n for start, end in spans for n in range(start, end)]


def test_a_source_of_uneven_frames_shows_at_each_time_what_a_player_shows(tmp_path: Path) -> None:
    even = stamped(tmp_path / "even.mp4", frames=150, rate="30")
    # From frame 60 on, only every fortieth is left: a still of 1.33 s at a time.
    uneven = make_media(
        tmp_path / "uneven.mp4",
        *("-i", f"file:{even}", "-vf", "select='lt(n,60)+not(mod(n,40))'", "-fps_mode", "vfr"),
        *("-c:v", "libx264", "-crf", "12"),
    )
    spans = [(50, 100), (85, 90), (117, 121)]
    film = render(plan(source(uneven, rate="30", frames=121), *spans), tmp_path / "work")
    assert frame_numbers(film.path) == [
        n if n < 60 else 59 if n < 80 else n // 40 * 40
        for start, end in spans
        for n in range(start, end)
    ]


def test_a_source_at_another_rate_shows_the_nearest_of_its_frames(tmp_path: Path) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=100, rate="60")
    made = plan(source(footage, rate="60"), (10, 70), frame_rate="24")
    film = render(made, tmp_path / "work")
    assert film.frame_count == 24
    wanted = [10 + n * 2.5 for n in range(24)]
    shown = frame_numbers(film.path)
    assert max(abs(a - b) for a, b in zip(shown, wanted, strict=True)) <= 0.5
    assert shown[0] == 10


@pytest.mark.parametrize("container", ["mp4", "mkv", "ts"])
def test_the_sound_stays_with_the_picture_over_many_cuts(tmp_path: Path, container: str) -> None:
    # A click of 10 ms begins with every twentieth frame.
    rate = Fraction(30000, 1001)
    click = "aevalsrc='if(lt(mod(t,20*1001/30000),0.01),0.5*sin(2*PI*1000*t),0)':s=44100"
    footage = stamped(tmp_path / f"a.{container}", frames=400, rate="30000/1001", sound=click)
    spans = [(20 * n - 5 - n % 4, 20 * n + 3) for n in range(1, 18)]
    film = render(
        plan(
            source(footage, rate="30000/1001", frames=400, has_audio=True),
            *spans,
            loudness_lufs=None,
        ),
        tmp_path / "work",
    )
    sound = samples(film.path)
    assert abs(len(sound) - film.duration_seconds * 48_000) <= 1024
    wanted, film_frame = [], 0
    for start, end in spans:
        wanted.append(float((film_frame + start + (-start) % 20 - start) / rate))
        film_frame += end - start
    loud = np.flatnonzero(np.abs(sound) > 0.1) / 48_000
    found = [float(loud[loud > time - 0.05][0]) for time in wanted]
    assert max(abs(a - b) for a, b in zip(found, wanted, strict=True)) < 0.003


def test_there_is_neither_silence_nor_a_click_at_a_joint(tmp_path: Path) -> None:
    footage = clip(tmp_path / "a.mp4", seconds=4, sound=TONE)
    made = plan(
        source(footage, has_audio=True), (3, 41), (60, 93), loudness_lufs=None, width=64, height=36
    )
    film = render(made, tmp_path / "work")
    sound = samples(film.path)
    steps = np.abs(np.diff(sound))
    joint = round(38 / 25 * 48_000)
    assert steps[joint - 2400 : joint + 2400].max() <= 1.1 * np.percentile(steps, 99)
    blocks = np.abs(sound[2400:-2400])[: 96 * 1300].reshape(-1, 96).max(axis=1)
    # Two fades of 30 ms touch; no 10 ms are digitally silent.
    assert (np.convolve(blocks < 1e-4, np.ones(5), "valid") < 5).all()


def test_a_source_whose_sound_ends_early_goes_on_in_silence(tmp_path: Path) -> None:
    footage = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=4"),
        *("-f", "lavfi", "-i", "sine=f=440:r=48000:d=2"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac"),
    )
    film = render(plan(source(footage, has_audio=True), (25, 100)), tmp_path / "work")
    sound = samples(film.path)
    assert abs(len(sound) - 144_000) <= 1024
    assert np.abs(sound[:40_000]).max() > 0.1
    assert np.abs(sound[54_000:140_000]).max() < 1e-3


def test_sources_with_and_without_sound_mix(tmp_path: Path) -> None:
    loud = clip(tmp_path / "a.mp4", seconds=2, sound="anoisesrc=a=0.3:r=44100")
    mute = clip(tmp_path / "b.mp4", seconds=2, sound=None)
    made = plan(
        (source(loud, frames=50, has_audio=True), source(mute, id="v2", frames=50)),
        *[("v2", 0, 25), ("v1", 0, 50), ("v2", 25, 50)],
    )
    film = render(made, tmp_path / "work")
    sound = samples(film.path)
    assert abs(len(sound) - 192_000) <= 1024
    assert np.abs(sound[:46_000]).max() < 1e-3
    assert np.abs(sound[60_000:130_000]).max() > 0.05
    assert film.loudness is not None
    assert film.loudness.integrated_lufs == pytest.approx(-14, abs=0.5)
    assert film.notes == ()


def test_a_film_without_any_sound_is_silent_and_says_so(tmp_path: Path) -> None:
    footage = clip(tmp_path / "a.mp4", seconds=2, sound=None)
    film = render(plan(source(footage, frames=50), (0, 50)), tmp_path / "work")
    assert len(samples(film.path)) >= 95_000
    assert film.loudness is not None
    assert film.loudness.integrated_lufs is None
    assert film.notes == (
        "The film is silent, or too short to measure: its loudness was left as it is",
    )


@pytest.mark.parametrize(
    "sound",
    [
        pytest.param("sine=f=440:r=48000,volume=-30dB", id="quiet"),
        pytest.param("anoisesrc=a=0.9:r=48000,tremolo=f=5:d=0.9", id="noise-with-peaks"),
        pytest.param(
            "aevalsrc='(0.05+0.9*lt(mod(t,1.7),0.02))*sin(2*PI*300*t)':s=48000", id="transients"
        ),
    ],
)
def test_sound_is_brought_to_its_loudness_or_the_film_says_why_not(
    tmp_path: Path, sound: str
) -> None:
    footage = clip(tmp_path / "a.mp4", seconds=8, sound=sound)
    film = render(plan(source(footage, frames=200, has_audio=True), (5, 195)), tmp_path / "work")
    assert film.loudness is not None
    assert film.loudness.integrated_lufs is not None
    assert film.loudness.true_peak_dbtp is not None
    assert film.loudness.true_peak_dbtp <= -1.0
    missed = abs(film.loudness.integrated_lufs + 14) > 0.5
    assert missed == any("instead of -14.0" in note for note in film.notes)
    assert not missed or film.loudness.integrated_lufs < -14
    with av.open(str(film.path)) as container:
        assert container.streams.audio[0].rate == 48_000


def test_peaks_of_ordinary_speech_do_not_keep_a_film_below_its_loudness(tmp_path: Path) -> None:
    """Syllables of 0.2 s, each with a short burst 14 dB above it: as uneven as a voice."""
    speech = "(0.06+0.34*lt(mod(t,0.4),0.012))*sin(2*PI*220*t)*lt(mod(t,0.4),0.2)"
    footage = clip(tmp_path / "a.mp4", seconds=8, sound=f"aevalsrc='{speech}':s=48000")
    film = render(plan(source(footage, frames=200, has_audio=True), (0, 200)), tmp_path / "work")
    assert film.loudness is not None
    assert film.loudness.true_peak_dbtp is not None
    assert film.loudness.integrated_lufs == pytest.approx(-14, abs=0.5)
    assert film.loudness.true_peak_dbtp <= -1.0
    assert film.notes == ()


def test_changing_one_cut_encodes_one_picture(tmp_path: Path) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=100, rate="25", sound=TONE)
    objects = MemoryObjectStore()
    whole = source(footage, has_audio=True)
    spans = [(n * 10, n * 10 + 8) for n in range(6)]
    first = render(plan(whole, *spans), tmp_path / "w", objects)
    assert (first.units_rendered, first.units_reused) == (7, 0)
    again = render(plan(whole, *spans), tmp_path / "w", objects)
    assert (again.units_rendered, again.units_reused) == (0, 7)
    spans[2] = (21, 30)
    changed = render(plan(whole, *spans), tmp_path / "w", objects)
    # The changed cut and the sound, which is one unit.
    assert (changed.units_rendered, changed.units_reused) == (2, 5)
    assert frame_numbers(changed.path)[16:25] == list(range(21, 30))
    captioned = plan(
        whole, *spans, captions=(Caption(start_seconds=0.1, end_seconds=0.2, text="Hi"),)
    )
    assert render(captioned, tmp_path / "w", objects).units_rendered == 1
    assert render(captioned, tmp_path / "w", objects, reuse_units=False).units_rendered == 7


def test_cuts_of_the_same_content_are_encoded_once(tmp_path: Path) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=50, rate="25")
    film = render(plan(source(footage, frames=50), (5, 15), (5, 15)), tmp_path / "work")
    assert film.units_rendered == 2
    assert frame_numbers(film.path) == [*range(5, 15), *range(5, 15)]


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path) -> None:
    footage = clip(tmp_path / "a.mp4", seconds=3, sound="anoisesrc=a=0.5:r=44100:seed=1")
    made = plan(
        source(footage, frames=75, has_audio=True),
        *[(10, 40), (50, 70)],
        title="Film",
        captions=(Caption(start_seconds=0.2, end_seconds=1.5, text=HARD_TEXT),),
    )
    first = render(made, tmp_path / "first").path.read_bytes()
    time.sleep(1.1 - time.time() % 1)  # Into another second: no date may be in the file.
    assert render(made, tmp_path / "second").path.read_bytes() == first


def test_a_damaged_unit_is_encoded_anew(tmp_path: Path) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=50, rate="25")
    objects = MemoryObjectStore()
    made = plan(source(footage, frames=50), (5, 15), (20, 30))
    render(made, tmp_path / "w", objects)
    for info in list(objects.scan("units/")):
        if info.key.endswith(".mp4"):
            objects.put_bytes(info.key, objects.get_bytes(info.key)[:700])
    film = render(made, tmp_path / "w", objects)
    assert (film.units_rendered, film.units_reused) == (2, 1)
    assert frame_numbers(film.path) == [*range(5, 15), *range(20, 30)]


def test_a_store_that_fails_costs_no_film(tmp_path: Path) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=50, rate="25")
    (tmp_path / "store").write_text("a file where the store's folder should be")
    film = render(
        plan(source(footage, frames=50), (5, 15)),
        tmp_path / "work",
        LocalObjectStore(tmp_path / "store"),
    )
    assert film.frame_count == 10


def test_units_in_a_local_store_are_used_in_place(tmp_path: Path) -> None:
    footage = stamped(tmp_path / "a.mp4", frames=50, rate="25")
    objects = LocalObjectStore(tmp_path / "store")
    made = plan(source(footage, frames=50), (5, 15))
    assert render(made, tmp_path / "w", objects).units_rendered == 2
    assert render(made, tmp_path / "w", objects).units_reused == 2


@pytest.mark.parametrize(
    "name",
    [
        "a'b\".mp4",
        "-dash.mp4",
        "col:on.mp4",
        "100%d.mp4",
        "sp ace [x],;.mp4",
        "emoji😀.mp4",
        "back\\slash.mp4",
        "new\nline.mp4",
        "http:x.mp4",
        "noextension",
    ],
)
def test_a_sources_name_does_not_matter(tmp_path: Path, name: str) -> None:
    plain = stamped(tmp_path / "plain.mp4", frames=20, rate="25", sound=TONE)
    named = tmp_path / name
    shutil.copy(plain, named)
    film = render(plan(source(named, frames=20, has_audio=True), (3, 9)), tmp_path / "w'ork %d")
    assert frame_numbers(film.path) == list(range(3, 9))


@pytest.mark.parametrize(
    ("size", "width", "height"),
    [("321x181", 320, 180), ("640x480", 320, 180), ("90x160", 180, 180)],
)
def test_any_size_fits_into_the_frame(tmp_path: Path, size: str, width: int, height: int) -> None:
    footage = make_media(
        tmp_path / "a.mkv",
        *("-f", "lavfi", "-i", f"color=c=white:s={size}:r=25:d=1", "-c:v", "ffv1"),
    )
    across, down = (int(part) for part in size.split("x"))
    film = render(
        plan(
            source(footage, frames=25, width=across, height=down),
            (0, 10),
            width=width,
            height=height,
        ),
        tmp_path / "work",
    )
    frame = frame_at(film.path, 5)
    assert frame.shape == (height, width, 3)
    shown = (frame[:, :, 1] > 200).mean()
    wanted = min(width / across, height / down) ** 2 * across * down / (width * height)
    assert shown == pytest.approx(wanted, abs=0.02)


def test_a_turned_picture_is_shown_upright(tmp_path: Path) -> None:
    lying = make_media(
        tmp_path / "lying.mp4",
        *("-f", "lavfi", "-i", "color=c=red:s=320x90:r=25:d=1"),
        *("-f", "lavfi", "-i", "color=c=blue:s=320x90:r=25:d=1"),
        *("-filter_complex", "vstack", "-c:v", "libx264", "-pix_fmt", "yuv420p"),
    )
    turned = make_media(
        tmp_path / "turned.mp4",
        *("-display_rotation", "90", "-i", f"file:{lying}", "-c", "copy"),
    )
    made = plan(source(turned, frames=25, width=180, height=320), (0, 10), width=180, height=320)
    frame = frame_at(render(made, tmp_path / "work").path, 5).astype(int)
    left, right = frame[160, 45], frame[160, 135]
    # A counter-clockwise quarter turn brings the upper half to the left.
    assert left[0] > 150 > left[2]
    assert right[2] > 150 > right[0]


def test_hdr_is_tone_mapped(tmp_path: Path) -> None:
    footage = make_media(
        tmp_path / "hdr.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=1,format=yuv420p10le"),
        *("-c:v", "libx265", "-pix_fmt", "yuv420p10le", "-x265-params"),
        "colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc:log-level=none:pools=2",
    )
    film = render(plan(source(footage, frames=25, hdr=True), (0, 10)), tmp_path / "work")
    with av.open(str(film.path)) as container:
        context = container.streams.video[0].codec_context
        assert context.format is not None
        assert context.format.name == "yuv420p"
        # 1 is BT.709 in H.273, and range 1 is limited.
        assert (context.color_primaries, context.color_trc, context.colorspace) == (1, 1, 1)
        assert context.color_range == 1
    assert film.frame_count == 10


def test_title_and_caption_are_on_the_picture_just_as_long_as_they_should(tmp_path: Path) -> None:
    footage = make_media(
        tmp_path / "a.mkv", "-f", "lavfi", "-i", "color=c=0x406080:s=640x360:r=25:d=4",
        *("-c:v", "ffv1"),
    )  # fmt: skip
    made = plan(
        source(footage, width=640, height=360),
        *[(0, 40), (50, 90)],
        width=640,
        height=360,
        title=HARD_TEXT,
        title_seconds=1.0,
        captions=(Caption(start_seconds=1.2, end_seconds=2.0, text=HARD_TEXT),),
    )
    film = render(made, tmp_path / "work")
    assert film.notes[:-1] == ()
    plain = frame_at(film.path, 75)
    assert (np.ptp(plain.reshape(-1, 3).astype(int), axis=0) <= 6).all()

    def white(index: int, top: int, bottom: int) -> int:
        """Count white pixels between two rows."""
        return int((frame_at(film.path, index)[top:bottom].min(axis=2) > 225).sum())

    assert white(12, 60, 260) > 1500
    assert white(25, 0, 360) == 0
    assert [white(n, 270, 360) > 400 for n in (29, 30, 39, 40, 49, 50)] == [
        *[False, True],  # It appears at 1.2 s,
        *[True, True],  # goes on over the cut at 1.6 s
        *[True, False],  # and goes at 2.0 s.
    ]


def test_a_truncated_source_is_told_by_cut_and_name(tmp_path: Path) -> None:
    whole = clip(tmp_path / "whole.mp4", seconds=8, size="640x360", sound=None)
    quick = make_media(
        tmp_path / "quick.mp4",
        *("-i", f"file:{whole}", "-c", "copy", "-movflags", "+faststart"),
    )
    cut_short = tmp_path / "short.mp4"
    cut_short.write_bytes(quick.read_bytes()[: quick.stat().st_size // 2])
    made = plan(source(cut_short, frames=200), (0, 20), (150, 190))
    with pytest.raises(MediaError, match=r"(?s)cut 2 \(source 'v1', frames 150 to 190\)"):
        render(made, tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_source_that_is_not_there_or_no_media_is_told_by_name(tmp_path: Path) -> None:
    text = tmp_path / "talk.mp4"
    text.write_text("hello\n" * 100)
    with pytest.raises(MediaUnreadable, match=r"Source 'v1' \('talk.mp4'\) cannot be opened"):
        render(plan(source(text), (0, 10)), tmp_path / "work")
    made = plan(source(text), (0, 10))
    text.unlink()
    with pytest.raises(MediaUnreadable, match=r"Source 'v1' \('talk.mp4'\) is not there"):
        render(made, tmp_path / "work")


def test_sound_with_a_cover_picture_is_no_film(tmp_path: Path) -> None:
    footage = make_media(
        tmp_path / "song.m4a",
        *("-f", "lavfi", "-i", "sine=d=2", "-f", "lavfi", "-i", "color=c=red:s=64x64:d=0.04:r=25"),
        *("-map", "0", "-map", "1", "-c:a", "aac", "-c:v", "png", "-frames:v", "1"),
        *("-disposition:v:0", "attached_pic"),
    )
    with pytest.raises(MediaUnreadable, match=r"Source 'v1' \('song.m4a'\) has no picture"):
        render(plan(source(footage, has_audio=True), (0, 10)), tmp_path / "work")


def children() -> set[str]:
    """Return the process ids of this process's children."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= set((task / "children").read_text().split())
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads Linux's /proc")  # noqa: PTH112
def test_a_stopped_render_leaves_no_file_and_no_process(tmp_path: Path) -> None:
    footage = clip(tmp_path / "a.mp4", seconds=8, size="1280x720", sound=TONE)
    work = tmp_path / "work"
    before = children()
    seen: set[str] = set()

    def cancelled() -> bool:
        """Stop as soon as two units are being encoded."""
        seen.update(children() - before)
        return len(list(work.glob("render-*/*.part"))) >= 2

    made = plan(
        source(footage, frames=200, width=1280, height=720, has_audio=True),
        *[(0, 90), (100, 190)],
        width=1920,
        height=1080,
        preset="veryslow",
    )
    objects = MemoryObjectStore()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        render(made, work, objects, cancelled=cancelled)
    assert time.monotonic() - started < 30
    assert seen
    assert children() - before == set()
    assert list(work.iterdir()) == []
    assert list(objects.scan("")) == []


def test_what_a_key_depends_on_is_told(tmp_path: Path) -> None:
    runner = FfmpegRunner(ffmpeg_binary())
    toolchains = [
        FfmpegFilmRenderer(runner, MemoryObjectStore(), threads=n).toolchain() for n in (1, 2)
    ]
    assert toolchains[0] != toolchains[1]
    assert set(toolchains[0]) == {
        *("ffmpeg", "ffmpeg_build", "threads", "renderer", "levelling", "fonts", "pillow"),
    }
