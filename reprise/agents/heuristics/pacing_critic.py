"""Pacing critic: the proposal's real length and rhythm, measured with the rules of the edit plan.

Long and very short cuts, pauses, black and frozen picture, quiet or uneven sound, and wording that
the brand avoids each give a note. Too long a film loses its least worthy sentences, too short a one
gains alternates; the opening is never touched.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.material import Material, rows, texts
from reprise.agents.heuristics.story_editor import avoided_ids, frame_of, thoughts_of
from reprise.agents.heuristics.words import clip
from reprise.media.film_length import LengthFrame
from reprise.media.passages import passages_of, pieces_of, shot_seconds, total_seconds

NOTES_MAX = 12
IDS_MAX = 8
LONG_SECONDS = 8.0
SHORT_SECONDS = 1.0
TOLERANCE = 0.1
QUIET_LUFS = -28.0
RANGE_LU = 15.0
LEVEL_STEP_LU = 6.0


def pacing_critic(material: Material) -> JsonValue:
    """Return what disturbs the rhythm of the story editor's proposal."""
    proposal = material.answer("story_editor")
    frame = frame_of(material)
    cuts = rows(proposal, "cuts")
    lengths = [_seconds(material, cut, frame) for cut in cuts]
    total = sum(lengths)
    drop = [name for cut in cuts for name in _ids(cut) if name in avoided_ids(material)]
    add: list[str] = []
    verdict = "keep"
    if total > min(frame.target * (1 + TOLERANCE), frame.longest):
        verdict = "tighten"
        drop += _to_drop(material, cuts[1:], total - frame.target)
    elif total < max(frame.target * (1 - TOLERANCE), frame.shortest):
        add = _to_add(material, proposal, frame, total)
        verdict = "lengthen" if add else "keep"
    notes = [
        *_cut_notes(material, cuts, lengths),
        *_sound_notes(material, cuts),
    ]
    return {
        "verdict": verdict,
        "estimated_seconds": round(total, 2),
        "notes": notes[:NOTES_MAX],
        "drop_sentence_ids": _once(drop),
        "add_sentence_ids": _once(add),
    }


def _once(ids: Sequence[str]) -> list[JsonValue]:
    once: list[JsonValue] = [*dict.fromkeys(ids)]
    return once[:IDS_MAX]


def _ids(cut: Mapping[str, JsonValue]) -> list[str]:
    return texts(cut.get("sentence_ids"))


def _seconds(material: Material, cut: Mapping[str, JsonValue], frame: LengthFrame) -> float:
    """Return how long a cut is in the film, pads and pauses reckoned."""
    each = shot_seconds(frame.target, int(material.figure("cuts_min", 4)))
    return total_seconds(passages_of({"cuts": [dict(cut)]}, material.footages, each, []))


def _to_drop(
    material: Material, cuts: Sequence[Mapping[str, JsonValue]], excess: float
) -> list[str]:
    """Return the least worthy thoughts that together last as long as what is too much."""
    proposed = {name for cut in cuts for name in _ids(cut)}
    inside = [
        each for each in thoughts_of(material) if all(line.id in proposed for line in each.lines)
    ]
    dropped: list[str] = []
    for thought in sorted(inside, key=lambda each: each.worth):
        if excess <= 0 or len(dropped) >= IDS_MAX:
            break
        if thought.seconds <= excess * 1.5:
            dropped += [line.id for line in thought.lines]
            excess -= thought.seconds
    return dropped


def _to_add(
    material: Material, proposal: Mapping[str, JsonValue], frame: LengthFrame, total: float
) -> list[str]:
    """Return alternates that fit into what is missing."""
    added: list[str] = []
    for cut in rows(proposal, "alternates"):
        seconds = _seconds(material, cut, frame)
        if 0 < seconds <= frame.target * (1 + TOLERANCE) - total and total < frame.target:
            added += _ids(cut)
            total += seconds
    return added


def _cut_notes(
    material: Material, cuts: Sequence[Mapping[str, JsonValue]], lengths: Sequence[float]
) -> list[JsonValue]:
    notes: list[JsonValue] = []
    avoided = avoided_ids(material)
    for number, (cut, seconds) in enumerate(zip(cuts, lengths, strict=True), start=1):
        if seconds > LONG_SECONDS:
            advice = f"{seconds:.1f} s: split it between its sentences or at a pause"
            notes.append(_note(number, "too_long", advice))
        elif seconds < SHORT_SECONDS:
            advice = f"{seconds:.1f} s: join it with what follows, or drop it"
            notes.append(_note(number, "too_short", advice))
        for name in _ids(cut):
            line = material.line_of.get(name)
            if name in avoided:
                notes.append(_note(number, "wording", f"{name} holds wording to avoid: drop it"))
            if line is not None and line.footage.blocked.get(name):
                advice = f"{name}: {line.footage.blocked[name]}; drop it"
                notes.append(_note(number, "picture", advice))
        pauses = _pauses(material, cut)
        if pauses:
            notes.append(_note(number, "pause", f"{pauses} long pause(s) inside: cut them out"))
    return notes


def _pauses(material: Material, cut: Mapping[str, JsonValue]) -> int:
    """Return at how many pauses a cut is broken when it becomes frames."""
    if not _ids(cut):
        return 0
    pieces = pieces_of(passages_of({"cuts": [dict(cut)]}, material.footages, 0.0, []))
    return max(0, len(pieces) - 1)


def _sound_notes(material: Material, cuts: Sequence[Mapping[str, JsonValue]]) -> list[JsonValue]:
    """Return notes on quiet and uneven sources, and on steps of level from cut to cut."""
    notes: list[JsonValue] = []
    before: float | None = None
    told: set[str] = set()
    for number, cut in enumerate(cuts, start=1):
        line = next((material.line_of[n] for n in _ids(cut) if n in material.line_of), None)
        loudness = line.footage.source.loudness if line is not None else None
        if line is None or loudness is None or loudness.integrated_lufs is None:
            continue
        level = loudness.integrated_lufs
        if before is not None and abs(level - before) > LEVEL_STEP_LU:
            advice = f"{abs(level - before):.1f} LU step of level to this cut: even it out"
            notes.append(_note(number, "sound", advice))
        before = level
        if line.footage.source.id in told:
            continue
        told.add(line.footage.source.id)
        if level < QUIET_LUFS:
            notes.append(_note(number, "sound", f"{level:.1f} LUFS is quiet: raise the source"))
        if (loudness.range_lu or 0.0) > RANGE_LU:
            advice = f"range of {loudness.range_lu:.1f} LU: even the source out"
            notes.append(_note(number, "sound", advice))
    return notes


def _note(number: int, issue: str, advice: str) -> JsonValue:
    return {"cut": min(number, 16), "issue": issue, "advice": clip(advice, 160)}
