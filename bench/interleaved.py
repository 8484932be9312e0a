"""Timing in turns: what is compared runs alternately, so that the machine's load falls on all.

Two clocks: the wall's, and the process's own (all its threads). On a machine that others keep busy,
a work that hands over to another thread waits for a free core, which says nothing of its own cost;
`is_crowded` tells such a machine, and then the CPU's seconds are what can be compared.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Work = Callable[[], object]

IN_A_ROW = 11
"""Calls a turn: as many as a run of eleven steps makes. Alone, each would mostly measure how the
one before it left the processor's caches."""


@dataclass(frozen=True)
class Cost:
    """Medians of one work."""

    wall_seconds: float
    cpu_seconds: float

    def ratio(self, limit: "Cost") -> float:
        """Return how many times the limit this is: by the wall, by the CPU on a crowded machine."""
        if is_crowded():
            return self.cpu_seconds / limit.cpu_seconds
        return self.wall_seconds / limit.wall_seconds


def costs_in_turns(works: Mapping[str, Work], *, repetitions: int) -> dict[str, Cost]:
    """Return the cost of a call of each work.

    Args:
        works: Name → what to time; each is called once before the first turn, untimed.
        repetitions: Turns.
    """
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(repetitions):
        for name, work in works.items():
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(IN_A_ROW):
                work()
            spent = (time.perf_counter() - wall, time.process_time() - cpu)
            samples[name].append((spent[0] / IN_A_ROW, spent[1] / IN_A_ROW))
    return {
        name: Cost(*(statistics.median(values) for values in zip(*pairs, strict=True)))
        for name, pairs in samples.items()
    }


def is_crowded() -> bool:
    """Answer whether others keep this machine's cores busy."""
    return os.getloadavg()[0] > cores() + 0.5


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
