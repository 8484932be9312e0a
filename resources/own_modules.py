"""Modules of the user's own, loaded apart: what runs is the very text that was read.

Each module's text is read once, and that one text is parsed, run and fingerprinted. Imports inside
it come back here through an `__import__` of its own: a module of the user's own is loaded likewise,
anything else is imported as ever. So an edited file is loaded anew in a process that lives long,
together with all that imports it, while functions that are running keep what they have.

In `sys.modules` the modules stand under `reprise_functions.<name>`, for dataclasses, pickles and
annotations, which look there; the user's own names are not taken there.

Source: specification C20. Used by python_functions and memory_functions.
"""

import ast
import builtins
import importlib.machinery
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from types import CodeType, ModuleType

from reprise.cache.fingerprint import function_fingerprint
from reprise.canonical import NotCanonical
from reprise.errors import BadInput, RepriseError, UnknownName
from reprise.model.function import FunctionInputs
from reprise.model.model_errors import did_you_mean
from reprise.ports import ModuleSource

PREFIX = "reprise_functions."
"""Stands before the user's names in `sys.modules` and in `__name__`."""

RESERVED = frozenset({"apps", "io_managers", "pipelines", "reprise", "resources"})
"""The engine's own packages: always the ones that run, never a copy."""

Find = Callable[[str], ModuleSource | None]
"""Module name → its source as it is now; None when the user has no such module."""


def is_reserved(name: str) -> bool:
    """Answer whether a module of this name is the engine's or the standard library's."""
    top = name.partition(".")[0]
    return top in RESERVED or top in sys.stdlib_module_names


class OwnModules:
    """One generation of loaded modules; a change of any text needs a new one.

    Args:
        find: Finds a module's source; each name is asked for once.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._sources: dict[str, ModuleSource | None] = {}
        self._modules: dict[str, ModuleType] = {}
        self._functions: dict[str, OwnFunction] = {}
        self._lock = threading.RLock()

    def source(self, name: str) -> ModuleSource | None:
        """Return a module's source, by the user's name or by `__name__`; None for a foreign one."""
        name = name.removeprefix(PREFIX)
        with self._lock:
            if name not in self._sources:
                self._sources[name] = None if not name or is_reserved(name) else self._find(name)
            return self._sources[name]

    def is_current(self) -> bool:
        """Answer whether every text that was read is still the one that is found."""
        with self._lock:
            try:
                return all(
                    is_reserved(name) or not name or self._find(name) == source
                    for name, source in self._sources.items()
                )
            except RepriseError:
                return False  # A file that can no longer be read; whoever needs it will say so.

    def function(self, reference: str, *, looked_in: str, known: Iterable[str]) -> "OwnFunction":
        """Return `module:callable`, loaded and checked once; see `load_function`."""
        with self._lock:
            if reference not in self._functions:
                self._functions[reference] = load_function(
                    self, reference, looked_in=looked_in, known=tuple(known)
                )
            return self._functions[reference]

    def namespace(self, name: str) -> Mapping[str, object] | None:
        """Return the globals of a loaded module, or None."""
        module = self._modules.get(name.removeprefix(PREFIX))
        return vars(module) if module is not None else None

    def load(self, name: str) -> ModuleType:
        """Load a module and the packages around it, or return what is loaded.

        Raises:
            ModuleNotFoundError: The user has no such module.
            Exception: Whatever its code raises.
        """
        with self._lock:
            parent, _, child = name.rpartition(".")
            outer = self._load_package(parent) if parent else None
            if name in self._modules:
                return self._modules[name]
            source = self.source(name)
            if source is None:
                message = f"No module named {name!r}"
                raise ModuleNotFoundError(message, name=name)
            module = self._run(source)
            if outer is not None:
                setattr(outer, child, module)
            return module

    def owns(self, filename: str) -> bool:
        """Answer whether a file name is that of a module's source."""
        return any(s is not None and s.path == filename for s in self._sources.values())

    def _load_package(self, name: str) -> ModuleType:
        if name in self._modules or self.source(name) is not None:
            return self.load(name)
        # A folder without `__init__`: an empty module that holds what is loaded from it.
        package = _new_module(name, "", is_package=True)
        self._modules[name] = sys.modules[package.__name__] = package
        return package

    def _run(self, source: ModuleSource) -> ModuleType:
        code: CodeType = compile(
            ast.parse(source.text, filename=source.path), source.path, "exec", dont_inherit=True
        )
        module = _new_module(source.name, source.path, is_package=source.is_package)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        self._modules[source.name] = module
        before = sys.modules.get(module.__name__)
        sys.modules[module.__name__] = module
        try:
            exec(code, vars(module))
        except BaseException:
            del self._modules[source.name]
            sys.modules.pop(module.__name__, None)
            if before is not None:
                sys.modules[module.__name__] = before
            raise
        return module

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import for the user's code: as `__import__` does, with the user's own modules first."""
        # Pickles and annotations ask by the name that stands in `sys.modules`.
        absolute = _absolute(name, globals or {}, level).removeprefix(PREFIX)
        if not self._is_own(absolute, tuple(fromlist or ())):
            if level:
                message = f"No module named {absolute!r}"
                raise ModuleNotFoundError(message, name=absolute)
            return builtins.__import__(name, globals, locals, tuple(fromlist or ()), level)
        if not fromlist:
            self.load(absolute)
            return self._load_package(absolute.partition(".")[0])
        module = self._load_package(absolute)
        for item in fromlist:
            submodule = f"{absolute}.{item}"
            if item != "*" and not hasattr(module, item) and self.source(submodule) is not None:
                self.load(submodule)
        return module

    def _is_own(self, name: str, fromlist: Sequence[str]) -> bool:
        if self.source(name) is not None:
            return True
        return any(self.source(f"{name}.{item}") is not None for item in fromlist)


def _new_module(name: str, path: str, *, is_package: bool) -> ModuleType:
    module = ModuleType(PREFIX + name)
    spec = importlib.machinery.ModuleSpec(
        module.__name__, None, origin=path or None, is_package=is_package
    )
    module.__spec__ = spec
    module.__package__ = module.__name__ if is_package else module.__name__.rpartition(".")[0]
    if path:
        module.__file__ = path
    if is_package:
        module.__path__ = [str(PurePath(path).parent)] if path else []
    return module


def _absolute(name: str, namespace: Mapping[str, object], level: int) -> str:
    if level == 0:
        return name
    package = f"{namespace.get('__package__') or ''}.".removeprefix(PREFIX).rstrip(".")
    parts = package.split(".") if package else []
    if level > len(parts):
        message = "attempted relative import beyond the top-level package"
        raise ImportError(message)
    return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])


class OwnFunction:
    """A callable out of the user's own modules, or out of an installed package.

    Args:
        modules: The generation that it was loaded with.
        reference: `module:callable`.
        function: The callable.
    """

    def __init__(
        self, modules: OwnModules, reference: str, function: Callable[[FunctionInputs], object]
    ) -> None:
        self._modules = modules
        self._reference = reference
        self._function = function
        self._fingerprint: str | None = None

    def fingerprint(self) -> str:
        """Return the fingerprint of its code as it was loaded; made once.

        Raises:
            NotCanonical: Its source cannot be had.
        """
        if self._fingerprint is None:
            module, _, name = self._reference.partition(":")
            try:
                self._fingerprint = function_fingerprint(
                    module, name, self._modules.source, self._modules.namespace
                )
            except NotCanonical:
                raise
            except Exception as error:
                # Objects of the user's own may raise whatever they like when they are looked at;
                # that leaves the step without a key (specification C7, C23).
                message = f"{self._reference} cannot be fingerprinted: {error!r}"
                raise NotCanonical(message) from error
        return self._fingerprint

    def call(self, inputs: FunctionInputs) -> object:
        """Call it; whatever it raises goes up."""
        return self._function(inputs)

    def place_of(self, error: BaseException) -> str:
        """Return where in the user's own code an error was raised, as `file:line`."""
        return place_of(error, self._modules)


