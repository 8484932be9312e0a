"""Captions: the words that a film says, as timed texts on its clock, and as SRT and VTT.

Words are grouped into captions of at most two lines. A caption never crosses a cut, a longer pause
or the end of a sentence; within these bounds the breaks are chosen together, so that captions and
lines come out about as long as each other and end at a comma rather than anywhere.

Source: specification V12; issue 2 (caption words within 0.1 s of the speech).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reprise.media.timeline import FilmClock, PlacedCut
from reprise.model.media import Word
from reprise.model.render import Caption


@dataclass(frozen=True)
class CaptionRules:
    """Bounds of a caption; the defaults are those of common broadcasting guides."""

    line_chars: int = 42
    """Longest line."""
    lines_max: int = 2
    """Most lines."""
    seconds_min: float = 1.0
    """A shorter sentence shares its caption with the next one, or is held for so long."""
    seconds_max: float = 6.0
    """Longest stretch of speech in one caption."""
    pause_seconds: float = 0.7
    """A pause of this length ends a caption."""
    chars_per_second: float = 17.0
    """Reading speed that a caption is held for, where the silence after it leaves room."""
    hold_seconds_max: float = 0.1
    """Longest that a caption stays after its last word, unless it was shown for `seconds_min` or
    less: a text that stays longer is no longer with its speech."""
    gap_seconds: float = 0.08
    """Least time without a caption before the next, unless speech runs on."""


DEFAULT_RULES = CaptionRules()
_SENTENCE_END = re.compile(r"[.!?…\u3002\uff01\uff1f][\"'”’)\]]*$")
_CLAUSE_END = re.compile(r"[,;:–—][\"'”’)\]]*$")
_EDGE_SECONDS = Fraction(1, 10)
"""How far a word's times may reach over a cut's edge: recognisers are no more exact than that."""


@dataclass(frozen=True)
class _Spoken:
    """A word on the film's clock."""

    text: str
    start: Fraction
    end: Fraction


def film_captions(
    clock: FilmClock,
    words: Mapping[str, Sequence[Word]],
    rules: CaptionRules = DEFAULT_RULES,
) -> tuple[Caption, ...]:
    """Return the captions of a film.

    Args:
        clock: The film's cuts in their places; see `timeline.place_cuts`.
        words: Source id → all its words, on the source's clock; a source may be missing.
        rules: Bounds.

    Returns:
        Captions by rising time that do not overlap; each line is within `line_chars` unless it is
        one word. Only words that lie in a cut are in them: by their middle, and with no more than
        0.1 s outside.
    """
    captions: list[Caption] = []
    for cut in clock.cuts:
        spoken = _words_in(cut, words.get(cut.source_id, ()))
        groups = [group for phrase in _phrases(spoken, rules) for group in _split(phrase, rules)]
        for number, group in enumerate(groups):
            limit = cut.film_end_seconds
            if number + 1 < len(groups):
                following = groups[number + 1][0].start
                limit = max(group[-1].end, following - Fraction(rules.gap_seconds))
                limit = min(limit, following)
            captions.append(_caption(group, limit, rules))
    return tuple(caption for caption in captions if caption.end_seconds > caption.start_seconds)


def srt(captions: Sequence[Caption]) -> str:
    """Return captions as SubRip text, ready to be written as UTF-8."""
    blocks = []
    for number, caption in enumerate(captions, start=1):
        start, end = _stamp(caption.start_seconds, ","), _stamp(caption.end_seconds, ",")
        blocks.append(f"{number}\n{start} --> {end}\n{_cue_text(caption.text)}\n")
    return "\n".join(blocks)


def vtt(captions: Sequence[Caption]) -> str:
    """Return captions as WebVTT text."""
    blocks = ["WEBVTT\n"]
    for caption in captions:
        text = _cue_text(caption.text)
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        start, end = _stamp(caption.start_seconds, "."), _stamp(caption.end_seconds, ".")
        blocks.append(f"{start} --> {end}\n{text}\n")
    return "\n".join(blocks)


