"""How long one waits for another's result, and how often one looks."""

from hypothesis import given
from hypothesis import strategies as st

from reprise.cache.single_flight import Alone, poll_seconds, wait_seconds_max


def test_a_short_or_unknown_step_is_waited_for_two_leases() -> None:
    assert wait_seconds_max(60.0, None) == 120.0
    assert wait_seconds_max(60.0, 5.0) == 120.0


def test_a_long_step_is_waited_for_half_as_long_again_as_it_takes() -> None:
    assert wait_seconds_max(60.0, 900.0) == 1350.0


def test_the_pauses_grow_from_a_tenth_of_a_second_to_two_seconds() -> None:
    pauses = [poll_seconds(n, jitter=0.5, remaining_seconds=60.0) for n in range(9)]
    assert [round(pause, 2) for pause in pauses] == [
        *(0.1, 0.16, 0.26, 0.41, 0.66, 1.05, 1.68, 2.0, 2.0)
    ]


@given(
    attempt=st.integers(0, 10**6),
    jitter=st.floats(0, 1),
    remaining=st.floats(0, 10**6),
)
def test_a_pause_is_never_longer_than_what_is_left_of_the_lease(
    attempt: int, jitter: float, remaining: float
) -> None:
    pause = poll_seconds(attempt, jitter=jitter, remaining_seconds=remaining)
    assert 0.05 <= pause <= min(2.5, remaining + 0.11)


def test_without_leases_everyone_computes() -> None:
    def look() -> str:
        raise AssertionError("nobody looks again")

    with Alone().take("p", "k", look=look, expected_seconds=1.0, cancelled=bool) as flight:
        assert (flight.found, flight.lease, flight.waited_seconds) == (None, None, 0.0)
