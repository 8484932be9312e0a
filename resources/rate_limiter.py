"""The limit on calls of one model at one provider, shared by all threads of a process.

Calls take their turn in the order in which they came: so many at once, so many a minute, and none
while the endpoint asked for a pause. Whoever waits can be stopped and has a deadline. A call that
pauses before another attempt holds no place.

Source: specification A4; research/agents.md section 5. Tests:
tests/unit/resources/test_rate_limiter.py.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ProviderError
from reprise.ports import Cancelled

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.1
"""How often one that waits looks whether the run is being stopped."""

PAUSE_SECONDS_MAX = 60.0
"""Longest pause for everyone that an endpoint may ask for at once."""

WINDOW_SECONDS = 60.0


class RateLimiter:
    """Places for calls.

    Args:
        name: What is limited, for messages.
        concurrency: Most calls at once.
        requests_per_minute: Most calls begun in any minute; None sets no bound.
        monotonic: Seconds that only rise.
    """

    def __init__(
        self,
        name: str,
        *,
        concurrency: int,
        requests_per_minute: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._concurrency = concurrency
        self._per_minute = requests_per_minute
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._running = 0
        self._begun: deque[float] = deque()
        self._not_before = 0.0

    @contextmanager
    def place(self, *, seconds: float, cancelled: Cancelled) -> Iterator[float]:
        """Hold a place while the block runs; gives the seconds that it was waited for.

        Args:
            seconds: Longest wait.
            cancelled: Whether the run is being stopped.

        Raises:
            ProviderError: No place within that time; transient.
            Cancelled: The run is being stopped.
        """
        waited = self._enter(seconds, cancelled)
        try:
            yield waited
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Let no call begin for so long: the endpoint asked for it."""
        until = self._monotonic() + min(seconds, PAUSE_SECONDS_MAX)
        with self._changed:
            self._not_before = max(self._not_before, until)

    def _enter(self, seconds: float, cancelled: Cancelled) -> float:
        ticket = object()
        began = self._monotonic()
        told = False
        with self._changed:
            self._queue.append(ticket)
            try:
                while self._queue[0] is not ticket or (left := self._left()) > 0:
                    waited = self._monotonic() - began
                    self._check(waited, seconds, cancelled)
                    if waited >= 1 and not told:
                        logger.info("%s: waiting for a place among its calls", self._name)
                        told = True
                    wait = left if self._queue[0] is ticket else POLL_SECONDS
                    self._changed.wait(min(wait, POLL_SECONDS))
                now = self._monotonic()
                self._running += 1
                if self._per_minute is not None:
                    self._begun.append(now)
                return now - began
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _left(self) -> float:
        """Return how long the next call has to wait for certain; 0 when it may begin."""
        now = self._monotonic()
        left = self._not_before - now
        if self._per_minute is not None:
            while self._begun and now - self._begun[0] >= WINDOW_SECONDS:
                self._begun.popleft()
            if len(self._begun) >= self._per_minute:
                left = max(left, self._begun[0] + WINDOW_SECONDS - now)
        if self._running >= self._concurrency:
            left = max(left, POLL_SECONDS)
        return max(0.0, left)

    def _check(self, waited: float, seconds: float, cancelled: Cancelled) -> None:
        if cancelled():
            message = f"{self._name}: the run was stopped while it waited for a place"
            raise RunCancelled(message)
        if waited >= seconds:
            message = (
                f"{self._name}: no place among its calls within {seconds:g} s; raise the "
                "provider's `concurrency` or `requests_per_minute`, or run fewer steps at once"
            )
            raise ProviderError(message, transient=True)


class RateLimits:
    """The limiter of each model of one provider.

    Args:
        provider_id: The provider's id, for messages.
        concurrency: Most calls of a model at once.
        requests_per_minute: Most calls of a model in any minute; None sets no bound.
    """

    def __init__(
        self, provider_id: str, *, concurrency: int = 8, requests_per_minute: int | None = None
    ) -> None:
        self._provider_id = provider_id
        self._concurrency = concurrency
        self._per_minute = requests_per_minute
        self._limiters: dict[str, RateLimiter] = {}
        self._lock = threading.Lock()

    def of(self, model: str) -> RateLimiter:
        """Return a model's limiter."""
        with self._lock:
            if model not in self._limiters:
                self._limiters[model] = RateLimiter(
                    f"provider {self._provider_id!r}, model {model!r}",
                    concurrency=self._concurrency,
                    requests_per_minute=self._per_minute,
                )
            return self._limiters[model]
