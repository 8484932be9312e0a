"""The tables of docs/reference, made from the models; and where they stand on their pages.

A page is prose with one made part between two HTML comments. `bin/test --update-golden
tests/unit/docs` writes it anew; without that option the tests compare.

    page = (PAGES / "settings.md").read_text()
    assert page == with_made_part(page, settings_tables())
"""

import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Literal, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from reprise.model.agent import AgentLimits, ModelParameters
from reprise.model.loading import AgentFrontMatter
from reprise.model.workflow import SandboxConfig, Step, Workflow
from reprise.model.workflow_checks import CONFIG_OF_TYPE
from reprise.tools.catalog import TOOL_GROUPS, TOOLS
from resources.settings import Settings

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
BEGIN = "<!-- made from the code by `bin/test --update-golden tests/unit/docs`; do not edit -->"
END = "<!-- end of what is made -->"


def with_made_part(page: str, part: str) -> str:
    """Return the page with this text between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        message = f"the page lacks the line {BEGIN!r} or {END!r}"
        raise ValueError(message)
    return f"{before}{BEGIN}\n\n{part.strip()}\n\n{END}{after}"


def settings_tables() -> str:
    """Return a table for each group of settings, with the environment's names."""
    return "\n\n".join(_settings_tables(Settings, "REPRISE_", "General"))


def workflow_tables() -> str:
    """Return a table for each model that a workflow's YAML and an agent's front matter hold."""
    parts = [_fields_table("A workflow", Workflow, leave_out={"source_path"})]
    parts.append(_fields_table("`sandbox` of a workflow", SandboxConfig))
    parts.append(_fields_table("A step", Step))
    for kind, field in CONFIG_OF_TYPE.items():
        if field is not None:
            model = next(_models_in(Step.model_fields[field].annotation))
            parts.append(_fields_table(f"`{field}`, of a step of type {kind.value}", model))
    parts.append(_fields_table("Front matter of an agent", AgentFrontMatter))
    parts.append(_fields_table("`parameters` of an agent", ModelParameters))
    parts.append(_fields_table("`limits` of an agent", AgentLimits))
    return "\n\n".join(parts)


def tools_tables() -> str:
    """Return a table for each group of tools: what they do, what they take, their revisions."""
    parts = []
    for group in dict.fromkeys(TOOL_GROUPS.values()):
        rows = [
            [
                f"`{name}`",
                TOOLS[name].schema.description,
                _arguments(TOOLS[name].schema.parameters),
                TOOLS[name].revision,
            ]
            for name, its_group in TOOL_GROUPS.items()
            if its_group is group
        ]
        heads = ["tool", "what the model is told", "arguments", "revision"]
        parts.append(f"## {group.value}\n\n{_table(heads, rows)}")
    return "\n\n".join(parts)


def _arguments(parameters: dict[str, JsonValue]) -> str:
    properties, required = parameters["properties"], parameters.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    names = [f"**`{name}`**" if name in required else f"`{name}`" for name in properties]
    return ", ".join(names) or "none"


def _settings_tables(model: type[BaseModel], prefix: str, title: str) -> list[str]:
    rows, groups = [], []
    for name, field in model.model_fields.items():
        variable = f"{prefix}{name.upper()}"
        group = next(_models_in(field.annotation), None)
        if group is None:
            rows.append([f"`{variable}`", _default(field), _meaning(field)])
        else:
            by_id = get_origin(field.annotation) is dict
            inner = f"{variable}__{'<ID>__' if by_id else ''}"
            groups += _settings_tables(group, inner, _first_sentence(group.__doc__ or name))
    return [f"## {title}\n\n{_table(['variable', 'default', 'meaning'], rows)}", *groups]


def _fields_table(title: str, model: type[BaseModel], leave_out: set[str] | None = None) -> str:
    rows = [
        [f"`{name}`", _kind(field.annotation), _default(field), _meaning(field)]
        for name, field in model.model_fields.items()
        if name not in (leave_out or set())
    ]
    return f"## {title}\n\n{_table(['field', 'value', 'default', 'meaning'], rows)}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _meaning(field: FieldInfo) -> str:
    text = " ".join((field.description or "").split()).replace("|", "\\|")
    limits = _limits(field)
    return f"{text} {limits}".strip()


def _limits(field: FieldInfo) -> str:
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    found = [
        f"{word} {_number(value)}"
        for part in field.metadata
        for name, word in words.items()
        if (value := getattr(part, name, None)) is not None
    ]
    return f"({', '.join(found)})" if found else ""


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "none"
    value = field.default
    if value is PydanticUndefined:
        return "**required**"
    if value is None or value in ("", (), frozenset()):
        return "none"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{_number(value)}`"


def _number(value: object) -> str:
    if isinstance(value, int | float):
        return str(int(value) if float(value).is_integer() else value)
    return str(value)


def _kind(annotation: object) -> str:
    inner = [part for part in get_args(annotation) if part is not type(None)]
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(part) for part in inner))
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in inner)
    if origin in (tuple, frozenset, list):
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return "keys with values"
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return ", ".join(f"`{member.value}`" for member in annotation)
        if issubclass(annotation, BaseModel):
            return "keys, see below"
    names = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
    return next((word for kind, word in names.items() if annotation is kind), "any value")


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models inside an annotation; a secret is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif annotation is not SecretStr:
        for part in get_args(annotation):
            yield from _models_in(part)


def _first_sentence(text: str) -> str:
    return text.strip().split(". Environment:")[0].split("\n")[0].rstrip(".")
