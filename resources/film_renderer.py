"""The real film renderer: units are encoded or reused, joined, mixed and verified.

    plan → picture units ─┬─ encoded where missing (two at a time) ─┐
                          └─ taken from the object store ───────────┤
         → sound unit ── one pass over exact samples ───────────────┴─ joined by copying → verified

Nothing has its final name before it was checked: a stopped or failed render leaves none.

Source: specification V3, V4, V9 to V12.
"""

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import MediaError
from reprise.media.levelling import LEVELLING_REVISION, TOLERANCE_LU, Measured, distance_lu
from reprise.media.render_units import (
    UNIT_REVISION,
    picture_units,
    plan_clock,
    sound_pieces,
    track_timescale,
)
from reprise.media.timeline import FilmClock
from reprise.model.execution import in_this_execution
from reprise.model.render import RenderedFilm, RenderPlan
from reprise.ports import Cancelled, ObjectStore, Progress
from resources.ffmpeg_runner import FfmpegRunner
from resources.film_picture import PictureJob, encode_picture, picture_job
from resources.film_sound import SoundJob, SoundPass
from resources.film_sources import stage_sources
from resources.film_verify import AAC_FRAME_SAMPLES, decoded_samples, packet_count, verify_film
from resources.text_overlays import TextPainter
from resources.unit_shelf import UnitShelf

PARALLEL_MAX = 2
"""Units that are encoded at once."""
FILM_NAME = "film.mp4"
"""Name of the film in the working directory."""
_PICTURE_SHARE, _SOUND_SHARE = 0.85, 0.95
"""Share of the work that is done after the picture, and after the sound."""


class FfmpegFilmRenderer:
    """Renders films with ffmpeg; an adapter of `reprise.ports.FilmRenderer`.

    Args:
        runner: Runs ffmpeg.
        objects: Keeps render units.
        threads: Threads of each encoder; part of every key, as another count gives other bytes.
        painter: Draws texts; None uses the bundled fonts.
    """

    def __init__(
        self,
        runner: FfmpegRunner,
        objects: ObjectStore,
        *,
        threads: int = 2,
        painter: TextPainter | None = None,
    ) -> None:
        self._runner = runner
        self._objects = objects
        self._threads = threads
        self._painter = painter or TextPainter()

    def toolchain(self) -> Mapping[str, str]:
        """Return what its results depend on besides the plan, for the cache key (V3)."""
        return {
            **self._unit_toolchain(),
            **self._painter.identity,
            "levelling": LEVELLING_REVISION,
        }

    def render(
        self,
        plan: RenderPlan,
        workdir: Path,
        *,
        reuse_units: bool,
        unit_prefix: str,
        progress: Progress,
        cancelled: Cancelled,
    ) -> RenderedFilm:
        """Render to `workdir/film.mp4`. Units are kept in the object store under `unit_prefix`.

        Raises:
            MediaError: The plan is impossible, a source cannot be read, or the film failed its
                verification.
            Cancelled: The run is being stopped.
        """
        clock = plan_clock(plan)
        workdir.mkdir(parents=True, exist_ok=True)
        final = workdir / FILM_NAME
        final.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=workdir, prefix="render-") as name:
            folder = Path(name).absolute()
            shelf = UnitShelf(self._objects, unit_prefix, folder, reuse=reuse_units)
            run = _Run(self._runner, shelf, folder, progress, cancelled)
            used = {cut.source_id for cut in plan.cuts}
            sources = stage_sources(
                tuple(source for source in plan.sources if source.id in used), folder
            )
            jobs = [
                picture_job(plan, unit, sources[unit.cut.source_id], self._painter, self._threads)
                for unit in picture_units(plan, clock)
            ]
            pieces = sound_pieces(plan, clock)
            sound = SoundJob(pieces, sources, plan.loudness_lufs, self._threads)
            units = run.pictures(jobs, self._unit_toolchain())
            track = run.sound(sound, self._unit_toolchain())
            part = folder / f"{FILM_NAME}.part"
            run.join(units, track, clock, part)
            progress("verifying the film", _SOUND_SHARE + 0.02)
            facts = verify_film(part, units, clock)
            measured = run.measure(part)
            _fsync(part)
            part.replace(final)
            _fsync(workdir)
        progress(f"film of {float(clock.seconds):.1f} s done", 1.0)
        return RenderedFilm(
            path=final,
            frame_count=facts.frame_count,
            duration_seconds=float(clock.seconds),
            loudness=measured.loudness(),
            units_rendered=run.rendered,
            units_reused=run.reused,
            notes=(*run.notes, *_notes(plan, jobs, measured)),
        )

    def _unit_toolchain(self) -> dict[str, str]:
        return {
            **self._runner.binary.identity(),
            "threads": f"{self._threads},{self._runner.limits.threads}",
            "renderer": UNIT_REVISION,
        }


