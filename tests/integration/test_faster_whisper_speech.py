import json
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reprise.errors import Cancelled, MediaUnreadable, SpeechModelMissing
from reprise.model.media import Transcript, Word
from resources.faster_whisper_speech import FasterWhisperSpeech
from resources.speech_model import SpeechModelLocator
from tests.media_files import make_media, never_cancelled, no_progress

EXAMPLES = Path(__file__).parents[2] / "examples"
TALK = EXAMPLES / "projects" / "open-film" / "open-film-talk.mp4"
SPEECH_FORM = ("-ar", "16000", "-ac", "1", "-c:a", "pcm_s16le")


@dataclass(frozen=True)
class Heard:
    """What was recognised, and what is said in truth."""

    transcript: Transcript
    truth: dict[str, Any]
    shares: list[float]

    @property
    def words(self) -> list[Word]:
        return [word for sentence in self.transcript.sentences for word in sentence.words]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> FasterWhisperSpeech:
    return FasterWhisperSpeech(SpeechModelLocator(None, tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def heard(engine: FasterWhisperSpeech, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    wav = make_media(
        tmp_path_factory.mktemp("talk") / "speech.wav", "-i", str(TALK), "-vn", *SPEECH_FORM
    )
    shares: list[float] = []
    transcript = engine.transcribe(
        wav,
        language=None,
        source_id="v1",
        progress=lambda _, share: shares.append(share or 0.0),
        cancelled=never_cancelled,
    )
    truth = json.loads((EXAMPLES / "truth" / "open-film.json").read_text())
    return Heard(transcript, truth, shares)


def spelled(text: str) -> list[str]:
    """Return lower-case words without punctuation; `Mr.` is said `mister`."""
    plain = text.lower().replace("mr.", "mister").replace("-", " ")
    return [word for word in (re.sub(r"[^a-z0-9']", "", part) for part in plain.split()) if word]


def word_errors(truth: list[str], given: list[str]) -> int:
    row = list(range(len(given) + 1))
    for count, wanted in enumerate(truth, start=1):
        diagonal, row[0] = row[0], count
        for index, word in enumerate(given, start=1):
            diagonal, row[index] = (
                row[index],
                min(row[index] + 1, row[index - 1] + 1, diagonal + (word != wanted)),
            )
    return row[-1]


def matched(heard: Heard) -> list[tuple[dict[str, Any], Word]]:
    """Return the words that are in both, with the truth's first."""
    truth = [word for sentence in heard.truth["sentences"] for word in sentence["words"]]
    names = ["".join(spelled(word.text)) for word in heard.words]
    blocks = SequenceMatcher(
        None, ["".join(spelled(word["word"])) for word in truth], names, autojunk=False
    ).get_matching_blocks()
    return [
        (truth[block.a + offset], heard.words[block.b + offset])
        for block in blocks
        for offset in range(block.size)
    ]


def test_the_talk_is_recognised_with_few_word_errors(heard: Heard) -> None:
    truth = [w for sentence in heard.truth["sentences"] for w in spelled(sentence["text"])]
    given = [w for sentence in heard.transcript.sentences for w in spelled(sentence.text)]
    assert word_errors(truth, given) / len(truth) <= 0.05


def test_the_language_is_recognised(heard: Heard) -> None:
    assert heard.transcript.language == "en"
    assert heard.transcript.language_probability > 0.9


def test_most_sentences_begin_and_end_where_the_speaker_does(heard: Heard) -> None:
    edges = [
        (sentence.start_seconds, sentence.end_seconds) for sentence in heard.transcript.sentences
    ]
    right = [
        truth
        for truth in heard.truth["sentences"]
        if any(abs(start - truth["start"]) <= 0.1 for start, _ in edges)
        and any(abs(end - truth["end"]) <= 0.1 for _, end in edges)
    ]
    assert len(right) / len(heard.truth["sentences"]) >= 0.85


def test_most_words_begin_within_a_tenth_of_a_second(heard: Heard) -> None:
    pairs = matched(heard)
    good = [abs(word.start_seconds - truth["start"]) <= 0.1 for truth, word in pairs]
    assert sum(good) / len(good) >= 0.85


def test_no_word_is_far_from_where_it_is_said(heard: Heard) -> None:
    assert max(abs(word.start_seconds - truth["start"]) for truth, word in matched(heard)) < 0.5


def test_words_are_monotonic_and_within_the_talk(heard: Heard) -> None:
    edges = [edge for word in heard.words for edge in (word.start_seconds, word.end_seconds)]
    assert all(earlier <= later for earlier, later in pairwise(edges))
    assert edges[0] >= 0
    assert edges[-1] <= heard.truth["duration_seconds"]


def test_sentences_are_numbered_from_one(heard: Heard) -> None:
    ids = [sentence.id for sentence in heard.transcript.sentences]
    assert ids == [f"v1.t{number:03d}" for number in range(1, len(ids) + 1)]


def test_progress_rises_to_the_end(heard: Heard) -> None:
    assert heard.shares == sorted(heard.shares)
    assert heard.shares[-1] == 1.0


@pytest.mark.parametrize("source", ["anullsrc=r=16000", "anoisesrc=r=16000:a=0.2", "sine=f=220"])
def test_without_speech_the_transcript_is_empty(
    engine: FasterWhisperSpeech, tmp_path: Path, source: str
) -> None:
    wav = make_media(tmp_path / "a.wav", "-f", "lavfi", "-i", source, "-t", "20", *SPEECH_FORM)
    transcript = engine.transcribe(
        wav, language=None, source_id="v1", progress=no_progress, cancelled=never_cancelled
    )
    assert transcript == Transcript(language=None, language_probability=0.0, sentences=())


def test_no_sound_at_all_gives_an_empty_transcript(
    engine: FasterWhisperSpeech, tmp_path: Path
) -> None:
    wav = make_media(
        tmp_path / "a.wav", "-f", "lavfi", "-i", "anullsrc", "-t", "0.01", *SPEECH_FORM
    )
    transcript = engine.transcribe(
        wav, language="en", source_id="v1", progress=no_progress, cancelled=never_cancelled
    )
    assert transcript.sentences == ()


def test_a_stopped_run_stops(engine: FasterWhisperSpeech, tmp_path: Path) -> None:
    wav = make_media(tmp_path / "a.wav", "-f", "lavfi", "-i", "sine", "-t", "1", *SPEECH_FORM)
    with pytest.raises(Cancelled):
        engine.transcribe(
            wav, language="en", source_id="v1", progress=no_progress, cancelled=lambda: True
        )


def test_sound_of_another_form_is_refused(engine: FasterWhisperSpeech, tmp_path: Path) -> None:
    wav = make_media(tmp_path / "a.wav", "-f", "lavfi", "-i", "sine=r=44100", "-t", "1")
    with pytest.raises(MediaUnreadable, match="not 16 kHz mono"):
        engine.transcribe(
            wav, language="en", source_id="v1", progress=no_progress, cancelled=never_cancelled
        )


def test_the_identity_names_engine_model_and_digest(engine: FasterWhisperSpeech) -> None:
    identity = engine.identity()
    assert identity["speech_engine"] == "faster-whisper"
    assert identity["speech_model"] == "whisper-base"
    assert identity["speech_model_digest"].startswith("d01c3014")
    assert identity["speech_compute_type"] == "int8"


def test_a_folder_that_holds_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "model.bin").write_bytes(b"no model")
    wav = make_media(tmp_path / "a.wav", "-f", "lavfi", "-i", "sine", "-t", "1", *SPEECH_FORM)
    engine = FasterWhisperSpeech(SpeechModelLocator(str(tmp_path / "bad"), tmp_path / "cache"))
    with pytest.raises(SpeechModelMissing, match="'bad' cannot be loaded"):
        engine.transcribe(
            wav, language="en", source_id="v1", progress=no_progress, cancelled=never_cancelled
        )
