"""Flights among the threads of one process, over leases in memory."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from reprise.cache.single_flight import Flight
from reprise.errors import Cancelled, StoreError
from reprise.model.cache import Lease
from resources.memory_lease_store import MemoryLeaseStore
from resources.single_flight import SingleFlight
from tests.cache_entries import key_of

KEY = key_of("a")
LONG_SECONDS = 60.0


def never() -> bool:
    return False


def nothing() -> str | None:
    return None


class Answers:
    """What executions stored, and how many there were."""

    def __init__(self) -> None:
        self.stored: str | None = None
        self.executions = 0
        self.lock = threading.Lock()

    def look(self) -> str | None:
        return self.stored

    def compute(self, name: str) -> str:
        with self.lock:
            self.executions += 1
        threading.Event().wait(0.1)
        self.stored = name
        return name


def run(
    flights: SingleFlight,
    answers: Answers,
    name: str,
    *,
    expected_seconds: float | None = None,
    cancelled: Callable[[], bool] = never,
) -> tuple[str, Flight[str]]:
    with flights.take(
        "p1", KEY, look=answers.look, expected_seconds=expected_seconds, cancelled=cancelled
    ) as flight:
        return flight.found or answers.compute(name), flight


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_five_at_once_execute_once_and_all_get_the_answer(answers: Answers) -> None:
    flights = SingleFlight(MemoryLeaseStore())
    barrier = threading.Barrier(5)

    def ask(number: int) -> str:
        barrier.wait(LONG_SECONDS)
        return run(flights, answers, f"by {number}")[0]

    with ThreadPoolExecutor(5) as pool:
        got = list(pool.map(ask, range(5)))
    assert answers.executions == 1
    assert set(got) == {answers.stored}


def test_one_after_the_other_finds_what_was_stored_between_look_and_lease(answers: Answers) -> None:
    flights = SingleFlight(MemoryLeaseStore())
    run(flights, answers, "first")
    got, flight = run(flights, answers, "second")
    assert got == "first"
    assert answers.executions == 1
    assert flight.waited_seconds == 0


def test_a_holder_that_fails_lets_the_next_compute(answers: Answers) -> None:
    leases = MemoryLeaseStore()
    flights = SingleFlight(leases)
    with (
        pytest.raises(ValueError, match="failed"),
        flights.take("p1", KEY, look=nothing, expected_seconds=None, cancelled=never),
    ):
        raise ValueError("failed")
    assert leases.remaining_seconds("p1", KEY) == 0
    assert run(flights, answers, "second")[0] == "second"


@pytest.fixture
def taken() -> MemoryLeaseStore:
    leases = MemoryLeaseStore()
    assert leases.acquire("p1", KEY, holder="elsewhere", seconds=LONG_SECONDS) is not None
    return leases


def test_a_waiter_computes_when_its_time_is_over(taken: MemoryLeaseStore, answers: Answers) -> None:
    flights = SingleFlight(taken, lease_seconds=0.1)
    got, flight = run(flights, answers, "by itself")
    assert got == "by itself"
    assert flight.lease is None
    assert 0.2 <= flight.waited_seconds < 10


def test_a_lease_that_ends_is_taken_over_within_a_second(answers: Answers) -> None:
    leases = MemoryLeaseStore()
    leases.acquire("p1", KEY, holder="dead", seconds=1.0)
    got, flight = run(SingleFlight(leases), answers, "successor")
    assert got == "successor"
    assert flight.lease is not None
    assert flight.lease.fence == 2
    assert flight.waited_seconds < 2.0


def test_a_holder_does_not_wait_for_another_lease(
    taken: MemoryLeaseStore, answers: Answers
) -> None:
    flights = SingleFlight(taken)
    with flights.take("p1", key_of("outer"), look=nothing, expected_seconds=None, cancelled=never):
        got, flight = run(flights, answers, "inner")
    assert got == "inner"
    assert (flight.lease, flight.waited_seconds) == (None, 0.0)


def test_a_thread_in_the_context_of_a_holder_does_not_wait_either(
    taken: MemoryLeaseStore, answers: Answers
) -> None:
    flights = SingleFlight(taken)
    with (
        flights.take("p1", key_of("outer"), look=nothing, expected_seconds=None, cancelled=never),
        ThreadPoolExecutor(1) as pool,
    ):
        context = copy_context()
        _, flight = pool.submit(context.run, run, flights, answers, "inner").result(LONG_SECONDS)
    assert flight.waited_seconds == 0.0


def test_after_its_own_lease_a_run_waits_again(taken: MemoryLeaseStore, answers: Answers) -> None:
    flights = SingleFlight(taken, lease_seconds=0.05)
    with flights.take("p1", key_of("outer"), look=nothing, expected_seconds=None, cancelled=never):
        pass
    assert run(flights, answers, "later")[1].waited_seconds > 0


def test_a_run_that_is_stopped_does_not_go_on_waiting(
    taken: MemoryLeaseStore, answers: Answers
) -> None:
    begun = time.monotonic()
    with pytest.raises(Cancelled):
        run(SingleFlight(taken), answers, "x", cancelled=lambda: time.monotonic() > begun + 0.1)
    assert time.monotonic() - begun < 5
    assert answers.executions == 0


def test_heartbeats_keep_a_lease_alive_beyond_its_time(answers: Answers) -> None:
    leases = MemoryLeaseStore()
    flights = SingleFlight(leases, lease_seconds=1.0, heartbeat_seconds=0.02)
    with flights.take("p1", KEY, look=nothing, expected_seconds=None, cancelled=never) as flight:
        assert flight.lease is not None
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert leases.acquire("p1", KEY, holder="other", seconds=1.0) is None
            threading.Event().wait(0.05)
    assert leases.acquire("p1", KEY, holder="other", seconds=1.0) is not None


class BrokenLeaseStore(MemoryLeaseStore):
    """Fails in the calls that are named."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self.broken = broken

    def check(self, name: str) -> None:
        if name in self.broken:
            raise StoreError(f"{name} is down")

    def acquire(
        self, project_id: str, cache_key: str, *, holder: str, seconds: float
    ) -> Lease | None:
        self.check("acquire")
        return super().acquire(project_id, cache_key, holder=holder, seconds=seconds)

    def renew(self, lease: Lease, *, seconds: float) -> bool:
        self.check("renew")
        return super().renew(lease, seconds=seconds)

    def release(self, lease: Lease) -> None:
        self.check("release")
        super().release(lease)

    def remaining_seconds(self, project_id: str, cache_key: str) -> float:
        self.check("remaining_seconds")
        return super().remaining_seconds(project_id, cache_key)


@pytest.mark.parametrize("broken", ["acquire", "renew", "release"])
def test_a_broken_lease_store_lets_everyone_compute(answers: Answers, broken: str) -> None:
    flights = SingleFlight(BrokenLeaseStore(broken), heartbeat_seconds=0.01)
    assert run(flights, answers, "first")[0] == "first"


def test_a_lease_store_that_breaks_while_one_waits_lets_it_compute(answers: Answers) -> None:
    leases = BrokenLeaseStore("remaining_seconds")
    leases.acquire("p1", KEY, holder="elsewhere", seconds=LONG_SECONDS)
    got, flight = run(SingleFlight(leases), answers, "by itself")
    assert got == "by itself"
    assert flight.lease is None