@dataclass
class _Run:
    """One rendering: its folder, its counters and how it is stopped."""

    runner: FfmpegRunner
    shelf: UnitShelf
    folder: Path
    progress: Progress
    cancelled: Cancelled
    rendered: int = 0
    reused: int = 0
    notes: list[str] = field(default_factory=list)
    _failed: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _shares: dict[int, float] = field(default_factory=dict)

    def pictures(self, jobs: Sequence[PictureJob], toolchain: Mapping[str, str]) -> list[Path]:
        """Return the file of each unit; those that are missing are encoded, each content once."""
        names = [f"{job.key(toolchain)}.mp4" for job in jobs]
        missing: dict[str, int] = {}
        for number, name in enumerate(names):
            if name in missing:
                continue
            earlier = self.shelf.take(name)
            # A damaged unit is encoded anew; the film's verification would refuse it anyway.
            if earlier is not None and packet_count(earlier) == jobs[number].unit.frame_count:
                self.reused += 1
                self._shares[number] = 1.0
            else:
                missing[name] = number
        self._encode({name: (number, jobs[number]) for name, number in missing.items()}, len(jobs))
        self.rendered += len(missing)
        return [self.shelf.path(name) for name in names]

    def sound(self, job: SoundJob, toolchain: Mapping[str, str]) -> Path:
        """Return the file of the sound unit."""
        name = f"{job.key(toolchain)}.m4a"
        target = self.shelf.path(name)
        earlier = self.shelf.take(name)
        if earlier is not None and _sound_fits(earlier, job):
            self.reused += 1
            return target
        target.unlink(missing_ok=True)
        self.progress("mixing the sound", _PICTURE_SHARE)
        part = target.with_suffix(".part")
        self._sound_pass().render(job, part)
        if not _sound_fits(part, job):
            message = (
                f"The sound came out with {decoded_samples(part)} samples instead of "
                f"{job.sample_count}"
            )
            raise MediaError(message)
        part.replace(target)
        self.shelf.keep(name, media_type="audio/mp4")
        self.rendered += 1
        return target

    def join(self, units: Sequence[Path], track: Path, clock: FilmClock, target: Path) -> None:
        """Join pictures by copying and lay the sound under them.

        The list holds names that we made from hashes. `auto_convert` would rewrite every packet.
        """
        listing = self.folder / "units.txt"
        listing.write_text(_listing(units, clock), encoding="ascii")
        self.runner.run(
            [
                *("-f", "concat", "-safe", "1", "-auto_convert", "0"),
                *("-protocol_whitelist", "file", "-i", f"file:{listing}"),
                *self.runner.input_args(track, demuxer="mov"),
                *("-map", "0:v:0", "-map", "1:a:0", "-c", "copy", "-map_metadata", "-1"),
                *("-fflags", "+bitexact", "-movflags", "+faststart"),
                *("-video_track_timescale", str(track_timescale(clock.rate))),
                *("-f", "mp4", f"file:{target}"),
            ],
            cwd=self.folder,
            progress=lambda _text, _share: self.progress("joining the film", _SOUND_SHARE),
            cancelled=self.cancelled,
            purpose="joining the film",
        )

    def measure(self, path: Path) -> Measured:
        """Measure the loudness of the finished film."""
        return self._sound_pass().measure(path)

    def _sound_pass(self) -> SoundPass:
        def progress(text: str, share: float | None) -> None:
            done = _PICTURE_SHARE + (_SOUND_SHARE - _PICTURE_SHARE) * (share or 0.0)
            self.progress(text, done)

        return SoundPass(self.runner, self.folder, progress, self.cancelled)

    def _encode(self, missing: Mapping[str, tuple[int, PictureJob]], unit_count: int) -> None:
        encode_one = in_this_execution(self._encode_one)
        with ThreadPoolExecutor(PARALLEL_MAX, thread_name_prefix="render-unit") as pool:
            futures = [
                pool.submit(encode_one, name, number, job, unit_count)
                for name, (number, job) in missing.items()
            ]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                if any(future.exception() is not None for future in done):
                    self._failed.set()
            except BaseException:
                # An interrupt: leaving the pool waits for its threads, so they must stop first.
                self._failed.set()
                raise
            finally:
                if self._failed.is_set():
                    pool.shutdown(wait=False, cancel_futures=True)
        _raise_first(futures)

    def _encode_one(self, name: str, number: int, job: PictureJob, unit_count: int) -> None:
        def report(text: str, share: float | None) -> None:
            with self._lock:
                self._shares[number] = share or 0.0
                done = _PICTURE_SHARE * sum(self._shares.values()) / unit_count
                self.progress(f"unit {number + 1} of {unit_count}: {text}", done)

        notes = encode_picture(
            job,
            self.runner,
            self.shelf.path(name),
            progress=report,
            cancelled=lambda: self._failed.is_set() or self.cancelled(),
        )
        self.shelf.keep(name, media_type="video/mp4")
        with self._lock:
            self.notes += notes


