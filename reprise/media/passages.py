"""Passages of an edit: what the director chose, as words of a source or a part of a shot.

A passage becomes one or more stretches of whole frames: it is broken where its words do not follow
each other, at pauses, and around black or frozen picture. `passages_of` reads the director's
choice; what cannot be used is left out with a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pydantic import JsonValue

from reprise.errors import StepFailed
from reprise.media.spoken import SPAN_SECONDS_MAX, Footage, SpokenWord, span_seconds
from reprise.media.usable import (
    Stretch,
    bad_seconds,
    minus_frames,
    range_stretch,
    shot_ranges,
    speech_stretch,
)
from reprise.model.media import Shot

PAUSE_SECONDS_MAX = 0.6
"""A longer pause between two words is cut out."""

PICTURE_GAP_SECONDS = 0.2
"""From so much black or frozen picture between two words on, it is cut out."""

SHOT_SECONDS_MIN = 2.5
SHOT_SECONDS_MAX = 8.0
"""A cut without words is between these, where the shot allows."""

REASON_CHARS_MAX = 400


@dataclass(frozen=True)
class Passage:
    """Words of a source, or a part of a shot."""

    footage: Footage
    """Where from."""
    reason: str
    """Why it was chosen."""
    words: tuple[SpokenWord, ...] = ()
    """Words by rising time; they need not follow each other."""
    part: tuple[float, float] | None = None
    """Part of a shot in seconds, for a passage without words."""
    seconds: float = 0.0
    """How much of the part is shown, from its middle."""
    whole_sentences: bool = True
    """Whether a part of a shot may not hold a part of a sentence."""

    @property
    def sentence_ids(self) -> tuple[str, ...]:
        """Its sentences in order."""
        return tuple(dict.fromkeys(word.sentence_id for word in self.words))

    def without(self, sentence_id: str) -> "Passage":
        """Return it without a sentence."""
        return replace(
            self, words=tuple(word for word in self.words if word.sentence_id != sentence_id)
        )


@dataclass(frozen=True)
class Piece:
    """A stretch in whole frames with the words that it carries."""

    passage: Passage
    """The passage; a piece's words are all of them."""
    stretch: Stretch
    """Its frames."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.stretch.end_frame - self.stretch.start_frame) / self.passage.footage.rate

    @property
    def start_seconds(self) -> float:
        """Where it begins in its source."""
        return self.stretch.start_frame / self.passage.footage.rate


def pieces_of(passages: Sequence[Passage]) -> list[Piece]:
    """Return the pieces of the passages in the film's order; none repeats the one before it."""
    pieces: list[Piece] = []
    for passage in passages:
        for part in _parts(passage):
            stretch = _stretch(part)
            if stretch is None:
                continue
            before = pieces[-1] if pieces else None
            if before is not None and before.passage.footage is part.footage:
                stretch = _after(before.stretch, stretch)
            if bad_seconds(part.footage, stretch) <= SPAN_SECONDS_MAX:
                pieces.append(Piece(part, stretch))
    return pieces


def total_seconds(passages: Sequence[Passage]) -> float:
    """Return how long the passages are together."""
    return sum(piece.seconds for piece in pieces_of(passages))


def passages_of(
    choice: JsonValue, footages: Mapping[str, Footage], seconds_each: float, notes: list[str]
) -> list[Passage]:
    """Return what the director chose, without what cannot be used.

    Args:
        choice: The answer: `cuts` with `sentence_ids`, `shot_ids` and `reason` each.
        footages: The sources by id.
        seconds_each: Length of a cut without words.
        notes: What was left out is added here.

    Raises:
        StepFailed: The answer has no list `cuts`.
    """
    cuts = choice.get("cuts") if isinstance(choice, dict) else None
    if not isinstance(cuts, list):
        message = "the director's answer has no list `cuts`; look at its output schema"
        raise StepFailed(message)
    sentences = {name: each for each in footages.values() for name in each.by_sentence}
    shots = {shot.id: (each, shot) for each in footages.values() for shot in each.source.shots}
    chosen = [cut for cut in cuts if isinstance(cut, dict)]
    shown = _shown_sentences(chosen, sentences)
    used: set[str] = set()
    passages: list[Passage] = []
    for cut in chosen:
        reason = str(cut.get("reason") or "chosen by the director")[:REASON_CHARS_MAX]
        ids = _texts(cut.get("sentence_ids"))
        spoken = [name for name in ids if _take(name, sentences, used, notes)]
        passages += _spoken_passages(spoken, sentences, reason)
        if ids:
            continue
        for name in _texts(cut.get("shot_ids")):
            if name not in shots:
                notes.append(f"left out {name!r}: there is no such shot")
            elif name not in used:
                used.add(name)
                footage, shot = shots[name]
                taken = [piece.stretch for piece in shown if piece.passage.footage is footage]
                passages += _shot_passages(footage, shot, taken, notes, (reason, seconds_each))
    return passages


