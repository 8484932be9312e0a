"""Sources of a film, ready for ffmpeg: under a name that is a hash, with what only the file tells.

Source: specification V2, V15.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.video.stream import VideoStream

from reprise.errors import MediaError, MediaUnreadable
from reprise.model.render import RenderSource
from resources.ffmpeg_runner import FORMATS

_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}")
_INDEXED = frozenset(["mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "avi"])
"""Demuxers that know where the key frames are. MPEG-TS for one jumps to the middle of a group, and
what comes first then is a frame from after the target."""
_UNSPECIFIED = 2
"""The colour matrix of a stream that names none (H.273)."""
_HD_LINES = 720
"""From this height on, players take an untagged picture for BT.709."""


@dataclass(frozen=True)
class StagedSource:
    """A source that can be opened by a name that nobody chose.

    ffmpeg shifts a file's times by rules that differ between formats and with the streams in use.
    With `-copyts` it does not, and graphs count from a time on the file's own clock.
    """

    source: RenderSource
    """What the plan says of it."""
    path: Path
    """A link to it, named by its digest."""
    picture_start: Fraction
    """Time of its first video frame on the file's own clock, in seconds."""
    file_start: Fraction
    """Where that clock begins; ffmpeg's `-ss` counts from here."""
    in_matrix: str
    """Its colour matrix as the `scale` filter names it."""
    seekable: bool
    """Whether a seek is sure to land on a key frame at or before its target."""

    def time_at(self, seconds: Fraction) -> Fraction:
        """Return the file's own time of a time since the first frame."""
        return self.picture_start + seconds

    def seek_arg(self, time: Fraction) -> str:
        """Return the value of `-ss` that opens the file at one of its own times."""
        return f"{float(max(Fraction(0), time - self.file_start)):.6f}"


def stage_source(source: RenderSource, folder: Path) -> StagedSource:
    """Link a source into a folder and read what the plan does not say.

    Raises:
        MediaUnreadable: It is not there, or no media file with a picture; names the source.
    """
    if not source.path.is_file():
        message = (
            f"Source {source.id!r} ({source.path.name!r}) is not there; add the file to the "
            "project again"
        )
        raise MediaUnreadable(message)
    extension = source.path.suffix if _EXTENSION.fullmatch(source.path.suffix) else ""
    link = folder / f"{source.content_digest[:32]}{extension.lower()}"
    if not link.is_symlink():
        link.symlink_to(source.path.absolute())
    try:
        with av.open(
            f"file:{link}",
            options={"protocol_whitelist": "file", "format_whitelist": FORMATS},
        ) as container:
            picture = _picture(container.streams.video)
            if picture is None:
                message = f"Source {source.id!r} ({source.path.name!r}) has no picture"
                raise MediaUnreadable(message)
            file_start = Fraction(container.start_time or 0, av.time_base)
            start = file_start
            if picture.start_time is not None and picture.time_base is not None:
                start = picture.start_time * picture.time_base
            return StagedSource(
                source,
                link,
                picture_start=start,
                file_start=file_start,
                in_matrix=_matrix(picture),
                seekable=container.format.name in _INDEXED,
            )
    except (av.FFmpegError, OSError) as error:
        message = f"Source {source.id!r} ({source.path.name!r}) cannot be opened: {error}"
        raise MediaUnreadable(message) from error


def stage_sources(sources: "tuple[RenderSource, ...]", folder: Path) -> dict[str, StagedSource]:
    """Stage all sources that a film uses, by id."""
    for source in sources:
        if not re.fullmatch(r"[0-9a-f]{64}", source.content_digest):
            message = f"Source {source.id!r} has no SHA-256 but {source.content_digest!r}"
            raise MediaError(message)
    return {source.id: stage_source(source, folder) for source in sources}


def _picture(streams: "tuple[VideoStream, ...]") -> VideoStream | None:
    """Return the moving picture; a cover is not one."""
    for stream in streams:
        if not stream.disposition & av.stream.Disposition.attached_pic:
            return stream
    return None


def _matrix(picture: VideoStream) -> str:
    """Return the matrix to convert from.

    ffmpeg takes what is not tagged for BT.601 whatever its size, which tints HD material.
    """
    context = picture.codec_context
    if context.colorspace != _UNSPECIFIED or (context.format and context.format.is_rgb):
        return "auto"
    return "bt709" if picture.height >= _HD_LINES else "bt601"
