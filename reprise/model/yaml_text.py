"""YAML to JSON values, with the line of each value and the well-known traps refused.

PyYAML reads YAML 1.1, in which `on` is true, `1:30` is ninety and the second of two equal keys wins
silently. Here each of these is a problem that names its line and the remedy. Tags and merge keys
are refused; anchors are allowed, within `NODES_MAX` nodes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from pydantic import JsonValue

NODES_MAX = 20_000
"""Most nodes of a file once its anchors are expanded."""

Path = tuple[str | int, ...]
"""Keys and indexes from the top of a document to a value."""

TAG = "tag:yaml.org,2002:"
WHOLE_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
DECIMAL_NUMBER = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?|[-+]?\.[0-9]+")
BRACES_NEED_QUOTES = "a text that begins with `{{` needs quotes around it"


@dataclass(frozen=True)
class Problem:
    """Something wrong at a place."""

    path: Path
    """Where in the document."""
    line: int
    """Line in the file, from 1."""
    text: str
    """What is wrong and what to do."""


@dataclass
class Document:
    """What a YAML text holds."""

    value: JsonValue = None
    """The values; a refused one stands as its text."""
    lines: dict[Path, int] = field(default_factory=dict)
    """Path → line in the file, from 1."""
    problems: list[Problem] = field(default_factory=list)
    """What was refused."""

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def at(self, path: Path, text: str) -> None:
        """Note a problem at a place."""
        self.problems.append(Problem(path, self.line(path), text))


def read_yaml(text: str, *, first_line: int = 1) -> Document:
    """Return the values of a YAML text.

    Args:
        text: One YAML document.
        first_line: Line of the file in which the text begins.

    Returns:
        The values with their lines; whatever is wrong is among the problems, nothing is raised.
    """
    document = Document()
    try:
        node = yaml.compose(text.removeprefix("\ufeff"), Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        document.problems.append(_syntax_problem(text, error, first_line))
        return document
    except RecursionError:
        document.problems.append(
            Problem((), first_line, "the file is nested too deeply; flatten it")
        )
        return document
    if node is not None:
        document.value = _Reader(document, first_line).value(node, ())
    return document


def _syntax_problem(text: str, error: yaml.YAMLError, first_line: int) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, int(error.position))
        what = f"the character U+{ord(text[error.position]):04X} is not allowed; remove it"
        return Problem((), first_line + line, what)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line if mark is not None else 0
    what = getattr(error, "problem", None) or str(error)
    return Problem((), first_line + line, f"this is not YAML: {what}; {_remedy(text, line, what)}")


def _remedy(text: str, line: int, what: str) -> str:
    lines = text.split("\n")
    shown = lines[line] if line < len(lines) else ""
    if "\t" in shown or "\\t" in what:
        return "indent with blanks, not with tabs"
    if "mapping values" in what:
        return "put a text that holds `: ` in quotes"
    if "another document" in what:
        return "keep one document in a file, without a second `---`"
    if "{{" in shown:
        return BRACES_NEED_QUOTES
    return "check quotes, brackets and indentation here and in the line before"


class _Reader:
    """Turns nodes into values and notes lines and problems on the way."""

    def __init__(self, document: Document, first_line: int) -> None:
        self._document = document
        self._first_line = first_line
        self._open: set[int] = set()
        self._count = 0

    def value(self, node: yaml.Node, path: Path) -> JsonValue:
        """Return the value of a node."""
        self._document.lines.setdefault(path, self._first_line + node.start_mark.line)
        self._count += 1
        if self._count > NODES_MAX or id(node) in self._open:
            if self._count <= NODES_MAX + 1:
                self._document.at(path, "the anchors here expand without end; write the values out")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                self._check_tag(node, path, "seq")
                return [self.value(item, (*path, at)) for at, item in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, JsonValue]:
        self._check_tag(node, path, "map")
        values: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            line = self._first_line + key_node.start_mark.line
            key = self._key(key_node, path, line)
            if key is None:
                continue
            if key in values:
                first = self._document.lines[(*path, key)]
                what = (
                    f"the key {key!r} stands here a second time (first in line {first}); keep one"
                )
                self._document.problems.append(Problem((*path, key), line, what))
                continue
            self._document.lines[(*path, key)] = line
            values[key] = self.value(value_node, (*path, key))
        return values

    def _key(self, node: yaml.Node, path: Path, line: int) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            what = f"a key must be text; {BRACES_NEED_QUOTES}"
        elif node.tag == TAG + "str":
            return str(node.value)
        elif node.tag == TAG + "merge":
            what = "merge keys (`<<`) are not supported; write the keys out"
        else:
            what = f"the key {node.value} is not read as text; put it in quotes"
        self._document.problems.append(Problem(path, line, what))
        return None

    def _check_tag(self, node: yaml.Node, path: Path, wanted: str) -> None:
        if node.tag != TAG + wanted:
            self._document.at(path, f"the tag {node.tag!r} is not supported; remove it")

    def _scalar(self, node: yaml.Node, path: Path) -> JsonValue:
        text = str(node.value)
        kind = node.tag.removeprefix(TAG)
        if kind == "str":
            return text
        if kind == "null":
            return None
        if kind == "bool" and text.lower() in {"true", "false"}:
            return text.lower() == "true"
        if kind == "int" and WHOLE_NUMBER.fullmatch(text) and len(text) <= 18:
            return int(text)
        if kind == "float" and DECIMAL_NUMBER.fullmatch(text):
            return float(text)
        self._document.at(path, _scalar_trap(kind, text, node.tag))
        return text


_TRAPS: Mapping[str, str] = {
    "bool": "{0} is read as a truth value; write `true` or `false`, or put the text in quotes",
    "int": "{0} is no plain whole number; write it in decimal digits, or put the text in quotes",
    "float": "{0} is no plain number; write it with digits and a point, or put the text in quotes",
    "timestamp": "{0} is read as a date; put it in quotes",
}


def _scalar_trap(kind: str, text: str, tag: str) -> str:
    trap = _TRAPS.get(kind)
    return trap.format(text) if trap else f"the tag {tag!r} is not supported; remove it"
