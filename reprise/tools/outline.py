"""The outline of a TypeScript or JavaScript file: what to look for before reading it.

    outline(data, "src/Root.tsx").compositions[0].id

It gives imports, exports, what else the top level declares, and the Remotion compositions, each
with its lines from 1, within bounds. Code that is broken has an outline of what can be understood,
and says so. Nothing here raises for what a file holds.

Source: specification E, E12. Tests: tests/unit/tools/test_outline*.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reprise.tools.outline_compositions import Composition, compositions_of
from reprise.tools.outline_imports import Import, imports_of
from reprise.tools.outline_symbols import Symbol, commonjs_of, declared_in, exports_of
from reprise.tools.syntax import SyntaxFault, tree_faults
from reprise.tools.syntax_tree import SyntaxRefusal, syntax_tree

IMPORTS_MAX = 100
EXPORTS_MAX = 200
DECLARED_MAX = 200
COMPOSITIONS_MAX = 200


@dataclass(frozen=True)
class Outline:
    """What a source file holds, in its order."""

    language: str
    """`typescript`, `tsx` or `javascript`."""
    total_lines: int
    """How many lines the file has."""
    imports: tuple[Import, ...]
    """At most `IMPORTS_MAX`."""
    exports: tuple[Symbol, ...]
    """What it exports; at most `EXPORTS_MAX`."""
    commonjs: tuple[Symbol, ...]
    """What it exports by `exports.x = …` and `module.exports = …`; at most `EXPORTS_MAX`."""
    declared: tuple[Symbol, ...]
    """What else the top level declares; at most `DECLARED_MAX`."""
    compositions: tuple[Composition, ...]
    """At most `COMPOSITIONS_MAX`."""
    faults: tuple[SyntaxFault, ...]
    """The first syntax errors."""
    totals: Mapping[str, int]
    """Name of each list above that was cut → how many there are."""

    @property
    def errors(self) -> bool:
        """True when the file is broken, so that something may be missing here."""
        return bool(self.faults)


def outline(data: bytes, path: str) -> Outline | SyntaxRefusal:
    """Return the outline of a file, or why there is none.

    Args:
        data: The file's bytes, at most 1 MB.
        path: Its path, whose suffix names the language.
    """
    tree = syntax_tree(data, path)
    if isinstance(tree, SyntaxRefusal):
        return tree
    imports = imports_of(tree)
    declared = declared_in(tree)
    exports = exports_of(tree, declared)
    passed_on = {symbol.local or symbol.name for symbol in exports if not symbol.source}
    declared = tuple(symbol for symbol in declared if symbol.name not in passed_on)
    commonjs = commonjs_of(tree)
    compositions = compositions_of(tree, imports)
    sizes = {
        "imports": (len(imports), IMPORTS_MAX),
        "exports": (len(exports), EXPORTS_MAX),
        "commonjs": (len(commonjs), EXPORTS_MAX),
        "declared": (len(declared), DECLARED_MAX),
        "compositions": (len(compositions), COMPOSITIONS_MAX),
    }
    return Outline(
        language=tree.grammar,
        total_lines=data.count(b"\n") + (data != b"" and not data.endswith(b"\n")),
        imports=imports[:IMPORTS_MAX],
        exports=exports[:EXPORTS_MAX],
        commonjs=commonjs[:EXPORTS_MAX],
        declared=declared[:DECLARED_MAX],
        compositions=compositions[:COMPOSITIONS_MAX],
        faults=tree_faults(tree),
        totals={name: size for name, (size, most) in sizes.items() if size > most},
    )
