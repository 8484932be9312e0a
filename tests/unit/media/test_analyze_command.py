import numpy as np
import pytest

from reprise.media.analyze_command import (
    AnalyzeLevels,
    AnalyzeLog,
    AnalyzeStreams,
    analyze_args,
    letterbox,
    read_times,
)

LEVELS = AnalyzeLevels(silence_db=-40.0, silence_seconds_min=0.3)


def streams(**changes: object) -> AnalyzeStreams:
    values: dict[str, object] = {
        "video_index": 0,
        "audio_index": 1,
        "width": 1920,
        "height": 1080,
        "duration_seconds": 60.0,
    }
    return AnalyzeStreams(**(values | changes))  # type: ignore[arg-type]  # A table of fields.


def test_the_arguments_are_these() -> None:
    assert analyze_args(["-i", "file:/a.mp4"], streams(), LEVELS) == [
        *("-i", "file:/a.mp4", "-filter_complex"),
        "[0:0]split[small][large];"
        "[small]scale=192:108:flags=fast_bilinear:out_range=tv,format=yuv420p,setsar=1,"
        "split[frames][times];"
        "[large]select='isnan(prev_selected_t)+gte(t-prev_selected_t,0.500)',"
        "cropdetect=round=2:reset=0,scale=384:216:flags=bilinear,setsar=1[thumbs];"
        "[0:1]asplit[a][b];[a]ebur128=peak=true:framelog=quiet[loudness];"
        "[b]aresample=16000:async=1:first_pts=0,aformat=sample_fmts=s16:channel_layouts=mono,"
        "silencedetect=n=-40dB:d=0.3[speech]",
        *("-map", "[frames]", "-fps_mode", "passthrough", "-c:v", "rawvideo"),
        *("-f", "rawvideo", "pipe:1"),
        *("-map", "[times]", "-fps_mode", "passthrough", "-c:v", "rawvideo"),
        *("-enc_time_base", "1:90000", "-f", "framecrc", "frames.txt"),
        *("-map", "[thumbs]", "-fps_mode", "passthrough", "-enc_time_base", "1:1000"),
        *("-c:v", "mjpeg", "-q:v", "4", "-f", "image2", "-frame_pts", "1", "thumb-%d.jpg"),
        *("-map", "[loudness]", "-c:a", "pcm_s16le", "-f", "null", "-"),
        *("-map", "[speech]", "-c:a", "pcm_s16le", "-f", "wav", "-bitexact", "speech.wav"),
    ]


def test_a_source_without_sound_has_no_sound_outputs() -> None:
    args = analyze_args([], streams(audio_index=None), LEVELS)
    assert "speech.wav" not in args
    assert "ebur128" not in args[1]


def test_the_sound_is_shifted_to_the_first_frame() -> None:
    graph = analyze_args([], streams(video_start_seconds=0.4), LEVELS)[1]
    assert "[b]asetpts=PTS-(0.400000/TB),aresample=16000" in graph


def test_a_long_source_has_its_thumbnails_further_apart() -> None:
    graph = analyze_args([], streams(duration_seconds=7200.0), LEVELS)[1]
    assert "gte(t-prev_selected_t,2.000)" in graph


def test_an_upright_source_has_upright_thumbnails() -> None:
    graph = analyze_args([], streams(width=1080, height=1920), LEVELS)[1]
    assert "scale=384:682:" in graph


def log_of(*lines: str) -> AnalyzeLog:
    log = AnalyzeLog()
    for line in lines:
        log.feed(line)
    return log


START = "[silencedetect @ 0x7f01] [info] silence_start: 1.5"
END = "[silencedetect @ 0x7f01] [info] silence_end: 2.75 | silence_duration: 1.25"


def test_silences_are_read() -> None:
    assert log_of(START, END).silences(10.0, 10.0, 0.3) == [(1.5, 2.75)]


def test_a_silence_that_does_not_end_lasts_until_the_source_ends() -> None:
    assert log_of(START).silences(10.0, 12.0, 0.3) == [(1.5, 12.0)]


def test_where_the_sound_ends_early_it_is_silent() -> None:
    assert log_of(START, END).silences(8.0, 10.0, 0.3) == [(1.5, 2.75), (8.0, 10.0)]


