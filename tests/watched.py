"""Any port, watched or broken: a stand-in that passes every call on, and may fail, hang or lie.

The stand-in has no methods of its own, so it fits whatever the port becomes.
"""

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar, cast

from reprise.errors import StoreError
from reprise.model.cache import CacheEntry
from reprise.model.stored import ObjectInfo

Port = TypeVar("Port")
Work = Callable[[], object]
Around = Callable[[str, Work], object]
"""Called with a method's name and the call itself; gives what the caller gets."""


class _StandIn:
    def __init__(self, inner: object, around: Around) -> None:
        self._inner = inner
        self._around = around

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: object, **kwargs: object) -> object:
            return self._around(name, lambda: found(*args, **kwargs))

        return call

    def __len__(self) -> int:
        return cast("int", self._around("len", lambda: len(self._inner)))  # type: ignore[arg-type]  # Some ports have a length.


def stand_in(port: Port, around: Around) -> Port:
    """Return the port with `around` at every call."""
    return cast("Port", _StandIn(port, around))


def watched(port: Port, calls: list[str]) -> Port:
    """Return the port; the name of each method called is added to the list."""

    def around(name: str, work: Work) -> object:
        calls.append(name)
        return work()

    return stand_in(port, around)


class Fault(StrEnum):
    """What a store does instead of its work."""

    RAISES = "raises"
    RAISES_FOREIGN = "raises something that is not ours"
    HANGS = "hangs"
    SLOW = "does it, long after the deadline"
    LOSES = "says that it did it, or that there is nothing"
    TRUNCATES = "cuts what goes in or out"
    CORRUPTS = "changes what goes in or out"
    MIXES_UP = "gives another row"


class Faults:
    """A fault at chosen calls of one store; gathers what came of it.

    Args:
        fault: What happens.
        at: Answers whether it happens at the call of this number, from 0, of this method.
        other: What a store that mixes rows up gives for an entry.
    """

    def __init__(
        self, fault: Fault, at: Callable[[int, str], bool], other: CacheEntry | None = None
    ) -> None:
        self.fault = fault
        self.calls = 0
        self.hung = 0
        self.fired = 0
        self.healed = threading.Event()
        self._at = at
        self._other = other
        self._lock = threading.Lock()

    def around(self, name: str, work: Work) -> object:
        """Do the call, or what the fault makes of it."""
        with self._lock:
            number = self.calls
            self.calls += 1
        if self.healed.is_set() or not self._at(number, name):
            return work()
        return self._fault(name, work)

    def _fault(self, name: str, work: Work) -> object:
        with self._lock:
            self.fired += 1
        match self.fault:
            case Fault.RAISES:
                message = f"{name}: the store is down"
                raise StoreError(message)
            case Fault.RAISES_FOREIGN:
                message = f"{name}: a driver's own error"
                raise RuntimeError(message)
            case Fault.HANGS:
                self._wait()
                message = f"{name}: the connection is gone"
                raise StoreError(message)
            case Fault.SLOW:
                self._wait()
                return work()
            case Fault.LOSES:
                return None
            case Fault.MIXES_UP if self._other is not None and name in ("get", "nearest", "of_key"):
                return self._other
            case _:
                return self._damaged(work())

    def _wait(self) -> None:
        with self._lock:
            self.hung += 1
        assert self.healed.wait(60), "nobody healed the store"

    def _damaged(self, answer: object) -> object:
        if isinstance(answer, CacheEntry):
            half = answer.payload[: len(answer.payload) // 2]
            lie = answer.payload.replace(":", ": ").replace("a", "b")
            changed = half if self.fault is Fault.TRUNCATES else lie
            return answer.model_copy(update={"payload": changed, "artifacts": ()})
        if isinstance(answer, ObjectInfo):
            if self.fault is Fault.TRUNCATES:
                return answer.model_copy(update={"size_bytes": answer.size_bytes // 2})
            return answer.model_copy(update={"etag": "another"})
        return answer
