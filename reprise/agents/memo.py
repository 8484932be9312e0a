"""What is made of an immutable object once, kept as long as the object lives.

A memo is keyed by identity: neither hashing nor comparing a message looks at its text, and an
object that replaces another is a new key, which is the only invalidation there is. References are
weak: dropping a history drops what was made of it. A product must not hold its own object, which
would then live for ever.

Source: specification M1, M2. Tests: tests/unit/agents/test_memo.py.
"""

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from reprise.model.agent import AgentDefinition
from reprise.model.conversation import ModelRequest, ToolSchema

ObjectT = TypeVar("ObjectT")
ProductT = TypeVar("ProductT")
KeyT = TypeVar("KeyT")


class _Entry(NamedTuple, Generic[ObjectT, ProductT]):
    reference: "weakref.ref[ObjectT]"
    product: ProductT


class Memo(Generic[ObjectT, ProductT]):
    """The products of one function, each made once.

    Safe for threads: looking up takes no lock, and a product that several threads want at once is
    made by one of them.

    Args:
        make: Makes the product of an object; what it raises is raised to the caller, nothing kept.
    """

    def __init__(self, make: Callable[[ObjectT], ProductT]) -> None:
        self._make = make
        self._entries: dict[int, _Entry[ObjectT, ProductT]] = {}
        self._lock = threading.RLock()

    def __call__(self, key: ObjectT) -> ProductT:
        """Return the product of an object."""
        entry = self._entries.get(id(key))
        # An id is given anew once its object is gone, perhaps before its entry is.
        if entry is not None and entry.reference() is key:
            return entry.product
        return self._made(key)

    def each(self, keys: Iterable[ObjectT]) -> list[ProductT]:
        """Return the product of each object.

        Performance: a third faster than a call for each; a history is walked on every turn.
        """
        get, made = self._entries.get, self._made
        return [
            entry.product
            if (entry := get(id(key))) is not None and entry.reference() is key
            else made(key)
            for key in keys
        ]

    def __len__(self) -> int:
        return len(self._entries)

    def _made(self, key: ObjectT) -> ProductT:
        with self._lock:
            entry = self._entries.get(id(key))
            if entry is not None and entry.reference() is key:
                return entry.product
            product = self._make(key)
            number = id(key)
            reference = weakref.ref(key, lambda gone: self._forget(number, gone))
            self._entries[number] = _Entry(reference, product)
            return product

    def _forget(self, number: int, gone: "weakref.ref[ObjectT]") -> None:
        # Without the lock: the collector may call this at any line of any thread.
        entry = self._entries.pop(number, None)
        if entry is not None and entry.reference is not gone:
            self._entries.setdefault(number, entry)


class _Frame(NamedTuple, Generic[KeyT, ProductT]):
    system_prompt: str
    tools: tuple[ToolSchema, ...]
    output_schema: dict[str, JsonValue] | None
    key: KeyT
    product: ProductT


class FrameMemo(Generic[KeyT, ProductT]):
    """What is made of everything in a request but its messages, once for an agent's loop.

    The last product of each agent is kept, and given again to a request that holds the very same
    system prompt, tools and schema; the loop's requests do.

    Args:
        make: Makes the product of a request and a key.
    """

    def __init__(self, make: Callable[[ModelRequest, KeyT], ProductT]) -> None:
        self._make = make
        self._slots: Memo[AgentDefinition, list[_Frame[KeyT, ProductT]]] = Memo(lambda _: [])

    def __call__(self, request: ModelRequest, key: KeyT) -> ProductT:
        """Return the product of a request.

        Args:
            request: The request.
            key: What else the product depends on.
        """
        slot = self._slots(request.agent)
        for frame in slot[:1]:
            if (
                frame.system_prompt is request.system_prompt
                and frame.tools is request.tools
                and frame.output_schema is request.output_schema
                and frame.key == key
            ):
                return frame.product
        made = self._make(request, key)
        slot[:] = [_Frame(request.system_prompt, request.tools, request.output_schema, key, made)]
        return made
