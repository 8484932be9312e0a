"""A model's text to a validated JSON value: found in prose or fences, then checked by its schema.

Source: specification A3; research/agents.md sections 3 and 5.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import jsonschema
from pydantic import JsonValue

from reprise.agents.surrogates import scrubbed, scrubbed_value
from reprise.canonical import NotCanonical, canonical_json

CANDIDATES_MAX = 50
"""Most places at which a JSON value is looked for in an answer."""

PROBLEMS_MAX = 5
"""Most violations that are named at once."""

PROBLEM_CHARS_MAX = 240
"""A violation is cut after this many characters: it may quote the whole value."""

THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
OPENING = re.compile(r"[{\[]")


@dataclass(frozen=True)
class ReadAnswer:
    """What an answer holds."""

    value: JsonValue
    """The value; meaningless when there are problems."""
    problems: tuple[str, ...] = ()
    """Why it cannot be used, for the model to read."""


def read_answer(text: str, schema: dict[str, JsonValue]) -> ReadAnswer:
    """Return the first JSON value in a text that fits the schema, or what is wrong.

    Args:
        text: The answer, perhaps with prose, thoughts or a fence around it.
        schema: JSON Schema (2020-12) without references to elsewhere.
    """
    first: ReadAnswer | None = None
    for value in json_values(text):
        problems = problems_of(value, schema)
        if not problems:
            return ReadAnswer(value)
        first = first or ReadAnswer(value, problems)
    if first is not None:
        return first
    what = "it is empty" if not text.strip() else "it holds no complete JSON value"
    return ReadAnswer(None, (what,))


def whole_value(text: str) -> JsonValue:
    """Return the JSON value that a text is, but for thoughts before it and one fence around it.

    None where the text is anything more, or anything else.
    """
    plain = _plain(text)
    fence = FENCED.fullmatch(plain)
    try:
        return scrubbed_value(_DECODER.decode((fence[1] if fence else plain).strip()))
    except (ValueError, RecursionError):
        return None


def json_values(text: str) -> Iterator[JsonValue]:
    """Yield a text's JSON values: the whole, what is in fences, whatever begins inside."""
    plain = _plain(text)
    for candidate in (plain, *FENCED.findall(plain)):
        try:
            value = scrubbed_value(_DECODER.decode(candidate.strip()))
        except (ValueError, RecursionError):
            continue
        yield value
    end = 0
    for count, match in enumerate(OPENING.finditer(plain)):
        if count >= CANDIDATES_MAX:
            return
        if match.start() < end:
            continue
        try:
            value, end = _DECODER.raw_decode(plain, match.start())
            value = scrubbed_value(value)
        except (ValueError, RecursionError):
            continue
        yield value


def _plain(text: str) -> str:
    return scrubbed(THOUGHTS.sub("", text)).strip().removeprefix("\ufeff")


def _refuse_constant(name: str) -> JsonValue:
    message = f"{name} is no JSON value"
    raise ValueError(message)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def problems_of(value: JsonValue, schema: dict[str, JsonValue]) -> tuple[str, ...]:
    """Return why a value does not fit a schema, for the model to read; nothing when it does."""
    try:
        canonical_json(value)
    except NotCanonical as error:
        return (str(error),)
    errors = sorted(
        jsonschema.Draft202012Validator(schema).iter_errors(value),
        key=lambda error: [str(part) for part in error.absolute_path],
    )
    shown = tuple(
        f"{error.json_path}: {_cut(error.message, PROBLEM_CHARS_MAX)}"
        for error in errors[:PROBLEMS_MAX]
    )
    more = len(errors) - len(shown)
    return (*shown, f"and {more} more") if more > 0 else shown


def _cut(text: str, chars_max: int) -> str:
    """Return a text without its middle when it is long: a violation's end says what was wrong."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]} … {text[-half:]}"
