"""GetSandboxFileOutline, of the group SandboxBrowse: where in a file what stands.

Each list is cut to its share of a result, and names are cut too, so that a generated file of a
thousand exports is answered within bounds. An outline is no reading: a change of the file is not
held against it.

Source: specification E. Tests: tests/unit/tools/test_sandbox_outline.py.
"""

from collections.abc import Sequence

from pydantic import Field, JsonValue

from reprise.tools.access import SandboxDoor
from reprise.tools.argument_schema import Arguments
from reprise.tools.outline import Outline, outline
from reprise.tools.outline_compositions import Composition
from reprise.tools.outline_imports import Import
from reprise.tools.outline_symbols import Symbol
from reprise.tools.sandbox_tool import PATH_CHARS_MAX, sandbox_tool
from reprise.tools.syntax import SyntaxFault
from reprise.tools.syntax_tree import SyntaxRefusal
from reprise.tools.text_edit import content_hash
from reprise.tools.tool import Result, items_within, refusal

NAME_CHARS_MAX = 120
"""A longer name is cut."""

NAMES_MAX = 40
"""Most names of one import that are shown."""

LIST_CHARS_MAX = 5_000
"""The JSON of each list is cut after so many characters."""


class OutlineArguments(Arguments):
    """Arguments of GetSandboxFileOutline."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox of a TypeScript or JavaScript file, such as `src/Root.tsx`."""


def get_sandbox_file_outline(arguments: OutlineArguments, door: SandboxDoor) -> Result:
    """Return what a file imports, exports, declares and registers, with the lines."""
    path = arguments.path
    data = door.files.read(path)
    found = outline(data, path)
    if isinstance(found, SyntaxRefusal):
        return refusal(found.code, f"{path!r}: {found.error}", path=path)
    result: Result = {
        "ok": True,
        "path": path,
        "hash": content_hash(data),
        "totalLines": found.total_lines,
        "language": found.language,
    }
    cut: list[JsonValue] = []
    for name, rows in _lists(found).items():
        shown = items_within(rows, LIST_CHARS_MAX)
        if shown or name in _ALWAYS:
            result[name] = shown
        if len(shown) < found.totals.get(name, len(rows)):
            cut.append(name)
    if found.errors:
        result["syntaxErrors"] = [shown_fault(fault) for fault in found.faults]
        result["note"] = "the file has syntax errors; something may be missing here"
    if cut:
        result["cut"] = cut
    return result


def shown_fault(fault: SyntaxFault) -> dict[str, JsonValue]:
    """Return a syntax error as answers have it."""
    return {"line": fault.line, "column": fault.column, "error": _short(fault.text)}


OUTLINE = sandbox_tool(
    "GetSandboxFileOutline",
    "Get the outline of a TypeScript or JavaScript file of the sandbox: imports, exports and other "
    "declarations at top level, and the ids of its Remotion compositions, with their lines. Use it "
    "to find what to read before you read. Lists that were cut are named in `cut`.",
    OutlineArguments,
    get_sandbox_file_outline,
    "1",
)

_ALWAYS = ("imports", "exports", "compositions")
"""Lists that are shown when they are empty too."""


def _lists(found: Outline) -> dict[str, Sequence[JsonValue]]:
    return {
        "imports": [_import(one) for one in found.imports],
        "exports": [_symbol(one) for one in found.exports],
        "commonjs": [_symbol(one) for one in found.commonjs],
        "declared": [_symbol(one) for one in found.declared],
        "compositions": [_composition(one) for one in found.compositions],
    }


def _import(one: Import) -> JsonValue:
    names: list[JsonValue] = [
        _short(name.name if name.local == name.name else f"{name.name} as {name.local}")
        for name in one.names[:NAMES_MAX]
    ]
    if len(one.names) > NAMES_MAX:
        names.append(f"… and {len(one.names) - NAMES_MAX} more")
    shown: dict[str, JsonValue] = {"line": one.line, "from": _short(one.source), "names": names}
    return {**shown, "typeOnly": True} if one.type_only else shown


def _symbol(one: Symbol) -> JsonValue:
    shown: dict[str, JsonValue] = {
        "name": _short(one.name),
        "kind": one.kind,
        "line": one.line,
        "startLine": one.start_line,
        "endLine": one.end_line,
    }
    if one.local:
        shown["local"] = _short(one.local)
    if one.source:
        shown["from"] = _short(one.source)
    return shown


def _composition(one: Composition) -> JsonValue:
    shown: dict[str, JsonValue] = {
        "id": None if one.id is None else _short(one.id),
        "kind": one.kind,
        "line": one.line,
        "endLine": one.end_line,
    }
    if one.dynamic:
        shown |= {"dynamic": True, "idAsWritten": _short(one.raw)}
    if one.folders:
        shown["folders"] = [_short(folder) for folder in one.folders[:NAMES_MAX]]
    return shown


def _short(text: str) -> str:
    return text if len(text) <= NAME_CHARS_MAX else f"{text[: NAME_CHARS_MAX - 1]}…"
