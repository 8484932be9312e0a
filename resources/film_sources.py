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
from reprise.ports import RenderSource
from resources.ffmpeg_runner import FORMATS

_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}")
_UNSPECIFIED = 2
"""The colour matrix of a stream that names none (H.273)."""
_HD_LINES = 720
"""From this height on, players take an untagged picture for BT.709."""


@dataclass(frozen=True)
class StagedSource:
    """A source that can be opened by a name that nobody chose."""

    source: RenderSource
    """What the plan says of it."""
    path: Path
    """A link to it, named by its digest."""
    picture_offset: Fraction
    """Seconds from the start of the file's clock to its first video frame."""
    in_matrix: str
    """Its colour matrix as the `scale` filter names it."""


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
                source, link, max(Fraction(0), start - file_start), _matrix(picture)
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
