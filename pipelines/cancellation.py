"""Which runs of this process are being stopped.

The executor sets it, the steps' threads ask it. Signals reach the main thread only, so a step that
waits on ffmpeg or a model in another thread learns of a stop here.

Source: specification V4.
"""

import threading

_lock = threading.Lock()
_events: dict[str, threading.Event] = {}


def cancellation(run_id: str) -> threading.Event:
    """Return the event that is set once the run is being stopped."""
    with _lock:
        return _events.setdefault(run_id, threading.Event())


def forget(run_id: str) -> None:
    """Drop a finished run's event."""
    with _lock:
        _events.pop(run_id, None)
