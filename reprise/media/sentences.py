"""From a recogniser's words to sentences with trustworthy times.

`repair_words` makes times monotonic and complete, `snap_to_speech` moves a word's edges to where
the sound begins and ends, `sentences_of` splits at punctuation and pauses.

Source: specification V8.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reprise.model.media import Sentence, Word

WORD_SECONDS_MIN = 0.02
"""Shortest word."""
PAUSE_SECONDS = 0.9
"""A pause that always ends a sentence."""
LONG_SENTENCES = ((12.0, 0.6), (24.0, 0.3))
"""A sentence of more than so many seconds is split at its longest pause of at least so many."""
ENVELOPE_SECONDS = 0.01
"""Distance of the values of a level envelope."""
SILENCE_SECONDS_MIN = 0.07
"""A dip shorter than this is part of a word: the closure of a `p` or `t`."""
START_REACH_SECONDS = 0.3
"""How far a word's start may be moved back through sound, to the silence before it."""
END_REACH_SECONDS = 0.7
"""How far a word's end may be moved on; last words are drawn out, and end early."""
CLEAR_SECONDS = 0.1
"""A silence of this length before a word is not inside it."""
STRANDED_SECONDS = 0.25
"""A silence of this length after the first word of a sentence shows that the word is misplaced."""

# The last three are the full-width marks of Chinese and Japanese.
_ENDS = re.compile("[.!?\u2026\u3002\uff01\uff1f]+[\"'\u201d\u2019)\\]\u00bb]*$")
_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "st",
        "sr",
        "jr",
        "prof",
        "rev",
        "gen",
        "col",
        "capt",
        "lt",
        "sgt",
        "hon",
        "messrs",
        "mt",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "cf",
        "no",
        "nos",
        "vol",
        "fig",
        "approx",
        "dept",
        "est",
        "inc",
        "ltd",
        "co",
        "corp",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "a.m",
        "p.m",
        "bzw",
        "z.b",
        "d.h",
        "usw",
    ]
)
_MAY_END = frozenset({"etc", "a.m", "p.m", "inc", "ltd", "co", "corp", "usw", "jr", "sr", "no"})
"""Abbreviations after which a sentence may end: it does when the next word begins a new one."""


@dataclass(frozen=True)
class SpokenWord:
    """A word as the recogniser gave it."""

    text: str
    """With its leading blank, if it had one: without one it belongs to the word before."""
    start_seconds: float | None
    """None when it could not be placed, as digits sometimes."""
    end_seconds: float | None
    """None when it could not be placed."""
    probability: float
    """0 to 1."""


def repair_words(spoken: Sequence[SpokenWord], duration_seconds: float) -> list[Word]:
    """Return words with monotonic times within the media; none overlap, none is empty.

    Args:
        spoken: Words in order.
        duration_seconds: Length of the sound.
    """
    words = _placed(_merged(spoken), duration_seconds)
    repaired: list[Word] = []
    earliest = 0.0
    least = min(WORD_SECONDS_MIN, duration_seconds / max(len(words), 1))
    for index, word in enumerate(words):
        assert word.start_seconds is not None
        assert word.end_seconds is not None
        # Room for the words that follow, so that the last ones still fit into the media.
        latest = duration_seconds - least * (len(words) - index - 1)
        start = min(max(word.start_seconds, earliest), latest - least)
        end = min(max(word.end_seconds, start + least), latest)
        earliest = end
        repaired.append(
            Word(
                text=word.text.strip(),
                start_seconds=round(start, 3),
                end_seconds=round(end, 3),
                probability=min(max(word.probability, 0.0), 1.0),
            )
        )
    return repaired


def level_envelope(samples: NDArray[np.int16], rate_hz: int) -> NDArray[np.float32]:
    """Return the level in dBFS of each `ENVELOPE_SECONDS`; digital silence is -96."""
    step = round(ENVELOPE_SECONDS * rate_hz)
    count = len(samples) // step
    blocks = samples[: count * step].reshape(count, step).astype(np.float32) / 32768
    # The mean is no sound: a microphone's offset would hide the pauses.
    power = blocks.var(axis=1)
    levels: NDArray[np.float32] = 10 * np.log10(np.maximum(power, np.float32(2.5e-10)))
    return levels


