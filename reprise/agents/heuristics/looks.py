"""What makes a shot worth showing: movement, light, colour, length, and no faults."""

from dataclasses import dataclass

from reprise.media.spoken import SPAN_SECONDS_MAX, Footage, span_seconds
from reprise.media.usable import shot_ranges
from reprise.model.media import Shot

MOTION_HALF = 3.0
"""Motion at which a shot counts as half lively."""
MOTION_HECTIC = 14.0
"""Motion above this tires."""
LUMA_BEST = 115.0
"""Comfortable mean brightness."""


@dataclass(frozen=True)
class Look:
    """A shot as the rules see it."""

    footage: Footage
    """Its source."""
    shot: Shot
    """The shot."""
    score: float
    """How much it is worth showing, 0 to 1."""
    speech: float
    """Share of it in which somebody speaks."""
    fault: str
    """Why it must not be shown; empty when it may."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.shot.end_seconds - self.shot.start_seconds


def look_at(footage: Footage, shot: Shot) -> Look:
    """Return a shot with its score."""
    fault = _fault(footage, shot)
    score = 0.0 if fault else _score(shot)
    return Look(footage, shot, round(score, 3), round(_speech(footage, shot), 3), fault)


def liveliness(shot: Shot) -> float:
    """Return how much moves, 0 to 1; hectic movement counts less."""
    lively = shot.motion / (shot.motion + MOTION_HALF)
    return lively * (0.6 if shot.motion > MOTION_HECTIC else 1.0)


def _score(shot: Shot) -> float:
    seconds = shot.end_seconds - shot.start_seconds
    light = max(0.0, 1.0 - abs(shot.luma - LUMA_BEST) / LUMA_BEST)
    colour = min(1.0, shot.saturation / 0.4)
    length = 0.3 if seconds < 1 else 0.7 if seconds < 2 else 1.0 if seconds <= 8 else 0.8
    score = 0.4 * liveliness(shot) + 0.25 * light + 0.15 * colour + 0.2 * length
    return max(0.0, min(1.0, score - min(0.3, shot.clipped)))


def _fault(footage: Footage, shot: Shot) -> str:
    start, end = shot.start_seconds, shot.end_seconds
    for kind, spans in (("black", footage.source.black), ("frozen", footage.source.freeze)):
        bad = span_seconds(start, end, spans)
        if bad > SPAN_SECONDS_MAX or bad > 0.5 * (end - start):
            return f"{kind} for {bad:.1f} of its {end - start:.1f} seconds"
    if not shot_ranges(footage, shot):
        return f"too short or silent: {end - start:.1f} seconds"
    return ""


def _speech(footage: Footage, shot: Shot) -> float:
    start, end = shot.start_seconds, shot.end_seconds
    spoken = sum(max(0.0, min(end, w.end) - max(start, w.start)) for w in footage.words)
    return min(1.0, spoken / max(end - start, 0.001))
