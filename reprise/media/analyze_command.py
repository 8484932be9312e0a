"""The arguments of the one ffmpeg process that measures a source, and how to read what it says.

One decode feeds five outputs: small frames to standard output, their times, thumbnails, loudness
with silence, and 16 kHz sound for speech recognition.

Source: specification V5.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reprise.media.frame_features import HEIGHT, WIDTH
from reprise.media.spans import SpanSeconds
from reprise.model.media import Loudness

SPEECH_FILE = "speech.wav"
"""16 kHz mono s16; its first sample is at the time of the first video frame."""
TIMES_FILE = "frames.txt"
"""ffmpeg's framecrc: one line for each frame, with its time."""
THUMBNAIL_PATTERN = "thumb-%d.jpg"
"""Thumbnails, by their time in milliseconds."""
TIME_BASE = 90_000
"""Ticks a second in `TIMES_FILE`."""
THUMBNAIL_WIDTH = 384
"""Width of thumbnails; the height follows the picture."""
THUMBNAILS_MAX = 3600
"""Most thumbnails that are kept until the shots are known."""
THUMBNAIL_SECONDS = 0.5
"""Distance of thumbnails in time in a source of up to half an hour."""
SILENT_LUFS = -69.9
"""ffmpeg's ebur128 gives -70 where nothing passes its gate."""

_NUMBER = r"(-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan))"
_SILENCE = re.compile(
    rf"^\[[\w]*silencedetect\w* @ \w+\] (?:\[info\] )?silence_(start|end): {_NUMBER}"
)
_CROP = re.compile(
    r"^\[\w*cropdetect\w* @ \w+\] (?:\[info\] )?.* crop=(-?\d+):(-?\d+):(\d+):(\d+)$"
)
_SUMMARY = re.compile(r"^\[\w*ebur128\w* @ \w+\] (?:\[info\] )?Summary:$")
_FIGURE = re.compile(rf"^\s+(I|LRA|Peak):\s+{_NUMBER} (?:LUFS|LU|dBFS)$")
_ERROR = re.compile(r"\[(?:error|fatal|panic)\] ")


@dataclass(frozen=True)
class AnalyzeStreams:
    """What of a source is measured."""

    video_index: int
    """Index of the picture's stream."""
    audio_index: int | None
    """Index of the sound's stream, if there is one."""
    width: int
    """Display width."""
    height: int
    """Display height."""
    duration_seconds: float
    """As the container says."""
    video_start_seconds: float = 0.0
    """Time of the first video frame on ffmpeg's clock, which begins at the container's start."""


@dataclass(frozen=True)
class AnalyzeLevels:
    """Where silence begins."""

    silence_db: float
    """In dBFS."""
    silence_seconds_min: float
    """Shortest silence."""


def analyze_args(
    input_args: Sequence[str], streams: AnalyzeStreams, levels: AnalyzeLevels
) -> list[str]:
    """Return ffmpeg's arguments; the working directory gets the files.

    Args:
        input_args: Arguments that open the source.
        streams: What is measured.
        levels: Where silence begins.
    """
    interval = max(THUMBNAIL_SECONDS, streams.duration_seconds / THUMBNAILS_MAX)
    graph = (
        f"[0:{streams.video_index}]split[small][large];"
        f"[small]scale={WIDTH}:{HEIGHT}:flags=fast_bilinear:out_range=tv,format=yuv420p,"
        "setsar=1,split[frames][times];"
        f"[large]select='isnan(prev_selected_t)+gte(t-prev_selected_t,{interval:.3f})',"
        f"cropdetect=round=2:reset=0,scale={_thumbnail_size(streams)},setsar=1[thumbs]"
    )
    raw = ("-fps_mode", "passthrough", "-c:v", "rawvideo")
    ticks = f"1:{TIME_BASE}"
    outputs = [
        *("-map", "[frames]", *raw, "-f", "rawvideo", "pipe:1"),
        *("-map", "[times]", *raw, "-enc_time_base", ticks, "-f", "framecrc", TIMES_FILE),
        *("-map", "[thumbs]", "-fps_mode", "passthrough", "-enc_time_base", "1:1000"),
        *("-c:v", "mjpeg", "-q:v", "4", "-f", "image2", "-frame_pts", "1", THUMBNAIL_PATTERN),
    ]
    if streams.audio_index is not None:
        graph += f";{_audio_graph(streams.audio_index, streams.video_start_seconds, levels)}"
        outputs += [
            *("-map", "[loudness]", "-c:a", "pcm_s16le", "-f", "null", "-"),
            *("-map", "[speech]", "-c:a", "pcm_s16le", "-f", "wav", "-bitexact", SPEECH_FILE),
        ]
    return [*input_args, "-filter_complex", graph, *outputs]


def _audio_graph(index: int, shift_seconds: float, levels: AnalyzeLevels) -> str:
    # The first video frame is the source's time 0; a gap in the sound is silence, not a shift.
    shift = f"asetpts=PTS-({shift_seconds:.6f}/TB)," if shift_seconds else ""
    return (
        f"[0:{index}]asplit[a][b];[a]ebur128=peak=true:framelog=quiet[loudness];"
        f"[b]{shift}aresample=16000:async=1:first_pts=0,"
        "aformat=sample_fmts=s16:channel_layouts=mono,"
        f"silencedetect=n={levels.silence_db:g}dB:d={levels.silence_seconds_min:g}[speech]"
    )


