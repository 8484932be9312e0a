"""The limit on calls of one model, shared by threads."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from reprise.errors import Cancelled, ProviderError
from resources.rate_limiter import RateLimiter, RateLimits


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def never() -> bool:
    return False


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_never_more_calls_at_once_than_allowed_and_all_come_through() -> None:
    limiter = RateLimiter("x", concurrency=3)
    lock = threading.Lock()
    running, most = 0, 0

    def call(_: int) -> None:
        nonlocal running, most
        with limiter.place(seconds=30, cancelled=never):
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.005)
            with lock:
                running -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(call, range(40)))
    assert most == 3


def test_who_came_first_is_served_first() -> None:
    limiter = RateLimiter("x", concurrency=1)
    served: list[int] = []

    def call(number: int) -> None:
        with limiter.place(seconds=30, cancelled=never):
            served.append(number)

    threads = []
    with limiter.place(seconds=1, cancelled=never):
        for number in range(8):
            thread = threading.Thread(target=call, args=(number,))
            thread.start()
            threads.append(thread)
            wait_until(lambda wanted=number + 1: len(limiter._queue) == wanted)  # type: ignore[misc]
    for thread in threads:
        thread.join(10)
    assert served == list(range(8))


def test_so_many_calls_begin_in_a_minute_and_no_more() -> None:
    clock = HandClock()
    limiter = RateLimiter("x", concurrency=9, requests_per_minute=2, monotonic=clock)
    for _ in range(2):
        with limiter.place(seconds=1, cancelled=never):
            pass
    clock.now = 59.0
    with (
        pytest.raises(ProviderError, match="no place among its calls within 0 s") as caught,
        limiter.place(seconds=0, cancelled=never),
    ):
        pass
    assert caught.value.transient is True
    clock.now = 60.0
    with limiter.place(seconds=0.5, cancelled=never) as waited:
        assert waited == 0


def test_a_pause_that_the_endpoint_asks_for_holds_for_everyone_and_is_bounded() -> None:
    clock = HandClock()
    limiter = RateLimiter("x", concurrency=9, monotonic=clock)
    limiter.pause(3600)
    for now, is_open in ((0.0, False), (59.0, False), (60.0, True)):
        clock.now = now
        if is_open:
            with limiter.place(seconds=0, cancelled=never):
                pass
        else:
            with pytest.raises(ProviderError), limiter.place(seconds=0, cancelled=never):
                pass


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    clock = HandClock()
    limiter = RateLimiter("x", concurrency=9, monotonic=clock)
    limiter.pause(30)
    limiter.pause(1)
    clock.now = 20.0
    with pytest.raises(ProviderError), limiter.place(seconds=0, cancelled=never):
        pass


def test_who_waits_can_be_stopped_and_leaves_the_queue() -> None:
    limiter = RateLimiter("x", concurrency=1)
    stopped = threading.Event()
    errors: list[BaseException] = []

    def call() -> None:
        try:
            with limiter.place(seconds=30, cancelled=stopped.is_set):
                pass
        except Cancelled as error:
            errors.append(error)

    with limiter.place(seconds=1, cancelled=never):
        thread = threading.Thread(target=call)
        thread.start()
        wait_until(lambda: len(limiter._queue) == 1)
        stopped.set()
        thread.join(5)
        assert len(errors) == 1
        assert len(limiter._queue) == 0
    with limiter.place(seconds=0.5, cancelled=never):
        pass


def test_a_call_that_fails_gives_its_place_back() -> None:
    limiter = RateLimiter("x", concurrency=1)
    with pytest.raises(ZeroDivisionError), limiter.place(seconds=1, cancelled=never):
        raise ZeroDivisionError
    with limiter.place(seconds=0.5, cancelled=never):
        pass


def test_each_model_has_a_limiter_of_its_own_and_always_the_same() -> None:
    limits = RateLimits("p", concurrency=1)
    assert limits.of("a") is limits.of("a")
    with limits.of("a").place(seconds=1, cancelled=never):
        with limits.of("b").place(seconds=0.5, cancelled=never):
            pass
        with (
            pytest.raises(ProviderError, match="provider 'p', model 'a'"),
            limits.of("a").place(seconds=0, cancelled=never),
        ):
            pass
