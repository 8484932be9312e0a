import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reprise.errors import Cancelled, ToolFailed
from resources.ffmpeg_output import STDERR_CHARS_MAX
from resources.ffmpeg_runner import FfmpegRunner, RunnerLimits
from tests.media_files import clip, ffmpeg_binary, never_cancelled, no_progress

ENDLESS = ("-re", "-f", "lavfi", "-i", "testsrc2=s=64x64:r=25")


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose working directory this is."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder.resolve():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def runner(**limits: float) -> FfmpegRunner:
    return FfmpegRunner(ffmpeg_binary(), RunnerLimits(**limits))  # type: ignore[arg-type]  # Names and numbers come from the table of a test.


def test_standard_output_is_handed_over_whole(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", seconds=1.0)
    pieces: list[bytes] = []
    ffmpeg = runner()
    ffmpeg.run(
        [*ffmpeg.input_args(source), "-map", "0:v", "-f", "rawvideo", "pipe:1"],
        cwd=tmp_path,
        progress=no_progress,
        cancelled=never_cancelled,
        on_stdout=pieces.append,
    )
    assert sum(map(len, pieces)) == 25 * 320 * 180 * 3 // 2


def test_progress_is_told_at_most_every_two_seconds_and_at_the_end(tmp_path: Path) -> None:
    told: list[tuple[float, str, float | None]] = []
    runner().run(
        [*ENDLESS, "-t", "5", "-f", "null", "-"],
        cwd=tmp_path,
        progress=lambda text, share: told.append((time.monotonic(), text, share)),
        cancelled=never_cancelled,
        duration_seconds=5.0,
        purpose="testing",
    )
    moments = [moment for moment, _, _ in told[:-1]]
    shares = [share for _, _, share in told]
    assert len(told) >= 2
    assert all(later - earlier >= 2.0 for earlier, later in itertools.pairwise(moments))
    assert shares[-1] == 1.0
    assert all(share is not None and 0.0 < share <= 1.0 for share in shares)
    assert told[0][1].startswith("testing at ")


def test_cancelling_stops_the_process_and_leaves_none(tmp_path: Path) -> None:
    seen: list[int] = []

    def cancelled() -> bool:
        seen.extend(processes_in(tmp_path))
        return bool(seen)

    started = time.monotonic()
    with pytest.raises(Cancelled, match="Stopped while testing"):
        runner().run(
            [*ENDLESS, "out.mp4"],
            cwd=tmp_path,
            progress=no_progress,
            cancelled=cancelled,
            purpose="testing",
        )
    assert time.monotonic() - started < 10
    assert processes_in(tmp_path) == []


def test_a_run_that_is_stopped_before_it_begins_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        runner().run(
            [*ENDLESS, "out.mp4"], cwd=tmp_path, progress=no_progress, cancelled=lambda: True
        )
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_a_callback_stops_the_process(tmp_path: Path) -> None:
    def fail(_: bytes) -> None:
        message = "broken"
        raise ZeroDivisionError(message)

    with pytest.raises(ZeroDivisionError):
        runner().run(
            [*ENDLESS, "-f", "rawvideo", "pipe:1"],
            cwd=tmp_path,
            progress=no_progress,
            cancelled=never_cancelled,
            on_stdout=fail,
        )
    assert processes_in(tmp_path) == []


def test_a_run_past_its_time_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"took longer than 1 s while testing"):
        runner().run(
            [*ENDLESS, "-f", "null", "-"],
            cwd=tmp_path,
            progress=no_progress,
            cancelled=never_cancelled,
            timeout_seconds=1.0,
            purpose="testing",
        )
    assert processes_in(tmp_path) == []


def test_a_failure_says_what_ffmpeg_said(tmp_path: Path) -> None:
    ffmpeg = runner()
    with pytest.raises(ToolFailed, match=r"while testing \(exit code \d+\).*No such file"):
        ffmpeg.run(
            [*ffmpeg.input_args(tmp_path / "none.mp4"), "-f", "null", "-"],
            cwd=tmp_path,
            progress=no_progress,
            cancelled=never_cancelled,
            purpose="testing",
        )


