"""What a probe and one decode of a source measure, before it is an analysis.

Source: specification V1, V5.
"""

from pathlib import Path

from reprise.model.base import Value
from reprise.model.media import Loudness


class MediaProbe(Value):
    """What a container says of a video, one frame decoded."""

    duration_seconds: float
    """Length of the picture; of the sound where there is no picture."""
    has_video: bool
    """A moving picture; cover art does not count."""
    has_audio: bool
    """A sound track."""
    width: int = 0
    """Display width after rotation and with square pixels."""
    height: int = 0
    """Display height after rotation and with square pixels."""
    rotation_degrees: int = 0
    """Clockwise rotation that a player applies."""
    frame_rate: str = "0"
    """Rational frames a second."""
    frame_count: int = 0
    """Frames that the container claims, at `frame_rate`."""
    variable_frame_rate: bool = False
    """Unevenly spaced frames."""
    audio_rate_hz: int | None = None
    """Sampling rate."""
    hdr: bool = False
    """PQ or HLG transfer."""
    container: str = ""
    """Demuxer name, such as `mov,mp4,m4a,3gp,3g2,mj2`."""


class MeasuredShot(Value):
    """A shot with its figures and its thumbnail as a local file."""

    start_frame: int
    """First frame."""
    end_frame: int
    """First frame that is not in it."""
    luma: float
    """Mean luma, 0 to 255."""
    saturation: float
    """Mean saturation, 0 to 1."""
    clipped: float
    """Share of pixels at either end of the range."""
    motion: float
    """Mean absolute luma change between frames."""
    motion_x: float = 0.5
    """Where the motion is, across."""
    thumbnail: Path | None = None
    """A JPEG of its middle."""


class FrameMeasures(Value):
    """What one decode of a source measured; all lists by rising time."""

    frame_count: int
    """Frames decoded at `frame_rate`."""
    frame_rate: str
    """Rational frames a second."""
    partial: bool = False
    """Fewer frames than the container claims."""
    shots: tuple[MeasuredShot, ...]
    """They cover the whole source."""
    black: tuple[tuple[float, float], ...]
    """Start and end in seconds."""
    freeze: tuple[tuple[float, float], ...]
    """Start and end in seconds."""
    silence: tuple[tuple[float, float], ...]
    """Start and end in seconds."""
    loudness: Loudness | None
    """Null without sound."""
    letterbox: tuple[int, int, int, int] | None = None
    """Left, top, width, height of the active picture when it has bars."""


class AnalyzeOptions(Value):
    """Thresholds of an analysis; see `VideoAnalyzeConfig`."""

    shot_threshold: float = 1.0
    """1 is the measured default; higher finds fewer cuts."""
    black_seconds_min: float = 0.3
    """Shortest black span."""
    freeze_seconds_min: float = 0.7
    """Shortest frozen span."""
    silence_seconds_min: float = 0.3
    """Shortest silence."""
    silence_db: float = -40.0
    """Below this level it is silence, in dBFS."""
