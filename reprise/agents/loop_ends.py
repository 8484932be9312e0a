"""Why an agent's loop ended and what it had spent, as its errors carry it.

Source: specification A3, A4. Tests: tests/unit/agents/test_loop_ends.py.
"""

from reprise.errors import Cancelled, ProviderError, StepFailed
from reprise.model.result import LoopEnd, Usage

RETRY_AFTER_SECONDS_MAX = 60.0
"""Longest pause that an endpoint may ask for; a longer one ends the loop."""


def usage_of(error: BaseException) -> Usage:
    """Return what model calls took before an error."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else Usage()


def add_usage(error: BaseException, usage: Usage) -> None:
    """Let an error carry what was spent before the loop that it came out of."""
    error.__dict__["usage"] = usage + usage_of(error)


def end_of(error: BaseException) -> LoopEnd | None:
    """Return why an agent's loop ended, for an error that came out of one."""
    ended = getattr(error, "ended", None)
    return ended if isinstance(ended, LoopEnd) else None


def end_by_kind(error: BaseException) -> LoopEnd:
    """Return why a loop ended, by the error's kind alone."""
    match error:
        case ProviderError():
            return LoopEnd.PROVIDER
        case Cancelled():
            return LoopEnd.CANCELLED
        case _:
            return LoopEnd.FAULT


def because(end: LoopEnd, error: StepFailed) -> StepFailed:
    """Return an error with the reason why the loop ended."""
    error.ended = end
    return error


def asks_too_long(error: ProviderError) -> bool:
    """Answer whether an endpoint asks for a longer pause than a loop makes."""
    seconds = error.retry_after_seconds
    return error.transient and seconds is not None and seconds > RETRY_AFTER_SECONDS_MAX


def too_long_a_pause(error: ProviderError) -> ProviderError:
    """Return a final error: a step that is tried again would ask long before its time."""
    message = (
        f"{error}; it asks to wait {error.retry_after_seconds:g} s, the longest pause is "
        f"{RETRY_AFTER_SECONDS_MAX:g} s: run again then"
    )
    return ProviderError(message, retry_after_seconds=error.retry_after_seconds)
