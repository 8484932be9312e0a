"""Director: the story editor's proposal with the critic's changes, under the brand's title.

What the critic drops goes, except the opening; what it adds comes at its place in time, after the
opening. Without a proposal the story editor's rules are applied here.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from reprise.agents.heuristics.brand import made_title
from reprise.agents.heuristics.material import Material, rows, texts
from reprise.agents.heuristics.story_editor import story_editor
from reprise.agents.heuristics.words import clip

CUTS_MAX = 16


def director(material: Material) -> JsonValue:
    """Return the final cuts."""
    proposal = material.answer("story_editor")
    if not rows(proposal, "cuts"):
        made = story_editor(material)
        proposal = made if isinstance(made, dict) else {}
    review = material.answer("pacing_critic")
    drop = set(texts(review.get("drop_sentence_ids")))
    add = texts(review.get("add_sentence_ids"))
    proposed = rows(proposal, "cuts")
    cuts = [_without(cut, drop) for cut in proposed[1:]]
    kept = [proposed[0], *(cut for cut in cuts if cut is not None)]
    for cut in rows(proposal, "alternates"):
        ids = texts(cut.get("sentence_ids"))
        if ids and all(name in add for name in ids) and len(kept) < CUTS_MAX:
            kept = _placed(material, kept, cut)
    title = material.answer("brand_analyst").get("title")
    final: list[JsonValue] = [_cut(cut) for cut in kept[:CUTS_MAX]]
    return {
        "title": clip(title if isinstance(title, str) else "", 80) or made_title(material),
        "rationale": clip(_rationale(proposal, review, len(proposed), len(final)), 700),
        "cuts": final,
    }


def _without(cut: Mapping[str, JsonValue], drop: set[str]) -> Mapping[str, JsonValue] | None:
    """Return a cut without the dropped sentences; None when nothing is left of it."""
    ids = texts(cut.get("sentence_ids"))
    left: list[JsonValue] = [name for name in ids if name not in drop]
    if ids and not left:
        return None
    return {**cut, "sentence_ids": left}


def _placed(
    material: Material, cuts: list[Mapping[str, JsonValue]], cut: Mapping[str, JsonValue]
) -> list[Mapping[str, JsonValue]]:
    """Return the cuts with one more at its place in time, never before the opening."""
    order = {line.id: at for at, line in enumerate(material.lines)}

    def when(each: Mapping[str, JsonValue]) -> int:
        ids = texts(each.get("sentence_ids"))
        return order.get(ids[0], len(order)) if ids else len(order)

    return [cuts[0], *sorted([*cuts[1:], cut], key=when)]


def _cut(cut: Mapping[str, JsonValue]) -> JsonValue:
    sentences: list[JsonValue] = [*texts(cut.get("sentence_ids"))[:4]]
    shots: list[JsonValue] = [*texts(cut.get("shot_ids"))[:2]]
    reason = cut.get("reason")
    text = clip(reason if isinstance(reason, str) else "", 160) or "part of the proposal"
    return {"sentence_ids": sentences, "shot_ids": shots, "reason": text}


def _rationale(
    proposal: Mapping[str, JsonValue], review: Mapping[str, JsonValue], proposed: int, kept: int
) -> str:
    approach = proposal.get("approach")
    said = f"{approach} " if isinstance(approach, str) else ""
    verdict = review.get("verdict")
    if not isinstance(verdict, str):
        return f"{said}No pacing review was given."
    seconds = review.get("estimated_seconds")
    measured = f" at {seconds:.1f} s" if isinstance(seconds, int | float) else ""
    return f"{said}The pacing critic said “{verdict}”{measured}; {proposed} cuts became {kept}."
