"""What the tools of a sandbox have in common: arguments as a model, and refusals with a code.

    LIST = sandbox_tool("ListSandboxFiles", "List …", ListArguments, list_sandbox_files, "1")

Such a tool's function gets its arguments as a value and the door to the sandbox, and answers with a
result or raises SandboxRefused, which becomes one. A refusal is `{ok, code, error, …}`: the codes
are those of `SandboxFault`, those of reprise/tools/text_edit.py, and the ones below.

Source: specification E3, E11. Tests: tests/unit/tools/test_sandbox_tool.py.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from reprise.errors import SandboxRefused
from reprise.model.model_errors import describe_errors
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.argument_schema import Arguments, tool_schema
from reprise.tools.tool import ARGUMENTS_CHARS_MAX, Result, Tool, refusal

PATH_CHARS_MAX = 1000
"""Longest path of an argument, in characters."""

NO_SANDBOX = "no_sandbox"
"""There is no sandbox here."""

LONE_SURROGATE = "lone_surrogate"
"""A text holds half a character, which no file can hold."""

BAD_ARGUMENTS = "bad_arguments"
"""The arguments fit the schema and cannot be used nonetheless."""

A = TypeVar("A", bound=Arguments)


def sandbox_tool(
    name: str,
    description: str,
    model: type[A],
    function: Callable[[A, SandboxDoor], Result],
    revision: str,
    arguments_chars_max: int = ARGUMENTS_CHARS_MAX,
) -> Tool:
    """Return a tool of the sandbox."""

    def answer(arguments: Mapping[str, JsonValue], access: ToolAccess) -> Result:
        if access.sandbox is None:
            return refusal(NO_SANDBOX, "there is no sandbox here; go on without its tools")
        halved = _halved(dict(arguments))
        if halved is not None:
            return refusal(
                LONE_SURROGATE,
                f"{halved} holds half of a surrogate pair, which is no character; write the whole "
                "character or leave it out",
                argument=halved,
            )
        try:
            return function(model.model_validate(arguments), access.sandbox)
        except ValidationError as error:
            return refusal(BAD_ARGUMENTS, describe_errors(model, error)[0][1][:300])
        except SandboxRefused as error:
            return refusal(error.code, str(error))

    answer.__name__ = function.__name__
    return Tool(tool_schema(name, description, model), revision, answer, arguments_chars_max)


def _halved(value: JsonValue) -> str | None:
    """Return the name of the argument with a lone surrogate in it; None when there is none."""
    for place, text in _texts(value):
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                return place
    return None


def _texts(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Give every text in a value with its place; a value may be nested deeper than calls may be."""
    waiting: list[tuple[str, JsonValue]] = [("", value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, dict):
            # A name that is no character is told without it.
            waiting += [(f"{place}.{name}" if place else name, each) for name, each in item.items()]
            waiting += [(place or "a name", name) for name in item]
        elif isinstance(item, list):
            waiting += [(f"{place}[{at}]", each) for at, each in enumerate(item)]
