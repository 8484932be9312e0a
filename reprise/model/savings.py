"""What a cache saved, as sums.

Source: specification C10, D10.
"""

from enum import StrEnum

from reprise.model.base import Value


class SavingsBy(StrEnum):
    """What savings are summed by."""

    WORKFLOW = "workflow"
    PROJECT = "project"
    DAY = "day"


class Savings(Value):
    """Sums over the steps of a group that succeeded."""

    group: str
    """Workflow id, project id, or day as `2026-01-31` (UTC)."""
    steps: int = 0
    """Steps that gave a result."""
    hits: int = 0
    """Those that came from the cache."""
    tokens_used: int = 0
    """Tokens that model calls took."""
    tokens_saved: int = 0
    """Tokens that hits did not take."""
    cost_micros_used: int = 0
    """Millionths of a dollar spent, where the price is known."""
    cost_micros_saved: int = 0
    """Millionths of a dollar not spent, where the price is known."""
    unpriced: int = 0
    """Steps whose price is unknown."""
    seconds_used: float = 0.0
    """Seconds that the steps took."""
    seconds_saved: float = 0.0
    """Seconds that the originals of hits took."""