def silent_runs(envelope: NDArray[np.float32]) -> list[tuple[float, float]]:
    """Return the stretches without speech, in seconds; none when speech does not stand out.

    Args:
        envelope: Levels as `level_envelope` gives them.
    """
    if len(envelope) == 0:
        return []
    floor, loud = (float(value) for value in np.percentile(envelope, (10, 95)))
    threshold = max(floor + 8.0, loud - 38.0)
    if threshold > loud - 12.0:
        return []
    silent = envelope < threshold
    edges = np.flatnonzero(np.diff(np.concatenate(([False], silent, [False])).astype(np.int8)))
    runs = [
        (float(start) * ENVELOPE_SECONDS, float(end) * ENVELOPE_SECONDS)
        for start, end in edges.reshape(-1, 2)
    ]
    return [run for run in runs if run[1] - run[0] >= SILENCE_SECONDS_MIN]


def snap_to_speech(words: Sequence[Word], runs: Sequence[tuple[float, float]]) -> list[Word]:
    """Move edges that lie in silence to where the sound is, and edges near silence up to it.

    First words that stick to the sentence before, with the pause after them, are moved behind it.

    Args:
        words: Monotonic words.
        runs: Silent stretches, rising.

    Returns:
        As many words; still monotonic.
    """
    words = _with_openers_moved(words, runs)
    snapped: list[Word] = []
    for index, word in enumerate(words):
        before = snapped[-1].end_seconds if snapped else 0.0
        after = words[index + 1].start_seconds if index + 1 < len(words) else math.inf
        start = _snapped_start(word, before, runs)
        end = _snapped_end(word, start, after, runs)
        snapped.append(
            word.model_copy(update={"start_seconds": round(start, 3), "end_seconds": round(end, 3)})
        )
    return snapped


def sentences_of(words: Sequence[Word], source_id: str) -> tuple[Sentence, ...]:
    """Split words at sentence ends and pauses, and long sentences at their longest pauses.

    Args:
        words: Monotonic words.
        source_id: Ids are `{source_id}.t001` and so on.
    """
    groups: list[list[Word]] = []
    for index, word in enumerate(words):
        if index == 0 or _ends_between(words[index - 1], word):
            groups.append([])
        groups[-1].append(word)
    split = [part for group in groups for part in _split_long(group)]
    return tuple(
        Sentence(
            id=f"{source_id}.t{number:03d}",
            start_seconds=group[0].start_seconds,
            end_seconds=group[-1].end_seconds,
            text=" ".join(word.text for word in group),
            words=tuple(group),
        )
        for number, group in enumerate(split, start=1)
    )


def _merged(spoken: Sequence[SpokenWord]) -> list[SpokenWord]:
    """Join pieces such as `-year` to the word before; drop what has no text."""
    merged: list[SpokenWord] = []
    for word in spoken:
        if not word.text.strip():
            continue
        attached = word.text[0] in "-'’.,!?%" and merged
        if attached:
            last = merged[-1]
            merged[-1] = replace(
                last,
                text=last.text + word.text,
                end_seconds=word.end_seconds if word.end_seconds is not None else last.end_seconds,
                probability=min(last.probability, word.probability),
            )
        else:
            merged.append(word)
    return merged


def _placed(words: Sequence[SpokenWord], duration_seconds: float) -> list[SpokenWord]:
    """Give words without times an equal share of the gap that they stand in."""
    placed = list(words)
    index = 0
    while index < len(placed):
        if _has_times(placed[index]):
            index += 1
            continue
        stop = index
        while stop < len(placed) and not _has_times(placed[stop]):
            stop += 1
        start = placed[index - 1].end_seconds if index else 0.0
        end = placed[stop].start_seconds if stop < len(placed) else duration_seconds
        assert start is not None
        assert end is not None
        share = max(end - start, 0.0) / (stop - index)
        for offset in range(stop - index):
            placed[index + offset] = replace(
                placed[index + offset],
                start_seconds=start + offset * share,
                end_seconds=start + (offset + 1) * share,
            )
        index = stop
    return placed


