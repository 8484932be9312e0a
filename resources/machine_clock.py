"""The machine's clock that only rises, and its sleep."""

import time


class MachineClock:
    """A `Clock` of this machine."""

    def monotonic(self) -> float:
        """Return seconds since some moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)
