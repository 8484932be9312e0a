"""All regular files below a sandbox's root, none of them reached through a link.

Left out: links, devices, pipes, sockets, files with further names (hard links), and what no path of
a sandbox may name: `node_modules`, `.git`, unfinished files, odd names, what lies too deep.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reprise.model.sandbox import SandboxLimits
from reprise.model.sandbox_path import FOLDERS_MAX, PATH_BYTES_MAX, check_room, joined, name_problem
from resources.sandbox.descent import FOLDER_FLAGS
from resources.sandbox.typed_errors import typed_errors


@dataclass(frozen=True)
class Found:
    """A regular file that a walk came by; good until the walk goes on."""

    path: str
    """Its path."""
    folder: int
    """A descriptor of its folder."""
    name: str
    """Its name there."""
    size_bytes: int
    """Its size when it was looked at."""


@dataclass
class Room:
    """What a walk counted."""

    limits: SandboxLimits
    """What it may come to."""
    entries: int = 0
    """Files, folders and links."""
    size_bytes: int = 0
    """Sizes of the regular files."""

    def check(self) -> None:
        """Check the counts.

        Raises:
            SandboxRefused: `too_large`: more than the limits allow.
        """
        check_room(self.entries, self.size_bytes, self.limits)


def found_files(folder: int, room: Room, way: tuple[str, ...] = ()) -> Generator[Found]:
    """Yield the regular files, in no order; close the iterator when leaving it early.

    Args:
        folder: A descriptor of where to begin; it stays the caller's.
        room: Counts; checked at each entry.
        way: The names that lead to the folder.

    Raises:
        SandboxRefused: There are more than the limits allow, or a folder cannot be read.
    """
    with typed_errors(joined(way) or "."), os.scandir(folder) as entries:
        names = _counted(entries, room)
    for name in names:
        path = joined((*way, name))
        with typed_errors(path):
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from _below(folder, room, (*way, name))
            elif stat.S_ISREG(status.st_mode) and len(path.encode()) <= PATH_BYTES_MAX:
                room.size_bytes += status.st_size
                room.check()
                if status.st_nlink == 1:
                    yield Found(path, folder, name, status.st_size)


def _counted(entries: Iterator["os.DirEntry[str]"], room: Room) -> list[str]:
    names = []
    for entry in entries:
        room.entries += 1
        room.check()
        if name_problem(entry.name) is None:
            names.append(entry.name)
    return names


def _below(parent: int, room: Room, way: tuple[str, ...]) -> Generator[Found]:
    if len(way) > FOLDERS_MAX:
        return
    with _entered(parent, way[-1]) as folder:
        if folder is not None:
            yield from found_files(folder, room, way)


@contextmanager
def _entered(parent: int, name: str) -> Iterator[int | None]:
    try:
        folder = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield None  # Removed or replaced meanwhile.
        return
    try:
        yield folder
    finally:
        os.close(folder)
