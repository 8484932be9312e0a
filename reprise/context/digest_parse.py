"""Reading an output's text as JSON, whatever it holds, so that what it says can be written again.

orjson reads nearly all. What it refuses or would change is put into a form that it reads: whole
numbers beyond 64 bits and numbers beyond a float become `orjson.Fragment`s of their digits, NaN and
the infinities texts, lone surrogates U+FFFD. Of equal keys the last one counts. JSON may stand in
a fence or between sentences, as models write it.

Source: specification B3, B9; research, what JSON parsers make of odd texts.
"""

import re
from dataclasses import dataclass
from typing import Any

import orjson

NUMBER_CHARS_MAX = 40
"""Longer numbers are shown as text."""

OPENERS_TRIED_MAX = 4
"""Places where JSON between sentences may begin."""

_BEGINS = tuple('{["-0123456789NItfn')
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_ESCAPE = re.compile(
    r"(?P<skip>\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
# A text of JSON, or a number or word outside of one, which orjson cannot read or would change.
# Possessive, and a text may lack its end: one pass over any input.
_TOKEN = re.compile(
    r'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+"?)'
    r"|(?<![\w.+-])(?P<number>-?(?:\d{19,}(?:\.\d+)?(?:[eE][+-]?\d+)?"
    r"|\d+(?:\.\d+)?[eE][+-]?\d{3,}))(?![\w.+-])"
    r"|(?<![\w.+-])(?P<word>NaN|-?Infinity)(?!\w)",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?P<fraction>\.\d+)?(?P<exponent>[eE][+-]?\d+)?")
# A text that begins so stands for a number; a real one that begins with NUL is told apart.
_NUL, _IS_NUMBER, _IS_TEXT = "\\u0000", "n", "t"


@dataclass(frozen=True)
class ParsedText:
    """A text read as JSON, with what stands around it."""

    value: Any
    """The JSON value; numbers that no float holds are `orjson.Fragment`s."""
    before: str = ""
    """The text before it."""
    after: str = ""
    """The text after it."""
    is_exact: bool = True
    """False when whole numbers beyond 64 bits may have come as floats."""

    @property
    def is_whole(self) -> bool:
        """True when the text is JSON and nothing else."""
        return not self.before and not self.after


def parse_text(text: str) -> ParsedText | None:
    """Return a text as JSON, or None; whole numbers beyond 64 bits may come as floats."""
    try:
        return ParsedText(orjson.loads(text), is_exact=False)
    except orjson.JSONDecodeError:
        return parse_exactly(text)


def parse_exactly(text: str) -> ParsedText | None:
    """Return a text as JSON with every number as it is written, or None."""
    bare = without_surrogates(text).removeprefix("\ufeff")
    if bare.lstrip()[:1] in _BEGINS and (value := _exact_value(bare)) is not _NOTHING:
        return ParsedText(value)
    return _between_sentences(bare)


def without_surrogates(text: str) -> str:
    """Return a text with each lone surrogate replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


_NOTHING = object()


def _exact_value(text: str) -> Any:
    try:
        value = orjson.loads(_TOKEN.sub(_readable, text))
    except orjson.JSONDecodeError:
        return _NOTHING
    return _with_numbers(value)


def _readable(match: re.Match[str]) -> str:
    token = match.group()
    if match.lastgroup == "word":
        return f'"{token}"'
    if match.lastgroup == "number":
        return _readable_number(token)
    if "\\u" in token:
        token = _LONE_ESCAPE.sub(lambda found: found.group("skip") or "\\ufffd", token)
        if token.startswith(f'"{_NUL}'):
            token = f'"{_NUL}{_IS_TEXT}{token[1:]}'
    return token


def _readable_number(token: str) -> str:
    number = _NUMBER.fullmatch(token)
    if number is None:
        return token
    if len(token) > NUMBER_CHARS_MAX:
        return f'"{token}"'
    if number.group("fraction") or number.group("exponent"):
        fits = abs(float(token)) != float("inf")
    else:
        fits = -(2**63) <= int(token) < 2**64
    return token if fits else f'"{_NUL}{_IS_NUMBER}{token}"'


def _with_numbers(value: Any) -> Any:
    """Return a parsed value with the texts that stand for numbers replaced; changes it in place."""
    root = [value]
    open_nodes: list[Any] = [root]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, dict):
            items = [(_plain_text(key), item) for key, item in node.items()]
            node.clear()
            node.update(items)
            pairs: Any = items
        else:
            pairs = enumerate(node)
        for place, item in pairs:
            if isinstance(item, dict | list):
                open_nodes.append(item)
            elif isinstance(item, str) and item.startswith("\0"):
                is_number = item[1] == _IS_NUMBER
                node[place] = orjson.Fragment(item[2:]) if is_number else item[2:]
    return root[0]


def _plain_text(key: str) -> str:
    return key[2:] if key.startswith("\0") else key


def _between_sentences(text: str) -> ParsedText | None:
    """Return the JSON object or list that is at least half of a text, or None."""
    start = -1
    for _ in range(OPENERS_TRIED_MAX):
        openers = [at for at in (text.find(char, start + 1) for char in "{[") if at >= 0]
        if not openers:
            return None
        start = min(openers)
        end = text.rfind("}" if text[start] == "{" else "]") + 1
        if 2 * (len(text) - start) < len(text):
            return None
        if 2 * (end - start) < len(text):
            continue
        value = _exact_value(text[start:end])
        if value is not _NOTHING:
            return ParsedText(value, text[:start], text[end:])
    return None
