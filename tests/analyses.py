"""Analyses of footage made by hand, for tests of what reads them.

`talk()` is a talk of twelve sentences with pauses, a black span in one of them, shots and loudness;
its parts can be changed one at a time. `silent_film()` has shots and no speech.
"""

from collections.abc import Sequence
from itertools import pairwise

from reprise.model.media import (
    Loudness,
    Sentence,
    Shot,
    SourceAnalysis,
    Span,
    Transcript,
    VideoAnalysis,
    Word,
)

RATE = 25
WORD_SECONDS = 0.3
WORD_GAP_SECONDS = 0.05

TALK: tuple[tuple[str, float], ...] = (
    ("Okay, give me one second to check the microphone.", 1.1),
    ("What would you do with a movie that you may take apart?", 0.7),
    ("This is the story of one giant rabbit, three rodents, and a very unlucky butterfly.", 0.6),
    (
        "Seven artists in Amsterdam made it, and every picture was rendered with a free program.",
        0.8,
    ),
    ("Then they did something that studios almost never do.", 0.4),
    ("They gave everything away.", 0.5),
    ("The film, the characters, the textures: all of it is free to download.", 2.6),
    ("Sorry, let me start that part again.", 1.0),
    ("Giving things away is not a new idea.", 0.5),
    ("Nobody had to ask for permission.", 0.7),
    ("That is the power of open culture: it grows when you share it.", 0.8),
    ("So download the film tonight, and show it to a friend.", 1.4),
)
"""Sentence and the pause after it, in seconds."""


def sentence(number: int, text: str, start: float, *, source: str = "v1") -> Sentence:
    """Return a spoken sentence whose words follow each other evenly."""
    words = []
    at = start
    for token in text.split():
        words.append(
            Word(
                text=token,
                start_seconds=round(at, 3),
                end_seconds=round(at + WORD_SECONDS, 3),
                probability=0.95,
            )
        )
        at += WORD_SECONDS + WORD_GAP_SECONDS
    return Sentence(
        id=f"{source}.t{number:03d}",
        start_seconds=words[0].start_seconds,
        end_seconds=words[-1].end_seconds,
        text=text,
        words=tuple(words),
    )


def shots_of(starts: Sequence[float], end: float, *, source: str = "v1") -> tuple[Shot, ...]:
    """Return shots that begin at these seconds; figures differ from shot to shot."""
    edges = [round(start * RATE) for start in starts] + [round(end * RATE)]
    return tuple(
        Shot(
            id=f"{source}.s{number:03d}",
            start_frame=first,
            end_frame=last,
            start_seconds=first / RATE,
            end_seconds=last / RATE,
            luma=90.0 + number * 3,
            saturation=0.4,
            clipped=0.01,
            motion=2.0 + number % 5,
        )
        for number, (first, last) in enumerate(pairwise(edges), start=1)
    )


def source_of(
    lines: Sequence[tuple[str, float]] = TALK,
    *,
    source: str = "v1",
    shot_starts: Sequence[float] | None = None,
    black: Sequence[tuple[float, float]] = (),
    freeze: Sequence[tuple[float, float]] = (),
    loudness: float | None = -21.0,
    lead_seconds: float = 0.8,
) -> SourceAnalysis:
    """Return a talk as a source; its pauses of 0.3 s and more are silences."""
    sentences = []
    silence = [(0.0, lead_seconds)]
    at = lead_seconds
    for number, (text, pause) in enumerate(lines, start=1):
        sentences.append(sentence(number, text, at, source=source))
        end = sentences[-1].end_seconds
        at = round(end + pause, 3)
        if pause >= 0.3:
            silence.append((end, at))
    frames = round(at * RATE)
    starts = shot_starts if shot_starts is not None else [0.0, 4.03, 9.0, 14.2, 20.0, 26.0, 33.0]
    return SourceAnalysis(
        id=source,
        file_id=f"file-{source}",
        name=f"{source}.mp4",
        storage_key=f"projects/p/{source}.mp4",
        content_digest="0" * 64,
        duration_seconds=frames / RATE,
        width=1280,
        height=720,
        frame_rate=f"{RATE}/1",
        frame_count=frames,
        has_audio=True,
        audio_rate_hz=48_000,
        shots=shots_of([start for start in starts if start < at], at, source=source),
        black=_spans(black),
        freeze=_spans(freeze),
        silence=_spans(silence),
        loudness=Loudness(integrated_lufs=loudness, range_lu=6.0, true_peak_dbtp=-3.0),
        transcript=Transcript(language="en", language_probability=0.99, sentences=tuple(sentences)),
    )


def talk(**changes: object) -> VideoAnalysis:
    """Return the analysis of one talk; the arguments are those of `source_of`."""
    return VideoAnalysis(
        sources=(source_of(**changes),),  # type: ignore[arg-type]  # Passed on as they are.
        speech_engine="test",
    )


def silent_film(
    *, seconds: float = 60.0, shot_starts: Sequence[float] = (0.0, 6.0, 13.0, 21.0, 30.0, 44.0)
) -> VideoAnalysis:
    """Return the analysis of footage in which nobody speaks."""
    source = source_of((("x", 0.0),), shot_starts=(0.0,))
    return VideoAnalysis(
        sources=(
            source.model_copy(
                update={
                    "duration_seconds": seconds,
                    "frame_count": round(seconds * RATE),
                    "shots": shots_of(shot_starts, seconds),
                    "silence": (),
                    "transcript": None,
                }
            ),
        ),
        speech_engine=None,
    )


def _spans(pairs: Sequence[tuple[float, float]]) -> tuple[Span, ...]:
    return tuple(Span(start_seconds=start, end_seconds=end) for start, end in pairs)
