"""What a source file declares at its top level and what it exports.

An export says where its name stands (`line`) and which lines to read for it (`start_line` to
`end_line`): those of the declaration when it is in this file. In a file that is broken, exports are
found wherever they landed, also as loose words of a piece that could not be understood.

Source: specification E. Tests: tests/unit/tools/test_outline.py.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import tree_sitter

from reprise.tools.outline_imports import string_text
from reprise.tools.syntax_tree import SyntaxTree, end_line_of, line_of, text_of_node

KINDS: Mapping[str, str] = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "function_signature": "function",
    "function_expression": "function",
    "generator_function": "function",
    "arrow_function": "function",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "class": "class",
    "type_alias_declaration": "type",
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "internal_module": "namespace",
    "module": "namespace",
    "import_alias": "alias",
}
"""Node of a declaration → its kind; `const`, `let` and `var` are named by their word."""

LOOSE = {"function", "class", "const", "let", "var", "type", "interface", "enum", "namespace"}
"""Words before a name, in a piece that could not be understood."""

_EXPORTS = "(export_statement) @export"
_ERRORS = "(ERROR) @error"
_BODIES = "[(internal_module body: (_) @body) (module body: (_) @body)]"

_DECLARATIONS = ("lexical_declaration", "variable_declaration")
_NAMES = ("identifier", "type_identifier", "shorthand_property_identifier_pattern")


@dataclass(frozen=True)
class Symbol:
    """A name that is declared or exported."""

    name: str
    """The name; `default`, or `*` for all that another file exports."""
    kind: str
    """A value of `KINDS`, `const`, `let`, `var`; else `value`, `name`, `all`, `assignment`."""
    line: int
    """Where the name stands, from 1."""
    start_line: int
    """First line of what to read, from 1."""
    end_line: int
    """Last line of it."""
    local: str = ""
    """What this file, or the other one, calls it; empty: the same."""
    source: str = ""
    """The file that it is passed on from; empty: this one."""


def declared_in(tree: SyntaxTree) -> tuple[Symbol, ...]:
    """Return what a file declares at its top level, without what `export` stands before."""
    found: list[Symbol] = []
    for node in _top_level(tree.root):
        found += _declared(node, node)
        if node.type == "ERROR":
            found += _loose(node, exported=False)
    if tree.root.type == "ERROR":
        found += _loose(tree.root, exported=False)
    return _in_order(found)


def exports_of(tree: SyntaxTree, declared: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Return what a file exports, in its order.

    Args:
        tree: The file.
        declared: What it declares without exporting it there.
    """
    known = {symbol.name: symbol for symbol in declared}
    bodies, body_end = _bodies(tree), 0
    found: list[Symbol] = []
    for node in tree.captures(_EXPORTS).get("export", []):
        while bodies and bodies[-1][0] <= node.start_byte:
            body_end = max(body_end, bodies.pop()[1])
        if node.start_byte >= body_end:
            found += _exported(node, known)
    if tree.root.has_error:
        for node in tree.captures(_ERRORS).get("error", []):
            found += _loose(node, exported=True)
    return _in_order(found)


def commonjs_of(tree: SyntaxTree) -> tuple[Symbol, ...]:
    """Return what a file exports by `exports.x = …` and `module.exports = …` at its top level."""
    found: list[Symbol] = []
    for statement in tree.root.named_children:
        node = statement.named_children[0] if statement.named_children else None
        if statement.type != "expression_statement":
            continue
        while node is not None and node.type == "assignment_expression":
            found += _assigned(node, statement)
            node = node.child_by_field_name("right")
    return _in_order(found)


