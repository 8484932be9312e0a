"""What rules do with a sandbox's files: find the root file, read, write, change.

Each is a part of a rule (`yield from`). A refusal is tried once more from a fresh read, then told:
what could not be done goes into the rule's answer, in the tool's own words. Where targeted edits
are withheld, a file is read whole and written whole.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import JsonValue

from reprise.agents.heuristics.dialogue import Answer, Ask, Desk
from reprise.agents.heuristics.material import rows
from reprise.agents.heuristics.words import clip

LIST = "ListSandboxFiles"
READ = "ReadSandboxFile"
READ_LINES = "ReadSandboxFileLines"
OUTLINE = "GetSandboxFileOutline"
WRITE = "WriteSandboxFile"
EDIT = "EditSandboxFile"
APPLY = "ApplySandboxFileEdits"
RENDER = "RenderComposition"

ATTEMPTS = 2
"""How often a change is tried, each time on what the file says then."""

LINES_MAX = 400
"""Lines of a ranged read."""

PAGES_MAX = 6
"""Readings of one file that is read whole."""

SOURCES_MAX = 12
"""Source files that are looked through."""

PROBLEMS_MAX = 6
PROBLEM_CHARS_MAX = 300

SOURCE = re.compile(r"\.[jt]sx?$")
COMPONENTS = re.compile(r"\.[jt]sx$")
ROOT = re.compile(r"(?:^|/)Root\.[jt]sx$")
ELEMENT_ID = re.compile(r"<(?:Composition|Still)\b[^>]*?\bid=[\"']([^\"']+)[\"']", re.DOTALL)
NUMBERED = re.compile(r"^ *\d+\| ?", re.MULTILINE)

T = TypeVar("T")
Part = Generator[Sequence[Ask], Sequence[Answer], T]
"""A part of a rule that gives a T."""


@dataclass
class Problems:
    """What a rule could not do."""

    found: list[str] = field(default_factory=list)
    """Each once, in their order."""

    def add(self, text: str) -> None:
        """Note one."""
        said = clip(text, PROBLEM_CHARS_MAX)
        if said not in self.found:
            self.found.append(said)

    def refused(self, ask: Ask, answer: Answer) -> None:
        """Note what a tool refused, in its own words."""
        path = ask.arguments.get("path") or ask.arguments.get("id") or ""
        self.add(f"{ask.tool} {path}: {reason_of(answer)}")

    @property
    def told(self) -> list[JsonValue]:
        """As many as an answer holds."""
        return [*self.found[:PROBLEMS_MAX]]


@dataclass(frozen=True)
class Root:
    """The file that lists the compositions."""

    path: str
    """Its path."""
    lines: Mapping[str, int]
    """Composition id → the line on which it begins, from 1, in the file's order."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The compositions."""
        return tuple(self.lines)


@dataclass(frozen=True)
class Edit:
    """A targeted edit."""

    old: str
    """Exact text of one place."""
    new: str
    """What stands there afterwards."""
    told: tuple[tuple[str | None, str], ...] = ()
    """For the answer: which composition (None: all), and what it changes."""


def reason_of(answer: Answer) -> str:
    """Return what a tool said when it refused."""
    code, error = answer.get("code"), answer.get("error")
    said = error if isinstance(error, str) else "it gave no reason"
    return f"{code}: {said}" if isinstance(code, str) else said


def is_ok(answer: Answer) -> bool:
    """Answer whether a tool did what it was asked."""
    return answer.get("ok") is True


def asked(ask: Ask) -> Part[Answer]:
    """Return the answer to one call."""
    (answer,) = yield [ask]
    return answer


def source_paths(problems: Problems) -> Part[list[str]]:
    """Return the paths of the sandbox's source files."""
    ask = Ask(LIST)
    listed = yield from asked(ask)
    if not is_ok(listed):
        problems.refused(ask, listed)
    paths = [path for row in rows(listed, "files") if isinstance(path := row.get("path"), str)]
    return [path for path in paths if SOURCE.search(path)]


def root_file(desk: Desk, problems: Problems) -> Part[Root | None]:
    """Return the file that lists the compositions; None when there is none."""
    paths = yield from source_paths(problems)
    named = [path for path in paths if ROOT.search(path)]
    candidates = (named or [path for path in paths if COMPONENTS.search(path)])[:SOURCES_MAX]
    if not candidates:
        problems.add("the sandbox holds no Remotion root file, so there are no compositions")
        return None
    tool = OUTLINE if OUTLINE in desk.tools else READ
    asks = [Ask(tool, {"path": path}) for path in candidates]
    answers = yield asks
    for ask, path, answer in zip(asks, candidates, answers, strict=True):
        if not is_ok(answer):
            problems.refused(ask, answer)
            continue
        lines = outlined_lines(answer) if tool == OUTLINE else _element_lines(text_of(answer))
        if lines:
            return Root(path, lines)
    problems.add(f"no composition is named in {', '.join(candidates)}")
    return None


