"""From a path of a sandbox to an open folder and a name in it, never leaving the root.

Each folder on the way is opened relative to the one before and never through a link. A link is read
and its target walked by hand, `..` in it as a step back among the folders that are held open: so
the way is the same however somebody moves or swaps folders and links meanwhile.

It allows what `openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)` allows, on every system.

Source: specification E8; research/agents.md, section 1, cases 32 and 33.
"""

import errno
import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from reprise.errors import SandboxRefused, StoreUnusable
from reprise.model.sandbox import SandboxFault
from reprise.model.sandbox_path import (
    FOLDERS_MAX,
    PATH_BYTES_MAX,
    case_clash,
    clash,
    is_folder,
    joined,
    name_problem,
    refused,
    under_file,
)
from resources.sandbox.typed_errors import check_kind

LINKS_MAX = 40
"""Links followed on one way; Linux has the same bound."""
NAMES_MAX = 100_000
"""Names looked at in one folder."""

# Without O_NONBLOCK, opening what became a pipe meanwhile would wait for its other end.
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_root(root: Path) -> int:
    """Return a descriptor of the sandbox's own folder, which may be reached through links.

    Raises:
        StoreUnusable: There is none.
        OSError: It cannot be opened.
    """
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        message = f"sandbox {str(root)!r}: its folder is gone; run the workflow again"
        raise StoreUnusable(message) from error