def _top_level(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yield the declarations and broken pieces of the top level."""
    for node in root.named_children:
        if node.type in ("ambient_declaration", "expression_statement"):
            yield from node.named_children
        else:
            yield node


def _declared(node: tree_sitter.Node, whole: tree_sitter.Node) -> Iterator[Symbol]:
    """Yield the names of a declaration."""
    start, end = line_of(whole), end_line_of(whole)
    if node.type in _DECLARATIONS:
        kind = node.children[0].type
        for declarator in node.named_children:
            target = declarator.child_by_field_name("name")
            for each in [] if target is None else _targets(target):
                yield Symbol(text_of_node(each), kind, line_of(each), start, end)
        return
    if node.type == "ambient_declaration":
        for child in node.named_children:
            yield from _declared(child, whole)
        return
    name = node.child_by_field_name("name")
    if node.type == "import_alias":
        name = next(iter(node.named_children), None)
    if node.type in KINDS and name is not None:
        text = string_text(name) if name.type == "string" else text_of_node(name)
        yield Symbol(text, KINDS[node.type], line_of(name), start, end)


def _targets(pattern: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yield the names that a pattern such as `{a, b: [c, ...d], e = 1}` declares, in order."""
    waiting = [pattern]
    while waiting:
        node = waiting.pop()
        if node.type in _NAMES:
            yield node
        elif node.type == "pair_pattern":
            value = node.child_by_field_name("value")
            waiting += [] if value is None else [value]
        elif node.type in ("assignment_pattern", "object_assignment_pattern"):
            left = node.child_by_field_name("left")
            waiting += [] if left is None else [left]
        elif node.type in ("object_pattern", "array_pattern", "rest_pattern"):
            waiting += node.named_children[::-1]


def _exported(node: tree_sitter.Node, known: Mapping[str, Symbol]) -> Iterator[Symbol]:
    """Yield what an export statement exports."""
    source_node = node.child_by_field_name("source")
    source = "" if source_node is None else string_text(source_node)
    words = {child.type: child for child in node.children}
    lines = (line_of(node), end_line_of(node))
    declaration = node.child_by_field_name("declaration")
    if "default" in words:
        value = declaration or node.child_by_field_name("value")
        yield _default(words["default"], value, node, known)
    elif declaration is not None:
        yield from _declared(declaration, node)
    elif "*" in words:
        yield Symbol("*", "all", line_of(words["*"]), *lines, source=source)
    elif "namespace_export" in words:
        for name in words["namespace_export"].named_children:
            yield Symbol(_name(name), "namespace", line_of(name), *lines, "*", source)
    elif "export_clause" in words:
        for one in words["export_clause"].named_children:
            yield from _specified(one, lines, source, known)
    elif "=" in words:
        value = node.named_children[-1]
        local = text_of_node(value) if value.type == "identifier" else ""
        yield Symbol("=", "assignment", line_of(words["="]), *lines, local)


def _default(
    word: tree_sitter.Node,
    value: tree_sitter.Node | None,
    whole: tree_sitter.Node,
    known: Mapping[str, Symbol],
) -> Symbol:
    lines = (line_of(whole), end_line_of(whole))
    name = None if value is None else value.child_by_field_name("name")
    local, kind = "" if name is None else text_of_node(name), "value"
    if value is not None and value.type in KINDS:
        kind = KINDS[value.type]
    elif value is not None and value.type == "identifier":
        local = text_of_node(value)
        kind, lines = _known(known, local, "name", lines)
    return Symbol("default", kind, line_of(word), *lines, local)


def _specified(
    one: tree_sitter.Node, lines: tuple[int, int], source: str, known: Mapping[str, Symbol]
) -> Iterator[Symbol]:
    """Yield a name of `export {a, b as c}`."""
    name = one.child_by_field_name("name")
    shown = one.child_by_field_name("alias") or name
    if name is None or shown is None:
        return
    local, kind = _name(name), "name"
    if not source:
        kind, lines = _known(known, local, kind, lines)
    same = _name(shown) == local
    yield Symbol(_name(shown), kind, line_of(shown), *lines, "" if same else local, source)


def _known(
    known: Mapping[str, Symbol], name: str, kind: str, lines: tuple[int, int]
) -> tuple[str, tuple[int, int]]:
    """Return kind and lines of a declaration of this file, or those given."""
    symbol = known.get(name)
    return (kind, lines) if symbol is None else (symbol.kind, (symbol.start_line, symbol.end_line))


def _assigned(node: tree_sitter.Node, whole: tree_sitter.Node) -> Iterator[Symbol]:
    """Yield what an assignment exports."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or left.type != "member_expression":
        return
    owner, member = left.child_by_field_name("object"), left.child_by_field_name("property")
    if owner is None or member is None:
        return
    lines = (line_of(whole), end_line_of(whole))
    if text_of_node(left) == "module.exports":
        yield Symbol("module.exports", "assignment", line_of(left), *lines)
        for one in right.named_children if right is not None and right.type == "object" else []:
            # A pair has a key, a method a name; a shorthand is the name.
            name = one.child_by_field_name("key") or one.child_by_field_name("name") or one
            if name.type in ("property_identifier", "shorthand_property_identifier", "string"):
                yield Symbol(_name(name), "name", line_of(name), line_of(one), end_line_of(one))
    elif text_of_node(owner) in ("exports", "module.exports"):
        yield Symbol(text_of_node(member), "name", line_of(member), *lines)


def _loose(error: tree_sitter.Node, *, exported: bool) -> Iterator[Symbol]:
    """Yield names that stand after `const`, `function` and so on in a broken piece.

    Args:
        error: The piece.
        exported: True for those after `export`, False for the others.
    """
    children, after_export = error.children, False
    for word, name in itertools.pairwise(children):
        if word.type == "export":
            after_export = True
        elif word.type in LOOSE and name.type in _NAMES:
            if after_export is exported:
                text = text_of_node(name)
                yield Symbol(text, word.type, line_of(name), line_of(word), line_of(name))
            after_export = False
        elif word.type not in ("async", "abstract", "declare", "default"):
            after_export = False


def _bodies(tree: SyntaxTree) -> list[tuple[int, int]]:
    """Return where the bodies of namespaces are, the first last; the file exports none of them."""
    if tree.grammar == "javascript":
        return []
    nodes = tree.captures(_BODIES).get("body", [])
    return sorted(((node.start_byte, node.end_byte) for node in nodes), reverse=True)


def _name(node: tree_sitter.Node) -> str:
    return string_text(node) if node.type == "string" else text_of_node(node)


def _in_order(symbols: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Return symbols by line, each name of a line once."""
    once: dict[tuple[int, str, str], Symbol] = {}
    for symbol in symbols:
        once.setdefault((symbol.line, symbol.name, symbol.local), symbol)
    return tuple(sorted(once.values(), key=lambda symbol: symbol.line))
