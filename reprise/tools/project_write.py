"""Tools of the group ProjectWrite: create or replace a document of the project.

Footage is never written over: the name of a document ends as documents do, and a file of another
kind keeps its name.

Source: specification A2, C5.
"""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue

from reprise.errors import BadInput
from reprise.model.conversation import ToolSchema
from reprise.tools.access import ToolAccess
from reprise.tools.tool import Tool, failure

TEXT_CHARS_MAX = 80_000
"""Longest text of one writing; the arguments of a call hold a little more."""

NAME_CHARS_MAX = 200

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that a name must not hold: two names would look alike."""

ENDINGS = (".csv", ".json", ".markdown", ".md", ".srt", ".txt", ".vtt", ".yaml", ".yml")
"""How a document's name may end."""

_PART = re.compile(r"[^/\\:*?\"<>|]+")

WRITE_FILE = ToolSchema(
    name="write_project_file",
    description=(
        "Create a document of the project, or replace the whole text of the one of this name. "
        "Later steps and later runs read it; footage cannot be written."
    ),
    parameters={
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "text"],
        "properties": {
            "name": {
                "type": "string",
                "minLength": 1,
                "maxLength": NAME_CHARS_MAX,
                "description": (
                    "Name in the project, such as `notes/ideas.md`; it ends in one of "
                    f"{', '.join(ENDINGS)}."
                ),
            },
            "text": {
                "type": "string",
                "maxLength": TEXT_CHARS_MAX,
                "description": "The whole text.",
            },
        },
    },
)


def write_project_file(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Create or replace a document."""
    name, text = str(arguments["name"]), str(arguments["text"])
    problem = _name_problem(name) or _text_problem(text)
    if problem is not None:
        return failure(problem)
    name = _as_kept(name, access)
    try:
        file = access.write(name, text)
    except BadInput as error:
        return failure(str(error))
    return {"ok": True, "name": name, "size_bytes": file.size_bytes}


TOOLS = (Tool(WRITE_FILE, "2", write_project_file),)
"""The group's tools."""


def _as_kept(name: str, access: ToolAccess) -> str:
    """Return the name of the file that is meant: one character may be written in two ways."""
    wanted = unicodedata.normalize("NFC", name)
    files = [file.name for file in access.files()]
    if name in files:
        return name
    return next((each for each in files if unicodedata.normalize("NFC", each) == wanted), wanted)


def _name_problem(name: str) -> str | None:
    """Return why a name cannot be used, with what to do; None when it can."""
    unseen = next((char for char in name if unicodedata.category(char) in _UNSEEN), None)
    if unseen is not None:
        return (
            f"the name {ascii(name)[:100]} cannot be used: U+{ord(unseen):04X} is a control or "
            "format character; leave it out"
        )
    parts = name.split("/")
    for part in parts:
        if not _PART.fullmatch(part) or part.startswith(".") or part.strip() != part:
            return (
                f"the name {name[:100]!r} cannot be used: each part between `/` needs a letter "
                'or digit first, and holds none of \\ : * ? " < > |; take a name such as '
                "`notes/ideas.md`"
            )
    if PurePosixPath(parts[-1]).suffix.lower() not in ENDINGS:
        return f"the name {name[:100]!r} has to end in one of {', '.join(ENDINGS)}"
    return None


def _text_problem(text: str) -> str | None:
    if "\0" in text:
        return "the text holds NUL characters; leave them out"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "the text holds half of a surrogate pair; write the whole character"
    return None