class Descent:
    """Where a path leads: an open folder, folders below it that are not there yet, and a name.

    Open until it is left as a context.

    Args:
        root: A descriptor of the sandbox's folder; taken over, also when this raises.
        names: The path, as `checked_path` gives it.

    Raises:
        SandboxRefused: A link leads out, in a circle or to nothing; a file is where a folder would
            have to be; the path names a folder.
        OSError: A folder on the way cannot be opened.
    """

    def __init__(self, root: int, names: tuple[str, ...]) -> None:
        self._path = joined(names)
        self._open = [root]
        self._way: list[str] = []
        self._links = 0
        self._made: list[tuple[int, str]] = []
        self.missing: tuple[str, ...] = ()
        """Folders that are not there."""
        try:
            self.name = self._walked(list(reversed(names)))
            """The file's own name in the last folder; never a link when it was looked at."""
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Close the folders; those that were made go again if the block failed."""
        if kind is not None:
            for folder, name in reversed(self._made):
                try:
                    os.rmdir(name, dir_fd=folder)
                except OSError:
                    break  # Another put something into it, or removed it.
        self.close()

    def close(self) -> None:
        """Close the folders."""
        while self._open:
            os.close(self._open.pop())

    @property
    def folder(self) -> int:
        """A descriptor of the last folder."""
        return self._open[-1]

    @property
    def path(self) -> str:
        """The file's path without links."""
        return joined((*self._way, *self.missing, self.name))

    def check_kind(self) -> None:
        """Check what is there, if anything is.

        Raises:
            SandboxRefused: It is no regular file, or has further names.
        """
        if not self.missing:
            with suppress(FileNotFoundError):
                status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
                check_kind(self.path, status)

    def check_clash(self) -> None:
        """Check the first name that would be made against its neighbours.

        Raises:
            SandboxRefused: `case_clash`: one differs by letter case or Unicode form alone.
        """
        name = (*self.missing, self.name)[0]
        other = clash(name, names_in(self.folder))
        if other is not None:
            there = joined((*self._way, other))
            raise case_clash(self._path, there)

    def remove_empty_folders(self) -> None:
        """Remove the last folders as far as they are empty; an empty folder is in no tree."""
        ways = zip(reversed(self._open[:-1]), reversed(self._way), strict=True)
        with suppress(OSError):
            for folder, name in ways:
                os.rmdir(name, dir_fd=folder)

    def make_folders(self) -> None:
        """Make the folders that are missing.

        Raises:
            SandboxRefused: A link or file took the place of one meanwhile.
            OSError: One cannot be made.
        """
        for name in self.missing:
            parent = self.folder
            try:
                os.mkdir(name, 0o755, dir_fd=parent)
            except FileExistsError:
                pass
            else:
                self._made.append((parent, name))
                sync_folder(parent)
            self._enter(name)
        self.missing = ()

    def _walked(self, pending: list[str]) -> str:
        of_links = 0  # So many names, the next ones, are those of links that were followed.
        while pending:
            name = pending.pop()
            is_of_link = of_links > 0
            of_links -= is_of_link
            if name in (".", ".."):
                if name == "..":
                    self._leave()
                continue
            try:
                target = self._link_target(name)
            except FileNotFoundError:
                return self._nothing_there([name, *reversed(pending)], is_of_link=is_of_link)
            if target is not None:
                followed = self._followed(target)
                of_links += len(followed)
                pending.extend(reversed(followed))
            elif pending:
                self._enter(name)
            else:
                return self._arrived((), name)
        raise is_folder(self._path)

    def _arrived(self, missing: tuple[str, ...], name: str) -> str:
        # A link may lead to what no path can name: no listing would show what is done there.
        if len(self._way) + len(missing) > FOLDERS_MAX:
            raise self._too_deep()
        if len(joined((*self._way, *missing, name)).encode()) > PATH_BYTES_MAX:
            problem = f"the path that it leads to has more than {PATH_BYTES_MAX} bytes"
            raise refused(self._path, SandboxFault.BAD_PATH, problem)
        self.missing = missing
        return name

    def _too_deep(self) -> SandboxRefused:
        problem = f"it lies more than {FOLDERS_MAX} folders deep"
        return refused(self._path, SandboxFault.BAD_PATH, problem)

    def _link_target(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.folder)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return None  # Anything but a link.

    def _followed(self, target: str) -> list[str]:
        self._links += 1
        if self._links > LINKS_MAX:
            problem = f"more than {LINKS_MAX} links follow each other; name the file itself"
            raise refused(self._path, SandboxFault.OUTSIDE, problem)
        if target.startswith("/"):
            problem = "a link on its way is absolute, which leads out of the sandbox"
            raise refused(self._path, SandboxFault.OUTSIDE, problem)
        # A slash at the end stays as a dot: it asks for a folder, as the dot does.
        names = [name or "." for name in target.split("/")]
        for name in names:
            odd = None if name in (".", "..") else name_problem(name)
            if odd is not None:
                problem = f"a link on its way leads out of what the sandbox may hold: {odd}"
                raise refused(self._path, SandboxFault.OUTSIDE, problem)
        return names

    def _leave(self) -> None:
        if not self._way:
            problem = "a link on its way leads out of the sandbox"
            raise refused(self._path, SandboxFault.OUTSIDE, problem)
        os.close(self._open.pop())
        self._way.pop()

    def _enter(self, name: str) -> None:
        if len(self._way) == FOLDERS_MAX:
            raise self._too_deep()
        try:
            folder = os.open(name, FOLDER_FLAGS, dir_fd=self.folder)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise self._no_folder(name) from error
        self._open.append(folder)
        self._way.append(name)

    def _no_folder(self, name: str) -> SandboxRefused:
        there = joined((*self._way, name))
        if stat.S_ISLNK(os.stat(name, dir_fd=self.folder, follow_symlinks=False).st_mode):
            problem = f"{there!r} became a link meanwhile; try again"
            return refused(self._path, SandboxFault.STALE, problem)
        return under_file(self._path, there)

    def _nothing_there(self, names: list[str], *, is_of_link: bool) -> str:
        if is_of_link:
            there = joined((*self._way, *names))
            problem = f"it is a link to {there!r}, which is not there; write that file first"
            raise refused(self._path, SandboxFault.NOT_FOUND, problem)
        return self._arrived(tuple(names[:-1]), names[-1])


def names_in(folder: int) -> list[str]:
    """Return the names in an open folder, `NAMES_MAX` at most.

    Raises:
        OSError: It cannot be read.
    """
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, NAMES_MAX)]


def sync_folder(folder: int) -> None:
    """Bring a folder's names to the disk, where its file system can.

    Raises:
        OSError: The disk fails.
    """
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
