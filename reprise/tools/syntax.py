"""Syntax errors of a TypeScript or JavaScript file, and those that a change brought.

They are a note for whoever wrote the file, never a reason to hold a change back: the parser goes on
after a fault, so what it says is near the cause and not always at it.

Source: specification E11. Tests: tests/unit/tools/test_syntax.py.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter

from reprise.tools.syntax_tree import SyntaxRefusal, SyntaxTree, syntax_tree, text_of_node

FAULTS_MAX = 5
"""Most faults that are told of a file."""

PIECES_MAX = 20
"""Broken pieces that are looked at for them; each may hold all that follow."""

SHOWN_CHARS_MAX = 40
"""Most characters of the source in one message."""

CLOSERS = {"{": "}", "(": ")", "[": "]", "${": "}"}


@dataclass(frozen=True)
class SyntaxFault:
    """One fault."""

    line: int
    """From 1."""
    column: int
    """In characters, from 1."""
    text: str
    """What is wrong, such as "missing `)`"."""


def syntax_errors(data: bytes, path: str) -> tuple[SyntaxFault, ...] | None:
    """Return the first faults of a file, in its order.

    Returns:
        At most `FAULTS_MAX`; None for a file that cannot be parsed: no grammar, no text, too large.
    """
    tree = syntax_tree(data, path)
    return None if isinstance(tree, SyntaxRefusal) else tree_faults(tree)


def new_syntax_errors(before: bytes, after: bytes, path: str) -> tuple[SyntaxFault, ...]:
    """Return the first faults that a change brought: those of a file that had none.

    Args:
        before: The file's bytes as they were; empty where there was no file.
        after: As they are.
        path: The file.
    """
    brought = syntax_errors(after, path)
    if not brought or syntax_errors(before, path) != ():
        return ()
    return brought


def tree_faults(tree: SyntaxTree) -> tuple[SyntaxFault, ...]:
    """Return the first faults of a file that was parsed, in its order."""
    if not tree.root.has_error:
        return ()
    faults: dict[tuple[int, int], SyntaxFault] = {}
    for node in itertools.islice(_pieces(tree.root), PIECES_MAX):
        fault = _fault(node, tree.source)
        faults.setdefault((fault.line, fault.column), fault)
    return tuple(faults[at] for at in sorted(faults))[:FAULTS_MAX]


def _pieces(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yield the broken pieces and missing marks of a file, in its order.

    Performance: a query for them takes half a minute for a chain of 80,000 broken `if`.
    """
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None and (node.is_error or node.is_missing):
            yield node
        if node is not None and node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _fault(node: tree_sitter.Node, source: bytes) -> SyntaxFault:
    if node.is_missing:
        return _at(node, source, f"missing {_named(node.type)}")
    opener = _unclosed(node)
    if opener is not None:
        return _at(opener, source, f"`{_shown(opener)}` is never closed")
    return _at(node, source, f"unexpected `{_shown(node)}`")


def _unclosed(error: tree_sitter.Node) -> tree_sitter.Node | None:
    """Return what was opened in a piece that could not be understood, and not closed in it."""
    waiting: list[tree_sitter.Node] = []
    for child in error.children:
        if child.type in CLOSERS or child.type == "jsx_opening_element":
            waiting.append(child)
        elif waiting and child.type == CLOSERS.get(waiting[-1].type, "jsx_closing_element"):
            waiting.pop()
    return waiting[-1] if waiting else None


def _named(kind: str) -> str:
    """Return what a missing node is called: a mark as it is written, else its kind in words."""
    return kind.replace("_", " ") if kind[:1].isalpha() and len(kind) > 2 else f"`{kind}`"


def _shown(node: tree_sitter.Node) -> str:
    """Return the beginning of what a node stands for, on one line."""
    line = text_of_node(node).strip().partition("\n")[0].rstrip()
    return line if len(line) <= SHOWN_CHARS_MAX else f"{line[: SHOWN_CHARS_MAX - 1]}…"


def _at(node: tree_sitter.Node, source: bytes, text: str) -> SyntaxFault:
    line_start = node.start_byte - node.start_point.column
    before = source[line_start : node.start_byte].decode(errors="replace")
    return SyntaxFault(node.start_point.row + 1, len(before) + 1, text)
