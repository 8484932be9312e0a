"""Author: the compositions that the plan has and the root file lacks, then every film.

A missing composition is a copy of the element that it is made like, put behind it by one targeted
edit; in the copy the old id is replaced where it is quoted or a key (`cards.LowerThird`), so that
the copy shows the new card. Then every planned composition that is there is rendered; what was not
rendered stands in the answer with the tool's reason.

Tools: the plan is read, the root file outlined, its element read and edited, films rendered.
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.dialogue import Answer, Ask, Desk, Dialogue
from reprise.agents.heuristics.motion_plan import Card, MotionPlan, planned
from reprise.agents.heuristics.sandbox_files import (
    RENDER,
    Edit,
    Part,
    Problems,
    Root,
    changed,
    is_ok,
    reason_of,
    root_file,
)
from reprise.agents.heuristics.words import clip

NOTE_CHARS_MAX = 300


def author_agent(desk: Desk) -> Dialogue:
    """Return which planned compositions were rendered, and where the films are."""
    problems = Problems()
    plan = yield from planned(desk, problems)
    root = (yield from root_file(desk, problems)) if plan is not None else None
    if plan is None or root is None:
        return {"compositions": [], "changed_files": [], "problems": problems.told}
    edited = yield from _completed(desk, plan, root, problems)
    if edited:
        after = yield from root_file(desk, problems)
        root = after or root
    films = yield from _rendered(plan, root)
    return {
        "compositions": films,
        "changed_files": [root.path] if edited else [],
        "problems": problems.told,
    }


def element_of(text: str, name: str) -> str | None:
    """Return the lines of a composition's element that closes itself; None when there is none."""
    quoted = re.escape(name)
    pattern = rf"^[ \t]*<(?:Composition|Still)\b[^<>]*?\bid=[\"']{quoted}[\"'].*?/>"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    return found.group(0) if found else None


def copied(element: str, old: str, new: str) -> str:
    """Return an element for another composition: the id replaced where it is quoted or a key."""
    return re.sub(rf"(?<=[\"'.]){re.escape(old)}(?![\w-])", new, element)


def _completed(desk: Desk, plan: MotionPlan, root: Root, problems: Problems) -> Part[bool]:
    """Add the compositions that are missing; answer whether the root file was changed."""
    missing = [card for card in plan.cards if card.composition_id not in root.ids]
    bases = [card.based_on for card in missing if card.based_on in root.ids]
    for card in missing:
        if card.based_on not in root.ids:
            problems.add(
                f"{root.path} has neither {card.composition_id!r} nor {card.based_on!r}, "
                "which it is made like"
            )
    if not bases:
        return False

    def edits_of(text: str) -> list[Edit]:
        return _copies(text, missing, problems)

    first = min(root.lines[name] for name in bases)
    edits = yield from changed(desk, root.path, first, edits_of, problems)
    return bool(edits)


def _copies(text: str, missing: Sequence[Card], problems: Problems) -> list[Edit]:
    edits = []
    for base in dict.fromkeys(card.based_on for card in missing):
        element = element_of(text, base)
        names = [card.composition_id for card in missing if card.based_on == base]
        names = [name for name in names if element_of(text, name) is None]
        if element is None:
            problems.add(f"the element of {base!r} does not close itself, so it cannot be copied")
        elif names:
            copies = [copied(element, base, name) for name in names]
            edits.append(Edit(element, "\n".join([element, *copies])))
    return edits


def _rendered(plan: MotionPlan, root: Root) -> Part[list[JsonValue]]:
    """Render each planned composition that is there."""
    there = [card.composition_id for card in plan.cards if card.composition_id in root.ids]
    answers = (yield [Ask(RENDER, {"id": name}) for name in there]) if there else ()
    told = dict(zip(there, answers, strict=True))
    return [_film(card.composition_id, told.get(card.composition_id)) for card in plan.cards]


def _film(name: str, answer: Answer | None) -> JsonValue:
    if answer is None:
        answer = {"ok": False, "error": "there is no such composition"}
    key, seconds = answer.get("storageKey"), answer.get("durationSeconds")
    rendered = is_ok(answer) and isinstance(key, str)
    return {
        "composition_id": name,
        "rendered": rendered,
        "storage_key": key if rendered else None,
        "seconds": seconds if rendered else None,
        "note": "" if rendered else clip(reason_of(answer), NOTE_CHARS_MAX),
    }
