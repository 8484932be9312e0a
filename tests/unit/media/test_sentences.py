import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.media.sentences import (
    SpokenWord,
    level_envelope,
    repair_words,
    sentences_of,
    silent_runs,
    snap_to_speech,
)
from reprise.model.media import Word

RATE_HZ = 16_000


def spoken(text: str, start: float | None, end: float | None) -> SpokenWord:
    return SpokenWord(text, start, end, 0.9)


def times(words: list[Word]) -> list[tuple[str, float, float]]:
    return [(word.text, word.start_seconds, word.end_seconds) for word in words]


def words_of(text: str, *, gaps: dict[int, float] | None = None) -> list[Word]:
    """Make words of 0.3 s; `gaps` has the pause before a word, by its index."""
    made = []
    clock = 0.0
    for index, word in enumerate(text.split()):
        clock += (gaps or {}).get(index, 0.0)
        made.append(
            Word(
                text=word,
                start_seconds=round(clock, 3),
                end_seconds=round(clock + 0.3, 3),
                probability=0.9,
            )
        )
        clock += 0.3
    return made


def texts(text: str, *, gaps: dict[int, float] | None = None) -> list[str]:
    return [sentence.text for sentence in sentences_of(words_of(text, gaps=gaps), "v1")]


def test_sentences_end_at_full_stops_and_question_and_exclamation_marks() -> None:
    assert texts("It is late. Is it? Yes! Go on") == ["It is late.", "Is it?", "Yes!", "Go on"]


def test_a_mark_inside_quotes_ends_a_sentence() -> None:
    assert texts('He said "stop." Then he left.') == ['He said "stop."', "Then he left."]


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Dashwood had leisure.",
        "Talk to Dr. Who now.",
        "J. R. Smith wrote it.",
        "Bring fruit, e.g. apples.",
        "It is at 5 p.m. today.",
        "It costs 3.50 in all.",
        "About 3. of them.",
    ],
)
def test_an_abbreviation_ends_no_sentence(text: str) -> None:
    assert texts(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("We met at 5 p.m. Then we ate.", ["We met at 5 p.m.", "Then we ate."]),
        ("It was I. You know.", ["It was I.", "You know."]),
        ("It was 1984. He left.", ["It was 1984.", "He left."]),
        ("Bring apples etc. Then go.", ["Bring apples etc.", "Then go."]),
    ],
)
def test_a_sentence_may_end_in_what_looks_like_an_abbreviation(text: str, parts: list[str]) -> None:
    assert texts(text) == parts


def test_japanese_marks_end_sentences() -> None:
    assert texts("はい。 そう？ ええ") == ["はい。", "そう？", "ええ"]  # noqa: RUF001


def test_a_long_pause_ends_a_sentence_without_a_mark() -> None:
    assert texts("one two three four", gaps={2: 0.95}) == ["one two", "three four"]


def test_a_short_pause_ends_no_short_sentence() -> None:
    assert texts("one two three four", gaps={2: 0.85}) == ["one two three four"]


def test_a_long_sentence_is_split_at_its_longest_pause() -> None:
    text = " ".join(f"w{index}" for index in range(42))
    split = sentences_of(words_of(text, gaps={10: 0.61, 20: 0.8}), "v1")
    assert [len(sentence.words) for sentence in split] == [20, 22]


def test_a_very_long_sentence_is_split_at_a_shorter_pause() -> None:
    text = " ".join(f"w{index}" for index in range(90))
    split = sentences_of(words_of(text, gaps={50: 0.35}), "v1")
    assert [len(sentence.words) for sentence in split] == [50, 40]


def test_sentences_are_numbered_and_carry_the_times_of_their_words() -> None:
    first, second = sentences_of(words_of("Go on. Stop now."), "v2")
    assert (first.id, first.start_seconds, first.end_seconds) == ("v2.t001", 0.0, 0.6)
    assert (second.id, second.start_seconds, second.end_seconds) == ("v2.t002", 0.6, 1.2)


