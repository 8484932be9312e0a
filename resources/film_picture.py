"""One picture unit: from its description to an encoded file that was decoded once.

Source: specification V9, V11.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from reprise.errors import MediaError
from reprise.media.render_units import (
    PictureUnit,
    picture_box,
    picture_encoder_args,
    unit_key,
)
from reprise.model.render import RenderPlan
from reprise.ports import Cancelled, Progress
from resources.ffmpeg_runner import FfmpegRunner
from resources.film_sources import StagedSource
from resources.film_verify import decoded_frames
from resources.filter_graph import CompiledGraph, PictureSpec, PlacedOverlay, picture_graph
from resources.text_overlays import OverlayPicture, TextPainter


@dataclass(frozen=True)
class PictureJob:
    """A unit with everything that its bytes depend on."""

    unit: PictureUnit
    """What it shows."""
    staged: StagedSource
    """Its source."""
    graph: CompiledGraph
    """Its filters."""
    overlays: tuple[OverlayPicture, ...]
    """Its texts; inputs 1, 2, … of the graph."""
    encoder: tuple[str, ...]
    """The encoder's arguments."""

    @property
    def seek(self) -> str | None:
        """Where the source is opened; None opens it at its beginning."""
        if not self.staged.seekable:
            return None
        return self.staged.seek_arg(_origin(self.unit, self.staged))

    @property
    def missing(self) -> str:
        """Letters that no font has."""
        return "".join(dict.fromkeys("".join(picture.missing for picture in self.overlays)))

    @property
    def name(self) -> str:
        """What it is called in messages."""
        cut = self.unit.cut
        return (
            f"cut {cut.index + 1} (source {cut.source_id!r}, frames {cut.start_frame} to "
            f"{cut.end_frame})"
        )

    def key(self, toolchain: Mapping[str, str]) -> str:
        """Return its content address."""
        return unit_key(
            "picture",
            toolchain,
            {
                "source": self.staged.source.content_digest,
                "seek": self.seek,
                "frames": self.unit.frame_count,
                "graph": self.graph.text,
                "inputs": list(self.graph.inputs),
                "overlays": [picture.digest() for picture in self.overlays],
                "encoder": list(self.encoder),
            },
        )


def picture_job(
    plan: RenderPlan, unit: PictureUnit, staged: StagedSource, painter: TextPainter, threads: int
) -> PictureJob:
    """Return what a unit is made of, its texts drawn."""
    source = staged.source
    pictures = tuple(painter.paint(span, plan.width, plan.height) for span in unit.overlays)
    spec = PictureSpec(
        rate=unit.cut.film_rate,
        width=plan.width,
        height=plan.height,
        box=picture_box(source.width, source.height, plan.width, plan.height),
        in_matrix=staged.in_matrix,
        hdr=source.hdr,
        overlays=tuple(
            PlacedOverlay(span, picture.x, picture.y)
            for span, picture in zip(unit.overlays, pictures, strict=True)
        ),
        origin_seconds=_origin(unit, staged),
    )
    encoder = picture_encoder_args(plan, unit.cut.film_rate, threads)
    return PictureJob(unit, staged, picture_graph(spec), pictures, encoder)


def encode_picture(
    job: PictureJob,
    runner: FfmpegRunner,
    target: Path,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> tuple[str, ...]:
    """Encode a unit and decode it once.

    Args:
        job: What to encode.
        runner: Runs ffmpeg.
        target: The file; it appears whole or not at all.
        progress: Told what is being done.
        cancelled: Asked whether to stop.

    Returns:
        Notes: what ffmpeg complained about in the source.

    Raises:
        MediaError: The source cannot be read, or has too few frames.
        Cancelled: The run is being stopped.
    """
    part = target.with_suffix(".part")
    overlay_paths = []
    for number, picture in enumerate(job.overlays):
        path = target.with_name(f"{target.stem}-{number}.png")
        picture.image.save(path, format="PNG", compress_level=1)
        overlay_paths.append(path)
    try:
        outcome = runner.run(
            [
                *_inputs(job, runner, overlay_paths),
                *job.graph.args(),
                *("-frames:v", str(job.unit.frame_count), *job.encoder, f"file:{part}"),
            ],
            cwd=target.parent,
            progress=progress,
            cancelled=cancelled,
            duration_seconds=float(job.unit.frame_count / job.unit.cut.film_rate),
            purpose=f"encoding {job.name}",
        )
        found = decoded_frames(part, cancelled)
        if found != job.unit.frame_count:
            message = (
                f"Of {job.name} only {found} of {job.unit.frame_count} frames could be read from "
                f"{job.staged.source.path.name!r}; the file may be truncated"
            )
            raise MediaError(message)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
        for path in overlay_paths:
            path.unlink(missing_ok=True)
    if "[error]" in outcome.stderr_text:
        return (f"Errors while reading {job.name}: {outcome.last_error_lines(1)}",)
    return ()


def _origin(unit: PictureUnit, staged: StagedSource) -> Fraction:
    """Return the time half a source frame after a unit's first one, on the file's own clock."""
    return staged.time_at(Fraction(2 * unit.cut.start_frame + 1, 2) / unit.cut.source_rate)


def _inputs(job: PictureJob, runner: FfmpegRunner, overlay_paths: list[Path]) -> list[str]:
    args = ["-copyts"]
    for at in job.graph.inputs:
        if at == 0:
            if job.seek is not None:
                args += ["-noaccurate_seek", "-ss", job.seek]
            args += ["-an", "-sn", "-dn", *runner.input_args(job.staged.path)]
        else:
            args += runner.input_args(overlay_paths[at - 1], demuxer="png_pipe")
    return args
