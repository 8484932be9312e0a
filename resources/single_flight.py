"""Flights with leases: the thread that keeps a lease alive, and the wait for another's.

A holder never waits for another lease, so there is no deadlock: neither does what it calls in the
same thread, or in threads that run in a copy of its context. Every failure of the lease store means
that this execution computes, as it would alone.

Source: specification C14; the rules are in reprise/cache/single_flight.py.
"""

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from reprise.cache.single_flight import (
    HEARTBEAT_SECONDS,
    LEASE_SECONDS,
    Flight,
    Found,
    poll_seconds,
    wait_seconds_max,
)
from reprise.errors import Cancelled
from reprise.model.cache import Lease
from reprise.model.execution import in_this_execution
from reprise.ports import Cancelled as IsCancelled
from reprise.ports import LeaseStore

logger = logging.getLogger(__name__)

CANCEL_POLL_SECONDS = 0.25

_holding: ContextVar[bool] = ContextVar("holds_a_lease", default=False)


class SingleFlight:
    """Flights over a lease store; safe among threads.

    Args:
        leases: The leases, usually under a deadline and a breaker.
        lease_seconds: How long a lease lasts without a heartbeat.
        heartbeat_seconds: How often a holder renews it.
    """

    def __init__(
        self,
        leases: LeaseStore,
        *,
        lease_seconds: float = LEASE_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._leases = leases
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds

    @contextmanager
    def take(
        self,
        project_id: str,
        cache_key: str,
        *,
        look: Callable[[], Found | None],
        expected_seconds: float | None,
        cancelled: IsCancelled,
    ) -> Iterator[Flight[Found]]:
        """Hold the lease of a key, or wait for whoever has it; see `Flights`."""
        flight: Flight[Found] = Flight()
        holder = uuid.uuid4().hex
        try:
            flight.lease = self._acquire(project_id, cache_key, holder)
            if flight.lease is None and not _holding.get():
                limit = wait_seconds_max(self._lease_seconds, expected_seconds)
                self._wait(flight, (project_id, cache_key, holder), look, limit, cancelled)
            elif flight.lease is not None and flight.lease.fence > 1:
                # Whoever had it before may have stored since this execution looked.
                flight.found = look()
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
            logger.warning("single flight of %s is off: %s", cache_key[:12], error)
        if flight.lease is None:
            yield flight
        else:
            with self._held(flight.lease):
                yield flight

    def _acquire(self, project_id: str, cache_key: str, holder: str) -> Lease | None:
        return self._leases.acquire(
            project_id, cache_key, holder=holder, seconds=self._lease_seconds
        )

    def _wait(
        self,
        flight: Flight[Found],
        who: tuple[str, str, str],
        look: Callable[[], Found | None],
        seconds_max: float,
        cancelled: IsCancelled,
    ) -> None:
        """Wait until the answer is found, the lease is had, or the time is over."""
        project_id, cache_key, _ = who
        logger.info("step %s runs elsewhere; waiting for its result", cache_key[:12])
        begun = time.monotonic()
        attempt = 0
        while flight.waited_seconds < seconds_max:
            remaining = self._leases.remaining_seconds(project_id, cache_key)
            jitter = random.random()
            _pause(poll_seconds(attempt, jitter=jitter, remaining_seconds=remaining), cancelled)
            attempt += 1
            flight.waited_seconds = time.monotonic() - begun
            flight.found = look()
            if flight.found is not None:
                return
            flight.lease = self._acquire(*who)
            if flight.lease is not None:
                # Stored and released between the look and the acquisition?
                flight.found = look()
                return
        logger.info("step %s: waited %.0f s; computing", cache_key[:12], flight.waited_seconds)

    @contextmanager
    def _held(self, lease: Lease) -> Iterator[None]:
        ended = threading.Event()
        # A daemon: it must not hold up the end of the process.
        threading.Thread(
            target=in_this_execution(self._keep_alive),
            args=(lease, ended),
            name=f"lease: {lease.cache_key[:12]}",
            daemon=True,
        ).start()
        token = _holding.set(True)
        try:
            yield
        finally:
            _holding.reset(token)
            ended.set()
            try:
                self._leases.release(lease)
            except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
                # It expires by itself.
                logger.warning("lease of %s is not released: %s", lease.cache_key[:12], error)

    def _keep_alive(self, lease: Lease, ended: threading.Event) -> None:
        while not ended.wait(self._heartbeat_seconds):
            try:
                if not self._leases.renew(lease, seconds=self._lease_seconds):
                    # Frozen for longer than the lease: another computes. The store is refused by
                    # the fence, and this run goes on with its own result.
                    logger.warning("lease of %s was lost", lease.cache_key[:12])
                    return
            except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
                # There are more heartbeats in a lease.
                logger.warning("lease of %s is not renewed: %s", lease.cache_key[:12], error)


def _pause(seconds: float, cancelled: IsCancelled) -> None:
    end = time.monotonic() + seconds
    while True:
        if cancelled():
            message = "the run was stopped while it waited for another execution of a step"
            raise Cancelled(message)
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, CANCEL_POLL_SECONDS))
