"""A circuit breaker: after a store's failure, calls are refused at once until a probe goes through.

Closed: calls go through. One overrun of a deadline opens it, and so do three errors within 30 s.
Open: calls are refused with `StoreError`. After 60 s one call goes through as a probe: its success
closes the breaker, its failure keeps it open for another 60 s.

With a `BreakerState` the processes of a run share it; three errors are still counted in each.

Put it around the deadline: `BreakerEntryStore(DeadlineEntryStore(store), breaker)`.

Source: specification C7.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from reprise.errors import ObjectMissing, StoreError, StoreTimeout
from reprise.ports import EntryStore, LeaseStore, ObjectStore
from resources.breaker_state import BreakerState
from resources.guarded_stores import GuardedEntryStore, GuardedLeaseStore, GuardedObjectStore

ERRORS_MAX = 3
WINDOW_SECONDS = 30.0
OPEN_SECONDS = 60.0

_Result = TypeVar("_Result")


class CircuitBreaker:
    """Counts a store's failures and refuses calls while it is down; safe among threads.

    Args:
        name: Who is asked, for messages.
        now: Answers seconds on a clock that never steps back.
        shared: Tells the other processes, and learns from them; None for this process alone.
    """

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], float] = time.monotonic,
        shared: BreakerState | None = None,
    ) -> None:
        self._name = name
        self._now = now
        self._lock = threading.Lock()
        self._error_times: deque[float] = deque(maxlen=ERRORS_MAX)
        self._probe_at: float | None = None
        self._probing = False
        self._shared = shared
        self._is_told = False

    @property
    def is_open(self) -> bool:
        """True while calls are refused, the probe aside."""
        with self._lock:
            self._learn()
        return self._probe_at is not None

    def call(self, work: Callable[[], _Result], /) -> _Result:
        """Return what `work` returns, or raise what it raises.

        Only a `StoreError` counts as a failure; `ObjectMissing` is an answer.

        Raises:
            StoreError: The breaker is open.
        """
        is_probe = self._admit()
        try:
            result = work()
        except ObjectMissing:
            self._succeeded(is_probe=is_probe)
            raise
        except StoreError as error:
            self._failed(is_overrun=isinstance(error, StoreTimeout), is_probe=is_probe)
            raise
        except BaseException:
            # Says nothing of the store; the next call may probe.
            with self._lock:
                self._probing = self._probing and not is_probe
            raise
        self._succeeded(is_probe=is_probe)
        return result

    def _admit(self) -> bool:
        with self._lock:
            self._learn()
            if self._probe_at is None:
                return False
            wait_seconds = self._probe_at - self._now()
            if wait_seconds <= 0 and not self._probing:
                self._probing = True
                # The other processes go on refusing while this one probes.
                self._tell()
                return True
        again = f"in {wait_seconds:.0f} s" if wait_seconds > 0 else "after the probe under way"
        message = f"{self._name} failed before and is not asked; it is tried again {again}"
        raise StoreError(message)

    def _succeeded(self, *, is_probe: bool) -> None:
        # A call from before the breaker opened does not close it.
        if is_probe:
            with self._lock:
                self._close()
                if self._shared is not None:
                    self._shared.close()

    def _failed(self, *, is_overrun: bool, is_probe: bool) -> None:
        with self._lock:
            now = self._now()
            self._error_times.append(now)
            many = len(self._error_times) == ERRORS_MAX
            if is_overrun or is_probe or (many and now - self._error_times[0] <= WINDOW_SECONDS):
                self._probe_at = now + OPEN_SECONDS
                self._tell()
            if is_probe:
                self._probing = False

    def _close(self) -> None:
        self._probe_at, self._probing, self._is_told = None, False, False
        self._error_times.clear()

    def _tell(self) -> None:
        if self._shared is not None:
            self._is_told = self._shared.open()

    def _learn(self) -> None:
        if self._shared is None or self._probing:
            return
        seconds = self._shared.seconds_to_probe()
        if seconds is not None:
            self._probe_at, self._is_told = self._now() + seconds, True
        elif self._is_told:
            # Another process probed, and the store is well.
            self._close()


class BreakerEntryStore(GuardedEntryStore):
    """An `EntryStore` behind a circuit breaker.

    Args:
        inner: The store, usually under a deadline.
        breaker: Shared by all stores of the same database.
    """

    def __init__(self, inner: EntryStore, breaker: CircuitBreaker) -> None:
        super().__init__(inner, lookup=breaker.call, store=breaker.call)


class BreakerLeaseStore(GuardedLeaseStore):
    """A `LeaseStore` behind a circuit breaker.

    Args:
        inner: The store, usually under a deadline.
        breaker: That of the entries in the same database.
    """

    def __init__(self, inner: LeaseStore, breaker: CircuitBreaker) -> None:
        super().__init__(inner, breaker.call)


class BreakerObjectStore(GuardedObjectStore):
    """An `ObjectStore` whose `head`, `put_bytes`, `get_bytes` and `delete` ask a circuit breaker.

    Args:
        inner: The store, usually under a deadline.
        breaker: Shared by all that ask the same object store for the cache.
    """

    def __init__(self, inner: ObjectStore, breaker: CircuitBreaker) -> None:
        super().__init__(inner, head=breaker.call, transfer=breaker.call)
