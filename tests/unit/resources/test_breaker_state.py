"""A breaker's state among processes: one pays a deadline for all, and a bad file does no harm."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from reprise.errors import StoreError, StoreTimeout
from resources.breaker import OPEN_SECONDS, CircuitBreaker
from resources.breaker_state import BreakerState


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Process:
    """A process with a breaker of its own; its monotonic clock began at a time of its own."""

    def __init__(self, path: Path, wall: Clock, *, began: float = 0.0) -> None:
        self.asked = 0

        def monotonic() -> float:
            return wall() - began

        state = BreakerState(path, open_seconds=OPEN_SECONDS, wall=wall, now=monotonic)
        self.breaker = CircuitBreaker("the store", now=monotonic, shared=state)

    def answered(self) -> bool:
        def work() -> None:
            self.asked += 1

        asked = self.asked
        try:
            self.breaker.call(work)
        except StoreError:
            assert self.asked == asked
            return False
        return True

    def overrun(self) -> None:
        def work() -> None:
            raise StoreTimeout("slow")

        with pytest.raises(StoreTimeout):
            self.breaker.call(work)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "breakers" / "database.json"


@pytest.fixture
def wall() -> Clock:
    return Clock()


def test_a_store_that_is_well_leaves_no_file(path: Path, wall: Clock) -> None:
    assert Process(path, wall).answered()
    assert not path.parent.exists()


def test_the_processes_that_start_later_do_not_ask(path: Path, wall: Clock) -> None:
    Process(path, wall).overrun()
    later = [Process(path, wall, began=500.0 + number) for number in range(10)]
    assert not any(process.answered() for process in later)
    assert all(process.breaker.is_open for process in later)


def test_the_processes_that_run_already_stop_asking(path: Path, wall: Clock) -> None:
    running, failing = Process(path, wall), Process(path, wall)
    assert running.answered()
    failing.overrun()
    wall.seconds += 0.2
    assert not running.answered()


def test_one_process_probes_while_the_others_refuse(path: Path, wall: Clock) -> None:
    Process(path, wall).overrun()
    one, other = Process(path, wall), Process(path, wall)
    wall.seconds += OPEN_SECONDS

    def probe() -> None:
        assert not other.answered()

    one.breaker.call(probe)
    wall.seconds += 0.2
    assert other.answered()
    assert not path.exists()


def test_a_probe_that_dies_lets_another_try_a_minute_later(path: Path, wall: Clock) -> None:
    Process(path, wall).overrun()
    wall.seconds += OPEN_SECONDS
    dying, other = Process(path, wall), Process(path, wall)
    with pytest.raises(KeyboardInterrupt):
        dying.breaker.call(interrupted)
    wall.seconds += 1.0
    assert not other.answered()
    wall.seconds += OPEN_SECONDS
    assert other.answered()


def interrupted() -> None:
    raise KeyboardInterrupt


def test_a_probe_that_fails_keeps_it_open_for_all(path: Path, wall: Clock) -> None:
    one, other = Process(path, wall), Process(path, wall)
    one.overrun()
    wall.seconds += OPEN_SECONDS
    one.overrun()
    assert not other.answered()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"probe_at": "soon"}',
        b'{"probe_at": NaN}',
        b'{"probe_at": Infinity}',
        b'{"probe_at": 1e308}',
        b'{"other": 1}',
        b"\xff" * 5000,
        b"[" * 900,
    ],
)
def test_a_file_that_says_nothing_counts_as_absent(path: Path, wall: Clock, data: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    process = Process(path, wall)
    assert process.answered()
    process.overrun()
    assert not Process(path, wall).answered()


@pytest.mark.parametrize("offset", [-7200.0, -121.0, 61.0, 7200.0])
def test_a_file_from_another_time_counts_as_absent(path: Path, wall: Clock, offset: float) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"probe_at": wall() + offset}))
    assert Process(path, wall).answered()


def test_a_folder_in_the_way_leaves_each_process_its_own_breaker(path: Path, wall: Clock) -> None:
    path.mkdir(parents=True)
    process, other = Process(path, wall), Process(path, wall)
    process.overrun()
    assert not process.answered()
    assert other.answered()
    wall.seconds += OPEN_SECONDS
    assert process.answered()
