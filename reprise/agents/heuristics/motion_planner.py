"""Motion graphics planner: a title card and lower thirds, put into a file of the sandbox.

The title card says the brand's title and tagline. Lower thirds quote the sentences that the
analysts rate best and that can be read in passing, none with wording that the brand avoids; terms
of the request count, and so does a number of lower thirds that it names. A card is shown while its
sentence is spoken. Colours are those that the brand notes give as `#rrggbb`, told apart by what
stands beside them. Compositions are the template's: one whose id says title, one whose id says
lower third or key point.

Tools: the sandbox is listed, the root file outlined, the plan written.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from reprise.agents.heuristics.brand import made_title
from reprise.agents.heuristics.brief import brand_of
from reprise.agents.heuristics.content import line_scores
from reprise.agents.heuristics.dialogue import Desk, Dialogue
from reprise.agents.heuristics.material import Line, Material, material_of, rows, scores, texts
from reprise.agents.heuristics.motion_plan import (
    CARDS_MAX,
    HEX_COLOUR,
    PLAN_PATH,
    SECONDS_MAX,
    Card,
    Colours,
    MotionPlan,
    plan_text,
)
from reprise.agents.heuristics.sandbox_files import Part, Problems, root_file, written
from reprise.agents.heuristics.words import clip, terms, tokens

LOWER_THIRDS = 2
"""How many lower thirds there are when the request names no number."""

TITLE_SECONDS = 3.0
TITLE_CHARS_MAX = 80
QUOTE_CHARS_MAX = 80
"""A longer sentence cannot be read in passing."""

SECONDS_MIN = 1.5
COUNTS = {"no": 0, "one": 1, "two": 2, "three": 3, "four": 4}
COUNTED = re.compile(
    r"\b(no|one|two|three|four|[0-4])\s+(?:\w+\s+)?(?:lower[ -]thirds?|key[ -]points?|quotes?)\b",
    re.IGNORECASE,
)
TITLE_ID = re.compile(r"title|opening|intro", re.IGNORECASE)
LOWER_ID = re.compile(r"lower|third|key-?point|quote|caption", re.IGNORECASE)
BACKGROUND = re.compile(r"background|card|night|dark", re.IGNORECASE)
TEXT = re.compile(r"\btext|paper|type\b|letter", re.IGNORECASE)


def motion_graphics_planner(desk: Desk) -> Dialogue:
    """Return the plan, written into the sandbox."""
    material = material_of(desk.inputs)
    problems = Problems()
    root = yield from root_file(desk, problems)
    ids = root.ids if root is not None else ()
    cards = _cards(material, ids, problems)
    plan = MotionPlan(cards=tuple(cards), colours=_colours(material))
    path = yield from _written_plan(plan, problems)
    return {
        "approach": _approach(cards),
        "plan_path": path,
        "cards": [card.model_dump(mode="json") for card in plan.cards],
        "colours": plan.colours.model_dump(mode="json"),
        "problems": problems.told,
    }


def _written_plan(plan: MotionPlan, problems: Problems) -> Part[str | None]:
    if not plan.cards:
        return None
    done = yield from written(PLAN_PATH, plan_text(plan), problems)
    return PLAN_PATH if done else None


@dataclass(frozen=True)
class _Quote:
    """A sentence that a lower third may quote."""

    line: Line
    worth: float
    topic: str


def _cards(material: Material, ids: Sequence[str], problems: Problems) -> list[Card]:
    cards: list[Card] = []
    title_id = next((name for name in ids if TITLE_ID.search(name)), None)
    if title_id is not None:
        cards.append(_title_card(material, title_id))
    elif ids:
        problems.add("the template has no composition for a title, so there is no title card")
    wanted = _wanted(material.request)
    lower_id = next((name for name in ids if LOWER_ID.search(name)), None)
    if lower_id is None:
        if ids and wanted:
            problems.add("the template has no composition for a lower third, so there is none")
        return cards
    quotes = _quotes(material)[:wanted]
    if len(quotes) < wanted:
        problems.add(
            f"{len(quotes)} of {wanted} lower thirds: too few sentences can be shown and are short "
            "enough to be read"
        )
    order = {line.id: at for at, line in enumerate(material.lines)}
    quotes.sort(key=lambda quote: order[quote.line.id])
    taken = set(ids)
    for quote in quotes[: CARDS_MAX - len(cards)]:
        name = lower_id if lower_id not in {card.composition_id for card in cards} else None
        name = name or next(new for n in range(2, 99) if (new := f"{lower_id}{n}") not in taken)
        taken.add(name)
        cards.append(_lower_third(quote, name, lower_id))
    return cards


def _title_card(material: Material, name: str) -> Card:
    brand = material.answer("brand_analyst")
    title, tagline = brand.get("title"), brand.get("tagline")
    text = clip(title if isinstance(title, str) else "", TITLE_CHARS_MAX) or made_title(material)
    line = clip(tagline, 120) if isinstance(tagline, str) else ""
    return Card(
        composition_id=name,
        based_on=name,
        kind="title",
        title=text,
        subtitle=line,
        seconds=TITLE_SECONDS,
        reason="the brand's title" + (" and tagline" if line else ""),
    )


def _lower_third(quote: _Quote, name: str, based_on: str) -> Card:
    line = quote.line
    return Card(
        composition_id=name,
        based_on=based_on,
        kind="lower_third",
        title=clip(line.text, QUOTE_CHARS_MAX),
        subtitle=quote.topic,
        sentence_id=line.id,
        start_seconds=round(line.start, 3),
        seconds=round(min(max(line.seconds, SECONDS_MIN), SECONDS_MAX), 1),
        reason=f"a key point (worth {quote.worth:.2f})",
    )


def _wanted(request: str) -> int:
    """Return how many lower thirds there are to be."""
    named = COUNTED.search(request)
    if named is None:
        return LOWER_THIRDS
    word = named.group(1).lower()
    return COUNTS[word] if word in COUNTS else int(word)


def _quotes(material: Material) -> list[_Quote]:
    """Return the sentences that can be quoted, the best first."""
    content = material.answer("content_analyst")
    moments = scores(content, "key_moments", "sentence_id") or line_scores(material.lines)
    hooks = scores(material.answer("hook_analyst"), "hooks", "sentence_id")
    avoided = {
        name
        for row in rows(material.answer("brand_analyst"), "words_to_avoid")
        for name in texts(row.get("sentence_ids"))
    }
    asked = set(terms(material.request))
    found = []
    for line in material.lines:
        if line.unusable or line.id in avoided or len(line.text) > QUOTE_CHARS_MAX:
            continue
        worth = 0.6 * moments.get(line.id, 0.0) + 0.2 * hooks.get(line.id, 0.0)
        worth += 0.2 * bool(asked & set(terms(line.text)))
        found.append(_Quote(line, round(worth, 3), _topic(content, line)))
    return sorted(found, key=lambda quote: -quote.worth)


def _topic(content: Mapping[str, JsonValue], line: Line) -> str:
    """Return a name that a sentence is about; one word of it would say nothing new."""
    for row in rows(content, "topics"):
        topic = row.get("topic")
        if not isinstance(topic, str) or len(topic.split()) < 2:
            continue
        if line.id in texts(row.get("sentence_ids")):
            return clip(topic, 40)
    return ""


def _colours(material: Material) -> Colours:
    """Return the colours that the brand notes name beside a word for their use."""
    found: dict[str, str] = {}
    for each in brand_of(material.inputs.documents).fields:
        for line in each.lines:
            colour = HEX_COLOUR.fullmatch(line.strip())
            if colour is None or not tokens(each.name) or each.name == "value":
                continue
            use = _use(each.name)
            found.setdefault(use, colour.group(0).lower())
    return Colours.model_validate(found)


def _use(name: str) -> str:
    if BACKGROUND.search(name):
        return "background"
    return "text" if TEXT.search(name) else "accent"


def _approach(cards: Sequence[Card]) -> str:
    if not cards:
        return "There is no card: the sandbox offers no composition to show one."
    said = [f"“{cards[0].title}” opens as a title card"] if cards[0].kind == "title" else []
    lower = [card for card in cards if card.kind == "lower_third"]
    if lower:
        count = "one lower third quotes" if len(lower) == 1 else f"{len(lower)} lower thirds quote"
        said.append(f"{count} the key points while they are spoken")
    return clip("; ".join(said), 499) + "."
