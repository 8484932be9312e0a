"""Tools of the group ProjectRead: list a project's files, read its documents.

Each says when its result was cut and how to get the rest.

To add a tool: its function, its row in `TOOLS` here and in catalog.py, and a case in
tests/unit/tools/test_project_read.py.

Source: specification A2, W8.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from reprise.model.conversation import ProjectDocument, ToolSchema
from reprise.model.model_errors import did_you_mean
from reprise.model.project import MediaKind, ProjectFile
from reprise.tools.access import ToolAccess
from reprise.tools.tool import RESULT_CHARS_MAX, Tool, cut_text, failure, lines_within, whole

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


def list_project_files(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Return the files of the project, by name."""
    kind = arguments.get("kind")
    offset = whole(arguments.get("offset"), 0)
    files = [file for file in access.files() if kind is None or file.media_kind.value == kind]
    readable = set(access.document_names())
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


def read_project_file(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Return lines of a document."""
    name = str(arguments.get("name", ""))
    document = access.document(name)
    if document is None:
        return failure(_why_unreadable(name, access))
    lines = document.text.split("\n")
    first = whole(arguments.get("start_line"), 1)
    if first > len(lines):
        return failure(f"{name!r} has {len(lines)} lines; start_line {first} is behind its end")
    count = whole(arguments.get("line_count"), LINES_MAX)
    taken = lines_within(lines[first - 1 : first - 1 + count])
    last = first - 1 + len(taken)
    whole_text = "\n".join(taken)
    text = cut_text(whole_text)
    result: dict[str, JsonValue] = {
        "ok": True,
        "name": name,
        "start_line": first,
        "end_line": last,
        "total_lines": len(lines),
        "text": text,
        "cut": last < len(lines) or text != whole_text,
    }
    if last < len(lines):
        result["next_start_line"] = last + 1
    notes = _shortened(document, access)
    if text != whole_text:
        notes += [f"line {last} is longer than {RESULT_CHARS_MAX} characters; its end is left out"]
    if notes:
        result["note"] = "; ".join(notes)
    return result


TOOLS = (Tool(LIST_FILES, "1", list_project_files), Tool(READ_FILE, "2", read_project_file))
"""The group's tools."""


def _file_row(file: ProjectFile, readable: bool) -> JsonValue:
    return {
        "name": file.name,
        "kind": file.media_kind.value,
        "size_bytes": file.size_bytes,
        "readable": readable,
    }


def _why_unreadable(name: str, access: ToolAccess) -> str:
    file = next((each for each in access.files() if each.name == name), None)
    if file is None:
        hint = (
            did_you_mean(name, access.document_names()) or "; call list_project_files for the names"
        )
        return f"there is no file {name!r}{hint}"
    if file.media_kind in {MediaKind.VIDEO, MediaKind.AUDIO}:
        return f"{name!r} is {file.media_kind.value}; use the footage analysis in the input"
    return f"{name!r} ({file.media_kind.value}) holds no text that can be read; go on without it"


def _shortened(document: ProjectDocument, access: ToolAccess) -> list[str]:
    """Return a note when the document's text was cut before it came here."""
    file = next((each for each in access.files() if each.name == document.name), None)
    size = len(document.text.encode(errors="replace"))
    if file is None or size + 4 >= file.size_bytes:
        return []
    return [f"only the first {size} of {file.size_bytes} bytes of this file can be read"]
