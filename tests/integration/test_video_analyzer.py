import os
import wave
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from reprise.errors import Cancelled, MediaUnreadable
from reprise.model.measures import AnalyzeOptions, FrameMeasures
from resources.ffmpeg import FfmpegLocator
from resources.video_analyzer import FfmpegVideoAnalyzer
from tests.media_files import clip, make_media, never_cancelled, no_progress, scenes, stamped

ANALYZER = FfmpegVideoAnalyzer(FfmpegLocator(None, None))


def analyze(
    path: Path,
    options: AnalyzeOptions | None = None,
    *,
    cancelled: Callable[[], bool] = never_cancelled,
) -> FrameMeasures:
    workdir = path.parent / "work"
    workdir.mkdir(exist_ok=True)
    return ANALYZER.analyze(
        path, options or AnalyzeOptions(), workdir, progress=no_progress, cancelled=cancelled
    )


def close(
    spans: tuple[tuple[float, float], ...], wanted: list[tuple[float, float]], within: float
) -> bool:
    return len(spans) == len(wanted) and all(
        abs(edge - truth) <= within
        for span, pair in zip(spans, wanted, strict=True)
        for edge, truth in zip(span, pair, strict=True)
    )


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> FrameMeasures:
    folder = tmp_path_factory.mktemp("talk")
    path = scenes(
        folder / "talk.mp4",
        [
            ("mandelbrot", 1.2),
            ("color=c=black", 0.8),
            ("testsrc2,hue=h=90", 1.0),
            ("smptehdbars", 1.6),
            ("testsrc2,negate", 1.4),
        ],
        sound="sine=r=48000:d=4,volume=0:enable='between(t,1,2)'",
    )
    return analyze(path)


def test_shots_begin_where_the_scenes_do(talk: FrameMeasures) -> None:
    assert [shot.start_frame for shot in talk.shots] == [0, 30, 50, 75, 115]
    assert [shot.end_frame for shot in talk.shots] == [30, 50, 75, 115, 150]
    assert (talk.frame_count, talk.frame_rate, talk.partial) == (150, "25", False)


def test_black_and_frozen_spans_are_found(talk: FrameMeasures) -> None:
    assert close(talk.black, [(1.2, 2.0)], 0.04)
    assert close(talk.freeze, [(1.2, 2.0), (3.0, 4.6)], 0.04)


def test_silence_is_found_also_where_the_sound_ends_early(talk: FrameMeasures) -> None:
    assert close(talk.silence, [(1.0, 2.0), (4.0, 6.0)], 0.05)


def test_loudness_is_measured(talk: FrameMeasures) -> None:
    assert talk.loudness is not None
    assert talk.loudness.integrated_lufs is not None
    assert -24 < talk.loudness.integrated_lufs < -19
    assert talk.loudness.true_peak_dbtp is not None
    assert -20 < talk.loudness.true_peak_dbtp < -14


def test_each_shot_has_a_thumbnail_of_itself(talk: FrameMeasures) -> None:
    sizes = []
    for shot in talk.shots:
        assert shot.thumbnail is not None
        with Image.open(shot.thumbnail) as image:
            sizes.append(image.size)
            assert abs(float(np.asarray(image.convert("L")).mean()) - shot.luma) < 12
    assert sizes == [(384, 216)] * 5


def test_figures_tell_a_still_black_shot_from_a_moving_one(talk: FrameMeasures) -> None:
    moving, black = talk.shots[0], talk.shots[1]
    assert (black.luma, black.saturation, black.clipped, black.motion) == (0.0, 0.0, 1.0, 0.0)
    assert moving.motion > 1.0
    assert moving.saturation > 0.1


def test_nothing_but_results_is_left_in_the_work_folder(tmp_path: Path) -> None:
    analyze(clip(tmp_path / "a.mp4", seconds=1.0))
    names = sorted(path.name for path in (tmp_path / "work").iterdir())
    assert names == ["shot-0001.jpg", "speech.wav"]


def test_speech_sound_is_16_khz_mono_from_the_first_frame_on(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", seconds=1.0)
    late = make_media(
        tmp_path / "b.mp4",
        *("-i", str(source), "-itsoffset", "0.4", "-i", str(source)),
        *("-map", "0:a", "-map", "1:v", "-c", "copy"),
    )
    analyze(late)
    with wave.open(str(tmp_path / "work" / "speech.wav")) as sound:
        shape = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
        seconds = sound.getnframes() / 16_000
    assert shape == (16_000, 1, 2)
    assert abs(seconds - 0.6) < 0.05


def test_a_source_without_sound_has_no_speech_loudness_or_silence(tmp_path: Path) -> None:
    told = analyze(clip(tmp_path / "a.mp4", seconds=0.6, sound=None))
    assert (told.loudness, told.silence) == (None, ())
    assert not (tmp_path / "work" / "speech.wav").exists()


def test_digital_silence_has_no_loudness_figures(tmp_path: Path) -> None:
    told = analyze(clip(tmp_path / "a.mp4", seconds=1.0, sound="anullsrc=r=48000"))
    assert told.loudness is not None
    assert (told.loudness.integrated_lufs, told.loudness.true_peak_dbtp) == (None, None)
    assert close(told.silence, [(0.0, 1.0)], 0.05)


def test_uneven_frames_are_counted_by_their_times(tmp_path: Path) -> None:
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=160x90:r=30:d=4"),
        *("-f", "lavfi", "-i", "mandelbrot=s=160x90:r=30"),
        *("-filter_complex", "[1]trim=duration=4,setpts=PTS-STARTPTS[m];[0][m]concat[v];"),
        *("-map", "[v]", "-c:v", "libx264", "-pix_fmt", "yuv420p"),
    )
    uneven = make_media(
        tmp_path / "b.mp4",
        *("-i", str(path), "-vf", "select='lt(n,60)+not(mod(n,5))'", "-fps_mode", "passthrough"),
        *("-c:v", "libx264", "-pix_fmt", "yuv420p"),
    )
    told = analyze(uneven)
    assert told.frame_rate == "30"
    assert abs(told.frame_count - 240) <= 5
    assert [shot.start_frame for shot in told.shots] == [0, 120]


