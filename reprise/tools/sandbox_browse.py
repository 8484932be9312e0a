"""Tools of the group SandboxBrowse: list and read the files of a sandbox, whole or by lines.

A read gives the hash of the file's bytes and remembers it, so that a change of a file that is not
what the agent read any more is refused; a part that was read counts as the whole.

The names of tools that the setting `sandbox_edit_tools` withholds stand nowhere but in their own
rows.

Source: specification E. Tests: tests/unit/tools/test_sandbox_browse.py.
"""

from pydantic import Field

from reprise.tools.access import SandboxDoor
from reprise.tools.argument_schema import Arguments
from reprise.tools.line_endings import shown_lines
from reprise.tools.sandbox_lines import LINE_CHARS_MAX, numbered
from reprise.tools.sandbox_tool import PATH_CHARS_MAX, sandbox_tool
from reprise.tools.text_edit import EditRefusal, content_hash, text_of
from reprise.tools.tool import (
    RESULT_CHARS_MAX,
    Result,
    cut_text,
    items_within,
    lines_within,
    refusal,
)

FILES_MAX = 200
"""Most files in one listing."""

LINES_MAX = 400
"""Most lines in one reading by lines."""

LINES_DEFAULT = 200


class ListArguments(Arguments):
    """Arguments of ListSandboxFiles."""

    folder: str = Field(default="", max_length=PATH_CHARS_MAX)
    """Only files in this folder and the folders in it, such as `src`; left out: all."""
    offset: int = Field(default=0, ge=0)
    """How many files to pass over; a cut listing names the next."""


class ReadArguments(Arguments):
    """Arguments of ReadSandboxFile."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox, such as `src/Root.tsx`."""
    offset: int = Field(default=0, ge=0)
    """First character, from 0; a cut reading names the next."""


class LinesArguments(Arguments):
    """Arguments of ReadSandboxFileLines."""

    path: str = Field(max_length=PATH_CHARS_MAX)
    """Path in the sandbox, such as `src/Root.tsx`."""
    start_line: int = 1
    """First line, from 1."""
    line_count: int = LINES_DEFAULT
    """How many lines, at most 400; 200 when left out."""


def list_sandbox_files(arguments: ListArguments, door: SandboxDoor) -> Result:
    """Return the files by path."""
    folder = arguments.folder.removeprefix("./").strip("/")
    inside = "" if folder in ("", ".") else f"{folder}/"
    files = [file for file in door.files.list() if file.path.startswith(inside)]
    taken = files[arguments.offset :][:FILES_MAX]
    page = items_within([{"path": file.path, "sizeBytes": file.size_bytes} for file in taken])
    reached = arguments.offset + len(page)
    result: Result = {
        "ok": True,
        "total": len(files),
        "files": page,
        "cut": reached < len(files),
    }
    if reached < len(files):
        result["nextOffset"] = reached
    if inside and not files:
        result["note"] = f"no file's path begins with {inside!r}; list all without `folder`"
    return result


def read_sandbox_file(arguments: ReadArguments, door: SandboxDoor) -> Result:
    """Return a file's text, exactly, as far as it fits."""
    read = _read(arguments.path, door)
    if isinstance(read, dict):
        return read
    text, result = read
    offset = arguments.offset
    shown = text[offset:][:RESULT_CHARS_MAX]
    fits = cut_text(shown)
    if offset + len(fits) < len(text):
        # Whole lines, where there are any.
        fits = fits[: fits.rfind("\n") + 1] or fits
    reached = offset + len(fits)
    result |= {"totalChars": len(text), "text": fits, "cut": reached < len(text)}
    if reached < len(text):
        result["nextOffset"] = reached
    if offset > len(text):
        result["note"] = f"the file has {len(text)} characters; offset {offset} is behind its end"
    return result


def read_sandbox_file_lines(arguments: LinesArguments, door: SandboxDoor) -> Result:
    """Return lines of a file with their numbers."""
    read = _read(arguments.path, door)
    if isinstance(read, dict):
        return read
    text, result = read
    lines = shown_lines(text)
    total, notes = len(lines), []
    first = min(max(arguments.start_line, 1), max(total, 1))
    count = min(max(arguments.line_count, 1), LINES_MAX)
    if first != arguments.start_line:
        notes.append(f"startLine {arguments.start_line} is not in the file, {first} was taken")
    if count != arguments.line_count:
        notes.append(f"lineCount is between 1 and {LINES_MAX}, {count} was taken")
    shown = lines_within(numbered(lines[first - 1 :][:count], first))
    last = first - 1 + len(shown)
    if any(len(line) > LINE_CHARS_MAX for line in lines[first - 1 : last]):
        notes.append(
            f"lines of more than {LINE_CHARS_MAX} characters are cut, `[cut: …]` says so and is "
            "not in the file; ReadSandboxFile with an offset shows them whole"
        )
    if total == 0:
        notes.append("the file is empty")
    result |= {
        "startLine": first,
        "endLine": last,
        "text": "\n".join(shown),
        "cut": last < total,
    }
    if last < total:
        result["nextStartLine"] = last + 1
    if notes:
        result["note"] = "; ".join(notes)
    return result


TOOLS = (
    sandbox_tool(
        "ListSandboxFiles",
        "List the files of the sandbox by path, with their sizes. `node_modules` and `.git` are "
        "left out. A listing that was cut says with which offset to go on.",
        ListArguments,
        list_sandbox_files,
        "1",
    ),
    sandbox_tool(
        "ReadSandboxFile",
        "Read a text file of the sandbox, exactly as it is. A reading that was cut says with which "
        "offset to go on. `hash` names the content that was read.",
        ReadArguments,
        read_sandbox_file,
        "1",
    ),
    sandbox_tool(
        "ReadSandboxFileLines",
        "Read some lines of a text file of the sandbox, for a large file of which a part matters. "
        "Each line begins with its number and `| `, which are not in the file: leave them out when "
        "you copy. `hash` names the content that was read.",
        LinesArguments,
        read_sandbox_file_lines,
        "1",
    ),
)
"""The group's tools."""


def _read(path: str, door: SandboxDoor) -> tuple[str, Result] | Result:
    """Return a file's text and the beginning of the answer, or why it cannot be read."""
    data = door.files.read(path)
    text = text_of(data)
    if isinstance(text, EditRefusal):
        return refusal(text.code, f"{path!r}: {text.error}", path=path)
    named = content_hash(data)
    door.saw(path, named)
    return text, {"ok": True, "path": path, "hash": named, "totalLines": len(shown_lines(text))}
