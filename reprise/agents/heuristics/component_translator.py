"""Remotion component translator: the plan's texts, lengths and colours into the template's data.

The data is a source file that exports `cards`, an object with an entry a composition, and perhaps
`colours`. An entry is what stands between a line `TitleCard: {` and the next `}` with the same
indentation. A planned card's entry is replaced; a card with a new id gets its entry behind the one
of the card that it is made like. Only entries that differ are touched, all in one call.

Tools: the sandbox is listed, sources are outlined, the data is read from `cards` on, then edited.
"""

import json
import re
from collections.abc import Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.dialogue import Ask, Desk, Dialogue
from reprise.agents.heuristics.motion_plan import Card, Colours, MotionPlan, planned
from reprise.agents.heuristics.sandbox_files import (
    OUTLINE,
    READ,
    SOURCES_MAX,
    Edit,
    Part,
    Problems,
    changed,
    exported_at,
    source_paths,
    text_of,
)

DATA = "cards"
EXPORTED = re.compile(rf"^export const {DATA}\b", re.MULTILINE)
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")


def remotion_component_translator(desk: Desk) -> Dialogue:
    """Return what was changed in the template's data."""
    problems = Problems()
    plan = yield from planned(desk, problems)
    place = (yield from _data_file(desk, problems)) if plan is not None else None
    changes: list[JsonValue] = []
    if plan is not None and place is not None:
        path, line = place

        def edits_of(text: str) -> list[Edit]:
            return [*_card_edits(text, plan, path, problems), *_colour_edits(text, plan.colours)]

        edits = yield from changed(desk, path, line, edits_of, problems)
        changes = [
            {"path": path, "composition_id": name, "what": what}
            for edit in edits or ()
            for name, what in edit.told
        ]
    return {"changes": changes, "problems": problems.told}


def entry_of(text: str, name: str) -> re.Match[str] | None:
    """Return where a card's entry stands in the data; None when there is none."""
    key = re.escape(name)
    pattern = rf"^(?P<indent>[ \t]*)[\"']?{key}[\"']?: \{{\n.*?^(?P=indent)\}},?"
    return re.search(pattern, text, re.MULTILINE | re.DOTALL)


def entry_text(card: Card, indent: str) -> str:
    """Return a card's entry as TypeScript."""
    name = card.composition_id
    key = name if IDENTIFIER.fullmatch(name) else json.dumps(name)
    fields = (
        f"title: {_quoted(card.title)},",
        f"subtitle: {_quoted(card.subtitle)},",
        f"seconds: {card.seconds:g},",
    )
    inner = "".join(f"{indent}  {field}\n" for field in fields)
    return f"{indent}{key}: {{\n{inner}{indent}}},"


def _data_file(desk: Desk, problems: Problems) -> Part[tuple[str, int] | None]:
    """Return the file that holds the cards' data, and the line on which it begins."""
    paths = (yield from source_paths(problems))[:SOURCES_MAX]
    if paths:
        tool = OUTLINE if OUTLINE in desk.tools else READ
        answers = yield [Ask(tool, {"path": path}) for path in paths]
        for path, answer in zip(paths, answers, strict=True):
            if tool == OUTLINE:
                line = exported_at(answer, DATA)
            else:
                line = 1 if EXPORTED.search(text_of(answer)) else None
            if line is not None:
                return path, line
    problems.add(f"no source file exports `{DATA}`, where the template's texts are sought")
    return None


def _card_edits(text: str, plan: MotionPlan, path: str, problems: Problems) -> list[Edit]:
    """Return an edit for each entry that is not as planned, new entries behind it."""
    edits = []
    for base in dict.fromkeys(card.based_on for card in plan.cards):
        found = entry_of(text, base)
        if found is None:
            problems.add(f"{path}: `{DATA}` has no entry {base!r}, so what is made like it is not")
            continue
        indent = found["indent"]
        entries = [found.group(0)]
        told: list[tuple[str | None, str]] = []
        for card in plan.cards:
            name = card.composition_id
            own = entry_of(text, name)
            wanted = entry_text(card, indent)
            if card.based_on != base or (own is not None and own.group(0) == wanted):
                continue
            if name == base:
                entries[0] = wanted
            elif own is None:
                entries.append(wanted)
            else:
                edits.append(Edit(own.group(0), wanted, (_told(card),)))
                continue
            told.append(_told(card))
        if told:
            edits.append(Edit(found.group(0), "\n".join(entries), tuple(told)))
    return edits


def _told(card: Card) -> tuple[str, str]:
    return card.composition_id, f"says “{card.title}” for {card.seconds:g} s"


def _colour_edits(text: str, colours: Colours) -> Sequence[Edit]:
    edits = []
    for name, colour in colours.model_dump().items():
        found = re.search(rf"\b{name}: [\"']#[0-9a-fA-F]+[\"']", text)
        if colour is None or found is None:
            continue
        wanted = f'{name}: "{colour}"'
        if found.group(0) != wanted:
            edits.append(Edit(found.group(0), wanted, ((None, f"{name} is {colour}"),)))
    return edits


def _quoted(text: str) -> str:
    """Return a text as a TypeScript string on one line."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
