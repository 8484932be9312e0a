"""Reads what a container says of a file, and decodes one frame, with PyAV.

There is no ffprobe: the wheel that carries ffmpeg has none. Rotation stands only on a decoded
frame, and uneven frames only in the packets' times, so both are read.

Source: specification V1, V5, V15.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.error
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from reprise.errors import MediaUnreadable
from reprise.media.container import HEAD_BYTES, demuxer_of, film_rate, is_variable, refusal
from reprise.model.measures import MediaProbe
from resources.ffmpeg_runner import FORMATS

PACKETS_MAX = 600
"""Packets whose times are looked at where the container has no index."""
_HDR_TRANSFERS = (16, 18)
"""PQ (SMPTE ST 2084) and HLG (ARIB STD-B67), as ITU-T H.273 numbers them."""


@dataclass(frozen=True)
class ProbedMedia:
    """A probe, and what the analysis needs besides."""

    probe: MediaProbe
    """What the port tells."""
    demuxer: str
    """ffmpeg's name of the demuxer that its bytes call for."""
    video_index: int | None
    """Index of the picture's stream."""
    audio_index: int | None
    """Index of the sound's stream."""
    coded_width: int
    """Width after rotation, pixels as they are coded."""
    coded_height: int
    """Height after rotation."""
    video_start_seconds: float
    """Time of the first frame from the container's start."""
    claimed_frames: int | None
    """Frames that the container's index lists; None without an index."""
    claimed_seconds: float
    """Length of the picture that the container claims; 0 when it claims none."""
    claims_picture: bool
    """The claimed length is the picture's own, not the whole container's."""


