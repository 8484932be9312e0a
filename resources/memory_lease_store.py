"""Leases in this process's memory: the lease stores' twin.

Extend tests/integration/test_lease_store_contract.py, which all lease stores pass.

Source: specification C14.
"""

import threading
import time
from collections.abc import Callable

from reprise.model.cache import Lease

_Key = tuple[str, str]


class MemoryLeaseStore:
    """A `LeaseStore` in memory; safe among threads.

    Args:
        clock: Answers seconds on a clock that never steps back.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[_Key, tuple[Lease, float]] = {}

    def acquire(
        self, project_id: str, cache_key: str, *, holder: str, seconds: float
    ) -> Lease | None:
        """Take the lease for so long; None while another holder has it; see `LeaseStore`."""
        key = (project_id, cache_key)
        with self._lock:
            now = self._clock()
            present = self._held.get(key)
            if present is not None and present[1] > now and present[0].holder != holder:
                return None
            fence = 1 if present is None else present[0].fence + 1
            lease = Lease(project_id=project_id, cache_key=cache_key, holder=holder, fence=fence)
            self._held[key] = (lease, now + seconds)
        return lease

    def renew(self, lease: Lease, *, seconds: float) -> bool:
        """Have it for so long from now; False when it was lost; see `LeaseStore`."""
        with self._lock:
            if not self.holds(lease):
                return False
            until = self._clock() + seconds
            self._held[(lease.project_id, lease.cache_key)] = (lease, until)
        return True

    def release(self, lease: Lease) -> None:
        """Give it up; see `LeaseStore`."""
        with self._lock:
            if self.holds(lease):
                # Without its holder, or a heartbeat that is under way would bring it back.
                nobody = lease.model_copy(update={"holder": ""})
                self._held[(lease.project_id, lease.cache_key)] = (nobody, float("-inf"))

    def remaining_seconds(self, project_id: str, cache_key: str) -> float:
        """Return how long the present holder still has it; see `LeaseStore`."""
        with self._lock:
            present = self._held.get((project_id, cache_key))
            return 0.0 if present is None else max(0.0, present[1] - self._clock())

    def holds(self, lease: Lease) -> bool:
        """Answer whether nobody took it since; see `LeaseStore`."""
        present = self._held.get((lease.project_id, lease.cache_key))
        return present is not None and present[0] == lease
