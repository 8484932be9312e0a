"""Tools of the group ProjectRead: list, search and read a project's files and transcripts.

Each says when its result was cut and how to get the rest.

To add a tool: its function, its row in `TOOLS` here and in catalog.py, and a case in
tests/unit/tools/test_project_tools.py.

Source: specification A2, W8.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from reprise.context.document_text import CUE_ENDINGS, why_unread
from reprise.errors import BadInput
from reprise.model.conversation import ToolSchema
from reprise.model.model_errors import did_you_mean
from reprise.model.project import FileStatus, MediaKind
from reprise.model.search import Passage, SearchHit
from reprise.tools.access import ProjectDoor, ToolAccess
from reprise.tools.tool import (
    RESULT_CHARS_MAX,
    Tool,
    cut_text,
    failure,
    items_within,
    lines_within,
    whole,
)

FILES_MAX = 200
"""Most files in one listing."""

LINES_MAX = 400
"""Most lines in one reading."""

HITS_MAX = 30
"""Most hits of one search."""

SUMMARY_CHARS_MAX = 240
"""A summary in a listing is cut after so many characters."""

_TEXTUAL = frozenset({MediaKind.DOCUMENT, MediaKind.VIDEO, MediaKind.AUDIO})
_SPEECH = frozenset({MediaKind.VIDEO, MediaKind.AUDIO})

_NAME: dict[str, JsonValue] = {
    "type": "string",
    "description": "Name as list_project_files gives it.",
}

LIST_FILES = ToolSchema(
    name="list_project_files",
    description=(
        "List the project's files with kind, size and, where there is one, a summary. Documents "
        "(`readable`) can be read with read_project_file, what is said in footage "
        "(`has_transcript`) with read_project_transcript. `not_indexed` says why a text can be "
        "neither read nor searched."
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

SEARCH_FILES = ToolSchema(
    name="search_project_files",
    description=(
        "Find passages in the project's documents and transcripts that hold words of a query, the "
        "best first. A hit says the file and its lines, or from when to when it is said."
    ),
    parameters={
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 500,
                "description": "Words to look for; there is no syntax.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": HITS_MAX,
                "description": "Most hits; 10 when left out.",
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
            "name": _NAME,
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

READ_TRANSCRIPT = ToolSchema(
    name="read_project_transcript",
    description=(
        "Read what is said in a video, an audio file or a subtitle file, by time: sentences with "
        "their times in seconds. A result that was cut says with which offset to go on."
    ),
    parameters={
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": _NAME,
            "start_seconds": {
                "type": "number",
                "minimum": 0,
                "description": "From when; the beginning when left out.",
            },
            "end_seconds": {
                "type": "number",
                "minimum": 0,
                "description": "Until when; the end when left out.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "How many sentences of that time to pass over.",
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
    rows = {row.name: row for row in (access.project.rows if access.project else ())}
    listed: list[JsonValue] = []
    for file in files[offset : offset + FILES_MAX]:
        shown: dict[str, JsonValue] = {
            "name": file.name,
            "kind": file.media_kind.value,
            "size_bytes": file.size_bytes,
            "readable": file.name in readable,
        }
        why = why_unread(file)
        if why is not None:
            shown["not_indexed"] = why
        row = rows.get(file.name)
        if row is not None and row.content_digest == file.content_digest:
            if file.media_kind in _SPEECH and row.passage_count:
                shown["has_transcript"] = True
            if row.summary:
                shown["summary"] = cut_text(row.summary, SUMMARY_CHARS_MAX)
        listed.append(shown)
    page = items_within(listed)
    result: dict[str, JsonValue] = {"ok": True, "total": len(files), "files": page}
    return _paged(result, "next_offset", offset + len(page), len(files))


def search_project_files(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Return the passages that hold words of a query."""
    if access.project is None:
        return failure("there is no search here; list the files and read them")
    limit = whole(arguments.get("limit"), 10)
    # Half of a surrogate pair is no word, and could not be sent to who answers.
    query = str(arguments["query"]).encode(errors="replace").decode()
    given = access.project.search(query, limit)
    answer = given.within({file.name: file.content_digest for file in access.files()})
    hits = items_within([_hit(hit) for hit in answer.hits])
    result: dict[str, JsonValue] = {
        "ok": True,
        "total": answer.total,
        "hits": hits,
        "cut": answer.total > len(hits),
    }
    notes = []
    if answer.total > len(hits):
        notes.append(f"the best {len(hits)} of {answer.total}; use rarer words, or another limit")
    stale = given.total - answer.total
    if stale:
        notes.append(f"{stale} left out, of files that were replaced or removed since")
    unknown = _unsearched(access, access.project)
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        notes.append(f"not searched, since not indexed: {', '.join(unknown[:5])}{more}")
    if notes:
        result["note"] = "; ".join(notes)
    return result


