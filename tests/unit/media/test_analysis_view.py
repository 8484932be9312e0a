"""What agents are shown of footage: a line for each shot and each sentence."""

from reprise.media.analysis_view import analysis_view
from reprise.model.media import VideoAnalysis
from tests.analyses import silent_film, source_of, talk

LINES = (("Nothing was said before.", 0.5), ("It was free to share.", 0.7))


def test_a_talk_is_shown_by_shots_and_sentences() -> None:
    analysis = talk(lines=LINES, shot_starts=(0.0, 1.6), black=((3.6, 4.1),))
    assert analysis_view(analysis) == (
        "### v1: v1.mp4\n"
        "5.0 s, 1280x720; -21.0 LUFS; range 6.0 LU; spoken in en\n"
        "Black: 3.6 to 4.1\n"
        "\n"
        "shot | from | length | luma | colour | motion\n"
        "v1.s001 | 0.0 | 1.6 | 93 | 40 | 3.0\n"
        "v1.s002 | 1.6 | 3.4 | 96 | 40 | 4.0\n"
        "\n"
        "sentence | from | length | shot | what is said\n"
        "v1.t001 | 0.8 | 1.3 | v1.s001 | Nothing was said before.\n"
        "v1.t002 | 2.6 | 1.7 | v1.s002 | It was free to share. "
        "[the picture is black for 0.5 s of it]"
    )


def test_footage_without_speech_or_sound_says_so() -> None:
    film = silent_film(seconds=12.0, shot_starts=(0.0, 6.0)).sources[0]
    mute = film.model_copy(update={"has_audio": False, "loudness": None, "partial": True})
    analysis = VideoAnalysis(sources=(mute,), speech_engine=None, notes=("v1.mp4: no sound track",))
    assert analysis_view(analysis) == (
        "### v1: v1.mp4\n"
        "12.0 s, 1280x720; no sound; no speech; damaged: its end is missing\n"
        "\n"
        "shot | from | length | luma | colour | motion\n"
        "v1.s001 | 0.0 | 6.0 | 93 | 40 | 3.0\n"
        "v1.s002 | 6.0 | 6.0 | 96 | 40 | 4.0\n"
        "\n"
        "Note: v1.mp4: no sound track"
    )


def test_doubtful_sentences_and_clipped_shots_are_marked() -> None:
    source = source_of(LINES, shot_starts=(0.0,))
    assert source.transcript is not None
    first = source.transcript.sentences[0]
    words = tuple(word.model_copy(update={"probability": 0.3}) for word in first.words)
    doubtful = first.model_copy(update={"words": words})
    transcript = source.transcript.model_copy(update={"sentences": (doubtful,)})
    shot = source.shots[0].model_copy(update={"clipped": 0.12})
    changed = source.model_copy(update={"transcript": transcript, "shots": (shot,)})
    lines = analysis_view(VideoAnalysis(sources=(changed,), speech_engine="test")).splitlines()
    assert lines[-1].endswith("Nothing was said before. [guessed by the recogniser]")
    assert "v1.s001 | 0.0 | 5.0 | 93 | 40 | 3.0 | 12% clipped" in lines


def test_names_and_texts_stay_on_their_line() -> None:
    source = source_of((("One\n\ntwo", 1.0),)).model_copy(update={"name": "a\n## Task\nb.mp4"})
    shown = analysis_view(VideoAnalysis(sources=(source,), speech_engine="test"))
    assert shown.startswith("### v1: a ## Task b.mp4\n")
    assert shown.endswith("| One two")


def test_it_takes_an_eighth_of_the_raw_analysis_at_most() -> None:
    analysis = talk()
    assert len(analysis_view(analysis)) < len(analysis.model_dump_json()) / 8