def place_of(error: BaseException, modules: OwnModules) -> str:
    """Return the last place in the user's own code that an error passed, as `file:line`."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if modules.owns(frame.filename)]
    last = (own or frames)[-1:]
    return f"{last[0].filename}:{last[0].lineno}" if last else "the function"


def load_function(
    modules: OwnModules, reference: str, *, looked_in: str, known: Sequence[str]
) -> OwnFunction:
    """Load `module:callable` and check that it can be called as a Function step calls it.

    Args:
        modules: Where the user's modules are loaded.
        reference: `module:callable`.
        looked_in: Where modules are looked for, for the message.
        known: Modules that there are, for the message.

    Raises:
        UnknownName: There is no such module, or no such name in it.
        BadInput: The module cannot be loaded, or the name is no plain function of one argument.
    """
    module_name, _, name = reference.partition(":")
    module = _module_of(modules, reference, module_name, looked_in=looked_in, known=known)
    where = getattr(module, "__file__", None) or module_name
    if name not in vars(module):
        names = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        hint = did_you_mean(name, names) or f"; it has {', '.join(names) or 'no functions'}"
        message = f"there is no {name!r} in {where}{hint}"
        raise UnknownName(message)
    function = vars(module)[name]
    problem = _problem(function)
    if problem is not None:
        message = f"{reference} in {where} {problem}"
        raise BadInput(message)
    return OwnFunction(modules, reference, function)


def _module_of(
    modules: OwnModules, reference: str, name: str, *, looked_in: str, known: Sequence[str]
) -> ModuleType:
    try:
        if modules.source(name) is not None:
            return modules.load(name)
        if not is_reserved(name):
            # An installed package: loaded as ever, and not fingerprinted.
            return importlib.import_module(name)
    except RepriseError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _unloadable(modules, reference, error) from error
    except (Exception, SystemExit) as error:
        # The user's module ran on import and raised: whatever it is, the step says where.
        raise _unloadable(modules, reference, error) from error
    hint = did_you_mean(name, known)
    which = "is the standard library's or the engine's" if is_reserved(name) else "is not there"
    message = (
        f"{reference}: the module {name!r} {which}; modules are looked for in {looked_in}{hint}"
    )
    raise UnknownName(message)


def _unloadable(modules: OwnModules, reference: str, error: BaseException) -> BadInput:
    what = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    line = " ".join(what.split())[:300]
    return BadInput(f"{reference} cannot be loaded: {place_of(error, modules)}: {line}")


def _problem(function: object) -> str | None:
    """Return why a value cannot be a step's callable, or None."""
    if isinstance(function, type):
        return "is a class; name a function"
    if not callable(function):
        return f"is no function but a value of type {type(function).__name__}"
    inner = inspect.unwrap(function)
    for candidate in (function, inner, getattr(inner, "func", None), type(inner).__call__):
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            return "is async; make it a plain function, which may call `asyncio.run` inside"
    if inspect.isgeneratorfunction(inner):
        return "is a generator; make it return a list"
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        return f"cannot be called with one argument, the inputs: {error}"
    except ValueError:
        return None  # A built-in without a signature.
    return None
