"""What a person sees while a run works: few lines, each of which says something new.

A step's first line comes at once, later ones seldom; how it ended always.

Source: specification V4; `reprise run`.
"""

import sys
import threading
import time
from collections.abc import Callable

from apps.commands.tables import one_line
from reprise.model.result import StepRecord, StepStatus

INTERVAL_SECONDS = 4.0
"""Least time between two lines of a step."""
LONG_SECONDS = 60.0
LONG_INTERVAL_SECONDS = 15.0
"""The same for a step that has worked for a minute."""


def print_line(line: str) -> None:
    """Print a line of progress to standard error; one that nobody can read stops nothing."""
    try:
        print(f"  {line}", file=sys.stderr, flush=True)
    except OSError:
        # The terminal is gone; the run goes on, as its result is in the home.
        return


class RunProgress:
    """Turns what steps tell into lines.

    Args:
        write: Takes a line.
        now: Answers seconds on a clock that never steps back.
    """

    def __init__(
        self,
        write: Callable[[str], None] = print_line,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._now = now
        self._lock = threading.Lock()
        self._times: dict[str, tuple[float, float]] = {}

    def working(self, label: str, what: str, share: float | None) -> None:
        """Take what a step is doing and the share of it that is done, 0 to 1."""
        now = self._now()
        with self._lock:
            first, last = self._times.get(label, (now, None))
            wait = INTERVAL_SECONDS if now - first < LONG_SECONDS else LONG_INTERVAL_SECONDS
            if last is not None and now - last < wait:
                return
            self._times[label] = (first, now)
        percent = "" if share is None else f" {share:.0%}"
        self._write(one_line(f"{label}: {what}{percent}"))

    def ended(self, record: StepRecord) -> None:
        """Take the record of a step that gave its result."""
        if record.from_cache:
            how = "from cache"
        elif record.status is StepStatus.SKIPPED:
            how = "skipped"
        else:
            how = f"done in {record.seconds:.1f} s"
        self._write(one_line(f"{record.label}: {how}"))

    def failed(self, label: str, error: str, *, tries_again: bool) -> None:
        """Take that a step failed."""
        if tries_again:
            self._write(one_line(f"{label}: {error}; trying again"))
        else:
            self._write(f"{label}: failed")
