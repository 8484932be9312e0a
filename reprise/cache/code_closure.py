"""Every piece of a user's code that a function can reach, followed through the texts alone.

The unit is a top-level statement: a function, a class with all its methods, an assignment, one
name of an import. From the roots on, each name that a statement takes from its module is followed
to the statements that bind it, in the same module or in another one of the user's own; so a
helper's helper counts, and a table of functions, and a decorator. Statements that bind nothing
(`TABLE.update(…)`) count for every module that is loaded on the way. What cannot be told from the
text counts whole: a module that is passed around as a value brings all its names.

Not followed: the standard library, installed packages, and imports whose name is made at run time.

Source: specification C20. Tests: tests/unit/cache/test_fingerprint.py.
"""

import ast
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reprise.cache.code_names import (
    Chain,
    ImportedName,
    bound_names,
    imported_names,
    references,
)
from reprise.cache.code_syntax import is_text_statement, syntax_text
from reprise.canonical import NotCanonical, digest_fields, sha256_hex
from reprise.ports import ModuleSource

SourceOf = Callable[[str], ModuleSource | None]
"""Module name → its source; None when it is not the user's own, or has none."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

UNITS_MAX = 20_000
"""Most statements that are followed."""


@dataclass(frozen=True)
class CodeClosure:
    """What was reached."""

    parts: Mapping[str, str]
    """`module:names` → SHA-256 of the syntax of the statements that bind them."""

    @property
    def digest(self) -> str:
        """SHA-256 over all parts."""
        return digest_fields(self.parts)

    def modules(self) -> dict[str, str]:
        """Return a short digest for each module, to tell where something changed."""
        names = sorted({part.partition(":")[0] for part in self.parts})
        return {
            name: digest_fields(
                {part: d for part, d in self.parts.items() if part.partition(":")[0] == name}
            )[:16]
            for name in names
        }


BY_TEXT = frozenset({"__import__", "compile", "eval", "exec", "globals", "locals", "vars"})
"""Builtins that reach code by a text, which cannot be followed: there is no fingerprint then."""


@dataclass
class Unit:
    """A top-level statement."""

    index: int
    node: ast.stmt
    names: frozenset[str]


@dataclass
class Module:
    """A module of the user's own, parsed."""

    source: ModuleSource
    units: list[Unit] = field(default_factory=list)
    binding: dict[str, list[Unit]] = field(default_factory=dict)
    """Name → the statements that bind it, imports apart."""
    imports: dict[str, list[ImportedName]] = field(default_factory=dict)
    """Name → the imports that bind it."""
    stars: list[ImportedName] = field(default_factory=list)
    loads: list[ImportedName] = field(default_factory=list)
    """Everything that it imports while it is loaded."""
    effects: list[Unit] = field(default_factory=list)
    """Statements that bind nothing."""
    rebound: frozenset[str] = frozenset()
    """Names that functions declare `global`: state, not constants."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.source.name

    def has(self, name: str) -> bool:
        """Answer whether the module binds a name."""
        return name in self.binding or name in self.imports

    def unit_at(self, line: int) -> Unit | None:
        """Return the statement in which a line stands."""
        for unit in self.units:
            decorators = getattr(unit.node, "decorator_list", [])
            first = min([unit.node.lineno, *(item.lineno for item in decorators)])
            if first <= line <= (unit.node.end_lineno or first):
                return unit
        return None


def parse_module(source: ModuleSource) -> Module:
    """Return a module's statements and names.

    Raises:
        NotCanonical: The text is no Python; names file and line.
    """
    try:
        tree = ast.parse(source.text, filename=source.path)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        message = f"{source.path}:{line}: {getattr(error, 'msg', error)}"
        raise NotCanonical(message) from error
    module = Module(source)
    rebound = (node for node in ast.walk(tree) if isinstance(node, ast.Global))
    module.rebound = frozenset(name for node in rebound for name in node.names)
    for index, statement in enumerate(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for item in imported_names(statement):
                module.loads.append(item)
                target = module.stars if item.name == "*" else None
                (module.imports.setdefault(item.bound, []) if target is None else target).append(
                    item
                )
        elif not is_text_statement(statement) and not _is_main_guard(statement):
            _add_unit(module, Unit(index, statement, frozenset(bound_names([statement]))))
    return module


def _add_unit(module: Module, unit: Unit) -> None:
    module.units.append(unit)
    for name in unit.names:
        module.binding.setdefault(name, []).append(unit)
    if not unit.names:
        module.effects.append(unit)
    if isinstance(unit.node, _DEFINITIONS) or "TYPE_CHECKING" in unit_names(unit.node):
        return
    inside = (n for n in ast.walk(unit.node) if isinstance(n, ast.Import | ast.ImportFrom))
    module.loads += [item for node in inside for item in imported_names(node)]


def unit_names(node: ast.stmt) -> set[str]:
    """Return every name in a statement."""
    return {part for chain in references(node).every_chain for part in chain}


def _is_main_guard(statement: ast.stmt) -> bool:
    """Answer whether a statement is `if __name__ == "__main__"`, which no import runs."""
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)
    )


class ClosureWalk:
    """Follows names from roots; `reach…` may be called again at any time, `drain` does the work.

    Args:
        source_of: Gives the sources of the user's own modules.
    """

    def __init__(self, source_of: SourceOf) -> None:
        self._source_of = source_of
        self._modules: dict[str, Module | None] = {}
        self._queue: deque[tuple[str, Chain]] = deque()
        self._seen: set[tuple[str, Chain]] = set()
        self._units: dict[tuple[str, int], Unit] = {}
        self._import_parts: dict[str, str] = {}
        self._loaded: set[str] = set()
        self.symbols: set[tuple[str, str]] = set()
        """(module, name) of every name that was reached."""

    def module(self, name: str) -> Module | None:
        """Return a module of the user's own, or None.

        Raises:
            NotCanonical: Its text is no Python.
        """
        if name not in self._modules:
            source = self._source_of(name)
            self._modules[name] = parse_module(source) if source is not None else None
        return self._modules[name]

    def reach(self, module: str, chain: Chain) -> None:
        """Reach a dotted name of a module."""
        if (module, chain) not in self._seen:
            self._seen.add((module, chain))
            self._queue.append((module, chain))

    def reach_line(self, module: Module, line: int) -> bool:
        """Reach the statement in which a line stands; answer whether there is one."""
        unit = module.unit_at(line)
        if unit is not None:
            self._add(module, unit)
        return unit is not None

    def drain(self) -> None:
        """Follow everything that was reached, to the end.

        Raises:
            NotCanonical: A text is no Python, reaches code by a text, or there are more than
                `UNITS_MAX` statements.
        """
        while self._queue:
            self._follow(*self._queue.popleft())

    def closure(self) -> CodeClosure:
        """Return what was reached."""
        texts: dict[str, list[str]] = {}
        for (module, _), unit in sorted(self._units.items(), key=lambda item: item[0]):
            part = f"{module}:{','.join(sorted(unit.names))}"
            texts.setdefault(part, []).append(syntax_text(unit.node))
        parts = {part: sha256_hex("\n".join(found)) for part, found in texts.items()}
        return CodeClosure({**parts, **self._import_parts})

    def loaded_from(self, name: str) -> frozenset[str]:
        """Return the user's own modules that are loaded with a module, itself included."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            module = self.module(current)
            if current in found or module is None:
                continue
            found.add(current)
            waiting += [target for item in module.loads for target in self._targets(module, item)]
        return frozenset(found)

    def _follow(self, name: str, chain: Chain) -> None:
        module = self.module(name)
        if module is None:
            return
        self._load(module)
        symbol, *rest = chain
        if module.has(symbol):
            self.symbols.add((name, symbol))
        for item in module.imports.get(symbol, ()):
            base = _absolute(module, item)
            self._import_parts[f"{name}:import {symbol}"] = sha256_hex(
                f"{base} {item.name} {item.alias}"
            )
            self._follow_import(base, item, tuple(rest))
        for unit in module.binding.get(symbol, ()):
            self._add(module, unit)
        if not module.has(symbol):
            for item in module.stars:
                self.reach(_absolute(module, item), chain)

    def _add(self, module: Module, unit: Unit) -> None:
        key = (module.name, unit.index)
        if key in self._units:
            return
        if len(self._units) >= UNITS_MAX:
            message = f"{module.name} reaches more than {UNITS_MAX} statements"
            raise NotCanonical(message)
        self._units[key] = unit
        self._load(module)
        found = references(unit.node)
        for chain in found.names:
            by_builtin = chain[0] in BY_TEXT and not module.has(chain[0])
            if by_builtin or chain[-1] == "import_module":
                message = (
                    f"{module.source.path}:{unit.node.lineno}: {'.'.join(chain)} reaches code by a"
                    " text, which cannot be followed; call what you need by its name"
                )
                raise NotCanonical(message)
            self.reach(module.name, chain)
        for item in found.imports:
            self._import_inside(module, unit, item, found.every_chain)

    def _import_inside(
        self, module: Module, unit: Unit, item: ImportedName, chains: set[Chain]
    ) -> None:
        base = _absolute(module, item)
        if item.name is not None or item.bound in unit.names:
            self._follow_import(base, item, ())
            return
        # Used as `helpers.cut` and in no other way, it brings that name alone.
        for chain in chains:
            if chain[0] == item.bound:
                self._follow_import(base, item, chain[1:])
        for target in self._targets(module, item):
            loaded = self.module(target)
            if loaded is not None:
                self._load(loaded)

    def _follow_import(self, base: str, item: ImportedName, rest: Chain) -> None:
        if item.name is None:
            self._follow_module(base if item.alias else base.split(".")[0], rest)
            return
        if item.name == "*":
            self._follow_module(base, ())
            return
        module = self.module(base)
        if module is not None and (module.has(item.name) or module.stars):
            self.reach(base, (item.name, *rest))
        submodule = f"{base}.{item.name}" if base else item.name
        if (module is None or not module.has(item.name)) and self.module(submodule) is not None:
            self._follow_module(submodule, rest)

    def _follow_module(self, name: str, rest: Chain) -> None:
        module = self.module(name)
        if rest and (module is None or not module.has(rest[0])):
            submodule = f"{name}.{rest[0]}"
            # A package without `__init__` has no source of its own, but its modules have.
            if self.module(submodule) is not None or (module is None and len(rest) > 1):
                self._follow_module(submodule, rest[1:])
                return
        if module is None:
            return
        self._load(module)
        names: Iterable[str] = rest[:1] or {*module.binding, *module.imports}
        for symbol in names:
            self.reach(name, (symbol, *rest[1:]))
        if not rest:
            for item in module.stars:
                self._follow_module(_absolute(module, item), ())

    def _load(self, module: Module) -> None:
        """Add what runs when a module is loaded, in it and in what it imports."""
        if module.name in self._loaded:
            return
        for name in sorted(self.loaded_from(module.name) | self._packages_of(module.name)):
            loaded = self.module(name)
            if loaded is not None and name not in self._loaded:
                self._loaded.add(name)
                for unit in loaded.effects:
                    self._add(loaded, unit)

    @staticmethod
    def _packages_of(name: str) -> set[str]:
        parts = name.split(".")
        return {".".join(parts[:count]) for count in range(1, len(parts))}

    def _targets(self, module: Module, item: ImportedName) -> Iterator[str]:
        base = _absolute(module, item)
        yield from self._packages_of(base)
        yield base
        if item.name is not None and item.name != "*":
            yield f"{base}.{item.name}"


def _absolute(module: Module, item: ImportedName) -> str:
    """Return the absolute name of the module that an import names."""
    if item.level == 0:
        return item.module
    parts = module.name.split(".")
    keep = len(parts) - item.level + (1 if module.source.is_package else 0)
    return ".".join([*parts[: max(keep, 0)], *([item.module] if item.module else [])])


def code_closure(roots: Iterable[tuple[str, str]], source_of: SourceOf) -> CodeClosure:
    """Return everything that names reach, from the texts alone.

    Args:
        roots: (module, name) pairs.
        source_of: Gives the sources of the user's own modules.

    Raises:
        NotCanonical: A root has no source, or a text is no Python.
    """
    walk = ClosureWalk(source_of)
    for module, name in roots:
        found = walk.module(module)
        if found is None or not (found.has(name) or found.stars):
            message = f"the source of {module}:{name} cannot be had"
            raise NotCanonical(message)
        walk.reach(module, (name,))
    walk.drain()
    return walk.closure()