def _words_in(cut: PlacedCut, words: Sequence[Word]) -> list[_Spoken]:
    inside = []
    start, end = cut.source_start_seconds, cut.source_end_seconds
    for word in words:
        word_start, word_end = Fraction(word.start_seconds), Fraction(word.end_seconds)
        if not start <= (word_start + word_end) / 2 < end or not word.text.strip():
            continue
        if word_start < start - _EDGE_SECONDS or word_end > end + _EDGE_SECONDS:
            continue
        film_start = max(cut.to_film_seconds(word_start), cut.film_start_seconds)
        film_end = min(cut.to_film_seconds(word_end), cut.film_end_seconds)
        inside.append(_Spoken(" ".join(word.text.split()), film_start, max(film_start, film_end)))
    return sorted(inside, key=lambda word: (word.start, word.end))


def _phrases(words: Sequence[_Spoken], rules: CaptionRules) -> list[list[_Spoken]]:
    """Part words where a caption must end: at a sentence's end and at a pause."""
    phrases: list[list[_Spoken]] = []
    for word in words:
        last = phrases[-1][-1] if phrases else None
        if (
            last is None
            or word.start - last.end >= rules.pause_seconds
            or (
                _SENTENCE_END.search(last.text)
                and last.end - phrases[-1][0].start >= rules.seconds_min
            )
        ):
            phrases.append([word])
        else:
            phrases[-1].append(word)
    return phrases


def _split(phrase: Sequence[_Spoken], rules: CaptionRules) -> list[Sequence[_Spoken]]:
    """Part a phrase into captions: as few as can be, then as even as can be, ending at clauses."""
    count = len(phrase)
    best: list[tuple[float, int]] = [(0.0, 0)] + [(math.inf, 0)] * count
    for end in range(1, count + 1):
        for start in range(end - 1, -1, -1):
            group = phrase[start:end]
            if end - start > 1 and not _fits(group, rules):
                break
            cost = best[start][0] + _cost(group, rules, is_last=end == count)
            if cost < best[end][0]:
                best[end] = (cost, start)
    groups: list[Sequence[_Spoken]] = []
    end = count
    while end > 0:
        start = best[end][1]
        groups.append(phrase[start:end])
        end = start
    return groups[::-1]


def _fits(group: Sequence[_Spoken], rules: CaptionRules) -> bool:
    if group[-1].end - group[0].start > rules.seconds_max:
        return False
    lines = _lines([word.text for word in group], rules)
    return len(lines) <= rules.lines_max and all(len(line) <= rules.line_chars for line in lines)


def _cost(group: Sequence[_Spoken], rules: CaptionRules, *, is_last: bool) -> float:
    room = rules.line_chars * rules.lines_max
    length = sum(len(word.text) + 1 for word in group) - 1
    # One more caption costs more than any unevenness; squares make two halves beat a long and a
    # short one.
    cost = 4.0 + (length / room) ** 2
    if not is_last and not _CLAUSE_END.search(group[-1].text):
        cost += 0.3
    return cost


def _lines(words: Sequence[str], rules: CaptionRules) -> list[str]:
    """Set words in one line if they fit, else in two as even as can be, the lower one longer."""
    text = " ".join(words)
    if len(text) <= rules.line_chars or len(words) == 1 or rules.lines_max == 1:
        return [text]
    breaks = []
    for at in range(1, len(words)):
        upper, lower = " ".join(words[:at]), " ".join(words[at:])
        longest = max(len(upper), len(lower))
        penalty = 0 if _CLAUSE_END.search(upper) else 6
        breaks.append((longest > rules.line_chars, longest + penalty, at))
    at = min(breaks)[2]
    return [" ".join(words[:at]), " ".join(words[at:])]


def _caption(group: Sequence[_Spoken], limit: Fraction, rules: CaptionRules) -> Caption:
    lines = _lines([word.text for word in group], rules)
    start, end = group[0].start, group[-1].end
    reading = Fraction(sum(map(len, lines)) / rules.chars_per_second)
    held = max(end + Fraction(str(rules.hold_seconds_max)), start + Fraction(rules.seconds_min))
    wanted = max(end, min(start + reading, held))
    return Caption(
        start_seconds=round(float(start), 3),
        end_seconds=round(float(min(wanted, limit)), 3),
        text="\n".join(lines),
    )


def _stamp(seconds: float, point: str) -> str:
    milliseconds = max(0, round(seconds * 1000))
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"


def _cue_text(text: str) -> str:
    """Return a text that ends no cue early: no blank line and no arrow."""
    lines = (line.strip() for line in text.replace("-->", "→").splitlines())
    return "\n".join(line for line in lines if line)