def _raise_first(futures: "Sequence[Future[None]]") -> None:
    """Raise what stopped the units: an error before the stops that it caused in the others."""
    errors = [
        error
        for future in futures
        if not future.cancelled() and (error := future.exception()) is not None
    ]
    errors.sort(key=lambda error: isinstance(error, RunCancelled))
    if errors:
        raise errors[0]


def _sound_fits(path: Path, job: SoundJob) -> bool:
    return abs(decoded_samples(path) - job.sample_count) <= AAC_FRAME_SAMPLES


def _notes(plan: RenderPlan, jobs: Sequence[PictureJob], measured: Measured) -> list[str]:
    notes = []
    missing = "".join(dict.fromkeys("".join(job.missing for job in jobs)))
    if missing:
        notes.append(f"No font has the letters {missing!r}; they were left out of the picture")
    target = plan.loudness_lufs
    if measured.is_silent:
        notes.append("The film is silent, or too short to measure: its loudness was left as it is")
    elif target is not None and distance_lu(measured, target) > TOLERANCE_LU:
        notes.append(
            f"Loudness is {measured.integrated_lufs:.1f} LUFS instead of {target:.1f}: its peaks "
            "leave no more room"
        )
    return notes


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listing(units: Sequence[Path], clock: FilmClock) -> str:
    """Return the join's list, each unit with its length.

    A container rounds its length to milliseconds, which would put the next unit beside its frame.
    The lengths are differences of rounded places in the film, so that no error adds up.
    """
    lines = ["ffconcat version 1.0"]
    for unit, cut in zip(units, clock.cuts, strict=True):
        ends = [
            round(seconds * 10**6) for seconds in (cut.film_start_seconds, cut.film_end_seconds)
        ]
        lines += [f"file {unit.name}", f"duration {(ends[1] - ends[0]) / 10**6:.6f}"]
    return "\n".join(lines) + "\n"
