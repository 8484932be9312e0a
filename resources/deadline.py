"""Stores with a deadline that the client keeps: a hung store costs one deadline, not a run.

A call runs on a worker thread that waits for the next one. When it overruns, the caller gets
`StoreTimeout`, and the thread is left to its call and ends after it; what the call still writes is
whole (an upsert or nothing). Threads are daemons: none holds up the end of the process.

Performance: about 15 µs a call, measured by tests/integration/test_deadline.py's own command.

Source: specification C7.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple, TypeVar, cast

from reprise.errors import StoreTimeout
from reprise.model.result import CacheReason
from reprise.ports import CacheEntry, EntryStore, ObjectInfo, ObjectStore

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
            worker.inbox.put(work)
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


class DeadlineEntryStore:
    """An `EntryStore` whose calls on a step's path have a deadline.

    `clear` and `len` are for people, take as long as they take, and have none.

    Args:
        inner: The store.
        lookup_seconds: Deadline of `get`, `tombstone` and `nearest`.
        store_seconds: Deadline of `put`, `delete` and `sweep`.
    """

    def __init__(
        self,
        inner: EntryStore,
        *,
        lookup_seconds: float = LOOKUP_SECONDS,
        store_seconds: float = STORE_SECONDS,
    ) -> None:
        self._inner = inner
        self._lookup_seconds = lookup_seconds
        self._store_seconds = store_seconds
        self._deadline = Deadline("the step cache's store")

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None; see `EntryStore`."""
        return self._deadline.call(
            lambda: self._inner.get(project_id, cache_key, now=now), self._lookup_seconds
        )

    def put(self, entry: CacheEntry) -> None:
        """Insert or replace an entry; see `EntryStore`."""
        self._deadline.call(lambda: self._inner.put(entry), self._store_seconds)

    def delete(
        self, project_id: str, cache_key: str, *, reason: CacheReason, now: datetime
    ) -> None:
        """Remove an entry and leave a tombstone; see `EntryStore`."""
        self._deadline.call(
            lambda: self._inner.delete(project_id, cache_key, reason=reason, now=now),
            self._store_seconds,
        )

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key went; see `EntryStore`."""
        return self._deadline.call(
            lambda: self._inner.tombstone(project_id, cache_key), self._lookup_seconds
        )

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return the newest entry of a step; see `EntryStore`."""
        return self._deadline.call(
            lambda: self._inner.nearest(project_id, workflow_id, step_label), self._lookup_seconds
        )

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove expired entries; see `EntryStore`."""
        return self._deadline.call(
            lambda: self._inner.sweep(now=now, rows_max=rows_max), self._store_seconds
        )

    def clear(self) -> None:
        """Remove all entries."""
        self._inner.clear()

    def __len__(self) -> int:
        return len(self._inner)


class DeadlineObjectStore:
    """An `ObjectStore` whose `head` has a deadline; the rest moves bytes and has none.

    Args:
        inner: The store.
        head_seconds: Deadline of `head`.
    """

    def __init__(self, inner: ObjectStore, *, head_seconds: float = HEAD_SECONDS) -> None:
        self._inner = inner
        self._head_seconds = head_seconds
        self._deadline = Deadline("the object store")

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object, or None; see `ObjectStore`."""
        return self._deadline.call(lambda: self._inner.head(key), self._head_seconds)

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        """Store bytes; see `ObjectStore`."""
        return self._inner.put_bytes(key, data, media_type=media_type)

    def put_file(self, key: str, path: Path, *, media_type: str | None = None) -> ObjectInfo:
        """Store a file's bytes; see `ObjectStore`."""
        return self._inner.put_file(key, path, media_type=media_type)

    def get_bytes(self, key: str, *, size_bytes_max: int = 64 * 2**20) -> bytes:
        """Return an object's bytes; see `ObjectStore`."""
        return self._inner.get_bytes(key, size_bytes_max=size_bytes_max)

    def fetch(self, key: str, target: Path) -> None:
        """Copy an object to a local file; see `ObjectStore`."""
        self._inner.fetch(key, target)

    def local_path(self, key: str) -> Path | None:
        """Return a path that can be read in place, or None; see `ObjectStore`."""
        return self._inner.local_path(key)

    def delete(self, key: str) -> None:
        """Remove an object; see `ObjectStore`."""
        self._inner.delete(key)

    def scan(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key begins with the prefix; see `ObjectStore`."""
        return self._inner.scan(prefix)

    def url(self, key: str) -> str:
        """Return where a person finds it; see `ObjectStore`."""
        return self._inner.url(key)


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
