"""Timing in turns: what is compared runs alternately, so that the machine's load falls on all."""

import statistics
import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def seconds_in_turns(works: Mapping[str, Work], *, repetitions: int) -> dict[str, list[float]]:
    """Return the wall seconds of each work, one value a repetition.

    Args:
        works: Name → what to time; each is called once before the first turn, untimed.
        repetitions: Turns.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(repetitions):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median of each work's seconds."""
    return {name: statistics.median(values) for name, values in seconds.items()}
