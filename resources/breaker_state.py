"""A circuit breaker's state in a tiny file, so that the processes of a run share it.

Each step of a multiprocess run is a process of its own; without this each would pay a deadline to
a store that is down. The file holds when the next probe is due and is absent while the store is
well. It is only ever a hint: missing, torn, foreign or from another clock it counts as absent, and
a file that cannot be written is not written.

Source: specification C7.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from resources.atomic_file import write_whole

STATE_BYTES_MAX = 1000
READ_EVERY_SECONDS = 0.1


class BreakerState:
    """When the next probe of a store is due, told among processes; safe among threads.

    Args:
        path: The file; one for each store, such as `breakers/database.json` in the home.
        open_seconds: The longest that a breaker stays open; a file that says more is void.
        wall: Answers seconds since 1970.
        now: Answers seconds on a clock that never steps back.
    """

    def __init__(
        self,
        path: Path,
        *,
        open_seconds: float,
        wall: Callable[[], float] = time.time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._open_seconds = open_seconds
        self._wall = wall
        self._now = now
        self._read_at = float("-inf")
        self._probe_at_wall: float | None = None

    def seconds_to_probe(self) -> float | None:
        """Return how long until the next probe, at most 0 when it is due; None while it is well.

        What was read a tenth of a second ago is not read again.
        """
        now = self._now()
        if now - self._read_at >= READ_EVERY_SECONDS:
            self._read_at = now
            self._probe_at_wall = self._read()
        if self._probe_at_wall is None:
            return None
        seconds = self._probe_at_wall - self._wall()
        # Too far ahead: the clock was set back. Long ago: nobody has used it since.
        return seconds if abs(seconds) <= self._open_seconds else None

    def open(self) -> bool:
        """Say that the store is down and is probed after `open_seconds`.

        Returns:
            False when the file cannot be written.
        """
        self._probe_at_wall = self._wall() + self._open_seconds
        self._read_at = self._now()
        data = json.dumps({"probe_at": self._probe_at_wall}).encode()
        try:
            write_whole(self._path, lambda stream: stream.writelines((data,)))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Say that the store is well."""
        self._probe_at_wall = None
        self._read_at = self._now()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _read(self) -> float | None:
        try:
            with self._path.open("rb") as stream:
                data = stream.read(STATE_BYTES_MAX)
            probe_at = json.loads(data)["probe_at"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return float(probe_at) if isinstance(probe_at, int | float) else None
