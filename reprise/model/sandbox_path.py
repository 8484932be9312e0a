"""Which paths a sandbox has: the rules that need no disk, the same for every adapter.

A path that these rules refuse names no file of a sandbox: no tool reads or writes it, no listing
shows it, no snapshot holds it, also where a program put such a file into the folder.

Source: specification E8; research/agents.md, section 1, cases 35 and 36.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from reprise.errors import SandboxRefused
from reprise.model.sandbox import SandboxFault, SandboxLimits

PATH_BYTES_MAX = 1000
"""With the sandbox's own folder before it, some systems take no more than 1,024."""
NAME_BYTES_MAX = 255
"""The limit of a file name on the usual file systems."""
FOLDERS_MAX = 32
"""How deep folders lie in each other; each one on the way to a file is held open."""
PART_PREFIX = ".part-"
"""Begins the name of a file that is being written; no path may hold one."""
NO_SUCH_FILE = "there is no such file"
"""In the message where nothing is at a path that could hold a file."""
UNLISTED_NAMES = frozenset({"node_modules", ".git"})
"""No part of a sandbox, in any letter case: what is installed, and what runs by itself."""

_DRIVE = re.compile(r"[A-Za-z]:")
_REMEDY = "use a relative path with forward slashes, such as 'src/Root.tsx'"


def checked_path(path: str) -> tuple[str, ...]:
    """Return a path's names, folders first; `./` and doubled slashes are gone.

    Raises:
        SandboxRefused: `bad_path`; says what is wrong and what to write.
    """
    problem = _path_problem(path)
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    problem = problem or (None if names else "it names no file")
    problem = problem or next(filter(None, map(name_problem, names)), None)
    if problem is None and len(names) > FOLDERS_MAX + 1:
        problem = f"it lies more than {FOLDERS_MAX} folders deep"
    if problem:
        raise refused(path, SandboxFault.BAD_PATH, f"{problem}; {_REMEDY}")
    return names


def plain_path(path: str) -> str:
    """Return a path as listings show it, without `./` and doubled slashes.

    Raises:
        SandboxRefused: `bad_path`.
    """
    return joined(checked_path(path))


def name_problem(name: str) -> str | None:
    """Return why no path of a sandbox may hold this name of a file or folder, or None."""
    if name in ("", ".", ".."):
        return f"it has the part {name!r}"
    try:
        size_bytes = len(name.encode())
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    if size_bytes > NAME_BYTES_MAX:
        return f"a name in it has more than {NAME_BYTES_MAX} bytes"
    if "\\" in name or "/" in name:
        return "it holds a backslash"
    if _DRIVE.match(name):
        return "a name in it begins like a drive's"
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name):
        return "it holds a control character"
    if name != name.strip() or name.endswith("."):
        return "a name in it begins or ends with a blank, or ends with a dot"
    if name.startswith(PART_PREFIX):
        return f"a name in it begins with {PART_PREFIX!r}, which marks unfinished files"
    if _folded(name) in UNLISTED_NAMES:
        return f"{name!r} is no part of the sandbox"
    return None


def clash(name: str, others: Iterable[str]) -> str | None:
    """Return another name that some file systems take for the same as this one, or None."""
    folded = _folded(name)
    return next((other for other in others if other != name and _folded(other) == folded), None)


def shown(path: str) -> str:
    """Return a path for a message: quoted, without what cannot be printed, not endless."""
    return ascii(path[:200]) if any(map(_is_odd, path)) else repr(path[:200])


def refused(path: str, fault: SandboxFault, problem: str) -> SandboxRefused:
    """Return the refusal of a path: the path, what is wrong, what to do."""
    return SandboxRefused(f"{shown(path)}: {problem}", code=fault)


def not_found(path: str) -> SandboxRefused:
    """Return the refusal of a path at which there is no file."""
    problem = f"{NO_SUCH_FILE}; list the files, or write it first"
    return refused(path, SandboxFault.NOT_FOUND, problem)


def stale(path: str) -> SandboxRefused:
    """Return the refusal of a file that is not what it was."""
    return refused(path, SandboxFault.STALE, "it was changed meanwhile; read it again")


def is_folder(path: str) -> SandboxRefused:
    """Return the refusal of a path that names a folder."""
    return refused(path, SandboxFault.IS_FOLDER, "it is a folder; name a file in it")


def under_file(path: str, file: str) -> SandboxRefused:
    """Return the refusal of a path on whose way a file is."""
    problem = f"there is none: {shown(file)} is a file, not a folder"
    return refused(path, SandboxFault.NOT_FOUND, problem)


def case_clash(path: str, other: str) -> SandboxRefused:
    """Return the refusal of a new path beside which another of almost this name is."""
    problem = f"{shown(other)} is there, and differs by letter case alone; use that name"
    return refused(path, SandboxFault.CASE_CLASH, problem)


def check_size(path: str, size_bytes: int, size_bytes_max: int) -> None:
    """Check how large a file is, or would be.

    Raises:
        SandboxRefused: `too_large`.
    """
    if size_bytes > size_bytes_max:
        problem = f"it has more than {size_bytes_max:,} bytes; work on a smaller file"
        raise refused(path, SandboxFault.TOO_LARGE, problem)


def check_room(entries: int, size_bytes: int, limits: SandboxLimits) -> None:
    """Check how large a sandbox is, or would be.

    Args:
        entries: Its files, folders and links.
        size_bytes: All its files together.
        limits: What they may come to.

    Raises:
        SandboxRefused: `too_large`.
    """
    if entries > limits.entries_max:
        message = (
            f"the sandbox has more than {limits.entries_max:,} files, folders and links; "
            "remove some, or write into files that are there"
        )
        raise SandboxRefused(message, code=SandboxFault.TOO_LARGE)
    if size_bytes > limits.tree_bytes_max:
        message = (
            f"the files of the sandbox have more than {limits.tree_bytes_max:,} bytes together; "
            "remove some, or write less"
        )
        raise SandboxRefused(message, code=SandboxFault.TOO_LARGE)


def joined(names: Sequence[str]) -> str:
    """Return the path of names."""
    return "/".join(names)


def _path_problem(path: str) -> str | None:
    if not path:
        return "it is empty"
    if len(path) > PATH_BYTES_MAX or len(path.encode(errors="replace")) > PATH_BYTES_MAX:
        return f"it has more than {PATH_BYTES_MAX} bytes"
    if path.startswith("/"):
        return "it is absolute"
    return "it ends with a slash, as a folder's would" if path.endswith("/") else None


def _folded(name: str) -> str:
    # Some file systems skip invisible characters when they compare names (CVE-2014-9390).
    name = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _is_odd(character: str) -> bool:
    return not character.isprintable()