def read_project_file(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Return lines of a document."""
    name = str(arguments["name"])
    try:
        document = access.text(name)
    except BadInput as error:
        return failure(f"{name!r} cannot be read: {error}")
    if document is None:
        return failure(_why_unreadable(name, access))
    lines = document.split("\n")
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
    if text != whole_text:
        result["note"] = (
            f"line {last} takes more than {RESULT_CHARS_MAX} characters; its end is left out, "
            "search_project_files finds words in it"
        )
    return result


def read_project_transcript(
    arguments: Mapping[str, JsonValue], access: ToolAccess
) -> dict[str, JsonValue]:
    """Return the sentences of a transcript that are said within a time."""
    name = str(arguments["name"])
    known = access.indexed(name)
    said = [
        passage for passage in (known.passages if known else ()) if passage.end_seconds is not None
    ]
    if not said:
        return failure(_why_unsaid(name, access, known.note if known else ""))
    start = _number(arguments.get("start_seconds"), 0.0)
    end = _number(arguments.get("end_seconds"), float("inf"))
    within = [passage for passage in said if _overlaps(passage, start, end)]
    offset = whole(arguments.get("offset"), 0)
    page = items_within([_sentence(passage) for passage in within[offset : offset + LINES_MAX]])
    result: dict[str, JsonValue] = {
        "ok": True,
        "name": name,
        "total": len(within),
        "ends_seconds": max(passage.end_seconds or 0.0 for passage in said),
        "sentences": page,
    }
    return _paged(result, "next_offset", offset + len(page), len(within))


TOOLS = (
    Tool(LIST_FILES, "3", list_project_files),
    Tool(SEARCH_FILES, "3", search_project_files),
    Tool(READ_FILE, "4", read_project_file),
    Tool(READ_TRANSCRIPT, "2", read_project_transcript),
)
"""The group's tools."""


def _unsearched(access: ToolAccess, project: ProjectDoor) -> list[str]:
    """Return the files with text that a search does not look into as they are now."""
    textual = [
        file
        for file in access.files()
        if file.media_kind in _TEXTUAL or why_unread(file) is not None
    ]
    if not project.searches_rows:
        return [file.name for file in textual if file.indexing_status is not FileStatus.DONE]
    held = {row.name: row.content_digest for row in project.rows}
    # What the agent wrote is indexed as it is written.
    held |= {file.name: file.content_digest for file in textual if file.name in access.written}
    return [file.name for file in textual if held.get(file.name) != file.content_digest]


def _paged(
    result: dict[str, JsonValue], name: str, reached: int, total: int
) -> dict[str, JsonValue]:
    result["cut"] = reached < total
    if reached < total:
        result[name] = reached
    return result


def _hit(hit: SearchHit) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {"name": hit.name, "snippet": hit.snippet}
    if hit.start_line is not None:
        shown["start_line"] = hit.start_line
        shown["end_line"] = hit.end_line
    if hit.start_seconds is not None:
        shown["start_seconds"] = hit.start_seconds
        shown["end_seconds"] = hit.end_seconds
    return shown


def _sentence(passage: Passage) -> dict[str, JsonValue]:
    return {
        "start_seconds": passage.start_seconds,
        "end_seconds": passage.end_seconds,
        "text": passage.text,
    }


def _overlaps(passage: Passage, start: float, end: float) -> bool:
    return (passage.end_seconds or 0.0) >= start and (passage.start_seconds or 0.0) <= end


def _why_unreadable(name: str, access: ToolAccess) -> str:
    file = access.file(name)
    if file is None:
        return _unknown(name, access.document_names())
    if file.media_kind in _SPEECH:
        return (
            f"{name!r} is {file.media_kind.value}; read_project_transcript reads what is said in "
            "it, the footage analysis tells its shots"
        )
    why = why_unread(file)
    if why is not None:
        return f"{name!r} cannot be read: {why}; go on without it"
    return f"{name!r} ({file.media_kind.value}) holds no text that can be read; go on without it"


def _why_unsaid(name: str, access: ToolAccess, note: str) -> str:
    file = access.file(name)
    if file is None:
        return _unknown(name, [each.name for each in access.files()])
    beside = _subtitles(name, access)
    if beside and file.media_kind in _SPEECH:
        return f"{name!r} has no transcript of its own; read the subtitles {beside!r}"
    if note:
        return f"{name!r} has no transcript: {note}"
    if file.media_kind in _SPEECH:
        return f"{name!r} has no transcript yet; a VideoAnalyze step makes it"
    return f"{name!r} has no times; read it with read_project_file"


def _subtitles(name: str, access: ToolAccess) -> str | None:
    """Return the subtitle file that stands beside footage of this name."""
    stem = name.rpartition(".")[0]
    wanted = {f"{stem}{ending}".lower() for ending in CUE_ENDINGS}
    return next((file.name for file in access.files() if file.name.lower() in wanted), None)


def _unknown(name: str, known: Sequence[str]) -> str:
    hint = did_you_mean(name, known) or "; call list_project_files for the names"
    return f"there is no file {name!r}{hint}"


def _number(value: JsonValue, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default