def probe_media(path: Path, *, max_pixels: int) -> ProbedMedia:
    """Read a file's container and decode its first frame.

    Args:
        path: The file; it alone is opened.
        max_pixels: Larger frames are refused.

    Raises:
        MediaUnreadable: It is no media file, broken or truncated; names the file.
    """
    demuxer = _sniff(path)
    options = {"protocol_whitelist": "file", "format_whitelist": FORMATS}
    try:
        with av.open(f"file:{path.absolute()}", format=demuxer, options=options) as container:
            return _read(container, demuxer, path, max_pixels)
    except (av.error.FFmpegError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = (
            f"{path.name!r} cannot be read as {demuxer} ({reason}); "
            "it is broken or truncated: copy it again, or export it anew"
        )
        raise MediaUnreadable(message) from error


def _sniff(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        message = f"{path.name!r} cannot be opened: {error.strerror}"
        raise MediaUnreadable(message) from error
    demuxer = demuxer_of(head)
    if demuxer is None:
        message = f"{path.name!r} is not read: {refusal(head)}"
        raise MediaUnreadable(message)
    return demuxer


def _read(container: InputContainer, demuxer: str, path: Path, max_pixels: int) -> ProbedMedia:
    picture = _picture(container.streams.video)
    sound: AudioStream | None = next(iter(container.streams.audio), None)
    if sound is not None and not sound.rate:
        sound = None
    whole = (container.duration or 0) / av.time_base
    if picture is None:
        return _sound_only(container, demuxer, path, sound, whole)
    if picture.width * picture.height > max_pixels:
        message = (
            f"{path.name!r} has frames of {picture.width} x {picture.height} pixels; "
            f"at most {max_pixels} pixels are decoded"
        )
        raise MediaUnreadable(message)
    frame, times = _first_frame(container, picture, path)
    own_seconds = _own_seconds(picture)
    claimed_frames, index_times = _index(picture)
    variable = is_variable(index_times or times)
    rate = film_rate(picture.average_rate, picture.base_rate, variable=variable)
    seconds = own_seconds or whole
    turned = frame.rotation % 180 != 0
    width, height = (frame.height, frame.width) if turned else (frame.width, frame.height)
    wide, high = _square(width, height, picture.sample_aspect_ratio, turned=turned)
    start = float((frame.pts or 0) * (frame.time_base or 0))
    container_start = (container.start_time or 0) / av.time_base
    even_count = claimed_frames if claimed_frames and not variable else None
    probe = MediaProbe(
        duration_seconds=seconds,
        has_video=True,
        has_audio=sound is not None,
        width=wide,
        height=high,
        rotation_degrees=-frame.rotation % 360,
        frame_rate=str(rate),
        frame_count=even_count or round(seconds * rate),
        variable_frame_rate=variable,
        audio_rate_hz=sound.rate if sound is not None else None,
        hdr=int(frame.color_trc or 0) in _HDR_TRANSFERS,
        container=container.format.name,
    )
    return ProbedMedia(
        probe=probe,
        demuxer=demuxer,
        video_index=picture.index,
        audio_index=sound.index if sound is not None else None,
        coded_width=width,
        coded_height=height,
        video_start_seconds=max(start - container_start, 0.0),
        claimed_frames=claimed_frames,
        claimed_seconds=seconds,
        claims_picture=own_seconds is not None,
    )


def _sound_only(
    container: InputContainer,
    demuxer: str,
    path: Path,
    sound: AudioStream | None,
    seconds: float,
) -> ProbedMedia:
    if sound is None:
        message = f"{path.name!r} has neither picture nor sound"
        raise MediaUnreadable(message)
    probe = MediaProbe(
        duration_seconds=seconds,
        has_video=False,
        has_audio=True,
        audio_rate_hz=sound.rate,
        container=container.format.name,
    )
    return ProbedMedia(
        probe=probe,
        demuxer=demuxer,
        video_index=None,
        audio_index=sound.index,
        coded_width=0,
        coded_height=0,
        video_start_seconds=0.0,
        claimed_frames=None,
        claimed_seconds=seconds,
        claims_picture=False,
    )


def _picture(streams: Iterable[VideoStream]) -> VideoStream | None:
    """Return the first moving picture; cover art and still thumbnails are none."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
    for stream in streams:
        if not stream.disposition & still and stream.codec_context is not None:
            return stream
    return None


def _first_frame(
    container: InputContainer, stream: VideoStream, path: Path
) -> tuple[VideoFrame, list[float]]:
    """Decode until there is a frame, and go on reading packets for their times."""
    stream.codec_context.thread_count = 1
    frame: VideoFrame | None = None
    times: list[float] = []
    for packet in container.demux(stream):
        if packet.pts is not None and packet.time_base is not None:
            times.append(float(packet.pts * packet.time_base))
        if frame is None:
            try:
                frame = next(iter(packet.decode()), None)
            except av.error.InvalidDataError:
                # A stream that was cut begins with frames that lack their reference.
                frame = None
        if len(times) >= PACKETS_MAX:
            break
    if frame is None:
        message = (
            f"{path.name!r} has a picture track, but no frame of it can be decoded; "
            "it is broken or truncated: copy it again, or export it anew"
        )
        raise MediaUnreadable(message)
    return frame, times


def _own_seconds(stream: VideoStream) -> float | None:
    """Return the length of the picture's track, where the container tells it."""
    if stream.duration is not None and stream.time_base is not None and stream.duration > 0:
        return float(stream.duration * stream.time_base)
    text = next((stream.metadata[key] for key in stream.metadata if key.startswith("DURATION")), "")
    hours, _, rest = text.partition(":")
    minutes, _, seconds = rest.partition(":")
    try:
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return None


def _index(stream: VideoStream) -> tuple[int | None, list[float]]:
    """Return how many frames the index of an mp4 lists, and their times."""
    if stream.frames <= 0 or stream.time_base is None:
        return None, []
    entries = stream.index_entries
    if len(entries) < stream.frames:
        # Fragmented, or an index of key frames alone.
        return None, []
    scale = Fraction(stream.time_base)
    shown = [entry for entry in entries if not entry.is_discard]
    return len(shown), [float(entry.timestamp * scale) for entry in shown]


def _square(width: int, height: int, aspect: Fraction | None, *, turned: bool) -> tuple[int, int]:
    """Return the size with square pixels: the width is scaled, as a player does."""
    if not aspect or aspect <= 0 or aspect == 1:
        return width, height
    if turned:
        return width, round(height * aspect)
    return round(width * aspect), height
