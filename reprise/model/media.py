"""What an analysis of footage says: sources, shots, spans, loudness, transcript.

Times in seconds are on the source's own clock, from its first video frame; frames count from 0 and
an `end_frame` is the first one that is not included.

Source: specification V5, V8.
"""

from fractions import Fraction

from pydantic import Field

from reprise.model.base import Value


class Span(Value):
    """A stretch of time."""

    start_seconds: float = Field(ge=0)
    """Its beginning."""
    end_seconds: float
    """Its end."""


class Loudness(Value):
    """EBU R128 figures; null where the programme is silent."""

    integrated_lufs: float | None
    """Integrated loudness in LUFS."""
    range_lu: float | None
    """Loudness range in LU."""
    true_peak_dbtp: float | None
    """True peak in dBTP."""


class Shot(Value):
    """A stretch of footage between two cuts."""

    id: str
    """Unique in the analysis, such as `v1.s003`."""
    start_frame: int = Field(ge=0)
    """First frame."""
    end_frame: int
    """First frame that is not in it."""
    start_seconds: float
    """Time of the first frame."""
    end_seconds: float
    """Time at which it ends."""
    luma: float
    """Mean luma, 0 to 255."""
    saturation: float
    """Mean saturation, 0 to 1."""
    clipped: float
    """Share of pixels at either end of the range, 0 to 1."""
    motion: float
    """Mean absolute luma change between frames, 0 to 255."""
    motion_x: float = Field(default=0.5, ge=0, le=1)
    """Where the motion is, across: 0 left, 1 right (a crop hint)."""
    thumbnail_storage_key: str | None = None
    """A JPEG of its middle."""


class Word(Value):
    """One spoken word."""

    text: str
    """The word with its punctuation, no blanks around it."""
    start_seconds: float
    """When it begins."""
    end_seconds: float
    """When it ends."""
    probability: float = Field(ge=0, le=1)
    """The recogniser's confidence."""


class Sentence(Value):
    """A spoken sentence: the unit that cuts are chosen in."""

    id: str
    """Unique in the analysis, such as `v1.t007`."""
    start_seconds: float
    """Start of its first word."""
    end_seconds: float
    """End of its last word."""
    text: str
    """Its words, joined by blanks."""
    words: tuple[Word, ...]
    """Its words in order."""


class Transcript(Value):
    """What is said in a source; no sentences when nothing is."""

    language: str | None
    """Language code; null when there is no speech."""
    language_probability: float = Field(ge=0, le=1)
    """The recogniser's confidence in the language."""
    sentences: tuple[Sentence, ...]
    """By rising time."""


class SourceAnalysis(Value):
    """What one source holds."""

    id: str
    """Short id in the analysis: `v1`, `v2`, … in the order of the sources."""
    file_id: str
    """The project file."""
    name: str
    """Its name in the project."""
    storage_key: str
    """Where its bytes are."""
    content_digest: str
    """SHA-256 of its bytes."""
    duration_seconds: float
    """Length of the picture."""
    width: int
    """Display width in pixels, after rotation and with square pixels."""
    height: int
    """Display height in pixels, after rotation and with square pixels."""
    rotation_degrees: int = 0
    """Rotation that the player applies, clockwise."""
    frame_rate: str
    """Rational frames a second, such as `30000/1001`; for VFR the rate that the film uses."""
    frame_count: int
    """Frames at `frame_rate`."""
    variable_frame_rate: bool = False
    """True when its frames are unevenly spaced; it is then read at `frame_rate`."""
    has_audio: bool
    """Has it a sound track."""
    audio_rate_hz: int | None = None
    """Sampling rate of the sound."""
    hdr: bool = False
    """True for PQ or HLG transfer; it is tone-mapped on rendering."""
    partial: bool = False
    """True when fewer frames could be read than the container claims."""
    letterbox: tuple[int, int, int, int] | None = None
    """Active picture as left, top, width, height in pixels, when it has bars."""
    shots: tuple[Shot, ...]
    """By rising time; they cover the whole source."""
    black: tuple[Span, ...]
    """Black spans."""
    freeze: tuple[Span, ...]
    """Frozen spans."""
    silence: tuple[Span, ...]
    """Silent spans."""
    loudness: Loudness | None
    """Null without a sound track."""
    transcript: Transcript | None
    """Null when speech was not asked for or there is no sound track."""

    @property
    def rate(self) -> Fraction:
        """Frames a second."""
        return Fraction(self.frame_rate)


class VideoAnalysis(Value):
    """Output of a VideoAnalyze step."""

    sources: tuple[SourceAnalysis, ...]
    """In the order of the project's file names."""
    speech_engine: str | None
    """Engine and model that recognised the speech; null when none was asked for."""
    notes: tuple[str, ...] = ()
    """What a person should know: partial files, no speech, and so on."""
