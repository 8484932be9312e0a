"""Hook analyst: which sentence makes a stranger stay.

Questions, numbers, direct address, absolute words and contrast speak for a sentence, as do brevity,
an early place and a lively shot under it; leaning on the sentence before, or pointing at something
that a stranger has not seen, speaks against it. Clarity and audibility scale the whole. Without
speech the liveliest shots are the hooks.
"""

from pydantic import JsonValue

from reprise.agents.heuristics.looks import liveliness, look_at
from reprise.agents.heuristics.material import Line, Material
from reprise.agents.heuristics.words import (
    ADDRESS,
    ADDRESS_START,
    CONTRAST,
    NUMBER_WORDS,
    STRONG,
    clip,
    is_complete,
    is_dependent,
    points_elsewhere,
    tokens,
)

HOOKS_MAX = 5
SECONDS_LONG = 7.0


def hook_analyst(material: Material) -> JsonValue:
    """Return the passages to open with."""
    ranked = sorted(
        ((hook_score(line), line) for line in material.lines if not line.unusable),
        key=lambda each: -each[0][0],
    )[:HOOKS_MAX]
    if not ranked:
        return _picture_hooks(material)
    hooks: list[JsonValue] = []
    for (score, kind, why), line in ranked:
        shot = line.shot
        hooks.append(
            {
                "sentence_id": line.id,
                "shot_id": shot.id if shot else None,
                "kind": kind,
                "score": score,
                "reason": clip(why, 160),
            }
        )
    best = ranked[0][1]
    advice = (
        f"Open with {best.id} ({ranked[0][0][1]}, {best.seconds:.1f} s): “{clip(best.text, 160)}”"
    )
    return {"hooks": hooks, "advice": clip(advice, 300)}


def hook_score(line: Line) -> tuple[float, str, str]:
    """Return a sentence's score, 0 to 1, what kind of hook it is, and why."""
    said = tokens(line.text)
    found = set(said)
    marks: list[tuple[float, str, str]] = []
    if line.text.rstrip("\"'”’ ").endswith("?"):
        marks.append((0.3, "question", "asks a question"))
    if found & ADDRESS or set(said[:1]) & ADDRESS_START:
        marks.append((0.18, "address", "speaks to the viewer"))
    if found & NUMBER_WORDS or any(token[0].isdigit() for token in said):
        marks.append((0.12, "number", "names a number"))
    if found & STRONG:
        word = next(token for token in said if token in STRONG)
        marks.append((0.12, "claim", f"claims with “{word}”"))
    if found & CONTRAST:
        marks.append((0.06, "contrast", "holds a contrast"))
    shape, why = _shape(line, len(said))
    base = 0.25 + sum(mark[0] for mark in marks) + shape
    scale = 0.4 + 0.3 * line.clarity + 0.3 * line.audibility
    score = round(max(0.0, min(1.0, base * scale)), 3)
    kind = marks[0][1] if marks else "story"
    return score, kind, ", ".join([*(mark[2] for mark in marks), why])


def _shape(line: Line, count: int) -> tuple[float, str]:
    """Return what length, place, completeness and picture add."""
    value = 0.12 if 4 <= count <= 13 else 0.05 if count <= 18 else -0.05
    value -= 0.15 if line.seconds > SECONDS_LONG else 0.0
    value += 0.05 * (1.0 - line.place)
    value -= 0.18 if is_dependent(line.text) else 0.0
    value -= 0.2 if points_elsewhere(line.text) else 0.0
    value -= 0.1 if not is_complete(line.text) else 0.0
    why = f"{line.seconds:.1f} s long"
    shot = line.shot
    if shot is not None:
        value += 0.1 * liveliness(shot)
        why += f", motion {shot.motion:.1f} under it"
    return value, why


def _picture_hooks(material: Material) -> JsonValue:
    looks = [look_at(footage, shot) for footage, shot in material.shot_of.values()]
    usable = sorted((look for look in looks if not look.fault), key=lambda look: -look.score)
    hooks: list[JsonValue] = [
        {
            "sentence_id": None,
            "shot_id": look.shot.id,
            "kind": "picture",
            "score": look.score,
            "reason": f"motion {look.shot.motion:.1f}, {look.seconds:.1f} s long; nobody speaks",
        }
        for look in usable[:HOOKS_MAX]
    ]
    first = f"Open with shot {usable[0].shot.id}." if usable else "No shot can be shown."
    return {"hooks": hooks, "advice": f"Nothing is said. {first}"}
