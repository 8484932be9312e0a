"""The time that an agent's loop counts in and waits by.

The one place in the core that knows the machine's clock, and only as a default: a test gives its
own, and waits no second.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only rise, and a way to let some pass."""

    def monotonic(self) -> float:
        """Return seconds since some moment in the past."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


class MachineClock:
    """The machine's own monotonic clock."""

    def monotonic(self) -> float:
        """Return seconds since some moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)