def shot_seconds(target_seconds: float, cuts: int) -> float:
    """Return how long a cut without words should be."""
    return min(max(target_seconds / max(cuts, 1), SHOT_SECONDS_MIN), SHOT_SECONDS_MAX)


def _texts(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _take(name: str, sentences: Mapping[str, Footage], used: set[str], notes: list[str]) -> bool:
    """Answer whether a sentence can be used, and note why not."""
    if name in used:
        notes.append(f"left out {name!r} the second time: a sentence is used once")
        return False
    if name not in sentences:
        notes.append(f"left out {name!r}: there is no such sentence")
        return False
    blocked = sentences[name].blocked.get(name)
    if blocked:
        notes.append(f"left out {name!r}: {blocked}")
        return False
    used.add(name)
    return True


def _spoken_passages(
    ids: Sequence[str], sentences: Mapping[str, Footage], reason: str
) -> list[Passage]:
    """Return a passage for each run of sentences of one source, in the order spoken."""
    runs: list[Passage] = []
    for name in ids:
        footage = sentences[name]
        words = footage.by_sentence[name]
        if runs and runs[-1].footage is footage:
            together = sorted((*runs[-1].words, *words), key=lambda word: word.index)
            runs[-1] = replace(runs[-1], words=tuple(together))
        else:
            runs.append(Passage(footage, reason, words))
    return runs


def _shown_sentences(
    cuts: Sequence[Mapping[str, JsonValue]], sentences: Mapping[str, Footage]
) -> list[Piece]:
    """Return what the chosen sentences show, wherever they stand."""
    names = [
        name
        for cut in cuts
        for name in _texts(cut.get("sentence_ids"))
        if name in sentences and name not in sentences[name].blocked
    ]
    return [
        piece
        for name in dict.fromkeys(names)
        for piece in pieces_of(_spoken_passages([name], sentences, ""))
    ]


def _shot_passages(
    footage: Footage,
    shot: Shot,
    taken: Sequence[Stretch],
    notes: list[str],
    asked: tuple[str, float],
) -> list[Passage]:
    """Return the longest part of a shot that can be shown and that no chosen sentence shows.

    Args:
        footage: Its source.
        shot: The shot.
        taken: What chosen sentences show of the source.
        notes: Why there is none is added here.
        asked: Reason of the cut, and how many seconds are shown.
    """
    reason, seconds = asked
    whole = shot_ranges(footage, shot, whole_sentences=True)
    ranges = minus_frames(whole, taken, footage.rate)
    if whole and not ranges:
        notes.append(f"left out {shot.id!r}: a chosen sentence shows it")
        return []
    if not ranges:
        why = "it is black, frozen or silent, or too short"
        if shot_ranges(footage, shot):
            why = "it would cut a sentence"
        notes.append(f"left out {shot.id!r}: {why}")
        return []
    longest = max(ranges, key=lambda each: each[1] - each[0])
    return [Passage(footage, reason, part=longest, seconds=seconds)]


def _parts(passage: Passage) -> list[Passage]:
    """Break a passage's words where they do not follow each other in picture and sound."""
    if not passage.words:
        return [passage] if passage.part else []
    picture = (*passage.footage.source.black, *passage.footage.source.freeze)
    runs: list[list[SpokenWord]] = [[passage.words[0]]]
    for before, word in pairwise(passage.words):
        apart = (
            word.index != before.index + 1
            or word.start - before.end > PAUSE_SECONDS_MAX
            or span_seconds(before.end, word.start, picture) > PICTURE_GAP_SECONDS
        )
        if apart:
            runs.append([])
        runs[-1].append(word)
    return [replace(passage, words=tuple(run)) for run in runs]


def _stretch(part: Passage) -> Stretch | None:
    if part.words:
        return speech_stretch(part.footage, part.words)
    if part.part is None:
        return None
    stretch = range_stretch(
        part.footage, part.part, part.seconds, whole_sentences=part.whole_sentences
    )
    long_enough = (stretch.end_frame - stretch.start_frame) / part.footage.rate >= 0.5
    return stretch if long_enough else None


def _after(before: Stretch, stretch: Stretch) -> Stretch:
    """Return a stretch that does not repeat the last frames of the one before it."""
    if before.start_frame <= stretch.start_frame < before.end_frame < stretch.end_frame:
        return Stretch(before.end_frame, stretch.end_frame)
    return stretch
