"""Audience analyst: who, why and how long from the brief; sentences by words shared with it.

Terms of the request count double. Without a brief nothing is said about the audience.
"""

from collections import Counter

from pydantic import JsonValue

from reprise.agents.heuristics.brief import AUDIENCE, GOAL, MESSAGES, TONE, Notes, brief_of
from reprise.agents.heuristics.material import Material
from reprise.agents.heuristics.words import clip, display_forms, stem, terms, tokens
from reprise.media.film_length import seconds_in_text

SENTENCES_MAX = 8
INTERESTS_MAX = 10
SECONDS_MAX = 600
LONG_WORD = 9
ABOUT_THE_FILM = frozenset(
    stem(word) for word in ("seconds", "minutes", "promo", "video", "clip", "trailer", "length")
)
"""Terms of a brief that speak of the film to be made, not of what its viewers care about."""


def audience_analyst(material: Material) -> JsonValue:
    """Return who the promo is for, and the sentences that speak to them."""
    brief = brief_of(material.inputs.documents)
    wanted = interest_weights(brief, material.request)
    asked = seconds_in_text(material.request) or brief.seconds()
    target = round(min(max(asked, 1.0), SECONDS_MAX), 3) if asked else None
    forms = display_forms([brief.words, material.request])
    ranked = sorted(wanted.items(), key=lambda each: (-each[1], each[0]))
    interests: list[JsonValue] = [clip(forms[term], 60) for term, _ in ranked[:INTERESTS_MAX]]
    return {
        "audience": brief.value(AUDIENCE, 240),
        "goal": brief.value(GOAL, 240),
        "target_seconds": target,
        "tone": brief.value(TONE, 120),
        "interests": interests,
        "relevant_sentences": _relevant(material, wanted),
        "language_note": _language_note(material),
    }


def interest_weights(brief: Notes, request: str) -> Counter[str]:
    """Return the terms that matter: audience, goal, messages and request add to the brief's."""
    weights: Counter[str] = Counter()
    for text, weight in (
        (" ".join(brief.lines(AUDIENCE)), 2),
        (" ".join(brief.lines(GOAL)), 2),
        (" ".join(brief.lines(MESSAGES)), 2),
        (request, 2),
        (brief.words, 1),
    ):
        for term in set(terms(text)) - ABOUT_THE_FILM:
            weights[term] += weight
    return weights


def _relevant(material: Material, wanted: Counter[str]) -> list[JsonValue]:
    forms = display_forms(line.text for line in material.lines)
    found: list[tuple[float, str, str]] = []
    for line in material.lines:
        shared = sorted({*terms(line.text)} & wanted.keys(), key=lambda t: (-wanted[t], t))
        if not shared or line.unusable:
            continue
        weight = sum(wanted[term] for term in shared) / (len(tokens(line.text)) + 6) ** 0.5
        reason = f"shares {', '.join(forms[term] for term in shared[:4])} with brief or request"
        found.append((weight, line.id, clip(reason, 160)))
    most = max((each[0] for each in found), default=1.0)
    found.sort(key=lambda each: -each[0])
    return [
        {"sentence_id": name, "score": round(weight / most, 3), "reason": reason}
        for weight, name, reason in found[:SENTENCES_MAX]
    ]


def _language_note(material: Material) -> str:
    said = [tokens(line.text) for line in material.lines]
    count = sum(len(each) for each in said)
    if not count:
        return "Nothing is said."
    mean = count / len(said)
    long_share = sum(len(token) >= LONG_WORD for each in said for token in each) / count
    easy = "easy to follow" if mean <= 15 and long_share <= 0.12 else "demanding for newcomers"
    return (
        f"{mean:.1f} words a sentence, {long_share:.0%} of the words have {LONG_WORD} letters or "
        f"more: {easy}."
    )
