"""What tests read of a finished promo: its files, and what ffmpeg and a recogniser say of it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from resources.faster_whisper_speech import FasterWhisperSpeech
from resources.ffmpeg_runner import FfmpegRunner
from resources.speech_model import SpeechModelLocator
from tests.acceptance.promo_run import TRUTH, PromoRun
from tests.media_files import ffmpeg_binary, make_media, never_cancelled, no_progress

RATE_HZ = 48_000


@dataclass(frozen=True)
class HeardWord:
    """A word that was really said, on the clock of its source or of the film."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Cue:
    """A caption of the side file."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Promo:
    """A finished promo with everything that was kept of it."""

    run: PromoRun
    folder: Path
    decision: Mapping[str, Any]
    analysis: Mapping[str, Any]

    @property
    def film(self) -> Path:
        """The film."""
        return self.folder / "film.mp4"

    @property
    def report(self) -> str:
        """The report, as Markdown."""
        return (self.folder / "edit-report.md").read_text(encoding="utf-8")

    @property
    def rate(self) -> Fraction:
        """Frames a second."""
        return Fraction(self.decision["frame_rate"])

    @property
    def seconds(self) -> float:
        """Length that the cuts add up to; sources of the sample have the film's own rate."""
        frames = sum(cut["end_frame"] - cut["start_frame"] for cut in self.decision["cuts"])
        return float(frames / self.rate)

    @cached_property
    def cues(self) -> list[Cue]:
        """The captions."""
        text = (self.folder / "captions.srt").read_text(encoding="utf-8")
        blocks = [block.splitlines() for block in text.split("\n\n") if block.strip()]
        return [Cue(*_times(lines[1]), " ".join(lines[2:])) for lines in blocks]

    @cached_property
    def said(self) -> list[list[HeardWord]]:
        """For each cut, the words that are said in it, on the film's clock."""
        truth = truth_words()
        at, found = 0.0, []
        for start, end in self.spans:
            words = [word for word in truth if start <= (word.start + word.end) / 2 < end]
            found.append(
                [HeardWord(w.text, at + w.start - start, at + w.end - start) for w in words]
            )
            at += end - start
        return found

    @property
    def spans(self) -> list[tuple[float, float]]:
        """Where each cut begins and ends in its source, in seconds."""
        return [
            (float(cut["start_frame"] / self.rate), float(cut["end_frame"] / self.rate))
            for cut in self.decision["cuts"]
        ]


def read_promo(run: PromoRun, folder: Path) -> Promo:
    """Read what `reprise results --copy` wrote."""
    decision = json.loads((folder / "s07_edit_room.json").read_text())
    analysis = json.loads((folder / "s01_video_analyze.json").read_text())
    return Promo(run, folder, decision, analysis)


def truth() -> dict[str, Any]:
    """Return what is known of the sample's talk."""
    known: dict[str, Any] = json.loads(TRUTH.read_text())
    return known


def truth_words() -> list[HeardWord]:
    """Return every word of the sample's talk."""
    return [
        HeardWord(word["word"], word["start"], word["end"])
        for sentence in truth()["sentences"]
        for word in sentence["words"]
    ]


def ffmpeg_says(path: Path, *args: str) -> str:
    """Decode a film to nothing through filters, and return what they print."""
    outcome = FfmpegRunner(ffmpeg_binary()).run(
        ["-i", f"file:{path}", *args, "-f", "null", "-"],
        cwd=path.parent,
        progress=no_progress,
        cancelled=never_cancelled,
        timeout_seconds=120.0,
        purpose=f"measuring {path.name!r}",
        log_level="info",
    )
    return outcome.stderr_text


def sound(path: Path) -> NDArray[np.float32]:
    """Decode a file's sound as mono at 48 kHz."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE_HZ)
    parts = []
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            parts += [out.to_ndarray()[0] for out in resampler.resample(frame)]
    return np.concatenate(parts)


def level_db(samples: NDArray[np.float32]) -> float:
    """Return the RMS level in dBFS."""
    return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-12))


def luma_at(path: Path, seconds: float) -> NDArray[np.float64]:
    """Decode the frame that is shown at a time, as luma."""
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            if frame.time >= seconds:
                return frame.to_ndarray(format="gray").astype(np.float64)
    message = f"the film ends before {seconds} s"
    raise AssertionError(message)


def recognised(path: Path, folder: Path) -> list[str]:
    """Return the words that the recogniser hears in a film."""
    wav = make_media(
        folder / "film.wav", "-i", f"file:{path}", "-vn", "-ac", "1", "-ar", "16000", "-c:a",
        "pcm_s16le",
    )  # fmt: skip
    recogniser = FasterWhisperSpeech(SpeechModelLocator(None, folder / "models"))
    transcript = recogniser.transcribe(
        wav, language=None, source_id="film", progress=no_progress, cancelled=never_cancelled
    )
    return plain_words(" ".join(sentence.text for sentence in transcript.sentences))


def plain_words(text: str) -> list[str]:
    """Return words in lower case without marks; `ill-disposed` is two."""
    spelled = re.sub(r"\bmr\.?(?=\s|$)", "mister", text.lower())
    return re.findall(r"[a-z0-9']+", spelled.replace("’", "'"))


def word_error_rate(reference: Sequence[str], heard: Sequence[str]) -> float:
    """Return insertions, deletions and replacements as a share of the reference."""
    costs = list(range(len(heard) + 1))
    for row, word in enumerate(reference, start=1):
        above, costs[0] = costs[0], row
        for column, other in enumerate(heard, start=1):
            best = min(above + (word != other), costs[column] + 1, costs[column - 1] + 1)
            above, costs[column] = costs[column], best
    return costs[-1] / len(reference)


def _times(line: str) -> tuple[float, float]:
    found = re.findall(r"(\d+):(\d+):(\d+),(\d+)", line)
    start, end = (int(h) * 3600 + int(m) * 60 + int(s) + int(ms) / 1000 for h, m, s, ms in found)
    return start, end