def test_no_words_give_no_sentences() -> None:
    assert sentences_of([], "v1") == ()


def test_overlapping_words_are_put_after_each_other() -> None:
    words = repair_words([spoken(" a", 0.0, 1.0), spoken(" b", 0.8, 1.4)], 5.0)
    assert times(words) == [("a", 0.0, 1.0), ("b", 1.0, 1.4)]


def test_words_stay_within_the_media() -> None:
    words = repair_words([spoken(" a", -0.5, 1.0), spoken(" b", 4.9, 7.0)], 5.0)
    assert times(words) == [("a", 0.0, 1.0), ("b", 4.9, 5.0)]


def test_a_number_without_times_gets_the_gap_that_it_stands_in() -> None:
    said = [spoken(" in", 0.0, 0.4), spoken(" 1984", None, None), spoken(" he", 1.0, 1.2)]
    assert times(repair_words(said, 5.0))[1] == ("1984", 0.4, 1.0)


def test_words_without_times_share_their_gap() -> None:
    said = [spoken(" 4", None, None), spoken(" 2", None, math.nan), spoken(" x", 1.0, 1.2)]
    assert times(repair_words(said, 5.0))[:2] == [("4", 0.0, 0.5), ("2", 0.5, 1.0)]


def test_pieces_without_a_blank_belong_to_the_word_before() -> None:
    said = [spoken(" ten", 0.0, 0.3), spoken("-year", 0.3, 0.5), spoken(" old", 0.5, 0.8)]
    assert times(repair_words(said, 5.0)) == [("ten-year", 0.0, 0.5), ("old", 0.5, 0.8)]


def test_words_without_text_are_dropped() -> None:
    assert repair_words([spoken("  ", 0.0, 0.3)], 5.0) == []


_SECONDS = st.one_of(st.none(), st.floats(-2, 40))


@given(st.lists(st.tuples(_SECONDS, _SECONDS), max_size=40))
def test_repaired_words_are_monotonic_and_within_the_media(
    pairs: list[tuple[float | None, float | None]],
) -> None:
    words = repair_words([spoken(f" w{n}", *pair) for n, pair in enumerate(pairs)], 30.0)
    edges = [edge for word in words for edge in (word.start_seconds, word.end_seconds)]
    assert len(words) == len(pairs)
    assert edges == sorted(edges)
    assert all(0 <= edge <= 30.0 for edge in edges)
    assert all(word.end_seconds > word.start_seconds for word in words)