def _thumbnail_size(streams: AnalyzeStreams) -> str:
    height = max(2, round(THUMBNAIL_WIDTH * streams.height / max(streams.width, 1) / 2) * 2)
    return f"{THUMBNAIL_WIDTH}:{min(height, 4 * THUMBNAIL_WIDTH)}:flags=bilinear"


@dataclass
class AnalyzeLog:
    """Reads what ffmpeg says while it measures; feed it each line of standard error."""

    silence: list[SpanSeconds] = field(default_factory=list)
    """Closed silences."""
    crop: tuple[int, int, int, int] | None = None
    """Active picture so far: left, top, width, height in coded display pixels."""
    errors: int = 0
    """Lines that tell of an error."""
    _silence_start: float | None = None
    _in_summary: bool = False
    _figures: dict[str, float] = field(default_factory=dict)

    def feed(self, line: str) -> None:
        """Read a line."""
        if self._in_summary and (figure := _FIGURE.match(line)):
            self._figures.setdefault(figure[1], float(figure[2]))
        elif silence := _SILENCE.match(line):
            self._silence(silence[1], float(silence[2]))
        elif crop := _CROP.match(line):
            width, height, left, top = (int(crop[group]) for group in range(1, 5))
            self.crop = (left, top, width, height) if width > 0 and height > 0 else self.crop
        elif _SUMMARY.match(line):
            self._in_summary = True
        elif _ERROR.search(line):
            self.errors += 1

    def silences(
        self, sound_end_seconds: float, end_seconds: float, seconds_min: float
    ) -> list[SpanSeconds]:
        """Return the silences; one that is open ends with the source, as does a sound too short.

        Args:
            sound_end_seconds: Where the sound ends.
            end_seconds: Where the picture ends.
            seconds_min: Shortest silence.
        """
        spans = list(self.silence)
        if self._silence_start is not None:
            spans.append((self._silence_start, max(sound_end_seconds, end_seconds)))
        elif sound_end_seconds < end_seconds:
            start = sound_end_seconds
            if spans and spans[-1][1] >= sound_end_seconds - 0.05:
                start = spans.pop()[0]
            if end_seconds - start >= seconds_min:
                spans.append((start, end_seconds))
        return [(round(max(start, 0.0), 3), round(end, 3)) for start, end in spans]

    def loudness(self) -> Loudness | None:
        """Return what ebur128 summed up; None when it did not."""
        if "I" not in self._figures:
            return None
        integrated = self._figures["I"]
        silent = integrated <= SILENT_LUFS or not math.isfinite(integrated)
        peak = self._figures.get("Peak", -math.inf)
        return Loudness(
            integrated_lufs=None if silent else integrated,
            range_lu=None if silent else self._figures.get("LRA"),
            true_peak_dbtp=peak if math.isfinite(peak) else None,
        )

    def _silence(self, which: str, seconds: float) -> None:
        if which == "start":
            self._silence_start = max(seconds, 0.0)
        elif self._silence_start is not None:
            self.silence.append((self._silence_start, seconds))
            self._silence_start = None


def read_times(lines: Iterable[str]) -> tuple[NDArray[np.float64], float]:
    """Read the frames' times from `TIMES_FILE`.

    Returns:
        When each frame is shown, in seconds from the first, and when the last one ends.
    """
    ticks: list[int] = []
    duration = 0
    for line in lines:
        fields = line.split(",")
        if len(fields) >= 4 and fields[0].strip() == "0":
            ticks.append(int(fields[2]))
            duration = int(fields[3])
    if not ticks:
        return np.zeros(0), 0.0
    times = np.maximum.accumulate((np.array(ticks, np.int64) - ticks[0]) / TIME_BASE)
    if duration <= 0 and len(times) > 1:
        duration = round(float(times[-1]) * TIME_BASE / (len(times) - 1))
    return times, float(times[-1]) + duration / TIME_BASE


def letterbox(
    crop: tuple[int, int, int, int] | None, width: int, height: int
) -> tuple[int, int, int, int] | None:
    """Return the active picture when it has bars on both sides; else None.

    Args:
        crop: Left, top, width, height that hold anything but black; None when unknown.
        width: Width of the whole picture, in the same pixels.
        height: Height of the whole picture.
    """
    if crop is None:
        return None
    left, top, inner_width, inner_height = crop
    right, bottom = width - left - inner_width, height - top - inner_height
    across = _bars(left, right, width)
    down = _bars(top, bottom, height)
    if not (across or down) or inner_width * inner_height < 0.2 * width * height:
        return None
    return (
        left if across else 0,
        top if down else 0,
        inner_width if across else width,
        inner_height if down else height,
    )


def _bars(before: int, after: int, size: int) -> bool:
    """Tell whether both sides have bars of about the same breadth."""
    return min(before, after) >= 0.015 * size and abs(before - after) <= max(0.02 * size, 4)
