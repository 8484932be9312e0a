"""Clocks of a film: frames, seconds and samples, all exact, and where each cut lies.

A source's frames are counted at its own rate from its first video frame; the film's at the film's
rate from its first. Rates and times are fractions from end to end, so nothing drifts; a float
enters only as a word's or caption's time.

Source: specification V9, V11.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from reprise.errors import MediaError

AUDIO_RATE_HZ = 48_000
"""Sampling rate of every film."""
FRAME_RATE_MAX = 1000
"""Highest frame rate that is taken for real."""


class CutSpan(Protocol):
    """What the clock needs of a cut: an edit's `Cut` and a plan's `RenderCut` both have it."""

    @property
    def source_id(self) -> str:
        """Which source."""
        ...

    @property
    def start_frame(self) -> int:
        """First frame, at the source's rate."""
        ...

    @property
    def end_frame(self) -> int:
        """First frame that is not in it."""
        ...


@dataclass(frozen=True)
class PlacedCut:
    """A cut and its place in the film."""

    index: int
    """From 0, in the film's order."""
    source_id: str
    """Which source."""
    start_frame: int
    """First source frame."""
    end_frame: int
    """First source frame that is not in it."""
    source_rate: Fraction
    """Frames a second of the source."""
    film_start_frame: int
    """Film frame at which it begins."""
    film_frames: int
    """How many film frames it fills."""
    film_rate: Fraction
    """Frames a second of the film."""

    @property
    def film_end_frame(self) -> int:
        """First film frame after it."""
        return self.film_start_frame + self.film_frames

    @property
    def source_start_seconds(self) -> Fraction:
        """Where it begins in the source."""
        return self.start_frame / self.source_rate

    @property
    def source_end_seconds(self) -> Fraction:
        """Where it ends in the source."""
        return self.end_frame / self.source_rate

    @property
    def film_start_seconds(self) -> Fraction:
        """Where it begins in the film."""
        return self.film_start_frame / self.film_rate

    @property
    def film_end_seconds(self) -> Fraction:
        """Where it ends in the film."""
        return self.film_end_frame / self.film_rate

    @property
    def start_sample(self) -> int:
        """First audio sample of it in the film."""
        return sample_at(self.film_start_seconds)

    @property
    def end_sample(self) -> int:
        """First audio sample after it in the film."""
        return sample_at(self.film_end_seconds)

    def to_film_seconds(self, source_seconds: float | Fraction) -> Fraction:
        """Return the film's time of a source's time, outside of the cut too."""
        return self.film_start_seconds + Fraction(source_seconds) - self.source_start_seconds

    def continues(self, other: "PlacedCut") -> bool:
        """Answer whether it begins in the source just where the other ends."""
        return self.source_id == other.source_id and self.start_frame == other.end_frame


@dataclass(frozen=True)
class FilmClock:
    """The cuts of a film in their places."""

    rate: Fraction
    """Frames a second."""
    cuts: tuple[PlacedCut, ...]
    """In the film's order; they fill it without gaps."""

    @property
    def frame_count(self) -> int:
        """Frames of the film."""
        return self.cuts[-1].film_end_frame if self.cuts else 0

    @property
    def seconds(self) -> Fraction:
        """Length of the film."""
        return self.frame_count / self.rate

    @property
    def sample_count(self) -> int:
        """Audio samples of the film: its length, rounded once."""
        return sample_at(self.seconds)


def parse_rate(text: str, *, what: str) -> Fraction:
    """Return a frame rate.

    Args:
        text: Such as `25` or `30000/1001`.
        what: Whose rate it is, for the message.

    Raises:
        MediaError: It is no rate above 0 and at most `FRAME_RATE_MAX`.
    """
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not 0 < rate <= FRAME_RATE_MAX:
        message = f"{what} has the frame rate {text!r}; it must be a fraction such as '30000/1001'"
        raise MediaError(message)
    return rate


def nearest(value: Fraction) -> int:
    """Return the nearest whole number; halves go up."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def sample_at(seconds: Fraction) -> int:
    """Return the audio sample nearest to a time."""
    return nearest(seconds * AUDIO_RATE_HZ)


def frame_at(seconds: float | Fraction, rate: Fraction) -> int:
    """Return the frame whose beginning is nearest to a time."""
    return nearest(Fraction(seconds) * rate)


def place_cuts(
    cuts: Sequence[CutSpan], source_rates: Mapping[str, Fraction], film_rate: Fraction
) -> FilmClock:
    """Lay cuts end to end on the film's clock.

    A cut at the film's own rate fills exactly its frames; one at another rate the nearest whole
    number of film frames, at least one. Each is rounded by itself: were the sum rounded instead, a
    changed cut would change the length, and so the render unit, of those after it. Sound follows
    the film's frames, so it never drifts from the picture.

    Raises:
        MediaError: A cut names an unknown source, or is empty.
    """
    placed: list[PlacedCut] = []
    film_start = 0
    for index, cut in enumerate(cuts):
        if cut.source_id not in source_rates:
            message = (
                f"Cut {index + 1} names the source {cut.source_id!r}, which is not among "
                f"{sorted(source_rates)}"
            )
            raise MediaError(message)
        source_rate = source_rates[cut.source_id]
        length = cut.end_frame - cut.start_frame
        if length <= 0 or cut.start_frame < 0:
            message = (
                f"Cut {index + 1} of source {cut.source_id!r} goes from frame {cut.start_frame} "
                f"to {cut.end_frame}: it must begin at 0 or later and hold at least one frame"
            )
            raise MediaError(message)
        film_frames = max(1, nearest(length / source_rate * film_rate))
        placed.append(
            PlacedCut(
                index=index,
                source_id=cut.source_id,
                start_frame=cut.start_frame,
                end_frame=cut.end_frame,
                source_rate=source_rate,
                film_start_frame=film_start,
                film_frames=film_frames,
                film_rate=film_rate,
            )
        )
        film_start += film_frames
    return FilmClock(film_rate, tuple(placed))
