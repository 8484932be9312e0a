"""What a workspace begins with, and making it: a template's files, or those of a snapshot.

A template's links to files inside it become files of their own; what else leads somewhere or is no
file is refused, with what to do. `node_modules` and `.git` stay where they are.

Source: specification E10.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reprise.errors import BadInput
from reprise.model.sandbox import ENTRIES_MAX, TREE_BYTES_MAX, SandboxFile, SandboxTree
from reprise.model.sandbox_path import UNLISTED_NAMES, checked_path, name_problem


@dataclass(frozen=True)
class Beginning:
    """Files that a workspace begins with."""

    origin: str
    """Where they come from, for people."""
    tree: SandboxTree
    """The files."""
    read: Callable[[SandboxFile], bytes]
    """Gives the bytes of one."""


EMPTY = Beginning("nothing", SandboxTree(), lambda _file: b"")


def of_template(folder: Path) -> Beginning:
    """Return what a template gives.

    Raises:
        BadInput: There is no such folder, or something in it cannot be in a sandbox.
        OSError: It cannot be read.
    """
    where = f"template {folder.name!r}"
    if not folder.is_dir():
        message = f"{where}: there is no folder {str(folder)!r}; add it, or correct `sandbox`"
        raise BadInput(message)
    root = folder.resolve()
    files: list[SandboxFile] = []
    sources: dict[str, Path] = {}
    folders: set[PurePosixPath] = set()
    size_bytes = 0
    for path, source in _walked(root, where, ()):
        status = source.stat()
        size_bytes += status.st_size
        # Without the last, which is the root itself.
        folders.update(list(PurePosixPath(path).parents)[:-1])
        if len(files) + len(folders) >= ENTRIES_MAX or size_bytes > TREE_BYTES_MAX:
            message = (
                f"{where}: a sandbox holds at most {ENTRIES_MAX:,} files and folders and "
                f"{TREE_BYTES_MAX:,} bytes; remove some"
            )
            raise BadInput(message)
        data = source.read_bytes()
        mode = stat.S_IMODE(status.st_mode) & 0o777
        digest = hashlib.sha256(data).hexdigest()
        files.append(SandboxFile(path=path, size_bytes=len(data), mode=mode, digest=digest))
        sources[path] = source
    tree = SandboxTree(files=tuple(sorted(files, key=lambda file: file.path)))
    return Beginning(where, tree, lambda file: sources[file.path].read_bytes())


def build(beginning: Beginning, target: Path) -> None:
    """Write the files into a new folder.

    Raises:
        OSError: They cannot be written.
    """
    target.mkdir(parents=True)
    for file in beginning.tree.files:
        # A tree on the disk is data like any other.
        path = target.joinpath(*checked_path(file.path))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.write(beginning.read(file))
            stream.flush()
            os.fchmod(stream.fileno(), file.mode)
            os.fsync(stream.fileno())


def _walked(root: Path, where: str, way: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for entry in sorted(root.joinpath(*way).iterdir(), key=lambda each: each.name):
        if entry.name.casefold() in UNLISTED_NAMES:
            continue
        path = "/".join((*way, entry.name))
        problem = name_problem(entry.name)
        if problem is not None:
            raise _refused(where, path, f"{problem}; rename it")
        if entry.is_symlink():
            yield path, _target(root, where, path, entry)
        elif entry.is_dir():
            yield from _walked(root, where, (*way, entry.name))
        elif entry.is_file():
            yield path, entry
        else:
            raise _refused(where, path, "it is a device, a pipe or a socket; remove it")


def _target(root: Path, where: str, path: str, link: Path) -> Path:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise _refused(where, path, "it is a link that leads nowhere; remove it") from error
    if not target.is_relative_to(root):
        problem = "it is a link that leads out of the template; put the file itself there"
        raise _refused(where, path, problem)
    if {name.casefold() for name in target.relative_to(root).parts} & UNLISTED_NAMES:
        raise _refused(where, path, "it is a link to what is not copied; put the file itself there")
    if not target.is_file():
        raise _refused(where, path, "it is a link to a folder; put the folder itself there")
    return target


def _refused(where: str, path: str, problem: str) -> BadInput:
    return BadInput(f"{where}, {path!r}: {problem}")
