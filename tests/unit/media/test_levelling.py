"""Loudness: what ebur128 said, and what is done about it."""

import pytest

from reprise.media.levelling import Measured, distance_lu, harder, levels, parse_summary

SUMMARY = """
[info] [Parsed_ebur128_4 @ 0x55d0c0] Summary:

  Integrated loudness:
    I:         -23.1 LUFS
    Threshold: -33.6 LUFS

  Loudness range:
    LRA:         4.2 LU
    Threshold: -43.4 LUFS
    LRA low:   -26.0 LUFS
    LRA high:  -21.8 LUFS

  True peak:
    Peak:       -9.5 dBFS
"""


def test_the_summary_is_read() -> None:
    assert parse_summary(SUMMARY) == Measured(-23.1, -33.6, 4.2, -9.5)


def test_the_peak_of_digital_silence_is_minus_infinity() -> None:
    measured = parse_summary(SUMMARY.replace("-23.1", "-70.0").replace("-9.5", "-inf"))
    assert measured is not None
    assert measured.is_silent
    assert measured.loudness().integrated_lufs is None


def test_a_text_without_a_summary_gives_nothing() -> None:
    assert parse_summary("I: -23.0 LUFS") is None


def test_a_plain_gain_where_the_peak_allows_it() -> None:
    (level,) = levels(Measured(-21.0, -31.0, 4.0, -9.0), -14.0)
    assert level.filters == (("volume", {"volume": "7.00dB"}),)


def test_loudnorm_and_then_a_limiter_where_it_does_not() -> None:
    assert [level.name for level in levels(Measured(-21.0, -31.0, 4.0, -3.0), -14.0)] == [
        "loudnorm",
        "limiter",
    ]


@pytest.mark.parametrize("loudness", [-70.0, float("-inf"), float("nan")])
def test_silence_is_left_alone(loudness: float) -> None:
    (level,) = levels(Measured(loudness, -70.0, 0.0, float("-inf")), -14.0)
    assert level.filters == ()


def test_no_target_leaves_the_sound_as_it_is() -> None:
    measured = Measured(-21.0, -31.0, 4.0, -3.0)
    assert levels(measured, None)[0].filters == ()
    assert distance_lu(measured, None) == 0.0


def test_a_gain_has_a_bound() -> None:
    (level,) = levels(Measured(-65.0, -70.0, 4.0, -60.0), -14.0)
    assert level.filters == (("volume", {"volume": "40.00dB"}),)


def test_what_the_limiter_took_is_added_to_its_gain() -> None:
    speech = Measured(-23.0, -33.0, 5.0, -3.0)
    _, limiter = levels(speech, -14.0)
    first = Measured(-15.0, -25.0, 4.0, -1.5)
    again = harder(speech, -14.0, [(limiter, first)])
    assert again is not None
    assert again.filters[0] == ("volume", {"volume": "10.00dB"})
    # Half of that decibel arrived, so the missing half needs one more.
    second = Measured(-14.5, -24.5, 4.0, -1.5)
    third = harder(speech, -14.0, [(limiter, first), (again, second)])
    assert third is not None
    assert third.filters[0] == ("volume", {"volume": "11.00dB"})


def test_the_gain_into_the_limiter_has_bounds() -> None:
    clicks = Measured(-30.0, -40.0, 9.0, -1.0)
    _, limiter = levels(clicks, -14.0)
    tried = [(limiter, Measured(-26.0, -36.0, 9.0, -1.5))]
    for gain in ("22.00dB", None):
        level = harder(clicks, -14.0, tried)
        assert (level and level.filters[0][1]["volume"]) == gain
        if level:
            tried.append((level, Measured(-24.0, -36.0, 9.0, -1.5)))


def test_a_plain_gain_is_not_made_harder() -> None:
    quiet = Measured(-30.0, -40.0, 9.0, -20.0)
    (gain,) = levels(quiet, -14.0)
    assert harder(quiet, -14.0, [(gain, Measured(-14.0, -24.0, 9.0, -4.0))]) is None