def sound(*parts: tuple[float, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    """Make noise of these lengths in seconds and levels, 1 being full scale."""
    random = np.random.default_rng(1)
    pieces = [
        random.normal(0, level * 10_000, round(seconds * RATE_HZ)) for seconds, level in parts
    ]
    return np.clip(np.concatenate(pieces), -32768, 32767).astype(np.int16)


def runs_of(*parts: tuple[float, float]) -> list[tuple[float, float]]:
    runs = silent_runs(level_envelope(sound(*parts), RATE_HZ))
    return [(round(start, 2), round(end, 2)) for start, end in runs]


def test_pauses_are_found_between_speech() -> None:
    parts = ((0.5, 0.002), (1.0, 1.0), (0.3, 0.002), (1.0, 0.7), (0.4, 0.002))
    assert runs_of(*parts) == [(0.0, 0.5), (1.5, 1.8), (2.8, 3.2)]


def test_the_closure_of_a_consonant_is_no_pause() -> None:
    assert runs_of((0.5, 0.002), (1.0, 1.0), (0.05, 0.002), (1.0, 0.7)) == [(0.0, 0.5)]


def test_speech_under_loud_music_has_no_pauses() -> None:
    assert runs_of((1.0, 0.8), (1.0, 1.0), (1.0, 0.8)) == []


def test_digital_silence_has_a_level() -> None:
    levels = level_envelope(np.zeros(1600, np.int16), RATE_HZ)
    assert [round(float(level)) for level in levels] == [-96] * 10


def test_an_offset_is_no_sound() -> None:
    levels = level_envelope(np.full(1600, 900, np.int16), RATE_HZ)
    assert [round(float(level)) for level in levels] == [-96] * 10


def snapped(
    words: list[tuple[float, float]], runs: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    made = [
        Word(text="w", start_seconds=start, end_seconds=end, probability=1.0)
        for start, end in words
    ]
    return [(word.start_seconds, word.end_seconds) for word in snap_to_speech(made, runs)]


def test_a_start_in_silence_moves_to_the_sound() -> None:
    assert snapped([(1.0, 1.6)], [(0.0, 1.2)]) == [(1.2, 1.6)]


def test_an_end_in_silence_moves_back_to_the_sound() -> None:
    assert snapped([(1.0, 1.9)], [(1.7, 3.0)]) == [(1.0, 1.7)]


def test_an_end_just_before_a_pause_moves_up_to_it() -> None:
    assert snapped([(1.0, 1.5), (2.4, 2.8)], [(1.62, 2.4)]) == [(1.0, 1.62), (2.4, 2.8)]


def test_a_start_just_after_a_pause_moves_back_to_it() -> None:
    assert snapped([(0.2, 0.8), (2.1, 2.8)], [(0.8, 1.95)]) == [(0.2, 0.8), (1.95, 2.8)]


def test_a_start_in_the_second_of_two_silences_moves_to_the_sound_behind_it() -> None:
    """A breath parts the silence before the first word."""
    assert snapped([(14.41, 14.9)], [(13.93, 14.26), (14.33, 14.53)]) == [(14.53, 14.9)]


def test_words_that_follow_each_other_are_left() -> None:
    words = [(1.0, 1.3), (1.3, 1.8)]
    assert snapped(words, [(0.0, 0.5), (4.0, 5.0)]) == words


def test_a_word_wholly_in_silence_is_left() -> None:
    assert snapped([(1.0, 1.4)], [(0.0, 3.0)]) == [(1.0, 1.4)]


@given(
    st.lists(st.floats(0.03, 1.5), min_size=2, max_size=24),
    st.lists(st.floats(0.07, 1.0), max_size=16),
)
def test_snapped_words_are_still_monotonic(steps: list[float], gaps: list[float]) -> None:
    edges = np.round(np.cumsum(steps), 3)
    words = list(zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=False))
    bounds = np.cumsum(gaps)
    runs = list(zip(bounds[0::2].tolist(), bounds[1::2].tolist(), strict=False))
    moved = [edge for pair in snapped(words, runs) for edge in pair]
    assert moved == sorted(moved)
    assert len(moved) == 2 * len(words)


def said(*words: tuple[str, float, float]) -> list[Word]:
    return [
        Word(text=text, start_seconds=start, end_seconds=end, probability=1.0)
        for text, start, end in words
    ]


def test_the_first_word_of_a_sentence_moves_behind_the_pause_that_follows_it() -> None:
    """Recognisers that skip pauses put it at the end of the sentence before."""
    words = said(("himself.", 83.9, 84.4), ("Do", 84.4, 85.1), ("you", 88.3, 88.5))
    assert times(snap_to_speech(words, [(85.0, 88.2)])) == [
        ("himself.", 83.9, 85.0),
        ("Do", 88.2, 88.3),
        ("you", 88.3, 88.5),
    ]


def test_a_first_word_between_two_pauses_stays() -> None:
    words = said(("end.", 1.0, 1.5), ("So", 2.0, 2.4), ("we", 3.0, 3.2))
    assert times(snap_to_speech(words, [(1.5, 2.0), (2.4, 3.0)])) == times(words)


def test_a_sentence_of_one_word_stays() -> None:
    words = said(("here.", 1.0, 1.5), ("Yes.", 1.5, 1.9), ("We", 2.4, 2.6))
    assert times(snap_to_speech(words, [(1.9, 2.4)])) == times(words)
