"""Tools of the group ProjectRead: list a project's files, read its documents.

Both are pure functions of the arguments and the agent's inputs. A result is JSON of at most about
`RESULT_CHARS_MAX` characters that says when it was cut and how to get the rest; an error is
`{"ok": false, "error": …}` and names the next action.

To add a tool: its function, its schema and its revision here, its row in catalog.py, and a case in
tests/unit/tools/test_project_read.py. Bump `REVISIONS` whenever the same arguments and inputs would
give another result.

Source: specification A2, W8.
"""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from reprise.model.conversation import AgentInputs, ProjectDocument, ToolSchema
from reprise.model.model_errors import did_you_mean
from reprise.model.project import MediaKind, ProjectFile

RESULT_CHARS_MAX = 20_000
"""A result's text is cut after this many characters."""

FILES_MAX = 200
"""Most files in one listing."""

LINES_MAX = 400
"""Most lines in one reading."""

LIST_FILES = ToolSchema(
    name="list_project_files",
    description=(
        "List the project's files with kind and size. Documents can be read with "
        "read_project_file; videos are described by the footage analysis."
    ),
    parameters={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "kind": {
                "type": "string",
                "enum": [kind.value for kind in MediaKind],
                "description": "Only files of this kind.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "How many files to pass over; a cut listing names the next.",
            },
        },
    },
)

READ_FILE = ToolSchema(
    name="read_project_file",
    description=(
        "Read the text of a project document, by lines. A result that was cut says with which "
        "start_line to go on."
    ),
    parameters={
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "Name as list_project_files gives it."},
            "start_line": {
                "type": "integer",
                "minimum": 1,
                "description": "First line, from 1.",
            },
            "line_count": {
                "type": "integer",
                "minimum": 1,
                "maximum": LINES_MAX,
                "description": f"How many lines; {LINES_MAX} when left out.",
            },
        },
    },
)

REVISIONS: Mapping[str, str] = {"list_project_files": "1", "read_project_file": "1"}
"""Tool → revision of what it answers, for the cache key (specification C2)."""


def list_project_files(arguments: Mapping[str, JsonValue], inputs: AgentInputs) -> JsonValue:
    """Return the files of the project, by name."""
    kind = arguments.get("kind")
    offset = _whole(arguments.get("offset"), 0)
    files = sorted(
        (file for file in inputs.files if kind is None or file.media_kind.value == kind),
        key=lambda file: file.name,
    )
    readable = {document.name for document in inputs.documents}
    page = files[offset : offset + FILES_MAX]
    result: dict[str, JsonValue] = {
        "ok": True,
        "total": len(files),
        "files": [_file_row(file, file.name in readable) for file in page],
        "cut": offset + len(page) < len(files),
    }
    if result["cut"]:
        result["next_offset"] = offset + len(page)
    return result


def read_project_file(arguments: Mapping[str, JsonValue], inputs: AgentInputs) -> JsonValue:
    """Return lines of a document."""
    name = str(arguments.get("name", ""))
    document = next((each for each in inputs.documents if each.name == name), None)
    if document is None:
        return {"ok": False, "error": _why_unreadable(name, inputs)}
    lines = document.text.split("\n")
    first = _whole(arguments.get("start_line"), 1)
    if first > len(lines):
        error = f"{name!r} has {len(lines)} lines; start_line {first} is behind its end"
        return {"ok": False, "error": error}
    count = _whole(arguments.get("line_count"), LINES_MAX)
    taken = _within(lines[first - 1 : first - 1 + count])
    last = first - 1 + len(taken)
    text = "\n".join(taken)[:RESULT_CHARS_MAX]
    result: dict[str, JsonValue] = {
        "ok": True,
        "name": name,
        "start_line": first,
        "end_line": last,
        "total_lines": len(lines),
        "text": text,
        "cut": last < len(lines) or len(text) < sum(map(len, taken)),
    }
    if last < len(lines):
        result["next_start_line"] = last + 1
    notes = _shortened(document, inputs)
    if len(text) == RESULT_CHARS_MAX:
        notes += [f"line {last} is longer than {RESULT_CHARS_MAX} characters; its end is left out"]
    if notes:
        result["note"] = "; ".join(notes)
    return result


FUNCTIONS: Mapping[str, Callable[[Mapping[str, JsonValue], AgentInputs], JsonValue]] = {
    "list_project_files": list_project_files,
    "read_project_file": read_project_file,
}
"""Tool → what it does."""


def _file_row(file: ProjectFile, readable: bool) -> JsonValue:
    return {
        "name": file.name,
        "kind": file.media_kind.value,
        "size_bytes": file.size_bytes,
        "readable": readable,
    }


def _within(lines: list[str]) -> list[str]:
    """Return as many of the lines as fit into a result, at least one."""
    size = 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if size > RESULT_CHARS_MAX:
            return lines[: max(at, 1)]
    return lines


def _why_unreadable(name: str, inputs: AgentInputs) -> str:
    file = next((each for each in inputs.files if each.name == name), None)
    if file is None:
        known = [document.name for document in inputs.documents]
        hint = did_you_mean(name, known) or "; call list_project_files for the names"
        return f"there is no file {name!r}{hint}"
    if file.media_kind in {MediaKind.VIDEO, MediaKind.AUDIO}:
        return f"{name!r} is {file.media_kind.value}; use the footage analysis in the input"
    return f"{name!r} ({file.media_kind.value}) holds no text that can be read; go on without it"


def _shortened(document: ProjectDocument, inputs: AgentInputs) -> list[str]:
    """Return a note when the document's text was cut before it came here."""
    file = next((each for each in inputs.files if each.name == document.name), None)
    size = len(document.text.encode(errors="replace"))
    if file is None or size + 4 >= file.size_bytes:
        return []
    return [f"only the first {size} of {file.size_bytes} bytes of this file can be read"]


def _whole(value: JsonValue, default: int) -> int:
    # JSON Schema takes 2.0 for an integer.
    return int(value) if isinstance(value, int | float) else default
