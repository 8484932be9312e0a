"""How long a film is to be, and bringing passages to a length: fill, shorten, split.

The wanted length comes from the user's request ("20 seconds", "20s", "half a minute"), else from
what an earlier step read in the brief (`target_seconds`), else from the step's config. A film is
never longer than half of its footage, unless two words are all that is said. Its title lies over
the first cut and adds nothing.

Source: issue "Foundation", quick-win-promo; specification W3 (EditRoom).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reprise.media.passages import Passage, Piece, pieces_of, total_seconds
from reprise.media.spoken import Footage
from reprise.media.usable import RANGE_SECONDS_MIN, minus_frames, shot_ranges
from reprise.model.conversation import PriorOutput

ROUNDS_MAX = 500
"""Most changes that are made to reach a length."""

SPLIT_SECONDS_MIN = 1.0
"""A cut is not split into parts shorter than this."""

CLAUSE_END = re.compile(r"[,;:.!?…—–]['\")\]]?$")
PAUSE_AT_CLAUSE_SECONDS = 0.25

_NUMBERS: Mapping[str, float] = {
    "half a minute": 30,
    "a minute and a half": 90,
    "a minute": 60,
    "one minute": 60,
    "ten seconds": 10,
    "fifteen seconds": 15,
    "twenty seconds": 20,
    "thirty seconds": 30,
    "forty seconds": 40,
    "sixty seconds": 60,
}
_RANGE = re.compile(
    r"(\d{1,3}(?:\.\d+)?)\s*(?:-|–|to)\s*(\d{1,3}(?:\.\d+)?)[\s-]*(?:s|sec|secs|seconds?)\b", re.I
)
_SECONDS = re.compile(r"(\d{1,3}(?:\.\d+)?)[\s-]*(?:s|sec|secs|seconds?)\b", re.I)
_MINUTES = re.compile(r"(\d{1,2}(?:\.\d+)?)[\s-]*(?:m|min|mins|minutes?)\b", re.I)


@dataclass(frozen=True)
class LengthFrame:
    """Between which lengths the cuts must be, in seconds."""

    target: float
    """Wanted."""
    shortest: float
    """Not below, where there is enough to show."""
    longest: float
    """Not above."""


def seconds_in_text(text: str) -> float | None:
    """Return the length that a text asks for, in seconds; a range counts as its middle."""
    match = _RANGE.search(text)
    if match:
        return (float(match.group(1)) + float(match.group(2))) / 2
    match = _SECONDS.search(text)
    if match:
        return float(match.group(1))
    lower = " ".join(text.lower().split())
    for words, seconds in _NUMBERS.items():
        if re.search(rf"\b{words}\b", lower):
            return seconds
    match = _MINUTES.search(text)
    return float(match.group(1)) * 60 if match else None


def wanted_seconds(user_request: str, prior: Sequence[PriorOutput], default: float) -> float:
    """Return the wanted length: the request's, else an earlier output's, else the default."""
    asked = seconds_in_text(user_request)
    if asked:
        return asked
    for item in prior:
        value = item.output.get("target_seconds") if isinstance(item.output, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
    return default


def length_frame(
    target: float, shortest: float, longest: float, footage_seconds: float
) -> LengthFrame:
    """Return the bounds of the cuts for a film between two lengths, at most half of the footage."""
    most = min(longest, footage_seconds / 2)
    least = min(shortest, most)
    return LengthFrame(min(max(target, least), most), least, most)


def footage_seconds(footages: Mapping[str, Footage]) -> float:
    """Return the length of all footage."""
    return sum(each.end_seconds for each in footages.values())


def shorten(passages: Sequence[Passage], frame: LengthFrame, notes: list[str]) -> list[Passage]:
    """Return the passages within the longest length: sentences go first, then clauses.

    The opening sentence stays. Of the others the smallest goes whose loss is enough and leaves the
    film long enough; where there is none, the longest goes.
    """
    current = list(passages)
    dropped: list[str] = []
    for _ in range(ROUNDS_MAX):
        total = total_seconds(current)
        if total <= frame.longest:
            break
        shorter = _without_one(current, frame, dropped) or _trimmed(current, total, frame)
        if shorter is None:
            break
        current = shorter
    if dropped:
        names = ", ".join(dropped)
        notes.append(f"left out {names}: the cuts may last {frame.longest:.1f} s at most")
    return current


def fill(
    passages: Sequence[Passage],
    footages: Mapping[str, Footage],
    frame: LengthFrame,
    seconds_each: float,
    notes: list[str],
) -> list[Passage]:
    """Return the passages made long enough: by what follows them, then by other material."""
    current = list(passages)
    added: list[str] = []
    for _ in range(ROUNDS_MAX):
        total = total_seconds(current)
        if total >= frame.shortest:
            break
        found = _next(current, footages, frame, seconds_each)
        if found is None:
            notes.append(f"the footage gives {total:.1f} s; {frame.shortest:.1f} s were wanted")
            break
        name, current = found
        added.append(name)
    if added:
        names = ", ".join(dict.fromkeys(added))
        notes.append(f"added {names}: the chosen cuts were too short")
    return current


def multiply(
    passages: Sequence[Passage],
    footages: Mapping[str, Footage],
    frame: LengthFrame,
    seconds_each: float,
    cuts_min: int,
) -> list[Passage]:
    """Return the passages in at least so many cuts: by splitting, else by adding more material."""
    current = split(passages, cuts_min)
    for _ in range(cuts_min):
        if len(pieces_of(current)) >= cuts_min:
            break
        found = _next(current, footages, frame, seconds_each)
        if found is None:
            break
        current = found[1]
    return current


def _next(
    passages: Sequence[Passage],
    footages: Mapping[str, Footage],
    frame: LengthFrame,
    seconds_each: float,
) -> tuple[str, list[Passage]] | None:
    """Return the passages with one more sentence, else with one more part of a shot."""
    total = total_seconds(passages)
    found = _next_sentence(passages, footages, frame, total)
    for whole_sentences in (True, False):
        found = found or _next_shot(
            passages, footages, min(seconds_each, frame.longest - total), whole_sentences
        )
    return found


def split(passages: Sequence[Passage], cuts_min: int) -> list[Passage]:
    """Return the passages in at least so many cuts: the longest is split between its sentences.

    Where no cut has an inner end of a sentence, the longest is split at the end of a clause.
    """
    current = [piece.passage for piece in pieces_of(passages)]
    for _ in range(ROUNDS_MAX):
        pieces = pieces_of(current)
        if len(pieces) >= cuts_min:
            break
        ranked = sorted(range(len(pieces)), key=lambda at: (-pieces[at].seconds, at))
        halves = None
        for ends in (_sentence_ends, _clause_ends):
            for at in ranked:
                halves = _halves(pieces[at].passage, ends(pieces[at].passage))
                if halves:
                    current = [piece.passage for piece in pieces]
                    current[at : at + 1] = halves
                    break
            if halves:
                break
        if halves is None:
            break
    return current


def _without_one(
    passages: Sequence[Passage], frame: LengthFrame, dropped: list[str]
) -> list[Passage] | None:
    """Return the passages without one sentence or shot; None when only the first is left."""
    options: list[tuple[float, int, str, list[Passage]]] = []
    for at, passage in enumerate(passages):
        names = passage.sentence_ids or ("a shot",)
        for name in names[1:] if at == 0 else names:
            rest = list(passages)
            if passage.words:
                rest[at] = passage.without(name)
            if not passage.words or not rest[at].words:
                del rest[at]
            options.append((total_seconds(rest), len(options), name, rest))
    if not options:
        return None
    fitting = [each for each in options if frame.shortest <= each[0] <= frame.longest]
    best = max(fitting) if fitting else min(options, key=lambda each: (each[0], each[1]))
    dropped.append(best[2])
    return best[3]


def _trimmed(passages: Sequence[Passage], total: float, frame: LengthFrame) -> list[Passage] | None:
    """Return the passages with the longest made shorter: by its last clause, or by its seconds."""
    at = max(range(len(passages)), key=lambda each: total_seconds([passages[each]]))
    passage = passages[at]
    rest = list(passages)
    if passage.words:
        if len(passage.words) < 3:
            return None
        ends = [end for end in _clause_ends(passage) if end < len(passage.words)]
        keep = ends[-1] if ends else len(passage.words) - 1
        rest[at] = replace(passage, words=passage.words[:keep])
        return rest
    seconds = min(passage.seconds, total_seconds([passage])) - (total - frame.longest)
    if passage.seconds <= RANGE_SECONDS_MIN:
        return None
    rest[at] = replace(passage, seconds=max(seconds, RANGE_SECONDS_MIN))
    return rest


def _next_sentence(
    passages: Sequence[Passage],
    footages: Mapping[str, Footage],
    frame: LengthFrame,
    total: float,
) -> tuple[str, list[Passage]] | None:
    """Return the passages with one more sentence: one that follows a chosen one, else the first."""
    used = {name for passage in passages for name in passage.sentence_ids}
    used |= {name for piece in pieces_of(passages) for name in _heard(piece)}
    ends = {(id(each.footage), each.words[-1].index) for each in passages if each.words}
    options: list[tuple[bool, str, Passage]] = []
    for footage in footages.values():
        for name, words in footage.by_sentence.items():
            if name in used or name in footage.blocked:
                continue
            follows = (id(footage), words[0].index - 1) in ends
            reason = "follows a chosen passage" if follows else "fills the film"
            options.append((not follows, name, Passage(footage, reason, words)))
    for _, name, passage in sorted(options, key=lambda each: each[0]):
        longer = _placed(passages, passage, passage.words[0].start)
        if total < total_seconds(longer) <= frame.longest:
            return name, longer
    return None


def _next_shot(
    passages: Sequence[Passage],
    footages: Mapping[str, Footage],
    seconds: float,
    whole_sentences: bool,
) -> tuple[str, list[Passage]] | None:
    """Return the passages with one more part of a shot, the longest that is not used."""
    used = pieces_of(passages)
    options: list[tuple[float, str, Footage, tuple[float, float]]] = []
    for footage in footages.values():
        taken = [piece.stretch for piece in used if piece.passage.footage is footage]
        for shot in footage.source.shots:
            ranges = shot_ranges(footage, shot, whole_sentences=whole_sentences)
            for start, end in minus_frames(ranges, taken, footage.rate):
                options.append((start - end, shot.id, footage, (start, end)))
    if not options or seconds < RANGE_SECONDS_MIN:
        return None
    for _, name, footage, part in sorted(options, key=lambda each: (each[0], each[1])):
        passage = Passage(
            footage,
            "fills the film",
            part=part,
            seconds=seconds,
            whole_sentences=whole_sentences,
        )
        if pieces_of([passage]):
            return name, _placed(passages, passage, part[0])
    return None


def _heard(piece: Piece) -> Iterator[str]:
    """Yield the sentences of which something is heard in a piece."""
    footage, stretch = piece.passage.footage, piece.stretch
    for name, words in footage.by_sentence.items():
        if (
            words[0].start * footage.rate < stretch.end_frame
            and words[-1].end * footage.rate > stretch.start_frame
        ):
            yield name


def _placed(passages: Sequence[Passage], passage: Passage, start: float) -> list[Passage]:
    """Return the passages with one more, after those of its source that come before it."""
    longer = [*passages, passage]
    if all(each.part and each.footage is passage.footage for each in longer):
        return sorted(longer, key=_start)
    at = len(passages)
    for index, other in enumerate(passages):
        if other.footage is passage.footage and _start(other) < start:
            at = index + 1
    return [*passages[:at], passage, *passages[at:]]


def _start(passage: Passage) -> float:
    if passage.words:
        return passage.words[0].start
    return passage.part[0] if passage.part else 0.0


def _halves(passage: Passage, ends: Iterator[int]) -> list[Passage] | None:
    """Return a passage in two at the end that is nearest to its middle."""
    words = passage.words
    if not words:
        return None
    middle = (words[0].start + words[-1].end) / 2
    long_enough = [
        end
        for end in ends
        if words[end - 1].end - words[0].start >= SPLIT_SECONDS_MIN
        and words[-1].end - words[end].start >= SPLIT_SECONDS_MIN
    ]
    if not long_enough:
        return None
    end = min(long_enough, key=lambda each: abs(words[each - 1].end - middle))
    return [replace(passage, words=words[:end]), replace(passage, words=words[end:])]


def _sentence_ends(passage: Passage) -> Iterator[int]:
    """Yield how many words come before each inner end of a sentence."""
    words = passage.words
    for at in range(1, len(words)):
        if words[at].sentence_id != words[at - 1].sentence_id:
            yield at


def _clause_ends(passage: Passage) -> Iterator[int]:
    """Yield how many words come before each inner end of a clause: a comma, or a short pause."""
    words = passage.words
    for at in range(1, len(words)):
        pause = words[at].start - words[at - 1].end
        if CLAUSE_END.search(words[at - 1].text) or pause >= PAUSE_AT_CLAUSE_SECONDS:
            yield at
