"""What a film is made of: sources, cuts, captions, and the film itself.

Source: specification V9, V12.
"""

from pathlib import Path

from pydantic import Field

from reprise.model.base import Value
from reprise.model.media import Loudness


class RenderSource(Value):
    """A source of a film, as a local file."""

    id: str
    """Id in the analysis."""
    path: Path
    """Readable local file."""
    content_digest: str
    """SHA-256 of its bytes."""
    frame_rate: str
    """Rational frames a second at which its frames are counted."""
    frame_count: int
    """Frames at that rate."""
    width: int
    """Display width."""
    height: int
    """Display height."""
    has_audio: bool
    """Has it a sound track."""
    hdr: bool = False
    """Needs tone-mapping."""


class RenderCut(Value):
    """A stretch of a source in the film, in the source's frames."""

    source_id: str
    """Which source."""
    start_frame: int
    """First frame."""
    end_frame: int
    """First frame that is not in it."""


class Caption(Value):
    """A caption on the film's clock."""

    start_seconds: float
    """When it appears."""
    end_seconds: float
    """When it goes."""
    text: str
    """At most two lines."""


class RenderPlan(Value):
    """Everything that a film is made of; the same plan and toolchain give the same film."""

    sources: tuple[RenderSource, ...]
    """The sources that the cuts name."""
    cuts: tuple[RenderCut, ...] = Field(min_length=1)
    """In the film's order."""
    frame_rate: str
    """Rational frames a second of the film."""
    width: int
    """Even."""
    height: int
    """Even."""
    title: str | None = None
    """Text of the title; null for none. It lies over the film's first seconds and adds no time."""
    title_seconds: float = 2.0
    """How long the title shows."""
    captions: tuple[Caption, ...] = ()
    """Burnt-in captions, on the film's clock."""
    loudness_lufs: float | None = -14.0
    """Wanted integrated loudness; null leaves it."""
    audio_fade_seconds: float = 0.03
    """Fade at the audio edges of each cut."""
    crf: int = 20
    """x264 quality."""
    preset: str = "veryfast"
    """x264 preset."""


class RenderedFilm(Value):
    """A film that was made and verified."""

    path: Path
    """The finished file."""
    frame_count: int
    """Frames in it."""
    duration_seconds: float
    """Its length."""
    loudness: Loudness | None
    """As measured on the finished film."""
    units_rendered: int
    """Render units that were encoded."""
    units_reused: int
    """Render units that were taken from earlier films."""
    notes: tuple[str, ...] = ()
    """What a person should know, such as a loudness that could not be reached."""
