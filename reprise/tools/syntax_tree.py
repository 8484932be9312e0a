"""Syntax trees of TypeScript and JavaScript, within bounds of size, depth and time.

A file that cannot be parsed within them is a `SyntaxRefusal`, never an exception; broken code is
parsed, and its tree holds ERROR nodes. Lines and columns of a tree count from 0, columns in bytes,
so that who shows them uses `line_of`. To add a language: its row in `GRAMMARS` and `_language`.

Source: specification E11, E12. Tests: tests/unit/tools/test_syntax.py.
"""

import functools
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

import tree_sitter
import tree_sitter_javascript
import tree_sitter_typescript

from reprise.tools.text_edit import EditRefusal, text_of

SOURCE_BYTES_MAX = 2**20
"""Largest file that is parsed: 1 MB takes about half a second."""

DEPTH_MAX = 1_000
"""Most brackets and `<` that are open at one place.

The recovery from a chain of `a<b,` takes memory by the square of its length, 6 GB and then a crash
of the process at 64 KB, within one step that nothing can interrupt. A thousand take 32 MB.
"""

PARSE_SECONDS_MAX = 5.0
"""Longest parsing, in seconds of processor time."""

BROKEN_NODES_MAX = 400_000
"""Most nodes of a tree with faults, as 650 KB of minified code have.

Of one node with a million children, as `{` and a megabyte of `:` give it, each query takes five
seconds, and asking for its progress crashes the process (tree-sitter 0.26.1).
"""

CHUNK_BYTES = 1024
"""How much the parser is given at a time.

Performance: reading the text of a node asks for a part too; at 64 KB that takes 0.13 ms each.
"""

BOM_BYTES = b"\xef\xbb\xbf"

GRAMMARS: Mapping[str, str] = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
}
"""Suffix of a file → its grammar."""

_MARKS = re.compile(rb"=>|[()\[\]{}<>;]")


class SyntaxFaultCode(StrEnum):
    """Why a file is not parsed: a closed set, `code` in a tool's answer, beside `EditFault`."""

    NO_GRAMMAR = "no_grammar"
    """It is neither TypeScript nor JavaScript by its name."""
    TOO_LARGE = "too_large"
    """It is larger than `SOURCE_BYTES_MAX`."""
    TOO_DEEP = "too_deep"
    """It nests deeper than `DEPTH_MAX`."""
    TOO_SLOW = "too_slow"
    """Parsing took longer than `PARSE_SECONDS_MAX`, or queries would."""


@dataclass(frozen=True)
class SyntaxRefusal:
    """Why a file is not parsed."""

    code: str
    """A `SyntaxFaultCode`, or an `EditFault` for a file that is no text."""
    error: str
    """What is wrong and what to do, without the path."""


@dataclass(frozen=True)
class SyntaxTree:
    """A file that was parsed."""

    grammar: str
    """A value of `GRAMMARS`."""
    root: tree_sitter.Node
    """The whole file, as far as it could be understood."""
    source: bytes
    """What was parsed: the file without its byte order mark."""

    def captures(self, query: str) -> Mapping[str, list[tree_sitter.Node]]:
        """Return the nodes that a query names, in the order of the file."""
        cursor = tree_sitter.QueryCursor(_query(self.grammar, query))
        found = cursor.captures(self.root)
        # The cursor gives them in the order in which their patterns are complete.
        return {
            name: sorted(nodes, key=lambda node: node.start_byte) for name, nodes in found.items()
        }

    def matches(self, query: str) -> list[Mapping[str, list[tree_sitter.Node]]]:
        """Return the matches of a query: what each of its names stands for."""
        cursor = tree_sitter.QueryCursor(_query(self.grammar, query))
        return [dict(names) for _, names in cursor.matches(self.root)]


