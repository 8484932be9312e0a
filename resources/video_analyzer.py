"""Measures a source with one ffmpeg process that opens it once.

ffmpeg decodes, scales and writes; `reprise.media` turns the small frames into shots, spans and
figures while they arrive, so memory hardly grows with the length.

Source: specification V5, V15.
"""

import importlib.metadata
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from threading import Lock
from wave import open as open_wave

import numpy as np
from numpy.typing import NDArray

from reprise.errors import MediaUnreadable, ToolFailed
from reprise.media.analyze_command import (
    SPEECH_FILE,
    THUMBNAIL_PATTERN,
    TIMES_FILE,
    AnalyzeLevels,
    AnalyzeLog,
    AnalyzeStreams,
    analyze_args,
    letterbox,
    read_times,
)
from reprise.media.frame_features import (
    FRAME_BYTES,
    Bytes,
    FrameFigures,
    join_figures,
    measure,
    planes,
)
from reprise.media.shots import TransitionFinder
from reprise.media.spans import (
    FreezeFinder,
    black_spans,
    frame_numbers,
    freeze_spans,
    shot_edges,
    shot_figures,
)
from reprise.model.measures import AnalyzeOptions, FrameMeasures, MeasuredShot, MediaProbe
from reprise.ports import Cancelled, Progress
from resources.ffmpeg import FfmpegLocator
from resources.ffmpeg_runner import FfmpegRunner, RunnerLimits, RunOutcome
from resources.media_probe import ProbedMedia, probe_media

SHOTS_REVISION = "1"
"""Raised when shots, spans or figures of the same source change."""
_BATCH_FRAMES = 16
_PROBES_KEPT_MAX = 64


class FfmpegVideoAnalyzer:
    """Probes with PyAV and measures with ffmpeg; a `VideoAnalyzer`.

    Args:
        locator: Finds ffmpeg when it is first needed.
        limits: Bounds of each ffmpeg process.
    """

    def __init__(self, locator: FfmpegLocator, limits: RunnerLimits | None = None) -> None:
        self._locator = locator
        self._limits = limits or RunnerLimits()
        self._lock = Lock()
        self._probes: dict[tuple[str, int, int], ProbedMedia] = {}

    def toolchain(self) -> Mapping[str, str]:
        """Return ffmpeg's identity, the pinned threads and the revision of the rules."""
        return {
            **self._locator.binary().identity(),
            "ffmpeg_threads": str(self._limits.threads),
            "shots_revision": SHOTS_REVISION,
            "pyav": importlib.metadata.version("av"),
        }

    def probe(self, path: Path) -> MediaProbe:
        """Read the container and decode one frame; see the port."""
        return self._probed(path).probe

    def analyze(
        self,
        path: Path,
        options: AnalyzeOptions,
        workdir: Path,
        *,
        progress: Progress,
        cancelled: Cancelled,
    ) -> FrameMeasures:
        """Decode once and measure; see the port."""
        media = self._probed(path)
        if media.video_index is None:
            message = f"{path.name!r} has no moving picture; give a video, or leave the file out"
            raise MediaUnreadable(message)
        runner = FfmpegRunner(self._locator.binary(), self._limits)
        meter = _Meter(float(Fraction(media.probe.frame_rate)), options.shot_threshold)
        log = AnalyzeLog()
        streams = AnalyzeStreams(
            video_index=media.video_index,
            audio_index=media.audio_index,
            width=media.probe.width,
            height=media.probe.height,
            duration_seconds=media.probe.duration_seconds,
            video_start_seconds=media.video_start_seconds,
        )
        levels = AnalyzeLevels(options.silence_db, options.silence_seconds_min)
        # What a stopped or failed run wrote goes with its folder.
        with tempfile.TemporaryDirectory(prefix="measure-", dir=workdir) as folder:
            outcome = runner.run(
                analyze_args(runner.input_args(path, demuxer=media.demuxer), streams, levels),
                cwd=Path(folder),
                progress=progress,
                cancelled=cancelled,
                duration_seconds=media.probe.duration_seconds,
                on_stdout=meter.feed,
                on_stderr_line=log.feed,
                log_level="info",
                purpose=f"measuring {path.name!r}",
                check=False,
            )
            meter.finish()
            _check(outcome, path, meter.frame_count)
            return _measures(media, options, meter, log, _Folders(Path(folder), workdir))

    def _probed(self, path: Path) -> ProbedMedia:
        try:
            stat = path.stat()
        except OSError as error:
            message = f"{path.name!r} cannot be opened: {error.strerror}"
            raise MediaUnreadable(message) from error
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        with self._lock:
            if key in self._probes:
                return self._probes[key]
        media = probe_media(path, max_pixels=self._limits.max_pixels)
        with self._lock:
            while len(self._probes) >= _PROBES_KEPT_MAX:
                self._probes.pop(next(iter(self._probes)))
            self._probes[key] = media
        return media


