"""The values that loaded code has caught: defaults, closures, constants, as text.

Immutable values count, with their types; what is mutable does not, since it may change while the
function runs: of a list, a dictionary or an object only the functions and the class count. Nothing
here calls `repr` of an object that could show an address.

Source: specification C20. Tests: tests/unit/cache/test_fingerprint.py.
"""

import enum
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import FunctionType, MethodType, ModuleType
from uuid import UUID

from reprise.cache.code_syntax import constant_text
from reprise.canonical import NotCanonical

OBJECTS_MAX = 20_000
"""Most objects that are looked at."""

_BY_REPR = (
    date, datetime, time, timedelta, timezone, Decimal, Fraction, UUID, range, slice, PurePath,
)  # fmt: skip
"""Immutable types whose `repr` says everything."""


class Captured:
    """Describes values; remembers what it has seen, so cycles end.

    Args:
        found_function: Called with each function; answers whether its code is the user's own.
        found_class: Called with each class; answers whether it is the user's own.
        module_name: Gives the name by which the user knows a module.
    """

    def __init__(
        self,
        found_function: Callable[[FunctionType], bool],
        found_class: Callable[[type], bool],
        module_name: Callable[[str], str],
    ) -> None:
        self._found_function = found_function
        self._found_class = found_class
        self._module_name = module_name
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def describe(self, value: object) -> str:
        """Return a value as text; equal texts mean equal values, as far as they count.

        Raises:
            NotCanonical: More than `OBJECTS_MAX` objects hang together.
        """
        plain = constant_text(value)
        if plain is not None:
            return plain
        if id(value) in self._seen:
            return f"seen {self._seen[id(value)]}"
        if len(self._kept) >= OBJECTS_MAX:
            message = f"more than {OBJECTS_MAX} captured values"
            raise NotCanonical(message)
        self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        return self._described(value)

    def _described(self, value: object) -> str:
        match value:
            case FunctionType():
                return self._function(value)
            case MethodType():
                return f"method({self._each([value.__func__, value.__self__])})"
            case functools.partial():
                parts = [value.func, value.args, *_items(value.keywords)]
                return f"partial({self._each(parts)})"
            case staticmethod() | classmethod():
                return f"{type(value).__name__}({self.describe(value.__func__)})"
            case type():
                return self._class(value)
            case ModuleType():
                return f"module {self._module_name(value.__name__)}"
            case _:
                return self._data(value)

    def _data(self, value: object) -> str:
        match value:
            case enum.Enum():
                return f"{self._class(type(value))}.{value.name}={self.describe(value.value)}"
            case re.Pattern():
                return f"pattern({self.describe(value.pattern)},{value.flags})"
            case tuple() | frozenset():
                return self._immutable(value)
            case _ if isinstance(value, _BY_REPR):
                return f"{self._class(type(value))}:{value!r}"
            case list() | dict() | set():
                return self._mutable(value)
            case _:
                return self._object(value)

    def _immutable(self, value: "tuple[object, ...] | frozenset[object]") -> str:
        items = [self.describe(item) for item in value]
        if isinstance(value, frozenset):
            items.sort()
        return f"{self._class(type(value))}[{','.join(items)}]"

    def _mutable(self, value: "list[object] | dict[object, object] | set[object]") -> str:
        """Return the functions and classes in a container; the rest of it may change."""
        items = value.values() if isinstance(value, dict) else value
        found = [self.describe(item) for item in items if _is_code(item)]
        return f"{self._class(type(value))}({','.join(sorted(found))})"

    def _object(self, value: object) -> str:
        name = self._class(type(value))
        wrapped = _wrapped(value)
        if wrapped is not None:
            return f"{name}({self.describe(wrapped)})"
        frozen = _frozen_fields(value)
        if frozen is not None:
            return f"{name}({self._each(_items(frozen))})"
        return f"object of {name}"

    def _function(self, function: FunctionType) -> str:
        own = self._found_function(function)
        name = self._module_name(str(function.__globals__.get("__name__", "")))
        cells = {}
        for variable, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                cells[variable] = cell.cell_contents
            except ValueError:
                cells[variable] = "an empty cell"
        parts: list[object] = [function.__defaults__, *_items(function.__kwdefaults__ or {})]
        parts += _items(cells)
        parts.append(_wrapped(function))
        kind = "own" if own else "library"
        return f"{kind} function {name}.{function.__code__.co_qualname}({self._each(parts)})"

    def _class(self, cls: type) -> str:
        own = self._found_class(cls)
        name = f"{self._module_name(cls.__module__)}.{cls.__qualname__}"
        return f"own class {name}" if own else name

    def _each(self, parts: Iterable[object]) -> str:
        return ",".join(self.describe(part) for part in parts)


def _items(values: Mapping[str, object]) -> list[object]:
    return [part for name in sorted(values) for part in (name, values[name])]


def _is_code(value: object) -> bool:
    kinds = (FunctionType, MethodType, functools.partial, type)
    return isinstance(value, kinds) or _wrapped(value) is not None


def _wrapped(value: object) -> object:
    """Return what a wrapper says that it wraps, or None; runs no code of the object."""
    try:
        found = object.__getattribute__(value, "__dict__").get("__wrapped__")
    except AttributeError:
        return None
    return found if callable(found) else None


def _frozen_fields(value: object) -> dict[str, object] | None:
    """Return the fields of a frozen dataclass or pydantic model; None for anything else."""
    cls = type(value)
    if is_dataclass(cls) and getattr(cls, "__dataclass_params__").frozen:  # noqa: B009 - Untyped.
        return {item.name: getattr(value, item.name, None) for item in fields(cls)}
    config = getattr(cls, "model_config", None)
    if isinstance(config, dict) and config.get("frozen") and hasattr(cls, "model_fields"):
        return {name: getattr(value, name, None) for name in cls.model_fields}
    return None
