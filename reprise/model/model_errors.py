"""What pydantic says of a value, as sentences that name the key, the value and the remedy."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from reprise.model.yaml_text import Path

VALUE_CHARS_MAX = 80
"""A value in a message is cut after this many characters."""

EXPECTED: Mapping[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "`true` or `false`",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
}
"""Pydantic's error type → what belongs there."""


def shown(value: object) -> str:
    """Return a value as it stands in a message, cut when it is long."""
    text = repr(value)
    return text if len(text) <= VALUE_CHARS_MAX else text[: VALUE_CHARS_MAX - 1] + "…"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest of the names, else an empty text."""
    known = list(names)
    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f"; did you mean {lower[near[0]]!r}?" if near else ""


def describe_errors(model: type[BaseModel], error: ValidationError) -> list[tuple[Path, str]]:
    """Return where each error is and what it says.

    Args:
        model: The model that was to be made.
        error: What pydantic raised.
    """
    items = error.errors()
    paths: list[Path] = [tuple(item["loc"]) for item in items]
    # Where items of a list are wrong, pydantic also says that the list is too short.
    return [
        (path, _describe(model, item))
        for path, item in zip(paths, items, strict=True)
        if not any(len(other) > len(path) and other[: len(path)] == path for other in paths)
    ]


def fields_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """Return the keys that a model knows at a place; none where anything may stand."""
    found = _model_at(model, path)
    return tuple(found.model_fields) if found else ()


def _describe(model: type[BaseModel], item: ErrorDetails) -> str:
    path: Path = tuple(item["loc"])
    key = _key_of(path)
    kind = item["type"]
    if kind == "missing":
        return f"the key {key!r} is missing; add it"
    if kind == "extra_forbidden":
        return _unknown_key(model, path)
    if kind == "enum":
        names = str(item.get("ctx", {}).get("expected", "")).replace("'", "").replace(" or ", ", ")
        known = [name.strip() for name in names.split(",")]
        value = item["input"]
        hint = did_you_mean(str(value), known)
        return f"{key}: {shown(value)} is not one of {', '.join(known)}{hint}"
    if kind in EXPECTED:
        return f"{key}: expected {EXPECTED[kind]}, found {shown(item['input'])}"
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{key}: {message}, found {shown(item['input'])}"


def _unknown_key(model: type[BaseModel], path: Path) -> str:
    key = _key_of(path)
    known = fields_at(model, path[:-1])
    hint = did_you_mean(key, known)
    if not hint:
        here = _model_at(model, path[:-1])
        for name, info in (here.model_fields if here else {}).items():
            inner = model_in(info.annotation)
            if inner and key in inner.model_fields:
                hint = f"; it belongs under {name!r}"
                break
    if not hint:
        hint = f"; known here are {', '.join(known)}" if known else "; remove it"
    return f"unknown key {key!r}{hint}"


def _key_of(path: Path) -> str:
    names = [part for part in path if isinstance(part, str) and part != "[key]"]
    return names[-1] if names else "the file"


def model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model that an annotation holds (`X`, `X | None`, `tuple[X, ...]`), or None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = model_in(part)
        if found:
            return found
    return None


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    current: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int):
            continue
        if current is None or part not in current.model_fields:
            return None
        current = model_in(current.model_fields[part].annotation)
    return current
