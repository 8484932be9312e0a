"""Tools of the group SandboxBrowse: list and read the files of a sandbox, whole or by lines.

A read gives the hash of the file's bytes and remembers it, so that a change of a file that is not
what the agent read any more is refused.

Source: specification E. Tests: tests/unit/tools/test_sandbox_browse.py.
"""

from pydantic import Field

from reprise.tools.access import SandboxDoor
from reprise.tools.argument_schema import Arguments
from reprise.tools.sandbox_tool import PATH_CHARS_MAX, sandbox_tool
from reprise.tools.tool import Result, items_within

FILES_MAX = 200
"""Most files in one listing."""


class ListArguments(Arguments):
    """Arguments of ListSandboxFiles."""

    folder: str = Field(default="", max_length=PATH_CHARS_MAX)
    """Only files in this folder and the folders in it, such as `src`; left out: all."""
    offset: int = Field(default=0, ge=0)
    """How many files to pass over; a cut listing names the next."""


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


LIST_FILES = sandbox_tool(
    "ListSandboxFiles",
    "List the files of the sandbox by path, with their sizes. `node_modules` and `.git` are left "
    "out. A listing that was cut says with which offset to go on.",
    ListArguments,
    list_sandbox_files,
    "1",
)

TOOLS = (LIST_FILES,)
"""The group's tools."""
