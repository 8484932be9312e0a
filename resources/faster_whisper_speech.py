"""Recognises speech with faster-whisper on the processor.

Settings are measured ones: int8, beam 5, voice detection always, no conditioning on earlier text
(it makes one wrong sentence repeat). Long sound is cut at its quietest places into chunks, so that
neither memory grows with the length nor a sentence is lost at the edge of a window.

Source: specification V8.
"""

import importlib.metadata
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from wave import Error as WaveError
from wave import open as open_wave

import numpy as np
from numpy.typing import NDArray

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import MediaUnreadable, SpeechModelMissing
from reprise.media.sentences import (
    SpokenWord,
    level_envelope,
    repair_words,
    sentences_of,
    silent_runs,
    snap_to_speech,
)
from reprise.model.media import Transcript
from reprise.ports import Cancelled, Progress
from resources.speech_model import SpeechModelLocator

RATE_HZ = 16_000
"""What Whisper hears."""
CHUNK_SECONDS_MAX = 28.0
"""Longest stretch that is recognised at once: less than the 30 s that Whisper hears.

A longer one is cut by Whisper itself, wherever it stands; on the sample that loses a sentence.
Performance: 0.18 s of processor time for a second of sound, 0.14 s in one piece.
"""
CHUNK_SECONDS_MIN = 14.0
"""Where the search for a quiet place begins."""
EARLY_SECONDS = 0.03
"""Whisper's edges come so much too early, measured on two voices against a forced alignment."""
SPEECH_REVISION = "1"
"""Raised when the same model gives other words or times."""
_DECODING: dict[str, object] = {
    "beam_size": 5,
    "word_timestamps": True,
    "vad_filter": True,
    "vad_parameters": {"min_silence_duration_ms": 500, "speech_pad_ms": 200},
    "condition_on_previous_text": False,
}
_NO_SPEECH_MAX = 0.6
_LOGPROB_MIN = -0.5
_REPEATS_MAX = 2


@dataclass(frozen=True)
class _Chunk:
    """A stretch of the sound."""

    start_seconds: float
    samples: NDArray[np.int16]


class _Segment(Protocol):
    """What is used of a segment of faster-whisper."""

    end: float
    text: str
    no_speech_prob: float
    avg_logprob: float
    words: Any


class FasterWhisperSpeech:
    """A `SpeechRecognizer`; the model is loaded on first use and kept.

    Args:
        locator: Finds the model.
        threads: Processor threads; not part of the identity.
        compute_type: Arithmetic of CTranslate2, such as `int8` or `float32`.
    """

    def __init__(
        self, locator: SpeechModelLocator, *, threads: int = 2, compute_type: str = "int8"
    ) -> None:
        self._locator = locator
        self._threads = threads
        self._compute_type = compute_type
        self._lock = Lock()
        self._model: Any = None

    def identity(self) -> Mapping[str, str]:
        """Return engine, version, model, digest and settings; loads no model."""
        found = self._locator.find()
        try:
            version = importlib.metadata.version("faster-whisper")
            backend = importlib.metadata.version("ctranslate2")
            # Runs the detection of voices.
            detector = importlib.metadata.version("onnxruntime")
        except importlib.metadata.PackageNotFoundError as error:
            raise _engine_missing() from error
        return {
            "speech_engine": "faster-whisper",
            "speech_version": f"{version}+ctranslate2-{backend}+onnxruntime-{detector}",
            "speech_model": found.name,
            "speech_model_digest": self._locator.digest(),
            "speech_compute_type": self._compute_type,
            "speech_revision": SPEECH_REVISION,
        }

    def transcribe(
        self,
        wav: Path,
        *,
        language: str | None,
        source_id: str,
        progress: Progress,
        cancelled: Cancelled,
    ) -> Transcript:
        """Recognise 16 kHz mono s16 speech; see the port."""
        spoken: list[SpokenWord] = []
        runs: list[tuple[float, float]] = []
        heard: tuple[str, float] | None = None
        duration = _duration(wav)
        for chunk in _chunks(wav):
            _stop_if(cancelled)
            segments, info = self._recognise(chunk, language or (heard[0] if heard else None))
            before = len(spoken)
            for segment in _kept(segments):
                _stop_if(cancelled)
                spoken += _words(segment, chunk.start_seconds)
                reached = chunk.start_seconds + segment.end
                progress("recognising speech", min(reached / max(duration, 0.001), 1.0))
            if heard is None and len(spoken) > before:
                heard = (str(info.language), float(info.language_probability))
            runs += [
                (start + chunk.start_seconds, end + chunk.start_seconds)
                for start, end in silent_runs(level_envelope(chunk.samples, RATE_HZ))
            ]
        progress("recognising speech", 1.0)
        words = snap_to_speech(repair_words(spoken, duration), runs)
        return Transcript(
            language=heard[0] if heard else None,
            language_probability=min(max(heard[1], 0.0), 1.0) if heard else 0.0,
            sentences=sentences_of(words, source_id),
        )

    def _recognise(self, chunk: _Chunk, language: str | None) -> tuple[Iterator[_Segment], Any]:
        samples = chunk.samples.astype(np.float32) / 32768
        segments, info = self._loaded().transcribe(samples, language=language, **_DECODING)
        return segments, info

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                folder = self._locator.folder()
                # Waiting threads that spin cost seven times the time on a busy machine; the
                # runtime reads this when it is loaded, so it is set before the import.
                os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
                # Heavy and optional: it brings CTranslate2 and onnxruntime.
                try:
                    from faster_whisper import WhisperModel
                except ImportError as error:
                    raise _engine_missing() from error
                try:
                    self._model = WhisperModel(
                        str(folder),
                        device="cpu",
                        compute_type=self._compute_type,
                        cpu_threads=self._threads,
                        local_files_only=True,
                    )
                except (RuntimeError, ValueError, OSError) as error:
                    message = (
                        f"The speech model {folder.name!r} cannot be loaded ({error}); "
                        "name another in `REPRISE_SPEECH__MODEL`"
                    )
                    raise SpeechModelMissing(message) from error
            return self._model