def _has_times(word: SpokenWord) -> bool:
    return all(
        value is not None and math.isfinite(value)
        for value in (word.start_seconds, word.end_seconds)
    )


def _with_openers_moved(words: Sequence[Word], runs: Sequence[tuple[float, float]]) -> list[Word]:
    """Move first words of sentences from before a pause to behind it.

    Voice detection takes pauses out before recognition, and what is said first after one is then
    sometimes placed at the end of what was said before.
    """
    moved = list(words)
    for index in range(1, len(moved) - 1):
        last, word, following = moved[index - 1 : index + 2]
        if not _ENDS.search(last.text) or not word.text[-1].isalnum():
            continue
        middle = (word.start_seconds + word.end_seconds) / 2
        pause = next((run for run in runs if run[1] > middle), None)
        if pause is None or pause[1] - pause[0] < STRANDED_SECONDS:
            continue
        # A pause on either side makes the word one that stands alone, such as a drawn-out `so`.
        apart = any(last.start_seconds < run[0] and run[1] <= middle for run in runs)
        follows = pause[1] - 0.1 <= following.start_seconds <= pause[1] + 0.5
        if apart or not follows or pause[0] > word.end_seconds + 0.1:
            continue
        room = following.end_seconds - pause[1]
        if room < 2 * WORD_SECONDS_MIN:
            continue
        share = len(word.text) / (len(word.text) + len(following.text))
        border = max(following.start_seconds, pause[1] + min(share * room, 0.1))
        border = min(border, following.end_seconds - WORD_SECONDS_MIN)
        moved[index] = word.model_copy(update={"start_seconds": pause[1], "end_seconds": border})
        moved[index + 1] = following.model_copy(update={"start_seconds": border})
    return moved


def _snapped_start(word: Word, before: float, runs: Sequence[tuple[float, float]]) -> float:
    start, end = word.start_seconds, word.end_seconds
    for run_start, run_end in runs:
        if run_start <= start < run_end < end - WORD_SECONDS_MIN:
            return max(run_end, before)
    near = [
        run for run in runs if before <= run[0] and start - START_REACH_SECONDS <= run[1] <= start
    ]
    # A short one may part a breathy first sound from the rest of its word.
    clear = [run for run in near if run[1] - run[0] >= CLEAR_SECONDS] or near
    return max(clear[-1][1] if clear else start, before)


def _snapped_end(
    word: Word, start: float, after: float, runs: Sequence[tuple[float, float]]
) -> float:
    end = word.end_seconds
    # An edge inside a silence goes back to its beginning, if the word does not begin in it.
    for run_start, run_end in runs:
        if start + WORD_SECONDS_MIN < run_start < end <= run_end:
            return run_start
    # Sound between the end and the next silence is this word's, if the next begins after it.
    near = next((run[0] for run in runs if run[0] >= end), math.inf)
    if near <= min(end + END_REACH_SECONDS, after):
        return near
    return max(end, start + WORD_SECONDS_MIN)


def _ends_between(word: Word, following: Word) -> bool:
    if following.start_seconds - word.end_seconds >= PAUSE_SECONDS:
        return True
    if not _ENDS.search(word.text):
        return False
    bare = word.text.strip("\"'“”‘’([{)]}»«")
    if bare.endswith(("!", "?")) or not bare.endswith("."):
        return True
    stem = bare.rstrip(".").lower()
    capital = following.text.lstrip("\"'“‘([«")[:1].isupper()
    if stem in _ABBREVIATIONS:
        return stem in _MAY_END and capital
    # A single capital is an initial, and a number before a small letter is an ordinal.
    if len(stem) == 1 and stem.isalpha() and stem != "i":
        return False
    return capital or not stem.isdigit()


def _split_long(group: list[Word]) -> list[list[Word]]:
    length = group[-1].end_seconds - group[0].start_seconds
    pauses = [after.start_seconds - before.end_seconds for before, after in pairwise(group)]
    for seconds_max, pause_min in LONG_SENTENCES:
        if length > seconds_max and pauses and max(pauses) >= pause_min:
            at = pauses.index(max(pauses)) + 1
            return [*_split_long(group[:at]), *_split_long(group[at:])]
    return [group]
