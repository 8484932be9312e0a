"""Visual analyst: shots by movement, light, colour, length and faults; see looks.py."""

from collections.abc import Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.looks import Look, look_at
from reprise.agents.heuristics.material import Material

PICKS_MAX = 12
AVOID_MAX = 12
SPEAKER_SHARE = 0.5


def visual_analyst(material: Material) -> JsonValue:
    """Return the shots worth showing, and those that must not be shown."""
    looks = [look_at(footage, shot) for footage, shot in material.shot_of.values()]
    usable = sorted((look for look in looks if not look.fault), key=lambda look: -look.score)
    faulty: list[JsonValue] = [
        {"shot_id": look.shot.id, "reason": look.fault} for look in looks if look.fault
    ]
    liveliest = max(usable, key=lambda look: look.shot.motion).shot.id if usable else ""
    picks: list[JsonValue] = [
        {
            "shot_id": look.shot.id,
            "score": look.score,
            "use": _use(look, liveliest),
            "reason": (
                f"motion {look.shot.motion:.1f}, brightness {look.shot.luma:.0f}, "
                f"{look.seconds:.1f} s, speech in {look.speech:.0%} of it"
            ),
        }
        for look in usable[:PICKS_MAX]
    ]
    return {"summary": _summary(looks, usable), "picks": picks, "avoid": faulty[:AVOID_MAX]}


def _use(look: Look, liveliest: str) -> str:
    if look.shot.id == liveliest:
        return "opener"
    if look.shot.end_seconds >= look.footage.end_seconds - 0.001:
        return "closer"
    return "speaker" if look.speech >= SPEAKER_SHARE else "cutaway"


def _summary(looks: Sequence[Look], usable: Sequence[Look]) -> str:
    if not usable:
        return f"None of the {len(looks)} shots can be shown."
    seconds = sum(look.seconds for look in usable)
    motion = sum(look.shot.motion * look.seconds for look in usable) / seconds
    luma = sum(look.shot.luma * look.seconds for look in usable) / seconds
    best = usable[0]
    return (
        f"{len(usable)} of {len(looks)} shots can be shown, {seconds:.1f} s in all; mean motion "
        f"{motion:.1f}, mean brightness {luma:.0f}. The best is {best.shot.id} ({best.score:.2f})."
    )
