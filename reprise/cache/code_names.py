"""Which names a top-level statement takes from its module, and which names it binds.

Scopes are Python's: a parameter or a local variable hides a global of the same name, so editing
an unrelated function of that name is not an edit of this one.

Source: specification C20. Tests: tests/unit/cache/test_fingerprint.py.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

Chain = tuple[str, ...]
"""A dotted name: `("helpers", "cut")` is `helpers.cut`."""

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class ImportedName:
    """One name of an import statement."""

    module: str
    """The module named, without the dots of a relative import; may be empty."""
    level: int
    """Dots of a relative import."""
    name: str | None
    """The name taken from the module, `*`, or None when the module itself is imported."""
    alias: str | None
    """Name after `as`."""

    @property
    def bound(self) -> str:
        """The name that the statement binds."""
        return self.alias or self.name or self.module.split(".")[0]


@dataclass
class References:
    """What a statement takes from outside itself."""

    names: set[Chain] = field(default_factory=set)
    """Dotted names whose first part is not local."""
    imports: list[ImportedName] = field(default_factory=list)
    """Imports inside it, at any depth."""
    every_chain: set[Chain] = field(default_factory=set)
    """All dotted names, local ones included: how an import inside is used."""


def references(statement: ast.stmt) -> References:
    """Return what a top-level statement takes from outside itself."""
    visitor = _Visitor()
    visitor.visit(statement)
    return visitor.found


def imported_names(statement: ast.Import | ast.ImportFrom) -> list[ImportedName]:
    """Return the names of an import statement."""
    if isinstance(statement, ast.Import):
        return [ImportedName(item.name, 0, None, item.asname) for item in statement.names]
    module = statement.module or ""
    return [
        ImportedName(module, statement.level, item.name, item.asname) for item in statement.names
    ]


def bound_names(statements: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements bind in the scope in which they stand."""
    bound: set[str] = set()
    declared: set[str] = set()
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        bound |= _bound_by(node)
        match node:
            case ast.Global() | ast.Nonlocal():
                declared.update(node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                pass  # A scope of its own.
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # Its targets are its own; a `:=` in it binds outside.
                walrus = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
                bound.update(n.target.id for n in walrus)
            case _:
                waiting.extend(ast.iter_child_nodes(node))
    return bound - declared


def _bound_by(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.Import() | ast.ImportFrom():
            return {item.bound for item in imported_names(node)}
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return {name}
        case _:
            return set()


def _chain(node: ast.expr) -> Chain | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


@dataclass(frozen=True)
class _Scope:
    names: frozenset[str] = frozenset()
    """Local names; none for a class body, whose names are not seen by the functions in it."""
    declared: frozenset[str] = frozenset()
    """Names declared `global`."""
    is_class: bool = False


class _Visitor(ast.NodeVisitor):
    """Walks one statement with a stack of scopes; the module's own is not on it."""

    def __init__(self) -> None:
        self.found = References()
        self._scopes: list[_Scope] = []

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self._note((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain = _chain(node)
        if chain is None:
            self.generic_visit(node)
        else:
            self._note(chain)

    def visit_Import(self, node: ast.Import) -> None:
        self.found.imports += imported_names(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.found.imports += imported_names(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defaults(node.args)
        self._inside(frozenset(_parameters(node.args)), [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._scopes.append(_Scope(is_class=True))
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # The annotation of a local variable is never evaluated; one in a class body makes fields.
        inside_function = bool(self._scopes) and not self._scopes[-1].is_class
        parts = [node.target, *([] if inside_function else [_annotation(node.annotation)])]
        for part in (*parts, *([node.value] if node.value is not None else [])):
            self.visit(part)

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _COMPREHENSIONS):
            super().generic_visit(node)
            return
        # The first iterable is evaluated outside.
        self.visit(node.generators[0].iter)
        targets = [generator.target for generator in node.generators]
        self._scopes.append(_Scope(frozenset(bound_names(targets))))
        super().generic_visit(node)
        self._scopes.pop()

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._defaults(node.args)
        if node.decorator_list:
            # A decorator may read them; nothing else does while the function runs.
            every = [argument.annotation for argument in _arguments(node.args)]
            for annotation in (*every, node.returns):
                if annotation is not None:
                    self.visit(_annotation(annotation))
        bound = {*_parameters(node.args), *bound_names(node.body)}
        found = (n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Global))
        declared = frozenset(name for statement in found for name in statement.names)
        self._inside(frozenset(bound), node.body, declared)

    def _defaults(self, arguments: ast.arguments) -> None:
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)

    def _inside(
        self,
        names: frozenset[str],
        body: Iterable[ast.AST],
        declared: frozenset[str] = frozenset(),
    ) -> None:
        self._scopes.append(_Scope(names, declared))
        for node in body:
            self.visit(node)
        self._scopes.pop()

    def _note(self, chain: Chain) -> None:
        self.found.every_chain.add(chain)
        if not self._is_local(chain[0]):
            self.found.names.add(chain)

    def _is_local(self, name: str) -> bool:
        for scope in reversed(self._scopes):
            if name in scope.declared:
                return False
            if name in scope.names:
                return True
        return False


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    rest = [arguments.vararg, arguments.kwarg]
    return [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *(argument for argument in rest if argument is not None),
    ]


def _parameters(arguments: ast.arguments) -> list[str]:
    return [argument.arg for argument in _arguments(arguments)]


def _annotation(node: ast.expr) -> ast.expr:
    """Return an annotation; one that is written as a text is parsed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return node
    return node
