"""Motion graphics director: each card of the plan's file against composition, words and time.

A card gets at least the time that it takes to read: a second, and a third for every word; it is the
one thing that is changed, by a targeted edit of the card's line. A composition that neither is nor
is made like one of the root file's, a title that is too long, and wording that the brand avoids are
told. One frame of the first card is rendered as a preview where that is possible.

Tools: the plan is read, the root file outlined, cards are edited, a frame is rendered.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.dialogue import Answer, Ask, Desk, Dialogue
from reprise.agents.heuristics.material import rows
from reprise.agents.heuristics.motion_plan import (
    Card,
    MotionPlan,
    answer_of,
    card_line,
    plan_of,
    plan_path,
    planned,
    reading_seconds,
)
from reprise.agents.heuristics.sandbox_files import (
    RENDER,
    Edit,
    Part,
    Problems,
    Root,
    asked,
    changed,
    is_ok,
    root_file,
)
from reprise.agents.heuristics.words import stem, tokens

PREVIEW_FRAME = 24
"""About a second after the card's beginning, when it stands."""

TITLE_CHARS = {"title": 60, "lower_third": 80}
"""Longest title that is read at a glance."""


def motion_graphics_director(desk: Desk) -> Dialogue:
    """Return the review, the plan's file put right."""
    problems = Problems()
    plan = yield from planned(desk, problems)
    if plan is None:
        return _answer([], None, problems)
    root = yield from root_file(desk, problems)
    avoided = _avoided(answer_of(desk.inputs, "brand_analyst"))
    for card in plan.cards:
        _check(card, root, avoided, problems)
    edits = yield from changed(desk, plan_path(desk.inputs), 1, _longer, problems)
    preview = yield from _preview(desk, plan, root, problems)
    return _answer(edits or (), preview, problems)


def _answer(edits: Sequence[Edit], preview: str | None, problems: Problems) -> JsonValue:
    changes: list[JsonValue] = [
        {"composition_id": name, "what": what} for edit in edits for name, what in edit.told
    ]
    return {
        "verdict": "changed" if changes else "approved",
        "changes": changes,
        "preview_key": preview,
        "problems": problems.told,
    }


def _check(card: Card, root: Root | None, avoided: Sequence[str], problems: Problems) -> None:
    name = card.composition_id
    if root is not None and not {name, card.based_on} & set(root.ids):
        problems.add(f"{name}: {root.path} has no composition {card.based_on!r} to make it like")
    longest = TITLE_CHARS[card.kind]
    if len(card.title) > longest:
        problems.add(
            f"{name}: the title has {len(card.title)} characters, over {longest} are hard to read"
        )
    said = [stem(token) for token in tokens(f"{card.title} {card.subtitle}")]
    for wording in avoided:
        sought = [stem(token) for token in tokens(wording)]
        span = len(sought)
        if span and any(said[at : at + span] == sought for at in range(len(said) - span + 1)):
            problems.add(f"{name}: it says {wording!r}, which the brand avoids")


def _avoided(brand: Mapping[str, JsonValue]) -> list[str]:
    return [
        word for row in rows(brand, "words_to_avoid") if isinstance(word := row.get("word"), str)
    ]


def _longer(text: str) -> list[Edit]:
    """Return an edit for each card that is shown for less time than it takes to read."""
    plan = plan_of(text)
    lines = text.split("\n")
    edits = []
    for card in plan.cards if plan else ():
        needed = reading_seconds(card)
        old = next((line for line in lines if card_line(card) in line), None)
        if card.seconds < needed and old is not None:
            longer = card.model_copy(update={"seconds": needed})
            what = f"shown for {needed:g} s, not {card.seconds:g} s: it takes so long to read"
            new = old.replace(card_line(card), card_line(longer))
            edits.append(Edit(old, new, ((card.composition_id, what),)))
    return edits


def _preview(
    desk: Desk, plan: MotionPlan, root: Root | None, problems: Problems
) -> Part[str | None]:
    shown = [card for card in plan.cards if root is not None and card.composition_id in root.ids]
    if not shown or RENDER not in desk.tools:
        return None
    card = shown[0]
    text: JsonValue = {
        "title": card.title,
        "subtitle": card.subtitle,
        "seconds": max(card.seconds, reading_seconds(card)),
    }
    ask = Ask(
        RENDER,
        {
            "id": card.composition_id,
            "inputProps": {"card": text},
            "startFrame": PREVIEW_FRAME,
            "endFrame": PREVIEW_FRAME,
        },
    )
    answer: Answer = yield from asked(ask)
    key = answer.get("storageKey")
    if is_ok(answer) and isinstance(key, str):
        return key
    problems.refused(ask, answer)
    return None
