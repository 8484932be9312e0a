"""The fingerprint of a user's function: its code, what that code calls, and what it has caught.

In it: the syntax of the function, of every helper, class, table and decorator of the user's own
that it reaches (reprise/cache/code_closure.py), and the immutable values of defaults, closures and
constants (reprise/cache/captured.py). So editing any of them gives another key; editing a comment,
a docstring or the layout does not.

Not in it: the standard library and installed packages, mutable state, attributes that something
else changed at run time, and modules imported under a name made at run time. A function whose
source cannot be had has no fingerprint: it is neither looked up nor stored.

Source: specification C20, C23.
"""

from collections.abc import Callable, Mapping
from types import FunctionType

from reprise.cache.captured import Captured
from reprise.cache.code_closure import ClosureWalk, CodeClosure, SourceOf
from reprise.canonical import NotCanonical, digest_fields, sha256_hex

NamespaceOf = Callable[[str], Mapping[str, object] | None]
"""Module name → its globals; None when it is not loaded."""

FINGERPRINT_REVISION = "1"
"""Raised when the same code would be fingerprinted otherwise."""


def function_fingerprint(
    module: str, name: str, source_of: SourceOf, namespace_of: NamespaceOf
) -> str:
    """Return the fingerprint of a function, as 64 hexadecimal digits.

    Args:
        module: The module that it is taken from.
        name: The name under which it is taken.
        source_of: Gives the sources of the user's own modules, by the user's name of them or by
            the name that they are loaded under.
        namespace_of: Gives the globals of a loaded module, likewise.

    Raises:
        NotCanonical: A source cannot be had or is no Python.
    """
    walk = ClosureWalk(source_of)
    root = walk.module(module)
    namespace = namespace_of(module)
    if root is None or namespace is None or name not in namespace:
        message = f"the source of {module}:{name} cannot be had"
        raise NotCanonical(message)
    walk.reach(module, (name,))
    values = _Values(walk, source_of, namespace_of, walk.loaded_from(module))
    described = values.describe(namespace[name])
    if described.startswith("library "):
        message = f"the source of {module}:{name} cannot be had: it is an installed package's"
        raise NotCanonical(message)
    texts = {f"value {module}:{name}": described}
    done: set[tuple[str, str]] = {(module, name)}
    while True:
        walk.drain()
        waiting = sorted(walk.symbols - done)
        if not waiting:
            break
        done.update(waiting)
        for symbol in waiting:
            text = values.of_symbol(*symbol)
            if text is not None:
                texts[f"value {symbol[0]}:{symbol[1]}"] = text
    return _digest(walk.closure(), texts)


def _digest(closure: CodeClosure, texts: Mapping[str, str]) -> str:
    fields = {"revision": FINGERPRINT_REVISION, **closure.parts}
    return digest_fields(fields | {name: sha256_hex(text) for name, text in texts.items()})


class _Values:
    """Values of loaded modules; functions and classes found in them are followed too."""

    def __init__(
        self,
        walk: ClosureWalk,
        source_of: SourceOf,
        namespace_of: NamespaceOf,
        loaded: frozenset[str],
    ) -> None:
        self._walk = walk
        self._source_of = source_of
        self._namespace_of = namespace_of
        self._loaded = loaded
        """Modules that are loaded with the function's; what is imported later has no values yet."""
        self._captured = Captured(self._found_function, self._found_class, self._own_name)

    def describe(self, value: object) -> str:
        return self._captured.describe(value)

    def of_symbol(self, module: str, name: str) -> str | None:
        """Return the value of a module's name; None when it has none that counts."""
        source = self._walk.module(module)
        namespace = self._namespace_of(module) if module in self._loaded else None
        if source is None or namespace is None or name not in namespace:
            return None
        if name in source.rebound:
            return None
        return self.describe(namespace[name])

    def _own_name(self, name: str) -> str:
        source = self._source_of(name)
        return source.name if source is not None else name

    def _found_function(self, function: FunctionType) -> bool:
        code = function.__code__
        source = self._source_of(str(function.__globals__.get("__name__", "")))
        if source is None:
            return False
        module = self._walk.module(source.name)
        made_elsewhere = code.co_filename != source.path
        if (
            module is None
            or made_elsewhere
            or not self._walk.reach_line(module, code.co_firstlineno)
        ):
            message = f"the source of {source.name}:{code.co_qualname} cannot be had"
            raise NotCanonical(message)
        return True

    def _found_class(self, cls: type) -> bool:
        source = self._source_of(cls.__module__)
        if source is None:
            return False
        self._walk.reach(source.name, (cls.__qualname__.split(".")[0],))
        return True
