"""The circuit breaker's rules, on a clock of the test's own."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from reprise.errors import ObjectMissing, StoreError, StoreTimeout, StoreUnusable
from resources.breaker import BreakerEntryStore, CircuitBreaker
from resources.memory_entry_store import MemoryEntryStore
from tests.cache_entries import NOW, entry, key_of


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Calls:
    """A store's calls, with answers in the test's order."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.breaker = CircuitBreaker("the store", now=self.clock)
        self.asked = 0

    def ask(self, outcome: BaseException | str) -> str:
        def work() -> str:
            self.asked += 1
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return self.breaker.call(work)

    def fail(self, error: BaseException) -> None:
        with pytest.raises(type(error)):
            self.ask(error)

    def refused(self) -> bool:
        asked = self.asked
        try:
            self.ask("answer")
        except StoreError:
            assert self.asked == asked
            return True
        return False


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_a_closed_breaker_hands_on_answers_and_errors(calls: Calls) -> None:
    assert calls.ask("answer") == "answer"
    with pytest.raises(StoreError, match="first"):
        calls.ask(StoreError("first"))
    assert not calls.breaker.is_open
    assert calls.asked == 2


def test_one_overrun_opens_it_at_once(calls: Calls) -> None:
    calls.fail(StoreTimeout("slow"))
    assert calls.breaker.is_open
    assert calls.refused()


@pytest.mark.parametrize("error", [StoreError("broken"), StoreUnusable("read-only")])
def test_three_errors_within_thirty_seconds_open_it(calls: Calls, error: StoreError) -> None:
    for wait_seconds in (15.0, 15.0, 0.0):
        assert not calls.breaker.is_open
        calls.fail(error)
        calls.clock.seconds += wait_seconds
    assert calls.refused()


def test_three_errors_over_a_longer_time_do_not_open_it(calls: Calls) -> None:
    for _ in range(6):
        calls.fail(StoreError("broken"))
        calls.clock.seconds += 15.1
    assert not calls.refused()


@pytest.mark.parametrize("error", [ObjectMissing("none"), ValueError("ours"), KeyboardInterrupt()])
def test_what_says_nothing_of_the_store_does_not_open_it(
    calls: Calls, error: BaseException
) -> None:
    for _ in range(5):
        calls.fail(error)
    assert not calls.refused()


def test_it_stays_open_for_sixty_seconds_and_a_good_probe_closes_it(calls: Calls) -> None:
    calls.fail(StoreTimeout("slow"))
    calls.clock.seconds += 59.9
    assert calls.refused()
    calls.clock.seconds += 0.1
    assert calls.ask("answer") == "answer"
    assert not calls.breaker.is_open
    calls.fail(StoreError("one error is none of three"))
    assert not calls.refused()


@pytest.mark.parametrize("error", [StoreError("still down"), StoreTimeout("still slow")])
def test_a_bad_probe_keeps_it_open_for_another_sixty_seconds(
    calls: Calls, error: StoreError
) -> None:
    calls.fail(StoreTimeout("slow"))
    calls.clock.seconds += 60
    calls.fail(error)
    calls.clock.seconds += 59.9
    assert calls.refused()
    calls.clock.seconds += 0.1
    assert not calls.refused()


def test_only_one_call_probes(calls: Calls) -> None:
    calls.fail(StoreTimeout("slow"))
    calls.clock.seconds += 60

    def probe() -> str:
        with pytest.raises(StoreError, match="after the probe under way"):
            calls.breaker.call(lambda: "second")
        return "first"

    assert calls.breaker.call(probe) == "first"
    assert not calls.breaker.is_open


def test_an_interrupted_probe_lets_the_next_call_probe(calls: Calls) -> None:
    calls.fail(StoreTimeout("slow"))
    calls.clock.seconds += 60
    calls.fail(KeyboardInterrupt())
    assert calls.breaker.is_open
    assert calls.ask("answer") == "answer"


def test_an_old_call_that_ends_well_does_not_close_it(calls: Calls) -> None:
    def old() -> str:
        calls.fail(StoreTimeout("slow"))
        return "late"

    assert calls.breaker.call(old) == "late"
    assert calls.refused()


def test_the_message_says_when_it_is_tried_again(calls: Calls) -> None:
    calls.fail(StoreTimeout("slow"))
    calls.clock.seconds += 18
    with pytest.raises(StoreError, match=r"the store failed before.*in 42 s"):
        calls.ask("answer")


STORE_CALLS: dict[str, Callable[[BreakerEntryStore], object]] = {
    "get": lambda store: store.get("p1", key_of("a"), now=NOW),
    "put": lambda store: store.put(entry("a")),
    "tombstone": lambda store: store.tombstone("p1", key_of("a")),
    "nearest": lambda store: store.nearest("p1", "quick-win-promo", "audience"),
    "of_key": lambda store: store.of_key("p1", key_of("a")),
    "sweep": lambda store: store.sweep(now=NOW),
}


@pytest.mark.parametrize("call", STORE_CALLS.values(), ids=STORE_CALLS.keys())
def test_a_store_behind_an_open_breaker_is_not_asked(
    calls: Calls, call: Callable[[BreakerEntryStore], object]
) -> None:
    inner = MemoryEntryStore()
    store = BreakerEntryStore(inner, calls.breaker)
    store.put(entry("kept"))
    calls.fail(StoreTimeout("slow"))
    with pytest.raises(StoreError, match="is not asked"):
        call(store)
    assert len(store) == 1
    assert (inner.hits, inner.misses) == (0, 0)
