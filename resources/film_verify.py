"""Checks of render units and films: ffmpeg's exit code is not believed.

A unit is decoded whole once, when it is encoded. A film's picture is then proven packet by packet:
each is the unit's own, in order, at its exact time; what decodes at each joint is decoded and
compared too, and the sound is decoded and counted.

Source: specification V9, V15.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import MediaError
from reprise.media.timeline import AUDIO_RATE_HZ, FilmClock, PlacedCut
from reprise.ports import Cancelled

AAC_FRAME_SAMPLES = 1024
"""What AAC rounds a length up to."""


CANCEL_FRAMES = 16
"""Frames that are decoded between two looks at whether to stop."""


@dataclass(frozen=True)
class FilmFacts:
    """What was found in a film that passed."""

    frame_count: int
    """Video frames."""
    sample_count: int
    """Audio samples."""


def decoded_frames(path: Path, cancelled: Cancelled) -> int:
    """Decode a unit's picture whole and return its frames; 0 when nothing was encoded.

    Raises:
        MediaError: It does not decode.
        Cancelled: The run is being stopped.
    """
    count = 0
    try:
        with av.open(str(path)) as container:
            for _ in container.decode(video=0) if container.streams.video else ():
                count += 1
                if count % CANCEL_FRAMES == 0 and cancelled():
                    message = "Stopped while checking a render unit"
                    raise RunCancelled(message)
            return count
    except (av.FFmpegError, OSError) as error:
        message = f"The render unit {path.name!r} does not decode: {error}"
        raise MediaError(message) from error


def packet_count(path: Path) -> int:
    """Return the video packets of an earlier unit; 0 when it cannot be read."""
    try:
        with av.open(str(path)) as container:
            return sum(1 for packet in container.demux(video=0) if packet.size)
    except (av.FFmpegError, OSError, IndexError):
        return 0


def decoded_samples(path: Path) -> int:
    """Decode a file's sound and return its samples for each channel; 0 when it cannot be read."""
    try:
        with av.open(str(path)) as container:
            return sum(frame.samples for frame in container.decode(audio=0))
    except (av.FFmpegError, OSError, IndexError):
        return 0


def verify_film(path: Path, units: Sequence[Path], clock: FilmClock) -> FilmFacts:
    """Check a joined film against its units and its clock.

    Args:
        path: The film.
        units: Its picture units in order.
        clock: Its cuts; one for each unit.

    Raises:
        MediaError: It is not what it should be; says where.
    """
    try:
        frame_count = _check_picture(path, units, clock)
    except (av.FFmpegError, OSError, IndexError) as error:
        message = f"The film does not read back: {error}"
        raise MediaError(message) from error
    samples = decoded_samples(path)
    slack = max(AAC_FRAME_SAMPLES, float(AUDIO_RATE_HZ / clock.rate))
    if abs(samples - clock.sample_count) > slack:
        message = (
            f"The film's sound has {samples} samples, but its picture lasts {clock.sample_count}"
        )
        raise MediaError(message)
    return FilmFacts(frame_count, samples)


def _check_picture(path: Path, units: Sequence[Path], clock: FilmClock) -> int:
    """Compare the film's packets with those of its units, and decode where each unit begins."""
    times: list[int] = []
    with av.open(str(path)) as film, av.open(str(path)) as seeking:
        stream = film.streams.video[0]
        ticks = 1 / (clock.rate * Fraction(stream.time_base or 1))
        packets = _packets(film, stream)
        for unit, cut in zip(units, clock.cuts, strict=True):
            with av.open(str(unit)) as part:
                _check_unit(part, stream, packets, cut, times)
                part.seek(0)
                seeking.seek(int(cut.film_start_frame * ticks), stream=seeking.streams.video[0])
                if _next_frame(seeking) != _next_frame(part):
                    message = f"The film's frame {cut.film_start_frame} is not its unit's first one"
                    raise MediaError(message)
        surplus = sum(1 for _ in packets)
    if surplus:
        message = f"The film has {surplus} frames more than its {len(times)}"
        raise MediaError(message)
    wrong = next((n for n, time in enumerate(sorted(times)) if time != n * ticks), None)
    if wrong is not None:
        message = f"Frame {wrong} of the film is not at its time"
        raise MediaError(message)
    return len(times)


def _check_unit(
    part: InputContainer,
    film_stream: VideoStream,
    packets: Iterator[tuple[str, int]],
    cut: PlacedCut,
    times: list[int],
) -> None:
    """Compare a unit's packets with the film's next ones, whose times are added to `times`."""
    stream = part.streams.video[0]
    if stream.codec_context.extradata != film_stream.codec_context.extradata:
        message = f"Cut {cut.index + 1} was encoded with other parameters than the film"
        raise MediaError(message)
    count = 0
    for digest, _ in _packets(part, stream):
        found, time = next(packets, ("", 0))
        count += 1
        if found != digest:
            message = f"The film differs from its unit in cut {cut.index + 1}, packet {count}"
            raise MediaError(message)
        times.append(time)
    if count != cut.film_frames:
        message = f"Cut {cut.index + 1} has {count} frames instead of {cut.film_frames}"
        raise MediaError(message)


def _next_frame(container: InputContainer) -> str:
    frame = next(container.decode(video=0))
    return hashlib.sha256(frame.to_ndarray().tobytes()).hexdigest()


def _packets(container: InputContainer, stream: VideoStream) -> Iterator[tuple[str, int]]:
    """Yield the digest and the time of each packet, in coding order."""
    for packet in container.demux(stream):
        if packet.size and packet.pts is not None:
            yield hashlib.sha256(bytes(packet)).hexdigest(), packet.pts
