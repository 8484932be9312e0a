"""Which Remotion compositions a source file registers: `<Composition>` and `<Still>` with ids.

An id is known when it is a text, or a constant of the file that nothing else of the file is called
like; any other is dynamic and shown as it is written. `<Folder name>` around a composition is its
folder. A tag counts by what it is imported as from `remotion`, as a member (`<R.Still>`), or by its
plain name.

Source: specification E. Tests: tests/unit/tools/test_outline_compositions.py.
"""

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tree_sitter

from reprise.tools.outline_imports import Import, names_from, string_text
from reprise.tools.syntax_tree import SyntaxTree, end_line_of, line_of, text_of_node

COMPOSITION, STILL, FOLDER = "Composition", "Still", "Folder"

FOLDERS_MAX = 20
"""Most folders that are told around a composition."""

RAW_CHARS_MAX = 200
"""Most characters of an id as it is written."""

_ELEMENTS = """
(jsx_element open_tag: (jsx_opening_element name: (_) @tag) @open) @element
(jsx_self_closing_element name: (_) @tag) @element
(ERROR (jsx_opening_element name: (_) @tag) @element)
"""

_BINDINGS = """
(variable_declarator name: (identifier) @name)
(function_declaration name: (identifier) @name)
(arrow_function parameter: (identifier) @name)
(catch_clause parameter: (identifier) @name)
(for_in_statement left: (identifier) @name)
(shorthand_property_identifier_pattern) @name
(pair_pattern value: (identifier) @name)
(array_pattern (identifier) @name)
(rest_pattern (identifier) @name)
(assignment_pattern left: (identifier) @name)
"""

_PARAMETERS = {
    "javascript": "(formal_parameters (identifier) @name)",
    "tsx": "(required_parameter pattern: (identifier) @name)"
    "(optional_parameter pattern: (identifier) @name)",
}

_WRAPPERS = ("parenthesized_expression", "as_expression", "satisfies_expression")


@dataclass(frozen=True)
class Composition:
    """A composition that a file registers."""

    id: str | None
    """Its id; None when only running the file tells."""
    kind: str
    """`Composition` or `Still`."""
    line: int
    """Where its tag begins, from 1."""
    end_line: int
    """Where the element ends."""
    raw: str
    """The id as it is written, braces and quotes included; empty when there is none."""
    folders: tuple[str, ...] = ()
    """The folders around it, the outermost first, at most `FOLDERS_MAX`.

    A name that is not known stands as it is written.
    """

    @property
    def dynamic(self) -> bool:
        """True when only running the file tells the id."""
        return self.id is None


def compositions_of(tree: SyntaxTree, imports: tuple[Import, ...]) -> tuple[Composition, ...]:
    """Return the compositions of a file, in its order.

    Args:
        tree: The file.
        imports: What it imports.
    """
    if tree.grammar == "typescript":
        # Such a file has no elements.
        return ()
    elements = _elements(tree, imports)
    constants = _constants(tree) if elements else {}
    found: list[Composition] = []
    # Folders that are open where an element begins: where they end, and their names.
    open_folders: list[tuple[int, str]] = []
    for element, tag, kind in elements:
        while open_folders and open_folders[-1][0] <= element.start_byte:
            open_folders.pop()
        if kind == FOLDER:
            name, raw = _attribute(tag, "name", constants)
            open_folders.append((element.end_byte, raw if name is None else name))
            continue
        text, raw = _attribute(tag, "id", constants)
        folders = tuple(name for _, name in open_folders[:FOLDERS_MAX])
        lines = (line_of(element), end_line_of(element))
        found.append(Composition(text, kind, *lines, raw, folders))
    return tuple(found)


def _elements(
    tree: SyntaxTree, imports: tuple[Import, ...]
) -> list[tuple[tree_sitter.Node, tree_sitter.Node, str]]:
    """Return the elements that count, by place: element, opening tag, kind."""
    called = names_from(imports, "remotion")
    found = []
    for match in tree.matches(_ELEMENTS):
        (element,), (name,) = match["element"], match["tag"]
        kind = _kind(name, called)
        if kind in (COMPOSITION, STILL, FOLDER):
            found.append((element, match.get("open", [element])[0], kind))
    return sorted(found, key=lambda each: (each[0].start_byte, -each[0].end_byte))


def _kind(tag: tree_sitter.Node, called: Mapping[str, str]) -> str:
    """Return what a tag is in Remotion's own words."""
    if tag.type == "member_expression":
        member = tag.child_by_field_name("property")
        return "" if member is None else text_of_node(member)
    text = text_of_node(tag)
    return called.get(text, text)


def _attribute(
    tag: tree_sitter.Node, wanted: str, constants: Mapping[str, str]
) -> tuple[str | None, str]:
    """Return the text of an attribute, None when it is not known, and how it is written."""
    text, raw = None, ""
    for attribute in tag.named_children:
        parts = attribute.named_children
        if attribute.type != "jsx_attribute" or len(parts) < 2:
            continue
        if text_of_node(parts[0]) == wanted:
            # The last one counts.
            raw = text_of_node(parts[1])[:RAW_CHARS_MAX]
            text = _value(parts[1], constants)
    return text, raw


def _value(node: tree_sitter.Node, constants: Mapping[str, str]) -> str | None:
    if node.type == "string":
        return html.unescape(string_text(node))
    if node.type != "jsx_expression" or len(node.named_children) != 1:
        return None
    inner = _unwrapped(node.named_children[0])
    if inner.type == "identifier":
        return constants.get(text_of_node(inner))
    return _literal(inner)


def _unwrapped(node: tree_sitter.Node) -> tree_sitter.Node:
    """Return an expression without brackets, `as`, `satisfies` and `!` around it."""
    while node.type in (*_WRAPPERS, "non_null_expression") and node.named_children:
        node = node.named_children[0]
    return node


def _literal(node: tree_sitter.Node) -> str | None:
    """Return the text of a string or a template without substitutions; None with an escape."""
    if node.type not in ("string", "template_string"):
        return None
    if any(child.type != "string_fragment" for child in node.named_children):
        return None
    return string_text(node)


def _constants(tree: SyntaxTree) -> Mapping[str, str]:
    """Return the texts of a file's constants whose names it gives to nothing else."""
    names = tree.captures(_BINDINGS + _PARAMETERS[tree.grammar]).get("name", [])
    counts = Counter(text_of_node(name) for name in names)
    return {name: text for name, text in _top_constants(tree.root) if counts[name] == 1}


def _top_constants(root: tree_sitter.Node) -> Iterator[tuple[str, str]]:
    for statement in root.named_children:
        node = statement.child_by_field_name("declaration") or statement
        if node.type != "lexical_declaration" or node.children[0].type != "const":
            continue
        for declarator in node.named_children:
            name = declarator.child_by_field_name("name")
            value = declarator.child_by_field_name("value")
            text = None if value is None else _literal(_unwrapped(value))
            if name is not None and name.type == "identifier" and text is not None:
                yield text_of_node(name), text