class _Meter:
    """Turns ffmpeg's standard output into figures and transitions, a batch at a time."""

    def __init__(self, rate: float, threshold: float) -> None:
        self.frame_count = 0
        self.freezes = FreezeFinder()
        self.transitions = TransitionFinder(rate, threshold)
        self._buffer = bytearray()
        self._previous: Bytes | None = None
        self._parts: list[FrameFigures] = []

    def feed(self, data: bytes) -> None:
        self._buffer += data
        size = _BATCH_FRAMES * FRAME_BYTES
        while len(self._buffer) >= size:
            self._measure(bytes(self._buffer[:size]))
            del self._buffer[:size]

    def finish(self) -> None:
        if len(self._buffer) >= FRAME_BYTES:
            self._measure(bytes(self._buffer))
        self._buffer.clear()

    def figures(self) -> FrameFigures:
        return join_figures(self._parts)

    def _measure(self, data: bytes) -> None:
        frames = planes(data)
        measured = measure(frames, self._previous)
        self._previous = frames[-1]
        self.frame_count += len(frames)
        self._parts.append(measured.figures)
        self.freezes.add(measured.signatures)
        self.transitions.add(measured.signatures, measured.figures.score)


@dataclass(frozen=True)
class _Folders:
    """Where ffmpeg wrote, and where results go."""

    written: Path
    results: Path

    def keep(self, name: str, new_name: str | None = None) -> Path:
        target = self.results / (new_name or name)
        return (self.written / name).replace(target)


@dataclass
class _Thumbnails:
    """The pictures that ffmpeg kept, by their time from the first frame."""

    folders: _Folders
    seconds: NDArray[np.float64] = field(init=False)
    _names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        prefix, _, suffix = THUMBNAIL_PATTERN.partition("%d")
        found = sorted(
            (int(path.name[len(prefix) : -len(suffix)]), path.name)
            for path in self.folders.written.glob(f"{prefix}*{suffix}")
        )
        first = found[0][0] if found else 0
        self.seconds = np.array([(milliseconds - first) / 1000 for milliseconds, _ in found])
        self._names = [name for _, name in found]

    def keep(self, start_seconds: float, end_seconds: float, number: int) -> Path | None:
        """Keep the one nearest to the middle of a shot; None when no one lies in it."""
        inside = np.flatnonzero(
            (self.seconds >= start_seconds - 0.0005) & (self.seconds < end_seconds - 0.0005)
        )
        if len(inside) == 0:
            return None
        middle = (start_seconds + end_seconds) / 2
        nearest = int(inside[np.abs(self.seconds[inside] - middle).argmin()])
        return self.folders.keep(self._names[nearest], f"shot-{number:04d}.jpg")


