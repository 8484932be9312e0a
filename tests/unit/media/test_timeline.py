"""The film's clock: exact frames, seconds and samples."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.errors import MediaError
from reprise.media.timeline import AUDIO_RATE_HZ, frame_at, nearest, parse_rate, place_cuts
from reprise.model.render import RenderCut

NTSC = Fraction(30000, 1001)
RATES = [Fraction(24000, 1001), Fraction(24), Fraction(25), NTSC, Fraction(30), Fraction(60)]


def cut(source_id: str, start: int, end: int) -> RenderCut:
    return RenderCut(source_id=source_id, start_frame=start, end_frame=end)


def test_cuts_lie_end_to_end_in_the_films_order() -> None:
    clock = place_cuts(
        [cut("v1", 100, 150), cut("v2", 0, 25), cut("v1", 10, 20)],
        {"v1": Fraction(25), "v2": Fraction(25)},
        Fraction(25),
    )
    assert [(c.film_start_frame, c.film_end_frame) for c in clock.cuts] == [
        (0, 50),
        (50, 75),
        (75, 85),
    ]
    assert clock.frame_count == 85
    assert clock.seconds == Fraction(85, 25)


def test_a_cut_at_another_rate_fills_the_nearest_number_of_film_frames() -> None:
    clock = place_cuts([cut("v1", 0, 60), cut("v1", 0, 1)], {"v1": Fraction(60)}, NTSC)
    assert [c.film_frames for c in clock.cuts] == [30, 1]


def test_a_cuts_length_in_the_film_does_not_depend_on_the_cuts_before_it() -> None:
    rates = {"v1": Fraction(60)}
    alone = place_cuts([cut("v1", 7, 108)], rates, Fraction(25)).cuts[0].film_frames
    after = place_cuts([cut("v1", 0, 31), cut("v1", 7, 108)], rates, Fraction(25)).cuts[1]
    assert after.film_frames == alone == 42


def test_the_sound_of_37_cuts_at_23_976_is_as_long_as_the_picture_to_the_sample() -> None:
    rate = Fraction(24000, 1001)
    clock = place_cuts([cut("v1", n, n + 1 + n % 7) for n in range(37)], {"v1": rate}, rate)
    assert sum(c.end_sample - c.start_sample for c in clock.cuts) == clock.sample_count
    assert clock.frame_count == 143
    # 143 frames last 143 * 1001 / 24000 s, which are 286 286 samples exactly.
    assert clock.sample_count == 286_286


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 5000)), min_size=1, max_size=40),
    st.sampled_from(RATES),
    st.sampled_from(RATES),
)
def test_samples_and_frames_add_up_at_every_pair_of_rates(
    spans: list[tuple[int, int]], source_rate: Fraction, film_rate: Fraction
) -> None:
    cuts = [cut("v1", start, start + length) for start, length in spans]
    clock = place_cuts(cuts, {"v1": source_rate}, film_rate)
    assert sum(c.film_frames for c in clock.cuts) == clock.frame_count
    assert sum(c.end_sample - c.start_sample for c in clock.cuts) == clock.sample_count
    assert abs(clock.sample_count - clock.seconds * AUDIO_RATE_HZ) <= Fraction(1, 2)


def test_a_cut_of_no_frames_is_refused_by_its_number_and_source() -> None:
    with pytest.raises(MediaError, match=r"Cut 2 of source 'v1' goes from frame 5 to 5"):
        place_cuts([cut("v1", 0, 5), cut("v1", 5, 5)], {"v1": Fraction(25)}, Fraction(25))


def test_a_cut_of_an_unknown_source_is_refused() -> None:
    with pytest.raises(MediaError, match=r"Cut 1 names the source 'v9'.*\['v1'\]"):
        place_cuts([cut("v9", 0, 5)], {"v1": Fraction(25)}, Fraction(25))


@pytest.mark.parametrize("text", ["0", "-25", "1/0", "fast", "", "5000", "nan"])
def test_what_is_no_frame_rate_is_refused(text: str) -> None:
    with pytest.raises(MediaError, match="Source 'v1' has the frame rate"):
        parse_rate(text, what="Source 'v1'")


def test_halves_are_rounded_up() -> None:
    assert [nearest(Fraction(n, 2)) for n in (-3, -1, 1, 3, 4)] == [-1, 0, 1, 2, 2]
    assert frame_at(1.0, NTSC) == 30