def test_bars_are_measured_to_two_pixels(tmp_path: Path) -> None:
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=640x268:r=25", "-t", "2"),
        *("-vf", "pad=640:360:0:46", "-c:v", "libx264", "-pix_fmt", "yuv420p"),
    )
    bars = analyze(path).letterbox
    assert bars is not None
    assert all(abs(side - truth) <= 2 for side, truth in zip(bars, (0, 46, 640, 268), strict=True))


def test_a_full_picture_has_no_bars(tmp_path: Path) -> None:
    assert analyze(clip(tmp_path / "a.mp4", seconds=1.0)).letterbox is None


def test_a_rotated_source_is_measured_upright(tmp_path: Path) -> None:
    upright = clip(tmp_path / "a.mp4", seconds=1.0)
    turned = make_media(
        tmp_path / "b.mp4", "-display_rotation", "90", "-i", str(upright), "-c", "copy"
    )
    thumbnail = analyze(turned).shots[0].thumbnail
    assert thumbnail is not None
    with Image.open(thumbnail) as image:
        assert image.size == (384, 682)


def test_a_source_of_one_frame_is_one_shot(tmp_path: Path) -> None:
    told = analyze(stamped(tmp_path / "a.mp4", frames=1, rate="25"))
    assert [(shot.start_frame, shot.end_frame) for shot in told.shots] == [(0, 1)]


def faststart(tmp_path: Path) -> Path:
    return make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=320x180:r=25", "-f", "lavfi", "-i", "sine"),
        *("-t", "6", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "25", "-c:a", "aac"),
        *("-movflags", "+faststart"),
    )


def test_a_truncated_file_is_told_to_be_partial(tmp_path: Path) -> None:
    path = faststart(tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    told = analyze(path)
    assert told.partial
    assert 20 < told.frame_count < 120


def test_a_file_that_is_broken_in_the_middle_is_told_to_be_partial(tmp_path: Path) -> None:
    path = faststart(tmp_path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 3)
        file.write(b"\x00" * (size // 3))
    assert analyze(path).partial


def test_a_truncated_matroska_is_told_to_be_partial(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mkv", seconds=6.0)
    os.truncate(path, path.stat().st_size // 2)
    assert analyze(path).partial


@pytest.mark.parametrize("extension", ["mp4", "mkv", "ts", "mov", "avi", "flv"])
def test_a_whole_file_is_not_partial(tmp_path: Path, extension: str) -> None:
    told = analyze(clip(tmp_path / f"a.{extension}", seconds=3.0))
    assert (told.partial, abs(told.frame_count - 75) <= 1) == (False, True)


def test_sound_that_lasts_longer_than_the_picture_is_not_partial(tmp_path: Path) -> None:
    path = make_media(
        tmp_path / "a.mkv",
        *("-f", "lavfi", "-i", "testsrc2=s=160x90:d=2", "-f", "lavfi", "-i", "sine=d=5"),
        *("-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"),
    )
    assert not analyze(path).partial


def test_sound_alone_is_refused_by_name(tmp_path: Path) -> None:
    song = make_media(tmp_path / "song.mp3", "-f", "lavfi", "-i", "sine=d=1")
    with pytest.raises(MediaUnreadable, match=r"'song\.mp3' has no moving picture"):
        analyze(song)


def test_a_stopped_analysis_leaves_nothing(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mp4", seconds=10.0)
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 1

    with pytest.raises(Cancelled):
        analyze(path, cancelled=cancelled)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_stricter_threshold_finds_fewer_shots(tmp_path: Path) -> None:
    path = scenes(tmp_path / "a.mp4", [("color=c=gray", 1.0), ("color=c=0x848484", 1.0)])
    assert len(analyze(path, AnalyzeOptions(shot_threshold=0.3)).shots) == 2
    assert len(analyze(path, AnalyzeOptions(shot_threshold=4.0)).shots) == 1


def test_the_same_source_measures_the_same_twice(tmp_path: Path) -> None:
    path = scenes(tmp_path / "a.mp4", [("mandelbrot", 1.0), ("testsrc2", 1.0)], sound="sine=d=2")
    assert analyze(path) == analyze(path)


def test_the_probe_agrees_with_what_is_decoded(tmp_path: Path) -> None:
    path = stamped(tmp_path / "a.mp4", frames=61, rate="30000/1001")
    with av.open(str(path)) as container:
        decoded = sum(1 for _ in container.decode(video=0))
    assert ANALYZER.probe(path).frame_count == decoded == analyze(path).frame_count == 61


def test_a_replaced_file_is_probed_again(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mp4", seconds=1.0)
    assert ANALYZER.probe(path).frame_count == 25
    clip(path, seconds=2.0)
    assert ANALYZER.probe(path).frame_count == 50


def test_the_toolchain_names_binary_threads_and_rules() -> None:
    toolchain = ANALYZER.toolchain()
    assert toolchain["ffmpeg"].startswith("ffmpeg version")
    assert len(toolchain["ffmpeg_build"]) == 64
    assert (toolchain["ffmpeg_threads"], toolchain["shots_revision"]) == ("2", "1")
