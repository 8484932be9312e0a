"""Choices of sentences and shots become cuts in whole frames: what must hold of every film."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from reprise.errors import StepFailed
from reprise.media.edit_plan import edit_decision, edit_report
from reprise.model.edit import Cut, EditDecision
from reprise.model.media import SourceAnalysis, Span, VideoAnalysis, Word
from reprise.model.workflow import EditRoomConfig
from tests.analyses import RATE, TALK, silent_film, source_of, talk

CONFIG = EditRoomConfig()


def choice(*groups: list[str], title: str = "Title") -> JsonValue:
    cuts: list[JsonValue] = [
        {"sentence_ids": [*ids], "shot_ids": [], "reason": f"because of {ids}"} for ids in groups
    ]
    return {"title": title, "cuts": cuts}


def shots(*names: str) -> JsonValue:
    cuts: list[JsonValue] = [
        {"sentence_ids": [], "shot_ids": [name], "reason": "looks good"} for name in names
    ]
    return {"title": "Title", "cuts": cuts}


def seconds(decision: EditDecision) -> float:
    return sum(cut.end_frame - cut.start_frame for cut in decision.cuts) / RATE


def heard(cut: Cut, source: SourceAnalysis) -> list[Word]:
    transcript = source.transcript
    assert transcript is not None
    start, end = cut.start_frame / RATE, cut.end_frame / RATE
    return [
        word
        for sentence in transcript.sentences
        for word in sentence.words
        if word.start_seconds >= start - 1e-6 and word.end_seconds <= end + 1e-6
    ]


def test_each_choice_becomes_a_cut_that_carries_its_words_with_a_little_air() -> None:
    analysis = talk()
    decision = edit_decision(
        choice(["v1.t002"], ["v1.t004"], ["v1.t007"], ["v1.t011"]), analysis, CONFIG
    )
    source = analysis.sources[0]
    assert [cut.sentence_ids for cut in decision.cuts] == [
        ("v1.t002",),
        ("v1.t004",),
        ("v1.t007",),
        ("v1.t011",),
    ]
    assert [len(heard(cut, source)) for cut in decision.cuts] == [12, 15, 13, 13]
    # The sentence is spoken from 5.0 to 9.15 s.
    first = decision.cuts[0]
    assert 5.0 - 0.2 <= first.start_frame / RATE <= 5.0 - 0.04
    assert 9.15 + 0.04 <= first.end_frame / RATE <= 9.15 + 0.3
    assert first.reason == "because of ['v1.t002']"
    assert decision.title == "Title"
    assert decision.frame_rate == "25/1"


def test_sentences_that_follow_each_other_make_one_cut_and_a_pause_parts_them() -> None:
    decision = edit_decision(
        choice(["v1.t005", "v1.t006", "v1.t007", "v1.t008"], ["v1.t011"], ["v1.t012"]),
        talk(),
        CONFIG,
    )
    # 0.4 and 0.5 s of pause stay; the 2.6 s before the eighth sentence do not.
    assert [cut.sentence_ids for cut in decision.cuts] == [
        ("v1.t005", "v1.t006", "v1.t007"),
        ("v1.t008",),
        ("v1.t011",),
        ("v1.t012",),
    ]


def test_a_cut_begins_at_a_shot_change_that_is_just_before_the_first_word() -> None:
    plain = edit_decision(choice(["v1.t002"]), talk(), CONFIG)
    changed = edit_decision(choice(["v1.t002"]), talk(shot_starts=[0.0, 4.96, 20.0]), CONFIG)
    assert plain.cuts[0].start_frame == 122
    assert changed.cuts[0].start_frame == 124
    assert changed.cuts[0].shot_ids == ("v1.s002",)


def test_a_sentence_under_black_is_left_out_with_a_note() -> None:
    analysis = talk(black=[(16.0, 17.5)])
    decision = edit_decision(choice(["v1.t002"], ["v1.t004"], ["v1.t007"]), analysis, CONFIG)
    used = [name for cut in decision.cuts for name in cut.sentence_ids]
    assert "v1.t004" not in used
    assert "left out 'v1.t004': the picture is black for 1.5 s of it" in decision.notes


def test_frozen_picture_is_kept_when_nothing_else_is_there() -> None:
    analysis = talk(freeze=[(0.0, 54.0)])
    decision = edit_decision(choice(["v1.t002"]), analysis, CONFIG)
    assert (
        "nothing is left of the footage without its freeze spans, so they were kept"
        in decision.notes
    )


def test_footage_that_is_black_throughout_cannot_be_cut() -> None:
    with pytest.raises(StepFailed, match=r"nothing in the footage \(v1.mp4\) can be shown"):
        edit_decision(choice(["v1.t002"]), talk(black=[(0.0, 54.0)]), CONFIG)


def test_a_choice_without_cuts_is_an_error_that_names_the_key() -> None:
    with pytest.raises(StepFailed, match="no list `cuts`"):
        edit_decision({"title": "x"}, talk(), CONFIG)


def test_names_that_do_not_exist_and_repetitions_are_left_out_with_a_note() -> None:
    decision = edit_decision(
        choice(["v1.t002", "v9.t001"], ["v1.t002"], ["v1.t007"], ["v1.t011"], ["v1.t004"]),
        talk(),
        CONFIG,
    )
    assert "left out 'v9.t001': there is no such sentence" in decision.notes
    assert "left out 'v1.t002' the second time: a sentence is used once" in decision.notes


def test_too_much_is_shortened_and_the_opening_stays() -> None:
    every = [[f"v1.t{number:03d}"] for number in (11, *range(1, 11), 12)]
    decision = edit_decision(choice(*every), talk(), CONFIG)
    assert 15 <= seconds(decision) <= 27
    assert decision.cuts[0].sentence_ids == ("v1.t011",)
    assert any("the cuts may last 27.0 s at most" in note for note in decision.notes)


def test_too_little_is_filled_with_what_follows() -> None:
    decision = edit_decision(choice(["v1.t005"]), talk(), CONFIG)
    assert seconds(decision) >= 15
    assert [cut.sentence_ids[0] for cut in decision.cuts][:2] == ["v1.t005", "v1.t006"]
    assert any(note.startswith("added v1.t006") for note in decision.notes)


def test_a_long_cut_is_split_between_its_sentences_to_reach_the_fewest_cuts() -> None:
    lines = [(text, 0.4) for text, _ in TALK]
    decision = edit_decision(
        choice(["v1.t002", "v1.t003", "v1.t004", "v1.t005"]), talk(lines=lines), CONFIG
    )
    assert [cut.sentence_ids for cut in decision.cuts] == [
        ("v1.t002",),
        ("v1.t003",),
        ("v1.t004",),
        ("v1.t005",),
    ]


def test_one_endless_sentence_is_cut_at_its_clauses() -> None:
    text = ", ".join(["and so it went on and on"] * 12) + "."
    decision = edit_decision(choice(["v1.t001"]), talk(lines=[(text, 1.0)]), CONFIG)
    analysis = talk(lines=[(text, 1.0)])
    assert len(decision.cuts) == 4
    assert seconds(decision) <= analysis.sources[0].duration_seconds / 2
    for cut in decision.cuts[:-1]:
        assert heard(cut, analysis.sources[0])[-1].text.endswith(",")


def test_footage_without_speech_is_cut_from_its_shots() -> None:
    decision = edit_decision(shots("v1.s002", "v1.s004"), silent_film(), CONFIG)
    assert len(decision.cuts) >= 4
    assert 15 <= seconds(decision) <= 30
    assert decision.cuts[0].shot_ids == ("v1.s002",)


def test_a_single_shot_without_speech_still_gives_four_cuts_that_do_not_overlap() -> None:
    film = silent_film(shot_starts=[0.0])
    decision = edit_decision(shots("v1.s001"), film, CONFIG)
    spans = sorted((cut.start_frame, cut.end_frame) for cut in decision.cuts)
    assert len(spans) >= 4
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_a_shot_in_a_talk_is_not_cut_inside_a_word() -> None:
    analysis = talk()
    decision = edit_decision(shots("v1.s003", "v1.s005"), analysis, CONFIG)
    assert _cut_words(decision, analysis) == []


def test_a_shot_in_a_talk_brings_no_part_of_a_sentence() -> None:
    analysis = talk()
    decision = edit_decision(shots("v1.s003", "v1.s005"), analysis, CONFIG)
    source = analysis.sources[0]
    assert source.transcript is not None
    sentences = [each.words for each in source.transcript.sentences]
    assert decision.cuts[0].reason == "looks good"
    for cut in decision.cuts:
        words = heard(cut, source)
        assert words[0] in [each[0] for each in sentences]
        assert words[-1] in [each[-1] for each in sentences]


def test_a_sentence_that_a_shot_brings_is_not_added_once_more() -> None:
    analysis = talk()
    decision = edit_decision(shots("v1.s005"), analysis, CONFIG)
    spoken = [word.text for cut in decision.cuts for word in heard(cut, analysis.sources[0])]
    assert spoken.count("studios") == 1


def test_a_shot_that_a_chosen_sentence_shows_is_not_shown_once_more() -> None:
    analysis = talk()
    speech: JsonValue = {"sentence_ids": ["v1.t005"], "shot_ids": [], "reason": "says it"}
    shot: JsonValue = {"sentence_ids": [], "shot_ids": ["v1.s005"], "reason": "looks good"}
    for cuts in ([speech, shot], [shot, speech]):
        decision = edit_decision({"title": "Title", "cuts": cuts}, analysis, CONFIG)
        assert "left out 'v1.s005': a chosen sentence shows it" in decision.notes
        assert _shown_twice(decision) == 0


def test_the_film_has_the_rate_of_most_of_its_time() -> None:
    """A shot at 60 a second has more frames than two as long at 25, but less of the film."""
    slow, fast = silent_film(seconds=40.0).sources[0], silent_film(seconds=40.0).sources[0]
    shot = fast.shots[0].model_copy(
        update={"id": "v2.s001", "start_frame": 0, "end_frame": 2400, "end_seconds": 40.0}
    )
    fast = fast.model_copy(
        update={"id": "v2", "frame_rate": "60", "frame_count": 2400, "shots": (shot,)}
    )
    analysis = VideoAnalysis(sources=(slow, fast), speech_engine=None)
    three = CONFIG.model_copy(update={"cuts_min": 3})
    decision = edit_decision(shots("v1.s002", "v1.s003", "v2.s001"), analysis, three)
    assert len(decision.cuts) == 3
    assert decision.frame_rate == slow.frame_rate


def test_a_very_short_source_gives_a_very_short_film() -> None:
    analysis = talk(lines=[("Look at this little thing.", 0.2)], shot_starts=[0.0])
    decision = edit_decision(choice(["v1.t001"]), analysis, CONFIG)
    assert 0 < seconds(decision) <= analysis.sources[0].duration_seconds / 2


def test_the_film_takes_the_rate_of_the_source_that_it_shows_most() -> None:
    slow = source_of(source="v2").model_copy(update={"frame_rate": "30000/1001"})
    analysis = VideoAnalysis(sources=(source_of(), slow), speech_engine="test")
    decision = edit_decision(
        choice(["v1.t002"], ["v2.t003"], ["v2.t004"], ["v2.t007"]), analysis, CONFIG
    )
    assert decision.frame_rate == "30000/1001"


def test_a_recognisers_word_that_runs_into_a_silence_ends_where_the_silence_begins() -> None:
    source = source_of()
    transcript = source.transcript
    assert transcript is not None
    second = transcript.sentences[1]
    late = second.words[-1].model_copy(update={"end_seconds": 9.8})
    drifted = second.model_copy(update={"words": (*second.words[:-1], late), "end_seconds": 9.8})
    sentences = (transcript.sentences[0], drifted, *transcript.sentences[2:])
    changed = source.model_copy(
        update={"transcript": transcript.model_copy(update={"sentences": sentences})}
    )
    analysis = VideoAnalysis(sources=(changed,), speech_engine="test")
    decision = edit_decision(choice(["v1.t002"]), analysis, CONFIG)
    # The silence begins at 9.15 s; a silent edge of 0.3 s is the most that a cut keeps.
    assert 9.15 <= decision.cuts[0].end_frame / RATE <= 9.15 + 0.3 + 1 / RATE


def test_the_report_shows_times_words_and_reasons_and_breaks_no_table() -> None:
    picked = choice(["v1.t002"], ["v1.t004"], ["v1.t007"], ["v1.t011"], title="A | B")
    assert isinstance(picked, dict)
    picked["cuts"][0]["reason"] = "it asks\na | question"  # type: ignore[index, call-overload]  # JSON.
    analysis = talk()
    report = edit_report(edit_decision(picked, analysis, CONFIG), analysis)
    assert report.startswith("# A \\| B\n\n4 cuts, ")
    assert (
        "| c1 | 0:00.0 – 0:04.4 | v1.mp4 0:04.9 – 0:09.3 | "
        "What would you do with a movie that you may take apart? | it asks a \\| question |"
    ) in report
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}


spans = st.lists(
    st.tuples(st.floats(0, 50), st.floats(0.2, 4)).map(
        lambda pair: (round(pair[0], 2), round(pair[0] + pair[1], 2))
    ),
    max_size=2,
)
lines = st.lists(
    st.tuples(
        st.integers(2, 22).map(lambda count: " ".join(["word"] * count) + "."),
        st.sampled_from([0.1, 0.25, 0.4, 0.8, 1.5, 3.0]),
    ),
    min_size=1,
    max_size=14,
)
groups = st.lists(
    st.lists(st.integers(0, 15).map(lambda n: f"v1.t{n:03d}"), max_size=4), max_size=8
)


@settings(max_examples=100, deadline=None)
@given(lines, spans, spans, groups, st.lists(st.floats(0.5, 50), max_size=6))
def test_whatever_is_chosen_the_film_keeps_its_promises(
    said: list[tuple[str, float]],
    black: list[tuple[float, float]],
    freeze: list[tuple[float, float]],
    picked: list[list[str]],
    changes: list[float],
) -> None:
    analysis = talk(
        lines=said,
        black=_apart(black),
        freeze=_apart(freeze),
        shot_starts=[0.0, *sorted({round(at, 2) for at in changes})],
    )
    try:
        decision = edit_decision(choice(*picked), analysis, CONFIG)
    except StepFailed:
        return
    source = analysis.sources[0]
    assert decision == edit_decision(choice(*picked), analysis, CONFIG)
    # Two words are not parted, so a film of nothing else may be longer.
    is_least = [len(text.split()) for text, _ in said] == [2]
    assert is_least or seconds(decision) <= source.duration_seconds / 2 + 1 / RATE
    for cut in decision.cuts:
        assert 0 <= cut.start_frame < cut.end_frame <= source.frame_count
    assert _cut_words(decision, analysis) == []
    kept = [note for note in decision.notes if "so they were kept" in note]
    ignored = "freeze" in "".join(kept), "silence" in "".join(kept)
    checked = [*source.black, *(() if ignored[0] else source.freeze)]
    checked += () if ignored[1] else source.silence
    assert max((_inside(cut, span) for cut in decision.cuts for span in checked), default=0) <= 0.7
    if not ignored[1]:
        for before, after in pairwise(decision.cuts):
            assert _silent_end(before, source) + _silent_start(after, source) <= 0.7


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(1, 12).map(lambda n: f"v1.t{n:03d}"), max_size=3),
            st.lists(st.integers(1, 7).map(lambda n: f"v1.s{n:03d}"), max_size=2),
        ),
        max_size=8,
    )
)
def test_whatever_sentences_and_shots_are_chosen_nothing_is_shown_twice(
    picked: list[tuple[list[str], list[str]]],
) -> None:
    cuts: list[JsonValue] = [
        {"sentence_ids": [*spoken], "shot_ids": [*seen], "reason": "x"} for spoken, seen in picked
    ]
    decision = edit_decision({"title": "Title", "cuts": cuts}, talk(), CONFIG)
    assert _shown_twice(decision) == 0


def _shown_twice(decision: EditDecision) -> int:
    """Return the frames that cuts of a decision have in common."""
    frames = [n for cut in decision.cuts for n in range(cut.start_frame, cut.end_frame)]
    return len(frames) - len(set(frames))


def _apart(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return spans that do not overlap, as a detector gives them."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(pairs):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _cut_words(decision: EditDecision, analysis: VideoAnalysis) -> list[str]:
    """Return the words of which a cut holds a part of more than a frame, but not all."""
    found = []
    transcript = analysis.sources[0].transcript
    assert transcript is not None
    for cut in decision.cuts:
        start, end = cut.start_frame / RATE, cut.end_frame / RATE
        for sentence in transcript.sentences:
            for word in sentence.words:
                inside = min(end, word.end_seconds) - max(start, word.start_seconds)
                whole = word.end_seconds - word.start_seconds
                if 1 / RATE < inside < whole - 1 / RATE:
                    found.append(f"{cut.id}: {sentence.id} {word.text} {inside:.2f} of {whole:.2f}")
    return found


def _silent_end(cut: Cut, source: SourceAnalysis) -> float:
    end = cut.end_frame / RATE
    at_end = [span for span in source.silence if span.start_seconds < end <= span.end_seconds]
    return max((_inside(cut, span) for span in at_end), default=0.0)


def _silent_start(cut: Cut, source: SourceAnalysis) -> float:
    start = cut.start_frame / RATE
    at_start = [span for span in source.silence if span.start_seconds <= start < span.end_seconds]
    return max((_inside(cut, span) for span in at_start), default=0.0)


def _inside(cut: Cut, span: Span) -> float:
    return min(cut.end_frame / RATE, span.end_seconds) - max(
        cut.start_frame / RATE, span.start_seconds
    )
