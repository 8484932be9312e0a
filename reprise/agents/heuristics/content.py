"""Content analyst: topics by how often terms occur, key moments by how much they carry.

A sentence's score is made of the weight of its terms, its clarity, how well its source is heard,
and its length; sentences that lean on the one before, or that break off, lose; what is said around
a recording is worth next to nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.material import Line, Material
from reprise.agents.heuristics.words import (
    clip,
    density,
    display_forms,
    is_complete,
    is_dependent,
    names_in,
    term_weights,
    terms,
    tokens,
)

TOPICS_MAX = 6
MOMENTS_MAX = 10
SUMMARY_LINES = 3
IDS_MAX = 8
PACE_SLOW = 110
PACE_FAST = 170


def content_analyst(material: Material) -> JsonValue:
    """Return what the footage is about."""
    lines = material.lines
    scored = line_scores(lines)
    return {
        "summary": clip(_summary(material, scored), 700),
        "topics": _topics(lines),
        "key_moments": _key_moments(lines, scored),
        "delivery": _delivery(material),
    }


def line_scores(lines: Sequence[Line]) -> dict[str, float]:
    """Return the score of each sentence by id, 0 to 1."""
    weights = term_weights([line.text for line in lines if not line.unusable])
    dense = {line.id: density(line.text, weights) for line in lines}
    most = max(dense.values(), default=0.0) or 1.0
    return {line.id: _score(line, dense[line.id] / most) for line in lines}


def main_terms(lines: Sequence[Line]) -> list[tuple[str, int]]:
    """Return the terms that occur most, with their counts."""
    counts = Counter(term for line in lines if not line.unusable for term in terms(line.text))
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    often = [each for each in ranked if each[1] >= 2]
    return (often or ranked)[:TOPICS_MAX]


def _score(line: Line, dense: float) -> float:
    if line.unusable:
        return 0.05
    count = len(tokens(line.text))
    length = 1.0 if 6 <= count <= 20 else 0.6 if 4 <= count <= 28 else 0.2
    score = 0.5 * dense + 0.2 * length + 0.15 * line.clarity + 0.15 * line.audibility
    score -= 0.15 if is_dependent(line.text) else 0.0
    score -= 0.1 if not is_complete(line.text) else 0.0
    return round(max(0.0, min(1.0, score)), 3)


def _summary(material: Material, scored: Mapping[str, float]) -> str:
    usable = [line for line in material.lines if not line.unusable]
    sources = material.analysis.sources
    seconds = sum(source.duration_seconds for source in sources)
    if not usable:
        shots = [shot for source in sources for shot in source.shots]
        motion = sum(shot.motion for shot in shots) / max(len(shots), 1)
        return (
            f"Nothing is said in {seconds:.1f} seconds of footage; it has {len(shots)} shots with "
            f"a mean motion of {motion:.1f}."
        )
    best = sorted(usable, key=lambda line: -scored[line.id])[:SUMMARY_LINES]
    ids = {line.id for line in best}
    said = " ".join(line.text for line in usable if line.id in ids)
    forms = display_forms(line.text for line in usable)
    named = ", ".join(forms[term] for term, _ in main_terms(usable)[:3])
    return (
        f"{seconds:.1f} seconds of footage, {len(usable)} usable sentences, about {named}: {said}"
    )


def _topics(lines: Sequence[Line]) -> list[JsonValue]:
    usable = [line for line in lines if not line.unusable]
    names = names_in([line.text for line in usable])
    inside = {term for name in names for term in terms(name)}
    forms = display_forms(line.text for line in usable)
    found = [
        (name, count, [x.id for x in usable if name in x.text]) for name, count in names.items()
    ]
    found += [
        (forms[term], count, [x.id for x in usable if term in terms(x.text)])
        for term, count in main_terms(lines)
        if term not in inside
    ]
    found.sort(key=lambda each: -each[1])
    total = sum(count for _, count, _ in found[:TOPICS_MAX]) or 1
    return [
        {
            "topic": clip(name, 60),
            "weight": round(count / total, 3),
            "sentence_ids": [*ids[:IDS_MAX]],
        }
        for name, count, ids in found[:TOPICS_MAX]
    ]


def _key_moments(lines: Sequence[Line], scored: Mapping[str, float]) -> list[JsonValue]:
    weights = term_weights([line.text for line in lines if not line.unusable])
    forms = display_forms(line.text for line in lines)
    usable = [line for line in lines if not line.unusable]
    moments: list[JsonValue] = []
    for line in sorted(usable, key=lambda each: -scored[each.id])[:MOMENTS_MAX]:
        own = sorted(set(terms(line.text)), key=lambda term: (-weights.get(term, 0), term))[:3]
        about = ", ".join(forms[term] for term in own) or "the matter"
        lean = "; leans on the sentence before" if is_dependent(line.text) else ""
        reason = f"speaks of {about} in {line.seconds:.1f} s{lean}"
        moments.append(
            {"sentence_id": line.id, "score": scored[line.id], "reason": clip(reason, 160)}
        )
    return moments


def _delivery(material: Material) -> JsonValue:
    seconds = sum(line.seconds for line in material.lines)
    count = sum(len(line.words) for line in material.lines)
    rate = round(count / seconds * 60, 1) if seconds else 0.0
    pace = "none" if not count else "slow" if rate < PACE_SLOW else "even"
    pace = "fast" if rate > PACE_FAST else pace
    measured = [
        (source.loudness.integrated_lufs, source.loudness.range_lu or 0.0, source.duration_seconds)
        for source in material.analysis.sources
        if source.loudness is not None and source.loudness.integrated_lufs is not None
    ]
    if not measured:
        return {
            "pace": pace,
            "words_per_minute": min(rate, 1000.0),
            "loudness_lufs": None,
            "note": "there is no sound to measure",
        }
    whole = sum(each[2] for each in measured) or 1.0
    level = sum(each[0] * each[2] for each in measured) / whole
    widest = max(each[1] for each in measured)
    note = f"{level:.1f} LUFS on the whole, range up to {widest:.1f} LU"
    note += "; quiet, needs much gain" if level < -28 else ""
    note += "; loud and quiet passages differ much" if widest > 15 else ""
    return {
        "pace": pace,
        "words_per_minute": min(rate, 1000.0),
        "loudness_lufs": round(level, 2),
        "note": clip(note, 200),
    }
