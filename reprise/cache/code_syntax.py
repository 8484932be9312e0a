"""A piece of Python syntax as one text: what it does, not how it is written down.

Comments, formatting, docstrings and line numbers are not in it. The text is the same under every
supported version of Python, so digests of it may stand in a file. Constants keep their types: `1`,
`True`, `1.0` and `"1"` give four texts.

Source: specification C20; research: hashing source text reruns on comments, not hashing it is
stale. Tests: tests/unit/cache/test_fingerprint.py.
"""

import ast
import json
from collections.abc import Iterator, Sequence

from reprise.canonical import NotCanonical

_LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields of nodes that change nothing."""


def syntax_text(node: ast.AST) -> str:
    """Return a node's syntax as text; no two nodes that differ in meaning share one.

    Raises:
        NotCanonical: It is nested too deeply.
    """
    parts: list[str] = []
    try:
        _write(node, parts)
    except RecursionError as error:
        message = "a statement is nested too deeply to be fingerprinted"
        raise NotCanonical(message) from error
    return "".join(parts)


def constant_text(value: object) -> str | None:
    """Return a constant with its type as text; None when it is no simple constant."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            if type(value) in (type(None), bool, int, float, complex, str, bytes):
                return f"{type(value).__name__}:{_plain(value)}"
            return None
        case _:
            return "Ellipsis" if value is ... else None


def is_text_statement(statement: ast.stmt) -> bool:
    """Answer whether a statement is a text alone: a docstring, or a note that does nothing."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _plain(value: object) -> str:
    # `repr` of a text follows the Unicode tables of the running Python; this does not. `hex` has
    # no limit on digits, as `str` of a whole number has.
    match value:
        case str():
            return json.dumps(value)
        case bytes():
            return value.hex()
        case bool() | None:
            return str(value)
        case int():
            return hex(value)
        case _:
            return repr(value)


def _write(node: ast.AST, parts: list[str]) -> None:
    if isinstance(node, ast.Constant):
        parts.append(constant_text(node.value) or f"constant:{node.value!r}")
        return
    if isinstance(node, ast.JoinedStr):
        _write_joined(node, parts)
        return
    parts.append(type(node).__name__)
    parts.append("(")
    for name, value in ast.iter_fields(node):
        if name in _LEFT_OUT or value is None or value == []:
            continue
        parts.append(f"{name}=")
        _write_value(value, parts)
        parts.append(";")
    parts.append(")")


def _write_value(value: object, parts: list[str]) -> None:
    if isinstance(value, ast.AST):
        _write(value, parts)
    elif isinstance(value, list):
        parts.append("[")
        for item in value:
            if isinstance(item, ast.stmt) and is_text_statement(item):
                continue
            _write_value(item, parts)
            parts.append(",")
        parts.append("]")
    else:
        parts.append(constant_text(value) or repr(value))


def _write_joined(node: ast.JoinedStr, parts: list[str]) -> None:
    """Write an f-string; how its fixed text is cut into constants differs between versions."""
    parts.append("JoinedStr[")
    for item in _merged(node.values):
        if isinstance(item, str):
            parts.append(f"str:{json.dumps(item)}")
        else:
            _write(item, parts)
        parts.append(",")
    parts.append("]")


def _merged(values: Sequence[ast.expr]) -> Iterator[str | ast.expr]:
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        if text:
            yield text
        text = ""
        yield value
    if text:
        yield text
