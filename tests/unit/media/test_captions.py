"""Captions: the right words at the right time, set so that they can be read."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reprise.media.captions import CaptionRules, film_captions, srt, vtt
from reprise.media.timeline import FilmClock, place_cuts
from reprise.model.media import Word
from reprise.model.render import Caption, RenderCut


def film(*spans: tuple[str, int, int], rate: str = "25") -> FilmClock:
    cuts = [RenderCut(source_id=i, start_frame=a, end_frame=b) for i, a, b in spans]
    fraction = Fraction(rate)
    return place_cuts(cuts, {name: fraction for name, _, _ in spans}, fraction)


def speech(text: str, *, start: float = 0.0, word: float = 0.3, pause: float = 0.05) -> list[Word]:
    words = []
    for part in text.split():
        words.append(
            Word(text=part, start_seconds=start, end_seconds=start + word, probability=0.9)
        )
        start += word + pause
    return words


def test_words_are_moved_to_the_films_clock() -> None:
    words = {"v1": speech("Good morning.", start=10.0)}
    (caption,) = film_captions(film(("v2", 0, 50), ("v1", 240, 300)), words)
    # The cut begins at 9.6 s of the source and 2.0 s of the film.
    assert caption.text == "Good morning."
    assert caption.start_seconds == 2.4
    assert 3.05 <= caption.end_seconds <= 4.05


def test_only_words_that_lie_in_the_cut_are_in_its_captions() -> None:
    words = {"v1": speech("zero one two three four five", word=1.0, pause=0.0)}
    (caption,) = film_captions(film(("v1", 50, 100)), words)
    assert caption.text == "two three"
    assert (caption.start_seconds, caption.end_seconds) == (0.0, 2.0)


def test_a_word_that_a_recogniser_lets_reach_just_over_the_edge_is_kept_and_clipped() -> None:
    words = {"v1": [Word(text="Yes.", start_seconds=0.95, end_seconds=1.3, probability=1)]}
    (caption,) = film_captions(film(("v1", 25, 50)), words)
    assert (caption.text, caption.start_seconds) == ("Yes.", 0.0)


def test_a_caption_does_not_cross_a_cut_or_a_sentence_or_a_pause() -> None:
    words = {
        "v1": [
            *speech("This is the first sentence. This is another one"),
            *speech("after a pause.", start=6.0),
            *speech("Elsewhere we go on.", start=20.0),
        ]
    }
    captions = film_captions(film(("v1", 0, 200), ("v1", 500, 600)), words)
    assert [caption.text for caption in captions] == [
        "This is the first sentence.",
        "This is another one",
        "after a pause.",
        "Elsewhere we go on.",
    ]


def test_a_very_short_sentence_shares_a_caption() -> None:
    (caption,) = film_captions(film(("v1", 0, 200)), {"v1": speech("Yes. I think so too.")})
    assert caption.text == "Yes. I think so too."


def test_a_long_sentence_is_parted_evenly_and_at_a_comma() -> None:
    text = (
        "The family of Dashwood had been long settled in Sussex, their estate was large, "
        "and their residence was at Norland Park"
    )
    captions = film_captions(film(("v1", 0, 500)), {"v1": speech(text, word=0.2, pause=0.0)})
    assert [caption.text for caption in captions] == [
        "The family of Dashwood had\nbeen long settled in Sussex,",
        "their estate was large,\nand their residence was at Norland Park",
    ]


def test_a_very_short_caption_stays_for_a_second_where_there_is_room() -> None:
    words = {"v1": speech("Extraordinarily quick", word=0.1, pause=0.0)}
    (caption,) = film_captions(film(("v1", 0, 100)), words)
    assert caption.end_seconds == 1.0


def test_a_caption_leaves_with_its_last_word() -> None:
    words = {"v1": speech("Extraordinarily hurried explanations", word=0.4, pause=0.0)}
    (caption,) = film_captions(film(("v1", 0, 100)), words)
    # Reading takes 2.1 s, the words 1.2 s.
    assert caption.end_seconds == 1.3


def test_a_source_without_words_gives_no_captions() -> None:
    assert film_captions(film(("v1", 0, 100)), {}) == ()
    assert film_captions(film(("v1", 0, 100)), {"v1": []}) == ()


def test_narrow_captions_for_an_upright_frame() -> None:
    rules = CaptionRules(line_chars=20)
    captions = film_captions(
        film(("v1", 0, 500)), {"v1": speech("every line of this is rather narrow now")}, rules
    )
    assert max(len(line) for c in captions for line in c.text.splitlines()) <= 20


words_lists = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", categories=["L", "P"]), min_size=1, max_size=18),
        st.floats(0.01, 1.5),
        st.floats(0.0, 2.0),
    ),
    max_size=60,
)


@given(words_lists, st.integers(0, 200), st.integers(1, 2000))
def test_captions_hold_each_spoken_word_once_in_its_time_and_never_overlap(
    parts: Sequence[tuple[str, float, float]], start_frame: int, length: int
) -> None:
    words, now = [], 0.0
    for text, seconds, pause in parts:
        words.append(Word(text=text, start_seconds=now, end_seconds=now + seconds, probability=1))
        now += seconds + pause
    clock = film(("v1", start_frame, start_frame + length))
    captions = film_captions(clock, {"v1": words})
    start, end = start_frame / 25, (start_frame + length) / 25
    inside = [
        word
        for word in words
        if start <= (word.start_seconds + word.end_seconds) / 2 < end
        and word.start_seconds >= start - 0.1
        and word.end_seconds <= end + 0.1
    ]
    shown = [(word, c) for c in captions for word in c.text.split()]
    assert [word for word, _ in shown] == [word.text for word in inside]
    for word, (_, caption) in zip(inside, shown, strict=True):
        assert caption.start_seconds <= max(0.0, word.start_seconds - start) + 0.1
        assert caption.end_seconds >= min(word.end_seconds, end) - start - 0.1
    for before, after in itertools.pairwise(captions):
        assert before.end_seconds <= after.start_seconds + 1e-3
    for caption in captions:
        assert len(caption.text.splitlines()) <= 2
        assert 0 <= caption.start_seconds < caption.end_seconds <= float(clock.seconds) + 1e-3


def test_srt_and_vtt_texts() -> None:
    captions = (
        Caption(start_seconds=0.04, end_seconds=1.5, text="Tom & <Jerry>\nsaid --> go"),
        Caption(start_seconds=3661.0, end_seconds=3662.0, text="End"),
    )
    assert srt(captions) == (
        "1\n00:00:00,040 --> 00:00:01,500\nTom & <Jerry>\nsaid → go\n\n"
        "2\n01:01:01,000 --> 01:01:02,000\nEnd\n"
    )
    assert vtt(captions) == (
        "WEBVTT\n\n00:00:00.040 --> 00:00:01.500\nTom &amp; &lt;Jerry&gt;\nsaid → go\n\n"
        "01:01:01.000 --> 01:01:02.000\nEnd\n"
    )
    assert srt(()) == ""
