"""Brand analyst: title, tagline, tone and wording rules from the documents, sought in the speech.

A listed word is found in all its inflected forms, by its stem. Without a title in the documents the
title is made of the footage's main terms.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from reprise.agents.heuristics.brief import (
    AVOID,
    TAGLINE,
    TONE,
    USE,
    brand_of,
    brief_of,
    brief_title,
)
from reprise.agents.heuristics.content import main_terms
from reprise.agents.heuristics.material import Line, Material
from reprise.agents.heuristics.words import clip, display_forms, stem, tokens

WORDS_MAX = 12
NOTES_MAX = 6
RULES = r"(?:edit(?:ing)? )?rules?|dos?(?: and don['’]?ts?)?|don['’]?ts?|edit(?:ing)?(?: notes)?"


def brand_analyst(material: Material) -> JsonValue:
    """Return what the brand wants seen and heard."""
    documents = material.inputs.documents
    brief, brand = brief_of(documents), brand_of(documents)
    use = brand.items(USE) or brief.items(USE)
    avoid = [*brand.items(AVOID), *brief.items(AVOID)]
    tagline = brand.value(TAGLINE, 120) or brief.value(TAGLINE, 120)
    rules = [*brand.lines(RULES), *brief.lines(RULES)]
    notes: list[JsonValue] = [clip(line, 200) for line in dict.fromkeys(rules)]
    return {
        "title": brief_title(brief, brand) or made_title(material),
        "tagline": tagline or None,
        "tone": brand.value(TONE, 160) or brief.value(TONE, 160),
        "words_to_use": _spoken(use, material.lines),
        "words_to_avoid": _spoken(list(dict.fromkeys(avoid)), material.lines),
        "notes": notes[:NOTES_MAX],
    }


def made_title(material: Material) -> str:
    """Return a title made of the footage's main terms, else of its first file's name."""
    terms = main_terms(material.lines)
    if terms:
        forms = display_forms(line.text for line in material.lines if not line.unusable)
        return clip(" · ".join(forms[term].capitalize() for term, _ in terms[:3]), 80)
    names = [source.name.rpartition("/")[2] for source in material.analysis.sources]
    stem_of = names[0].rpartition(".")[0] or names[0] if names else ""
    return clip(stem_of.replace("_", " ").replace("-", " ").strip().capitalize(), 80) or "Promo"


def says(line: Line, wording: str) -> bool:
    """Answer whether a sentence holds a wording, in any inflected form."""
    wanted = [stem(token) for token in tokens(wording)]
    said = [stem(token) for token in tokens(line.text)]
    span = len(wanted)
    return span > 0 and any(said[at : at + span] == wanted for at in range(len(said) - span + 1))


def _spoken(words: Sequence[str], lines: Sequence[Line]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for word in words[:WORDS_MAX]:
        ids: list[JsonValue] = [line.id for line in lines if says(line, word)]
        found.append({"word": clip(word, 40), "sentence_ids": ids[:12]})
    return found
