"""A plan for motion graphics as it stands in a sandbox's file: cards and colours as JSON.

Each card is on one line of its own, so that one can be changed by a targeted edit. The file is what
the planner hands to the director, the translator and the author.
"""

import json
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from reprise.agents.heuristics.dialogue import Desk
from reprise.agents.heuristics.sandbox_files import Part, Problems, read_from
from reprise.model.base import Value
from reprise.model.conversation import AgentInputs

PLAN_PATH = "plan/motion-graphics.json"
"""Where the planner writes it."""

CARDS_MAX = 5
"""Most cards of a plan."""

SECONDS_MAX = 12.0
"""Longest card."""

HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


class Card(Value):
    """A title card or a lower third."""

    composition_id: str = Field(min_length=1, max_length=60)
    """The composition that shows it."""
    based_on: str = Field(min_length=1, max_length=60)
    """The template's composition that it is, or is made like."""
    kind: Literal["title", "lower_third"]
    """What it is."""
    title: str = Field(min_length=1, max_length=80)
    """Its text."""
    subtitle: str = Field(default="", max_length=120)
    """A smaller line under it."""
    sentence_id: str | None = None
    """The sentence that it goes with."""
    start_seconds: float | None = Field(default=None, ge=0)
    """When that sentence begins in its source."""
    seconds: float = Field(ge=1, le=SECONDS_MAX)
    """How long it is shown."""
    reason: str = Field(default="as planned", max_length=160)
    """Why it is there."""


class Colours(Value):
    """The brand's colours as `#rrggbb`; null where no document names one."""

    background: str | None = None
    """Of a card."""
    text: str | None = None
    """Of its text."""
    accent: str | None = None
    """Of what is to stand out."""


class MotionPlan(Value):
    """A plan."""

    cards: tuple[Card, ...] = Field(default=(), max_length=CARDS_MAX)
    """The cards in their order."""
    colours: Colours = Colours()
    """The colours."""


def card_line(card: Card) -> str:
    """Return a card as it stands in the file, without indentation and comma."""
    return json.dumps(card.model_dump(mode="json"), ensure_ascii=False)


def plan_text(plan: MotionPlan) -> str:
    """Return a plan as the text of its file."""
    cards = ",\n".join(f"    {card_line(card)}" for card in plan.cards)
    colours = json.dumps(plan.colours.model_dump(mode="json"))
    listed = f"[\n{cards}\n  ]" if cards else "[]"
    return f'{{\n  "cards": {listed},\n  "colours": {colours}\n}}\n'


def plan_of(text: str) -> MotionPlan | None:
    """Return the plan that a file's text holds; None when it holds none."""
    try:
        return MotionPlan.model_validate_json(text)
    except ValidationError:
        return None


def plan_path(inputs: AgentInputs) -> str:
    """Return the plan's file as the planner's answer names it."""
    named = answer_of(inputs, "motion_graphics_planner").get("plan_path")
    return named if isinstance(named, str) and named else PLAN_PATH


def answer_of(inputs: AgentInputs, agent_type: str) -> Mapping[str, JsonValue]:
    """Return the latest answer of an agent type; empty when there is none."""
    for item in reversed(inputs.prior):
        if item.agent_type == agent_type and isinstance(item.output, dict):
            return item.output
    return {}


def reading_seconds(card: Card) -> float:
    """Return how long a viewer needs for a card: a second to notice it, and a third a word."""
    words = len(f"{card.title} {card.subtitle}".split())
    return min(SECONDS_MAX, round(1.0 + words / 3, 1))


def planned(desk: Desk, problems: Problems) -> Part[MotionPlan | None]:
    """Return the plan that the sandbox holds; None, with the reason told, when it holds none."""
    path = plan_path(desk.inputs)
    text = yield from read_from(desk, path, 1, problems)
    plan = plan_of(text) if text is not None else None
    if text is not None and plan is None:
        problems.add(f"{path} does not hold a plan in the planner's form")
    return plan
