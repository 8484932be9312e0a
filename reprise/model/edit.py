"""What an edit is: ordered cuts in whole frames, each with its reason.

Source: specification V9, W3 (EditRoom).
"""

from fractions import Fraction

from pydantic import Field

from reprise.model.base import Value


class Cut(Value):
    """One stretch of a source that goes into the film."""

    id: str
    """Unique in the decision: `c1`, `c2`, …"""
    source_id: str
    """Source in the analysis, such as `v1`."""
    start_frame: int = Field(ge=0)
    """First frame, counted at the source's frame rate."""
    end_frame: int
    """First frame that is not in it."""
    sentence_ids: tuple[str, ...] = ()
    """Sentences that it carries."""
    shot_ids: tuple[str, ...] = ()
    """Shots that it touches."""
    reason: str
    """Why it was chosen, in one sentence."""


class EditDecision(Value):
    """Output of an EditRoom step."""

    title: str = Field(min_length=1, max_length=120)
    """Text of the title card."""
    frame_rate: str
    """Rational frames a second of the film."""
    target_seconds: float
    """The length that was asked for."""
    cuts: tuple[Cut, ...] = Field(min_length=1)
    """In the film's order."""
    rationale: str = ""
    """What the room agreed on, in a few sentences."""
    notes: tuple[str, ...] = ()
    """What a person should know."""

    @property
    def rate(self) -> Fraction:
        """Frames a second of the film."""
        return Fraction(self.frame_rate)