def syntax_tree(
    data: bytes, path: str, *, clock: Callable[[], float] = time.thread_time
) -> SyntaxTree | SyntaxRefusal:
    """Return the syntax tree of a file.

    Args:
        data: Its bytes.
        path: Its path, whose suffix names the language.
        clock: Seconds of processor time, for the bound of the time.
    """
    grammar = GRAMMARS.get(PurePosixPath(path).suffix.lower())
    if grammar is None:
        known = ", ".join(GRAMMARS)
        what = f"there is no outline of such a file (only of {known}); read it instead"
        return SyntaxRefusal(SyntaxFaultCode.NO_GRAMMAR, what)
    if len(data) > SOURCE_BYTES_MAX:
        return SyntaxRefusal(
            SyntaxFaultCode.TOO_LARGE,
            f"the file has {len(data)} bytes, an outline is made of at most {SOURCE_BYTES_MAX}; "
            "read parts of it instead",
        )
    text = text_of(data)
    if isinstance(text, EditRefusal):
        return SyntaxRefusal(text.code, text.error)
    source = data.removeprefix(BOM_BYTES)
    if nests_too_deep(source):
        return SyntaxRefusal(
            SyntaxFaultCode.TOO_DEEP,
            f"the file has more than {DEPTH_MAX} brackets or `<` open at one place; read it "
            "instead",
        )
    root = _parsed(source, grammar, clock)
    if root is None or (root.has_error and root.descendant_count > BROKEN_NODES_MAX):
        return SyntaxRefusal(
            SyntaxFaultCode.TOO_SLOW,
            f"an outline of the file would take more than {PARSE_SECONDS_MAX:.0f} seconds; read "
            "it instead",
        )
    return SyntaxTree(grammar, root, source)


def nests_too_deep(source: bytes) -> bool:
    """Tell whether more than `DEPTH_MAX` brackets and `<` are open at one place.

    A `<` counts until a `>`, a `;` or the end of the brackets around it; what stands in texts and
    comments counts like the rest.
    """
    # The `<` that are open in each open bracket; the first is the file itself.
    open_angles, depth = [0], 0
    for found in _MARKS.finditer(source):
        mark = found.group()
        if mark in b"([{":
            open_angles.append(0)
            depth += 1
        elif mark in b")]}":
            if len(open_angles) > 1:
                depth -= 1 + open_angles.pop()
        elif mark == b"<":
            open_angles[-1] += 1
            depth += 1
        elif mark == b";":
            depth -= open_angles[-1]
            open_angles[-1] = 0
        elif mark == b">" and open_angles[-1]:
            open_angles[-1] -= 1
            depth -= 1
        if depth > DEPTH_MAX:
            return True
    return False


def line_of(node: tree_sitter.Node) -> int:
    """Return the line that a node begins in, from 1."""
    return node.start_point.row + 1


def end_line_of(node: tree_sitter.Node) -> int:
    """Return the line that a node ends in, from 1."""
    return node.end_point.row + 1


def text_of_node(node: tree_sitter.Node) -> str:
    """Return what a node stands for in the file."""
    return (node.text or b"").decode(errors="replace")


def _parsed(source: bytes, grammar: str, clock: Callable[[], float]) -> tree_sitter.Node | None:
    """Return the root of a file's tree; None when that takes too long."""
    deadline = clock() + PARSE_SECONDS_MAX
    late = False

    def part(offset: int, _: object) -> bytes:
        return source[offset : offset + CHUNK_BYTES]

    def is_late(*_: object) -> bool:
        nonlocal late
        late = clock() > deadline
        return late

    parser = tree_sitter.Parser(_language(grammar))
    try:
        # The progress is asked only where the source is read by a function.
        return parser.parse(part, progress_callback=is_late).root_node
    except ValueError:
        # This is how the parser says that it was stopped.
        if not late:
            raise
        return None


@functools.cache
def _language(grammar: str) -> tree_sitter.Language:
    pointers = {
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
        "javascript": tree_sitter_javascript.language,
    }
    return tree_sitter.Language(pointers[grammar]())


@functools.cache
def _query(grammar: str, query: str) -> tree_sitter.Query:
    """Return a compiled query; compiling takes up to 10 ms."""
    return tree_sitter.Query(_language(grammar), query)
