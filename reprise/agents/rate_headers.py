"""What an endpoint's response headers say about when to ask again.

Source: research/agents.md section 5. Tests: tests/unit/agents/test_rate_headers.py.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

EXHAUSTIBLE = ("requests", "tokens", "input-tokens", "output-tokens")
"""What both vendors count."""

DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the endpoint's own word on when to try again; None when it gives none.

    Args:
        headers: By lower-case name.
        now: Aware.
    """
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        said = headers.get("retry-after", "").strip()
        if not said:
            return None
        if said.replace(".", "", 1).isdigit():
            return float(said)
        return max(0.0, (_aware(parsedate_to_datetime(said)) - now).total_seconds())
    except (TypeError, ValueError):
        return None


def exhausted_seconds(headers: Mapping[str, str], now: datetime) -> float:
    """Return how long nothing is left of what the endpoint allows; 0 while something is.

    Args:
        headers: By lower-case name: OpenAI's `x-ratelimit-…` or `anthropic-ratelimit-…`.
        now: Aware.
    """
    waits = [0.0]
    for what in EXHAUSTIBLE:
        pairs = (
            (f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}"),
            (f"anthropic-ratelimit-{what}-remaining", f"anthropic-ratelimit-{what}-reset"),
        )
        waits += [
            _until(headers.get(reset, ""), now)
            for remaining, reset in pairs
            if headers.get(remaining, "").strip() == "0"
        ]
    return max(waits)


def _until(said: str, now: datetime) -> float:
    """Return the seconds of `6m0s`, `20ms` or until a moment; 0 for anything else."""
    found = DURATION.fullmatch(said.strip())
    if found is not None:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        return max(0.0, (_aware(datetime.fromisoformat(said.strip())) - now).total_seconds())
    except ValueError:
        return 0.0


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