def test_a_failure_is_returned_when_it_is_not_to_be_checked(tmp_path: Path) -> None:
    ffmpeg = runner()
    outcome = ffmpeg.run(
        [*ffmpeg.input_args(tmp_path / "none.mp4"), "-f", "null", "-"],
        cwd=tmp_path,
        progress=no_progress,
        cancelled=never_cancelled,
        check=False,
    )
    assert outcome.returncode != 0
    assert "No such file" in outcome.last_error_lines()


def test_a_working_directory_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        runner().run(
            ["-version"],
            cwd=tmp_path / "none",
            progress=no_progress,
            cancelled=never_cancelled,
        )


def test_much_standard_error_neither_blocks_nor_fills_the_memory(tmp_path: Path) -> None:
    lines = 0

    def count(_: str) -> None:
        nonlocal lines
        lines += 1

    graph = "testsrc2=s=64x64:r=1000:d=2,showinfo"
    outcome = runner().run(
        ["-f", "lavfi", "-i", graph, "-f", "null", "-"],
        cwd=tmp_path,
        progress=no_progress,
        cancelled=never_cancelled,
        on_stderr_line=count,
        log_level="info",
    )
    assert lines > 2000
    assert len(outcome.stderr_text) <= STDERR_CHARS_MAX


def test_a_file_that_grows_past_the_limit_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed):
        runner(file_size_bytes=100_000).run(
            ["-f", "lavfi", "-i", "testsrc2=d=20", "-c:v", "rawvideo", "out.avi"],
            cwd=tmp_path,
            progress=no_progress,
            cancelled=never_cancelled,
        )
    assert (tmp_path / "out.avi").stat().st_size <= 100_000


def test_a_frame_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", seconds=0.2)
    ffmpeg = runner(max_pixels=10_000)
    with pytest.raises(ToolFailed):
        ffmpeg.run(
            [*ffmpeg.input_args(source), "-f", "null", "-"],
            cwd=tmp_path,
            progress=no_progress,
            cancelled=never_cancelled,
        )


@pytest.mark.parametrize(
    "name",
    ["-x.mp4", "a:b.mp4", "http:x.mp4", "a'b.mp4", "%d.mp4", "a\nb.mp4", "[v];,.mp4", "🎬.mp4"],
)
def test_any_file_name_can_be_read(tmp_path: Path, name: str) -> None:
    source = clip(tmp_path / "plain.mp4", seconds=0.2).rename(tmp_path / name)
    ffmpeg = runner()
    outcome = ffmpeg.run(
        [*ffmpeg.input_args(source, demuxer="mov"), "-f", "null", "-"],
        cwd=tmp_path,
        progress=no_progress,
        cancelled=never_cancelled,
    )
    assert outcome.returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{canary}\n#EXT-X-ENDLIST\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\ncanary.ts\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile 'canary.ts'\n",
    ],
)
@pytest.mark.parametrize("name", ["list.mp4", "list.m3u8"])
def test_a_playlist_opens_no_other_file(tmp_path: Path, text: str, name: str) -> None:
    """The canary is a pipe that nobody writes to: whoever opens it waits until the time limit."""
    canary = tmp_path / "canary.ts"
    os.mkfifo(canary)
    source = tmp_path / name
    source.write_text(text.format(canary=canary))
    ffmpeg = runner()
    outcome = ffmpeg.run(
        [*ffmpeg.input_args(source), "-f", "null", "-"],
        cwd=tmp_path,
        progress=no_progress,
        cancelled=never_cancelled,
        timeout_seconds=20.0,
        check=False,
    )
    assert outcome.returncode != 0


PARENT = """
import sys
from pathlib import Path
from resources.ffmpeg import find_ffmpeg
from resources.ffmpeg_runner import FfmpegRunner
FfmpegRunner(find_ffmpeg(None, None)).run(
    ["-re", "-f", "lavfi", "-i", "testsrc2=s=64x64", "-f", "null", "-"],
    cwd=Path(sys.argv[1]), progress=lambda *_: None, cancelled=lambda: False,
)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_ffmpeg_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], cwd=root)
    try:
        wait_until(lambda: processes_in(tmp_path) != [])
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_until(lambda: processes_in(tmp_path) == [])