def _check(outcome: RunOutcome, path: Path, frame_count: int) -> None:
    if outcome.returncode == 0 and frame_count > 0:
        return
    reason = outcome.last_error_lines()
    if "No space left" in outcome.stderr_text:
        message = (
            f"No room to measure {path.name!r}: {reason}; free some, or set another work folder"
        )
        raise ToolFailed(message)
    message = (
        f"{path.name!r} cannot be decoded ({reason}); it is broken or truncated: copy it again, "
        "or export it anew"
    )
    raise MediaUnreadable(message)


def _measures(
    media: ProbedMedia,
    options: AnalyzeOptions,
    meter: _Meter,
    log: AnalyzeLog,
    folders: _Folders,
) -> FrameMeasures:
    with (folders.written / TIMES_FILE).open() as lines:
        times, end_seconds = read_times(lines)
    figures = meter.figures()
    count = min(len(times), len(figures.luma))
    times = times[:count]
    rate = Fraction(media.probe.frame_rate)
    numbers = frame_numbers(times, rate)
    frame_count = int(numbers[-1]) + 1
    if media.probe.variable_frame_rate:
        frame_count = max(frame_count, round(end_seconds * rate))
    starts = [found.index for found in meter.transitions.finish() if found.index < count]
    thumbnails = _Thumbnails(folders)
    shots = []
    for number, (start, end, start_frame, end_frame) in enumerate(
        shot_edges(starts, numbers, frame_count), start=1
    ):
        means = shot_figures(figures, start, end)
        end_time = float(times[end]) if end < count else end_seconds
        shots.append(
            MeasuredShot(
                start_frame=start_frame,
                end_frame=end_frame,
                luma=means.luma,
                saturation=means.saturation,
                clipped=means.clipped,
                motion=means.motion,
                motion_x=means.motion_x,
                thumbnail=thumbnails.keep(float(times[start]), end_time, number),
            )
        )
    sound_seconds = _keep_sound(media, folders)
    repeats = meter.freezes.repeats()[:count]
    bars = letterbox(log.crop, media.coded_width, media.coded_height)
    return FrameMeasures(
        frame_count=frame_count,
        frame_rate=str(rate),
        partial=_is_partial(media, count, end_seconds, sound_seconds or 0.0),
        shots=tuple(shots),
        black=_rounded(
            black_spans(figures.black[:count], times, end_seconds, options.black_seconds_min)
        ),
        freeze=_rounded(freeze_spans(repeats, times, end_seconds, options.freeze_seconds_min)),
        silence=()
        if sound_seconds is None
        else tuple(log.silences(sound_seconds, end_seconds, options.silence_seconds_min)),
        loudness=None if sound_seconds is None else log.loudness(),
        letterbox=None if bars is None else _displayed(bars, media),
    )


def _keep_sound(media: ProbedMedia, folders: _Folders) -> float | None:
    """Keep the sound for speech recognition; returns its length in seconds."""
    if media.audio_index is None or not (folders.written / SPEECH_FILE).exists():
        return None
    kept = folders.keep(SPEECH_FILE)
    with closing(open_wave(str(kept), "rb")) as wave:
        return wave.getnframes() / wave.getframerate()


def _is_partial(
    media: ProbedMedia, frame_count: int, end_seconds: float, sound_seconds: float
) -> bool:
    """Compare what was decoded with what the container claims: exit code 0 is not believed."""
    claimed = media.claimed_frames
    if claimed is not None and frame_count < claimed - max(2, claimed // 200):
        return True
    # Without a length of its own the picture may end before the container does; the sound tells.
    reached = end_seconds if media.claims_picture else max(end_seconds, sound_seconds)
    return reached < media.claimed_seconds - max(0.5, 0.01 * media.claimed_seconds)


def _displayed(bars: tuple[int, int, int, int], media: ProbedMedia) -> tuple[int, int, int, int]:
    """Scale coded pixels to the display size."""
    across = media.probe.width / media.coded_width
    down = media.probe.height / media.coded_height
    left, top, width, height = bars
    return round(left * across), round(top * down), round(width * across), round(height * down)


def _rounded(spans: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    return tuple((round(start, 3), round(end, 3)) for start, end in spans)
