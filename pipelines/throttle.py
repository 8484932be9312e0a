"""Progress of a run: a line when its work changes, and at most every two seconds.

Who launches a run in this process can watch its steps as they work.

Source: specification V4, D11.
"""

import threading
import time
from collections.abc import Callable

INTERVAL_SECONDS = 2.0

Watcher = Callable[[str, str, float | None], None]
"""Called with a step's label, what it is doing, and the share done (0 to 1, or None)."""

_watchers: dict[str, Watcher] = {}


def watch(run_id: str, watcher: Watcher) -> None:
    """Call `watcher` with what the steps of a run of this process are doing."""
    _watchers[run_id] = watcher


def unwatch(run_id: str) -> None:
    """Stop watching a run."""
    _watchers.pop(run_id, None)


class Throttled:
    """A progress callback that writes few lines.

    Args:
        log: Takes a line.
        run_id: The run, for whoever watches it.
        label: Put before every line.
    """

    def __init__(self, log: Callable[[str], None], *, run_id: str, label: str) -> None:
        self._log = log
        self._run_id = run_id
        self._label = label
        self._lock = threading.Lock()
        self._last_what = ""
        self._last_time = 0.0

    def __call__(self, what: str, share: float | None) -> None:
        """Take what is being done and the share done, 0 to 1."""
        now = time.monotonic()
        with self._lock:
            if what == self._last_what and now - self._last_time < INTERVAL_SECONDS:
                return
            self._last_what, self._last_time = what, now
        percent = "" if share is None else f" {share:.0%}"
        line = f"{self._label}: {what}{percent}"
        self._log(line)
        watcher = _watchers.get(self._run_id)
        if watcher is not None:
            watcher(self._label, what, share)
