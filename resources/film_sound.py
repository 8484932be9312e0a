"""The sound of a film in one pass over exact samples, brought to its loudness, as one render unit.

First all pieces are joined as PCM and measured; then `levelling` says which filters come next, and
the first way that lands near the target is encoded as AAC.

Source: specification V9, V12.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from pydantic import JsonValue

from reprise.errors import MediaError
from reprise.media.levelling import (
    AIM_LU,
    LEVELLING_REVISION,
    Level,
    Measured,
    distance_lu,
    harder,
    levels,
    parse_summary,
)
from reprise.media.render_units import SoundPiece, unit_key
from reprise.media.timeline import AUDIO_RATE_HZ
from reprise.ports import Cancelled, Progress
from resources.ffmpeg_runner import FfmpegRunner, RunOutcome
from resources.film_sources import StagedSource
from resources.filter_graph import (
    LEAD_SAMPLES,
    CompiledGraph,
    level_graph,
    measure_graph,
    sound_graph,
)

_AAC = ("-c:a", "aac", "-b:a", "192k", "-ac", "2", "-ar", str(AUDIO_RATE_HZ))
_EXACT = ("-flags:a", "+bitexact", "-fflags", "+bitexact", "-map_metadata", "-1")
_SILENCE = ("-f", "lavfi", "-i", f"anullsrc=r={AUDIO_RATE_HZ}:cl=stereo")


@dataclass(frozen=True)
class SoundJob:
    """Everything that the sound of a film depends on."""

    pieces: tuple[SoundPiece, ...]
    """One for each cut."""
    sources: Mapping[str, StagedSource]
    """By id."""
    target_lufs: float | None
    """Wanted loudness; None leaves it."""
    threads: int
    """Threads of the encoder."""

    @property
    def sample_count(self) -> int:
        """Its length."""
        return sum(piece.sample_count for piece in self.pieces)

    def key(self, toolchain: Mapping[str, str]) -> str:
        """Return its content address."""
        inputs: list[JsonValue] = [
            None if piece.source_id is None else self.sources[piece.source_id].source.content_digest
            for piece in self.pieces
        ]
        fields: dict[str, JsonValue] = {
            "inputs": inputs,
            "target_lufs": None if self.target_lufs is None else str(self.target_lufs),
            "levelling": LEVELLING_REVISION,
            "encoder": [*_AAC, *_EXACT],
            "graphs": [self.graph().text, level_graph([], self.sample_count).text],
        }
        return unit_key("sound", toolchain, fields)

    def graph(self) -> CompiledGraph:
        """Return the filters that join it."""
        return sound_graph(self.pieces, [self.origin(piece) for piece in self.pieces])

    def origin(self, piece: SoundPiece) -> Fraction | None:
        """Return the source's own time at which its decoding begins; None for silence."""
        if piece.source_id is None:
            return None
        start = self.sources[piece.source_id].time_at(piece.start_seconds)
        return start - Fraction(LEAD_SAMPLES, AUDIO_RATE_HZ)


class SoundPass:
    """Runs the passes.

    Args:
        runner: Runs ffmpeg.
        folder: Working directory; files of this pass stay in it.
        progress: Told what is being done.
        cancelled: Asked whether to stop.
    """

    def __init__(
        self, runner: FfmpegRunner, folder: Path, progress: Progress, cancelled: Cancelled
    ) -> None:
        self._runner = runner
        self._folder = folder
        self._progress = progress
        self._cancelled = cancelled

    def render(self, job: SoundJob, target: Path) -> None:
        """Write the sound as AAC in MP4.

        Raises:
            MediaError: A source cannot be read, or the sound could not be measured.
            Cancelled: The run is being stopped.
        """
        mix, measured = self._mix(job)
        tried: list[tuple[Level, Measured]] = []
        ways = list(levels(measured, job.target_lufs))
        while ways:
            level = ways.pop(0)
            tried.append((level, self._level(mix, level, job, self._attempt(len(tried)))))
            if distance_lu(tried[-1][1], job.target_lufs) <= AIM_LU:
                break
            if not ways and (level_up := harder(measured, job.target_lufs, tried)):
                ways.append(level_up)
        distances = [distance_lu(result, job.target_lufs) for _, result in tried]
        self._attempt(distances.index(min(distances))).replace(target)
        mix.unlink()

    def _attempt(self, number: int) -> Path:
        return self._folder / f"level-{number}.m4a"

    def measure(self, path: Path) -> Measured:
        """Measure the sound of a finished file."""
        graph = measure_graph()
        args = [*self._runner.input_args(path), *graph.args(), "-f", "null", "-"]
        return self._measured(self._run(args, "measuring the film's loudness"))

    def _mix(self, job: SoundJob) -> tuple[Path, Measured]:
        graph = job.graph()
        target = self._folder / "mix.wav"
        args = [
            *self._mix_inputs(job, graph),
            *graph.args(),
            *("-c:a", "pcm_f32le", "-rf64", "auto", *_EXACT, "-f", "wav", f"file:{target}"),
        ]
        length = job.sample_count / AUDIO_RATE_HZ
        outcome = self._run(args, f"joining the sound of {len(job.pieces)} cuts", length)
        return target, self._measured(outcome)

    def _mix_inputs(self, job: SoundJob, graph: CompiledGraph) -> list[str]:
        args = ["-copyts"]
        for at in graph.inputs:
            piece, origin = job.pieces[at], job.origin(job.pieces[at])
            length = (piece.sample_count + LEAD_SAMPLES) / AUDIO_RATE_HZ + 0.5
            if piece.source_id is None or origin is None:
                args += ["-t", f"{length:.6f}", *_SILENCE]
            else:
                staged = job.sources[piece.source_id]
                args += ["-vn", "-sn", "-dn", "-ss", staged.seek_arg(origin)]
                args += ["-t", f"{length:.6f}", *self._runner.input_args(staged.path)]
        return args

    def _level(self, mix: Path, level: Level, job: SoundJob, target: Path) -> Measured:
        graph = level_graph(level.filters, job.sample_count)
        args = [
            *self._runner.input_args(mix, demuxer="wav"),
            *graph.args(),
            *(*_AAC, "-threads", str(job.threads), *_EXACT, "-f", "mp4", f"file:{target}"),
        ]
        length = job.sample_count / AUDIO_RATE_HZ
        return self._measured(self._run(args, f"levelling the sound ({level.name})", length))

    def _measured(self, outcome: RunOutcome) -> Measured:
        measured = parse_summary(outcome.stderr_text)
        if measured is None:
            message = f"The sound could not be measured: {outcome.last_error_lines()}"
            raise MediaError(message)
        return measured

    def _run(self, args: Sequence[str], purpose: str, length: float | None = None) -> RunOutcome:
        return self._runner.run(
            args,
            cwd=self._folder,
            progress=self._progress,
            cancelled=self._cancelled,
            duration_seconds=length,
            purpose=purpose,
            log_level="info",
        )
