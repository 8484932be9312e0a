"""What a source file imports: `import` in all its forms, and `require` at its top level.

Source: specification E. Tests: tests/unit/tools/test_outline.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tree_sitter

from reprise.tools.syntax_tree import SyntaxTree, line_of, text_of_node

_IMPORTS = "(import_statement) @import"


@dataclass(frozen=True)
class ImportedName:
    """One name that an import brings."""

    name: str
    """As the other file exports it; `default`, or `*` for all of it together."""
    local: str
    """As this file calls it."""


@dataclass(frozen=True)
class Import:
    """One import."""

    source: str
    """The file or package, as written."""
    names: tuple[ImportedName, ...]
    """What it brings; nothing when it is imported for its effects."""
    line: int
    """From 1."""
    type_only: bool = False
    """True for `import type`."""


def imports_of(tree: SyntaxTree) -> tuple[Import, ...]:
    """Return a file's imports, in its order."""
    found = [_import(node) for node in tree.captures(_IMPORTS).get("import", [])]
    for statement in tree.root.named_children:
        if statement.type in ("lexical_declaration", "variable_declaration"):
            found += _requires(statement)
    # In a broken file a text may go on in the next line: that names no source.
    whole = (one for one in found if one is not None and "\n" not in one.source)
    return tuple(sorted(whole, key=lambda one: one.line))


def names_from(imports: tuple[Import, ...], source: str) -> Mapping[str, str]:
    """Return what a file calls the names that it imports from a source: local name → name."""
    return {
        named.local: named.name for one in imports if one.source == source for named in one.names
    }


def string_text(node: tree_sitter.Node) -> str:
    """Return a string's text without its quotes, escapes as they are written."""
    return text_of_node(node)[1:-1]


def _import(node: tree_sitter.Node) -> Import | None:
    names: list[ImportedName] = []
    source = node.child_by_field_name("source")
    for child in node.named_children:
        if child.type == "import_clause":
            names += _clause(child)
        elif child.type == "import_require_clause":
            source = child.child_by_field_name("source")
            names += [ImportedName("*", text_of_node(one)) for one in _named(child, "identifier")]
    if source is None:
        return None
    type_only = any(child.type in ("type", "typeof") for child in node.children)
    return Import(string_text(source), tuple(names), line_of(source), type_only)


def _clause(clause: tree_sitter.Node) -> Iterator[ImportedName]:
    for child in clause.named_children:
        if child.type == "identifier":
            yield ImportedName("default", text_of_node(child))
        elif child.type == "namespace_import":
            for local in _named(child, "identifier"):
                yield ImportedName("*", text_of_node(local))
        elif child.type == "named_imports":
            for one in _named(child, "import_specifier"):
                name = one.child_by_field_name("name")
                alias = one.child_by_field_name("alias")
                if name is not None:
                    yield ImportedName(text_of_node(name), text_of_node(alias or name))


def _requires(declaration: tree_sitter.Node) -> Iterator[Import]:
    """Yield `const x = require("y")` and its like."""
    for declarator in _named(declaration, "variable_declarator"):
        name = declarator.child_by_field_name("name")
        value = declarator.child_by_field_name("value")
        source = None if value is None else _required(value)
        if name is None or source is None:
            continue
        yield Import(string_text(source), tuple(_pattern(name)), line_of(source))


def _required(value: tree_sitter.Node) -> tree_sitter.Node | None:
    """Return the source of a call of `require`."""
    function = value.child_by_field_name("function")
    arguments = value.child_by_field_name("arguments")
    if value.type != "call_expression" or function is None or arguments is None:
        return None
    if text_of_node(function) != "require" or len(arguments.named_children) != 1:
        return None
    source = arguments.named_children[0]
    return source if source.type == "string" else None


def _pattern(name: tree_sitter.Node) -> Iterator[ImportedName]:
    if name.type == "identifier":
        yield ImportedName("*", text_of_node(name))
    for one in name.named_children:
        key, value = one.child_by_field_name("key"), one.child_by_field_name("value")
        if one.type == "shorthand_property_identifier_pattern":
            yield ImportedName(text_of_node(one), text_of_node(one))
        elif key is not None and value is not None and value.type == "identifier":
            yield ImportedName(text_of_node(key), text_of_node(value))


def _named(node: tree_sitter.Node, kind: str) -> list[tree_sitter.Node]:
    return [child for child in node.named_children if child.type == kind]