def outlined_lines(answer: Answer) -> dict[str, int]:
    """Return composition id → line of an outline."""
    found: dict[str, int] = {}
    for row in rows(answer, "compositions"):
        name, line = row.get("id"), row.get("line")
        if isinstance(name, str) and isinstance(line, int) and not row.get("dynamic"):
            found.setdefault(name, line)
    return found


def exported_at(answer: Answer, name: str) -> int | None:
    """Return the line of an exported symbol in an outline; None when it is not exported."""
    for row in rows(answer, "exports"):
        line = row.get("line")
        if row.get("name") == name and isinstance(line, int):
            return line
    return None


def read_from(desk: Desk, path: str, line: int, problems: Problems) -> Part[str | None]:
    """Return a file's text from a line on, or all of it where ranges cannot be read."""
    if READ_LINES not in desk.tools:
        return (yield from _read_whole(path, problems))
    ask = Ask(READ_LINES, {"path": path, "startLine": line, "lineCount": LINES_MAX})
    answer = yield from asked(ask)
    if is_ok(answer):
        return NUMBERED.sub("", text_of(answer))
    problems.refused(ask, answer)
    return None


def written(path: str, text: str, problems: Problems) -> Part[bool]:
    """Write a file whole, and answer whether it is there now."""
    for attempt in range(ATTEMPTS):
        ask = Ask(WRITE, {"path": path, "content": text})
        answer = yield from asked(ask)
        if is_ok(answer):
            return True
        if attempt + 1 < ATTEMPTS:
            # A file from an earlier run is overwritten once it has been looked at.
            yield [Ask(READ, {"path": path})]
            continue
        problems.refused(ask, answer)
    return False


def changed(
    desk: Desk,
    path: str,
    line: int,
    edits_of: Callable[[str], Sequence[Edit]],
    problems: Problems,
) -> Part[Sequence[Edit] | None]:
    """Change a file by targeted edits, and return those that were made; None when refused.

    Args:
        desk: What the rule has before it.
        path: The file.
        line: From where on it is read.
        edits_of: Gets the text and returns the edits that it still needs.
        problems: What is refused goes here.
    """
    for attempt in range(ATTEMPTS):
        text = yield from read_from(desk, path, line, problems)
        if text is None:
            return None
        edits = edits_of(text)
        if not edits:
            return []
        ask = _change(desk, path, text, edits)
        answer = yield from asked(ask)
        if is_ok(answer):
            return edits
        if attempt + 1 == ATTEMPTS:
            problems.refused(ask, answer)
    return None


def text_of(answer: Answer) -> str:
    """Return the text of a read."""
    text = answer.get("text")
    return text if isinstance(text, str) else ""


def _read_whole(path: str, problems: Problems) -> Part[str | None]:
    """Return a file's whole text, page by page: what is written back must not lack its end."""
    text = ""
    for _ in range(PAGES_MAX):
        ask = Ask(READ, {"path": path, "offset": len(text)})
        answer = yield from asked(ask)
        if not is_ok(answer):
            problems.refused(ask, answer)
            return None
        text += text_of(answer)
        if not answer.get("cut"):
            return text
    problems.add(f"{path} is too long to be read whole: over {len(text)} characters")
    return None


def _change(desk: Desk, path: str, text: str, edits: Sequence[Edit]) -> Ask:
    if EDIT not in desk.tools:
        for edit in edits:
            text = text.replace(edit.old, edit.new, 1)
        return Ask(WRITE, {"path": path, "content": text})
    if len(edits) == 1:
        edit = edits[0]
        return Ask(EDIT, {"path": path, "oldText": edit.old, "newText": edit.new})
    hunks: list[JsonValue] = [{"oldText": edit.old, "newText": edit.new} for edit in edits]
    return Ask(APPLY, {"path": path, "edits": hunks})


def _element_lines(text: str) -> dict[str, int]:
    return {
        found.group(1): text.count("\n", 0, found.start()) + 1
        for found in ELEMENT_ID.finditer(text)
    }
