"""Concurrent executions of one key pay once: what a flight is, and how long one waits for another.

The first execution of a key takes a lease and keeps it alive; the others look for its entry again
and again, and compute themselves when the lease ends or the wait gets too long. The threads and the
clock are in resources/single_flight.py; this is what decides.

Source: specification C14.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from reprise.model.cache import Lease
from reprise.ports import Cancelled

LEASE_SECONDS = 60.0
HEARTBEAT_SECONDS = 15.0
POLL_SECONDS_MIN = 0.1
POLL_SECONDS_MAX = 2.0
POLL_GROWTH = 1.6
AFTER_EXPIRY_SECONDS = 0.05

Found = TypeVar("Found")


@dataclass
class Flight(Generic[Found]):
    """One execution of a key: either its answer was found, or it has to be computed."""

    found: Found | None = None
    """What another execution stored meanwhile; None means compute."""
    lease: Lease | None = None
    """Goes with the store of what is computed; None when there is none."""
    waited_seconds: float = 0.0
    """How long another execution was waited for."""


class Flights(Protocol):
    """Gives flights."""

    def take(
        self,
        project_id: str,
        cache_key: str,
        *,
        look: Callable[[], Found | None],
        expected_seconds: float | None,
        cancelled: Cancelled,
    ) -> AbstractContextManager[Flight[Found]]:
        """Hold the lease of a key, or wait for whoever has it.

        Args:
            project_id: The project.
            cache_key: The key.
            look: Looks the key up once more; None when it is still not there.
            expected_seconds: How long an execution takes; None when unknown.
            cancelled: Asked at least twice a second while waiting.

        Raises:
            Cancelled: The run was stopped while waiting.
        """
        ...


class Alone:
    """Flights without leases: everyone computes (`single_flight` is off, or the store has none)."""

    @contextmanager
    def take(
        self,
        project_id: str,
        cache_key: str,
        *,
        look: Callable[[], Found | None],
        expected_seconds: float | None,
        cancelled: Cancelled,
    ) -> Iterator[Flight[Found]]:
        """Give a flight that computes; see `Flights`."""
        del project_id, cache_key, look, expected_seconds, cancelled
        yield Flight()


def wait_seconds_max(lease_seconds: float, expected_seconds: float | None) -> float:
    """Return how long to wait for a holder that keeps its lease alive.

    Two leases, or half as long again as an execution takes where that is known to be longer: a
    holder that is alive is the cheaper way to the answer for as long as it makes progress.
    """
    return max(2 * lease_seconds, 1.5 * (expected_seconds or 0.0))


def poll_seconds(attempt: int, *, jitter: float, remaining_seconds: float) -> float:
    """Return the pause before looking again.

    Args:
        attempt: Counts the pauses from 0.
        jitter: At random in 0..1, so that many waiters do not ask in step.
        remaining_seconds: What is left of the present lease; the pause ends with it.
    """
    grown = min(POLL_SECONDS_MAX, POLL_SECONDS_MIN * POLL_GROWTH ** min(attempt, 32))
    until_expiry = remaining_seconds + AFTER_EXPIRY_SECONDS * (1 + jitter)
    return min(grown * (0.75 + jitter / 2), until_expiry)
