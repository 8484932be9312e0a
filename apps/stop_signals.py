"""Stops that nobody loses: Ctrl-C and a supervisor's stop, noted beside whatever handles them.

Python raises an interrupt wherever the main thread happens to be. In a callback of the garbage
collector, of which SQLAlchemy has many, it is printed and dropped, and the run would go on as if
nobody had asked. The interpreter writes each signal to a descriptor as well; a thread reads that
one, and stops the run when the main thread did not.

Tests: tests/acceptance/test_stopping.py.
"""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from pipelines.cancellation import cancellation

GRACE_SECONDS = 0.3
"""How long the main thread has to stop by itself, before it is told again."""

_STOPS = frozenset({signal.SIGINT, signal.SIGTERM})


class StopSignals:
    """Notes the stops that reach the process while the block runs; for the main thread alone."""

    def __init__(self) -> None:
        self._theirs, self._mine = socket.socketpair()
        self._mine.setblocking(False)
        self._lock = threading.Lock()
        self._asked = False
        self._run_id: str | None = None
        self._before = -1

    def __enter__(self) -> Self:
        """Listen."""
        self._before = signal.set_wakeup_fd(self._mine.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="stop-signals", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Listen no longer."""
        signal.set_wakeup_fd(self._before)
        # The listening thread reads the end of it and closes its side.
        self._mine.close()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let a stop wait for the end of the block, a second or two.

        Dagster's storage, cut off while it opens, says so with a traceback.

        Raises:
            KeyboardInterrupt: One came.
        """
        came: list[int] = []
        before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in _STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if came:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def stopping(self, run_id: str) -> Iterator[None]:
        """Stop this run when a stop comes, or came before, while the block runs."""
        with self._lock:
            self._run_id = run_id
            if self._asked:
                cancellation(run_id).set()
        try:
            yield
        finally:
            with self._lock:
                self._run_id = None

    def _listen(self) -> None:
        with self._theirs:
            while numbers := self._theirs.recv(64):
                if not _STOPS.isdisjoint(numbers):
                    time.sleep(GRACE_SECONDS)
                    self._stop()

    def _stop(self) -> None:
        with self._lock:
            self._asked = True
            if self._run_id is not None:
                cancellation(self._run_id).set()
