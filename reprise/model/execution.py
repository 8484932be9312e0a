"""The ambient execution: which run works here, and in whose name.

It is set in the body of a step, by `executing`, and read where a call leaves the engine on behalf
of a person. A thread starts without one: whoever hands work to a thread hands it over with
`in_this_execution`. A resource or generator that yields must not set it, since what a generator
sets stays with whoever asks it for the next value.

Source: specification O1 to O3.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from reprise.model.base import Value

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Execution(Value):
    """One execution."""

    execution_id: str
    """What tokens name it by; a run's step has its run's id."""
    run_id: str
    """The run that it belongs to."""
    initiator_id: str | None = None
    """The user in whose name it works; None when there is none."""


_CURRENT: ContextVar[Execution | None] = ContextVar("reprise_execution", default=None)


def current_execution() -> Execution | None:
    """Return the execution that works here, or None outside of one."""
    return _CURRENT.get()


@contextmanager
def executing(execution: Execution | None) -> Iterator[None]:
    """Work in this execution until the block ends, in this thread and the tasks that it makes."""
    token = _CURRENT.set(execution)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def in_this_execution(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return work that, in whatever thread, belongs to the execution that works here now."""
    execution = current_execution()

    def carried(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with executing(execution):
            return work(*args, **kwargs)

    return carried