def test_a_silence_up_to_an_early_end_goes_on() -> None:
    assert log_of(START, END).silences(2.75, 10.0, 0.3) == [(1.5, 10.0)]


def test_a_sound_that_ends_a_moment_early_is_not_silent() -> None:
    assert log_of().silences(9.9, 10.0, 0.3) == []


def test_a_title_cannot_pretend_to_be_a_silence() -> None:
    spoof = "[info]     title           : silence_start: 3"
    assert log_of(spoof, "[info] silence_start: 3").silences(10.0, 10.0, 0.3) == []


SUMMARY = (
    "[Parsed_ebur128_9 @ 0x7f02] [info] Summary:",
    "",
    "  Integrated loudness:",
    "    I:         -21.8 LUFS",
    "    Threshold: -31.8 LUFS",
    "  Loudness range:",
    "    LRA:         4.0 LU",
    "    Threshold: -41.8 LUFS",
    "  True peak:",
    "    Peak:      -17.6 dBFS",
)


def test_loudness_is_read() -> None:
    loudness = log_of(*SUMMARY).loudness()
    assert loudness is not None
    assert loudness.integrated_lufs == -21.8
    assert loudness.range_lu == 4.0
    assert loudness.true_peak_dbtp == -17.6


def test_digital_silence_has_no_figures() -> None:
    lines = (SUMMARY[0], "    I:         -70.0 LUFS", "    LRA:  0.0 LU", "    Peak:   -inf dBFS")
    loudness = log_of(*lines).loudness()
    assert loudness is not None
    assert (loudness.integrated_lufs, loudness.range_lu, loudness.true_peak_dbtp) == (
        None,
        None,
        None,
    )


def test_without_a_summary_there_is_no_loudness() -> None:
    assert log_of("    I:         -21.8 LUFS").loudness() is None


def test_the_last_crop_is_kept() -> None:
    line = "[Parsed_cropdetect_5 @ 0x7f] [info] x1:0 x2:639 t:1.0 limit:0.09 crop={}"
    log = log_of(line.format("640:268:0:46"), line.format("640:270:0:45"))
    assert log.crop == (0, 45, 640, 270)


def test_a_black_picture_has_no_crop() -> None:
    line = "[Parsed_cropdetect_5 @ 0x7f] [info] x1:639 x2:0 t:1.0 crop=-624:-352:632:356"
    assert log_of(line).crop is None


def test_errors_are_counted() -> None:
    assert log_of("[h264 @ 0x1] [error] error while decoding MB 1 2", "[info] fine").errors == 1


def test_times_are_read_from_the_first_frame_on() -> None:
    lines = [
        "#tb 0: 1/90000\n",
        "0,       9000,       9000,     3600,    31104, 0xd54a96a5\n",
        "0,      12600,      12600,     3600,    31104, 0xd54a96a5\n",
        "0,      30600,      30600,     3600,    31104, 0xd54a96a5\n",
    ]
    times, end = read_times(lines)
    assert times.tolist() == [0.0, 0.04, 0.24]
    assert round(end, 6) == 0.28


def test_a_last_frame_without_duration_lasts_as_long_as_the_others() -> None:
    lines = ["0, 0, 0, 0, 1, 0x1", "0, 3600, 3600, 0, 1, 0x1", "0, 7200, 7200, 0, 1, 0x1"]
    assert round(read_times(lines)[1], 6) == 0.12


def test_no_frames_have_no_times() -> None:
    times, end = read_times(["#tb 0: 1/90000"])
    assert (np.size(times), end) == (0, 0.0)


@pytest.mark.parametrize(
    ("crop", "bars"),
    [
        ((0, 46, 640, 268), (0, 46, 640, 268)),
        ((80, 0, 480, 360), (80, 0, 480, 360)),
        ((60, 40, 520, 280), (60, 40, 520, 280)),
        ((0, 46, 640, 314), None),
        ((2, 2, 636, 356), None),
        ((300, 170, 40, 20), None),
        (None, None),
    ],
)
def test_bars_are_on_both_sides_and_alike(
    crop: tuple[int, int, int, int] | None, bars: tuple[int, int, int, int] | None
) -> None:
    assert letterbox(crop, 640, 360) == bars
