"""Stores with a deadline that the client keeps: a hung store costs one deadline, not a run.

A call runs on a worker thread that waits for the next one. When it overruns, the caller gets
`StoreTimeout`, and the thread is left to its call and ends after it; what the call still writes is
whole (an upsert or nothing). Threads are daemons: none holds up the end of the process.

Performance: about 15 µs a call, measured by tests/unit/resources/test_deadline.py.

Source: specification C7.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple, TypeVar, cast

from reprise.errors import StoreTimeout
from reprise.model.execution import in_this_execution
from reprise.ports import EntryStore, LeaseStore, ObjectStore
from resources.guarded_stores import (
    Guard,
    GuardedEntryStore,
    GuardedLeaseStore,
    GuardedObjectStore,
)

LOOKUP_SECONDS = 0.25
STORE_SECONDS = 0.5
HEAD_SECONDS = 1.0
HUNG_CALLS_MAX = 16
"""With so many calls still hanging, the next one fails at once instead of adding a thread."""

_Result = TypeVar("_Result")


class Deadline:
    """Runs calls under a deadline; safe among threads, which do not wait for each other.

    Args:
        name: Who is asked, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = os.getpid()
        self._idle: deque[_Worker] = deque()
        self._hung: list[_Worker] = []
        self._lock = threading.Lock()
        self._closer = weakref.finalize(self, _dismiss, self._idle)
        self._closer.atexit = False  # Daemon threads need no farewell.

    def call(self, work: Callable[[], _Result], seconds: float) -> _Result:
        """Return what `work` returns, or raise what it raises.

        Raises:
            StoreTimeout: It gave no answer within the deadline, or too many earlier calls hang.
        """
        worker = self._take()
        answered = False
        try:
            worker.inbox.put(in_this_execution(work))
            outcome = worker.outbox.get(timeout=seconds)
            answered = True
        except Empty:
            message = f"{self._name} gave no answer within {seconds:g} s; see whether it is up"
            raise StoreTimeout(message) from None
        finally:
            # Also after Ctrl-C: whoever took this worker next would get this call's answer.
            if answered:
                self._idle.append(worker)
            else:
                worker.inbox.put(None)
                with self._lock:
                    self._hung.append(worker)
        if outcome.error is not None:
            raise outcome.error
        return cast("_Result", outcome.value)

    def of(self, seconds: float) -> Guard:
        """Return a guard that runs each call under so long a deadline."""

        def guard(work: Callable[[], _Result], /) -> _Result:
            return self.call(work, seconds)

        return guard

    def _take(self) -> "_Worker":
        if self._process != os.getpid():
            # The threads of a parent do not exist in its child.
            self._process = os.getpid()
            self._idle.clear()
            self._hung.clear()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        with self._lock:
            self._hung = [worker for worker in self._hung if worker.thread.is_alive()]
            if len(self._hung) >= HUNG_CALLS_MAX:
                message = f"{self._name}: {len(self._hung)} calls still hang; see whether it is up"
                raise StoreTimeout(message)
        return _Worker(self._name)


class DeadlineEntryStore(GuardedEntryStore):
    """An `EntryStore` whose calls on a step's path have a deadline.

    Args:
        inner: The store.
        lookup_seconds: Deadline of `get`, `tombstone`, `nearest` and `of_key`.
        store_seconds: Deadline of `put`, `delete`, `sweep` and `flush`.
    """

    def __init__(
        self,
        inner: EntryStore,
        *,
        lookup_seconds: float = LOOKUP_SECONDS,
        store_seconds: float = STORE_SECONDS,
    ) -> None:
        deadline = Deadline("the step cache's store")
        super().__init__(
            inner, lookup=deadline.of(lookup_seconds), store=deadline.of(store_seconds)
        )


class DeadlineLeaseStore(GuardedLeaseStore):
    """A `LeaseStore` whose calls have a deadline.

    Args:
        inner: The store.
        seconds: The deadline.
    """

    def __init__(self, inner: LeaseStore, *, seconds: float = STORE_SECONDS) -> None:
        super().__init__(inner, Deadline("the step cache's lease store").of(seconds))


class DeadlineObjectStore(GuardedObjectStore):
    """An `ObjectStore` whose `head` has a deadline, and the moving of bytes where one is given.

    Args:
        inner: The store.
        head_seconds: Deadline of `head`.
        transfer_seconds: Deadline of `put_bytes`, `get_bytes` and `delete`; None for none. Files
            have none: a film takes as long as it takes.
    """

    def __init__(
        self,
        inner: ObjectStore,
        *,
        head_seconds: float = HEAD_SECONDS,
        transfer_seconds: float | None = None,
    ) -> None:
        deadline = Deadline("the object store")
        transfer = None if transfer_seconds is None else deadline.of(transfer_seconds)
        super().__init__(inner, head=deadline.of(head_seconds), transfer=transfer)


class _Outcome(NamedTuple):
    value: object
    error: BaseException | None


class _Worker:
    """A thread that runs one call at a time, until it is given None."""

    def __init__(self, name: str) -> None:
        self.inbox: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self.outbox: SimpleQueue[_Outcome] = SimpleQueue()
        self.thread = threading.Thread(
            target=_serve, args=(self.inbox, self.outbox), name=f"deadline: {name}", daemon=True
        )
        self.thread.start()


def _serve(
    inbox: "SimpleQueue[Callable[[], object] | None]", outbox: "SimpleQueue[_Outcome]"
) -> None:
    while (work := inbox.get()) is not None:
        try:
            outcome = _Outcome(work(), None)
        except BaseException as error:  # noqa: BLE001 - The caller raises it.
            outcome = _Outcome(None, error)
        outbox.put(outcome)
        # An idle worker keeps nothing of its last call alive.
        del work, outcome


def _dismiss(idle: "deque[_Worker]") -> None:
    while idle:
        idle.pop().inbox.put(None)