def _kept(segments: Iterator[_Segment]) -> Iterator[_Segment]:
    """Leave out what the recogniser made up: noise that it took for words, and loops."""
    last = ""
    repeats = 0
    for segment in segments:
        if segment.no_speech_prob > _NO_SPEECH_MAX and segment.avg_logprob < _LOGPROB_MIN:
            continue
        repeats = repeats + 1 if segment.text == last else 0
        last = segment.text
        if repeats < _REPEATS_MAX:
            yield segment


def _words(segment: _Segment, offset_seconds: float) -> list[SpokenWord]:
    offset_seconds += EARLY_SECONDS
    return [
        SpokenWord(
            text=word.word,
            start_seconds=None if word.start is None else float(word.start) + offset_seconds,
            end_seconds=None if word.end is None else float(word.end) + offset_seconds,
            probability=float(word.probability),
        )
        for word in segment.words or ()
    ]


def _duration(wav: Path) -> float:
    try:
        with closing(open_wave(str(wav), "rb")) as wave:
            shape = (wave.getframerate(), wave.getnchannels(), wave.getsampwidth())
            if shape != (RATE_HZ, 1, 2):
                message = f"{wav.name!r} is not 16 kHz mono s16 but {shape}; decode it anew"
                raise MediaUnreadable(message)
            return wave.getnframes() / RATE_HZ
    except (WaveError, EOFError, OSError) as error:
        message = f"{wav.name!r} is no readable WAV file: {error}"
        raise MediaUnreadable(message) from error


def _chunks(wav: Path) -> Iterator[_Chunk]:
    """Yield stretches of at most `CHUNK_SECONDS_MAX`, cut at their quietest place."""
    most = round(CHUNK_SECONDS_MAX * RATE_HZ)
    with closing(open_wave(str(wav), "rb")) as wave:
        start = 0
        rest = np.zeros(0, np.int16)
        while True:
            read = np.frombuffer(wave.readframes(most - len(rest)), np.int16)
            samples = np.concatenate((rest, read))
            if len(samples) < most:
                if len(samples) > 0:
                    yield _Chunk(start / RATE_HZ, samples)
                return
            cut = quietest(samples)
            yield _Chunk(start / RATE_HZ, samples[:cut])
            start += cut
            rest = samples[cut:]


def quietest(samples: NDArray[np.int16]) -> int:
    """Return the sample in the middle of the quietest half second after `CHUNK_SECONDS_MIN`."""
    first = round(CHUNK_SECONDS_MIN * RATE_HZ)
    levels = level_envelope(samples[first:], RATE_HZ).astype(np.float64)
    width = 50
    means = np.convolve(levels, np.full(width, 1 / width), mode="valid")
    return first + (int(means.argmin()) + width // 2) * (RATE_HZ // 100)


def _stop_if(cancelled: Cancelled) -> None:
    if cancelled():
        message = "Stopped while recognising speech"
        raise RunCancelled(message)


def _engine_missing() -> SpeechModelMissing:
    message = (
        "The package `faster-whisper` is not installed; install the extra `demo` "
        "(`pip install 'reprise-engine[demo]'`)"
    )
    return SpeechModelMissing(message)
