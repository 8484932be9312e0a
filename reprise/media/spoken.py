"""Where words really begin and end, and which sentences can be used.

A recogniser's word times are off by a tenth of a second or two, and it stretches words into pauses.
The silences that were measured in the sound know better: a word that runs into a silence ends where
the silence begins, and one that ends shortly before it lasts until then. A source whose words are
mostly "silent" is merely quiet, and its silences then say nothing.

Source: specification V5, V8; acceptance of the promo: no word cut off, no black, frozen or silent
span over 0.7 s.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reprise.model.media import SourceAnalysis, Span, Word

SPAN_SECONDS_MAX = 0.7
"""Longest black, frozen or silent span that a film may hold."""

PICTURE_SECONDS_MAX = 0.3
"""Black or frozen picture under a sentence that is put up with; two ends may meet in the film."""

DRIFT_SECONDS_MAX = 0.4
"""How far a word's end is moved to the silence after it, or its beginning to the one before."""

WORD_SECONDS_MIN = 0.05
"""A word is not shortened below this."""

QUIET_SHARE = 0.5
"""From this share of silent word time on, a source's silences are not believed."""


SILENT_SHARE = 0.9
"""From this share on, a source without words counts as silent on the whole."""


@dataclass(frozen=True)
class SpokenWord:
    """A word with its place in the source and its corrected times."""

    index: int
    """Place among the source's words, from 0."""
    sentence_id: str
    """Its sentence."""
    text: str
    """The word."""
    start: float
    """When it is heard, in seconds."""
    end: float
    """Until when it is heard, in seconds."""
    raw_start: float
    """When the recogniser says that it begins."""
    raw_end: float
    """When the recogniser says that it ends."""


def overlap_seconds(start: float, end: float, span: Span) -> float:
    """Return how much of a stretch lies in a span."""
    return max(0.0, min(end, span.end_seconds) - max(start, span.start_seconds))


def span_seconds(start: float, end: float, spans: Sequence[Span]) -> float:
    """Return how much of a stretch lies in spans that do not overlap each other."""
    return sum(overlap_seconds(start, end, span) for span in spans)


@dataclass(frozen=True, eq=False)
class Footage:
    """A source with what is derived from it, made once."""

    source: SourceAnalysis
    """The source."""
    silences: tuple[Span, ...]
    """Its silences, where they can be believed."""
    words: tuple[SpokenWord, ...]
    """All its words in order, with corrected times."""
    by_sentence: Mapping[str, tuple[SpokenWord, ...]]
    """The words of each sentence, in order; a sentence without words is left out."""
    blocked: Mapping[str, str]
    """Sentences whose picture is black or frozen for too long, with the reason."""

    @property
    def rate(self) -> float:
        """Frames a second."""
        return float(self.source.rate)

    @property
    def end_seconds(self) -> float:
        """When its last frame ends."""
        return self.source.frame_count / self.rate


def footage_of(source: SourceAnalysis) -> Footage:
    """Return a source with its words in corrected times."""
    silences = _believed_silences(source)
    words = _spoken_words(source, silences)
    by_sentence: dict[str, tuple[SpokenWord, ...]] = {}
    for word in words:
        by_sentence[word.sentence_id] = (*by_sentence.get(word.sentence_id, ()), word)
    return Footage(source, silences, words, by_sentence, _blocked(source, by_sentence))


def _believed_silences(source: SourceAnalysis) -> tuple[Span, ...]:
    """Return the source's silences; none when its words lie mostly in them, or all is silent."""
    if not source.has_audio:
        return ()
    words = _words(source)
    spoken = sum(word.end_seconds - word.start_seconds for _, word in words)
    silent = sum(
        span_seconds(word.start_seconds, word.end_seconds, source.silence) for _, word in words
    )
    if spoken and silent > QUIET_SHARE * spoken:
        return ()
    total = sum(span.end_seconds - span.start_seconds for span in source.silence)
    if not words and total > SILENT_SHARE * source.duration_seconds:
        return ()
    return source.silence


def _spoken_words(source: SourceAnalysis, silences: Sequence[Span]) -> tuple[SpokenWord, ...]:
    words = _words(source)
    spoken: list[SpokenWord] = []
    for index, (sentence_id, word) in enumerate(words):
        before = words[index - 1][1].end_seconds if index else 0.0
        after = (
            words[index + 1][1].start_seconds
            if index + 1 < len(words)
            else max(source.duration_seconds, word.end_seconds)
        )
        start, end = _heard(word, silences, before, after)
        if spoken:
            start = max(start, spoken[-1].end)
        spoken.append(
            SpokenWord(
                index=index,
                sentence_id=sentence_id,
                text=word.text,
                start=start,
                end=max(end, start + 0.001),
                raw_start=word.start_seconds,
                raw_end=word.end_seconds,
            )
        )
    return tuple(spoken)


def _blocked(
    source: SourceAnalysis, by_sentence: Mapping[str, tuple[SpokenWord, ...]]
) -> dict[str, str]:
    blocked: dict[str, str] = {}
    for name, words in by_sentence.items():
        for kind, spans in (("black", source.black), ("frozen", source.freeze)):
            bad = span_seconds(words[0].start, words[-1].end, _long(spans))
            if bad > PICTURE_SECONDS_MAX:
                blocked[name] = f"the picture is {kind} for {bad:.1f} s of it"
                break
    return blocked


def _long(spans: Sequence[Span]) -> list[Span]:
    return [s for s in spans if s.end_seconds - s.start_seconds > PICTURE_SECONDS_MAX]


def _words(source: SourceAnalysis) -> list[tuple[str, Word]]:
    if source.transcript is None:
        return []
    return [
        (sentence.id, word) for sentence in source.transcript.sentences for word in sentence.words
    ]


def _heard(
    word: Word, silences: Sequence[Span], before: float, after: float
) -> tuple[float, float]:
    """Return when a word is heard, given the silences and its neighbours' raw times."""
    start, end = word.start_seconds, word.end_seconds
    near = bisect_right(silences, start - DRIFT_SECONDS_MAX, key=lambda span: span.end_seconds)
    for span in silences[near:]:
        if span.start_seconds >= end:
            if span.start_seconds <= min(end + DRIFT_SECONDS_MAX, after):
                end = span.start_seconds
            break
        if span.end_seconds <= start:
            start = span.end_seconds if span.end_seconds >= before else start
            continue
        shorter = _without(start, end, span)
        if shorter[1] - shorter[0] >= WORD_SECONDS_MIN:
            start, end = shorter
    return start, end


def _without(start: float, end: float, span: Span) -> tuple[float, float]:
    """Return the longer part of a word that a silence overlaps."""
    head = (start, max(start, span.start_seconds))
    tail = (min(end, span.end_seconds), end)
    return head if head[1] - head[0] >= tail[1] - tail[0] else tail
