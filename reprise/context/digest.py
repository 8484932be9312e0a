"""The digest of one prior output: what a prompt shows in place of a text that is too long.

JSON stays JSON: it is shortened rung by rung until it fits, each rung showing less; the last one,
a count of keys or items, always fits. Other text is cut in the middle. A digest depends on the text
and the settings alone, is never longer than the text, and the digest of a digest is itself; with a
larger cap it never shows less. Nothing that a step can give makes it raise.

To add a strategy: a member of `DigestStrategy`, its choice of items and characters in
digest_shorten.py, a line in tests/unit/context/test_digest.py and in bench/budget_retention.py.

Source: specification B3, B8 to B10, B13, B14.
"""

from collections.abc import Iterator

import orjson

from reprise.context.digest_parse import (
    ParsedText,
    parse_exactly,
    parse_text,
    without_surrogates,
)
from reprise.context.digest_shorten import TOO_LONG, Rung, Shortener
from reprise.context.text_cut import cut_middle, cut_text, has_middle_cut
from reprise.model.settings import ContextBudgetSettings, DigestStrategy

STRING_CHARS_MIN, ITEMS_MIN, DEPTH_MIN = 40, 3, 3
"""Where the rungs end that show values; after these come outlines."""

OUTLINES = (
    Rung(string_chars=0, items=1, depth=3),
    Rung(string_chars=0, items=1, depth=2),
    Rung(string_chars=0, items=1, depth=1),
    *(Rung(string_chars=0, items=1, depth=1, keys=keys) for keys in (512, 256, 128, 64, 16, 4)),
    Rung(string_chars=0, items=0, depth=1, keys=0),
)
"""Keys, types and counts, ever fewer; the last one is a count alone."""


def digest_text(text: str, settings: ContextBudgetSettings) -> str:
    """Return the digest of an output's text."""
    parsed = parse_text(text)
    if parsed is not None:
        digest = _digest_of_json(text, parsed, settings)
        if digest is not None and (parsed.is_whole or _is_settled(digest, settings)):
            return digest
    return cut_middle(without_surrogates(text), settings.max_digested_step_chars)


def rungs(settings: ContextBudgetSettings) -> Iterator[Rung]:
    """Yield the rungs, the one that shows most first: that of the settings."""
    chars, items, depth = (
        settings.digest_max_string_chars,
        settings.digest_max_array_items,
        settings.digest_max_depth,
    )
    least = Rung(min(chars, STRING_CHARS_MIN), min(items, ITEMS_MIN), min(depth, DEPTH_MIN))
    rung = Rung(chars, items, depth)
    yield rung
    while rung != least:
        rung = Rung(
            max(least.string_chars, rung.string_chars * 3 // 4),
            max(least.items, rung.items * 3 // 4),
            max(least.depth, rung.depth - 1),
        )
        yield rung
    for outline in OUTLINES:
        yield Rung(outline.string_chars, outline.items, min(outline.depth, depth), outline.keys)


def _digest_of_json(text: str, parsed: ParsedText, settings: ContextBudgetSettings) -> str | None:
    """Return the first rung's text that fits, the text itself where that is no longer, or None."""
    if not parsed.is_whole and has_middle_cut(text):
        # Cut before; what is JSON between the rest is not looked for.
        return None
    cap = settings.max_digested_step_chars
    whole = without_surrogates(text) if len(text) <= cap else None
    for rung in rungs(settings):
        shortener = Shortener(rung, sampled=settings.digest_strategy is DigestStrategy.SAMPLED)
        written = _written(parsed, shortener, cap)
        if written is not None and shortener.has_wide_number and not parsed.is_exact:
            exact = parse_exactly(text)
            return None if exact is None else _digest_of_json(text, exact, settings)
        if whole is not None and (written is None or len(written) >= len(whole)):
            return whole
        if written is None or len(written) > cap:
            continue
        return written
    return None


def _written(parsed: ParsedText, shortener: Shortener, cap: int) -> str | None:
    """Return a parsed text at a rung, or None where it is sure not to fit."""
    value = shortener.shortened(parsed.value, cap)
    if value is TOO_LONG:
        return None
    written = orjson.dumps(value).decode()
    if parsed.is_whole:
        return written
    chars = shortener.rung.string_chars
    return cut_text(parsed.before, chars) + written + cut_text(parsed.after, chars)


def _is_settled(digest: str, settings: ContextBudgetSettings) -> bool:
    """Answer whether the digest of a digest of JSON between sentences is itself."""
    parsed = parse_text(digest)
    return parsed is None or _digest_of_json(digest, parsed, settings) == digest
