"""A sandbox in a folder: the adapter of `SandboxFiles`."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from reprise.errors import SandboxRefused
from reprise.model.sandbox import SandboxFile, SandboxLimits, SandboxTree
from reprise.model.sandbox_path import check_size, not_found, plain_path, stale
from resources.atomic_file import store_error
from resources.sandbox.descent import Descent, open_root, sync_folder
from resources.sandbox.edit_lock import WAIT_SECONDS_MAX, edit_lock
from resources.sandbox.tree_walk import Found, Room, found_files
from resources.sandbox.typed_errors import typed_errors
from resources.sandbox.whole_file import (
    Present,
    check_writable,
    chunks,
    opened,
    read_present,
    write_whole,
)

LOCK_SUFFIX = ".edit-lock"


class FolderSandbox:
    """A `SandboxFiles` over a folder that is there.

    Args:
        root: The folder; may itself be reached through links.
        limits: How large it may become.
        lock: The file by which writers of all processes keep apart, outside the folder. By default
            beside it, with its name and `.edit-lock`; whoever removes the folder removes it too.
        wait_seconds: Most seconds to wait for another writer.
    """

    def __init__(
        self,
        root: Path,
        *,
        limits: SandboxLimits | None = None,
        lock: Path | None = None,
        wait_seconds: float = WAIT_SECONDS_MAX,
    ) -> None:
        self.root = root.absolute()
        self._limits = limits or SandboxLimits()
        self._lock = lock
        self._wait_seconds = wait_seconds

    def resolved(self, path: str) -> str:
        """Return the path of the file that a path leads to; see `SandboxFiles`."""
        path = plain_path(path)
        with self._descended(path) as place, typed_errors(path):
            place.check_kind()
            return place.path

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's bytes; see `SandboxFiles`."""
        path = plain_path(path)
        limit = self._limits.file_bytes_max if size_bytes_max is None else size_bytes_max
        with self._descended(path) as place, typed_errors(path):
            present = read_present(place, size_bytes_max=limit)
        if present is None:
            raise not_found(path)
        return present.data

    def update(
        self, path: str, change: Callable[[bytes | None], bytes | None], *, create: bool = False
    ) -> None:
        """Give a file the bytes that `change` makes of its present ones; see `SandboxFiles`."""
        path = plain_path(path)
        with self._locked(), self._descended(path) as place:
            with typed_errors(path):
                present = read_present(place, size_bytes_max=self._limits.file_bytes_max)
            if present is None and not create:
                raise not_found(path)
            data = change(None if present is None else present.data)
            if data is None or (present is not None and data == present.data):
                return
            with typed_errors(path):
                self._check(place, data, present)
                place.make_folders()
                write_whole(place, data, present)

    def remove(self, path: str, *, digest: str) -> None:
        """Remove a file that has these bytes; see `SandboxFiles`."""
        path = plain_path(path)
        with self._locked(), self._descended(path) as place, typed_errors(path):
            if place.missing:
                raise not_found(path)
            try:
                with opened(place.folder, place.name, path) as (handle, status):
                    check_writable(path, status)
                    check_size(path, status.st_size, self._limits.tree_bytes_max)
                    found = hashlib.sha256()
                    for chunk in chunks(handle, status.st_size + 1):
                        found.update(chunk)
            except FileNotFoundError:
                raise not_found(path) from None
            if found.hexdigest() != digest:
                raise stale(path)
            os.unlink(place.name, dir_fd=place.folder)
            sync_folder(place.folder)
            place.remove_empty_folders()

    def list(self) -> Sequence[SandboxFile]:
        """Return the regular files, by path; see `SandboxFiles`."""
        return self._taken(None)

    def copy_to(self, target: Path) -> SandboxTree:
        """Copy the regular files into a folder; see `SandboxFiles`."""
        return SandboxTree(files=self._taken(target))

    @contextmanager
    def _descended(self, path: str) -> Iterator[Descent]:
        with typed_errors(path):
            place = Descent(open_root(self.root), tuple(path.split("/")))
        with place:
            yield place

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Looked at first: no lock is left beside a folder that is gone.
        with typed_errors("."):
            os.close(open_root(self.root))
        # Beside the folder itself: it is one lock for all links to it.
        real = self.root.resolve()
        lock = self._lock or real.with_name(real.name + LOCK_SUFFIX)
        with edit_lock(lock, wait_seconds=self._wait_seconds):
            yield

    def _check(self, place: Descent, data: bytes, present: Present | None) -> None:
        check_size(place.path, len(data), self._limits.file_bytes_max)
        if present is not None:
            check_writable(place.path, present.status)
        growth = len(data) - (0 if present is None else len(present.data))
        if present is None or growth > 0:
            self._check_room(growth, 0 if present is not None else len(place.missing) + 1)
        if present is None:
            place.check_clash()

    def _check_room(self, growth_bytes: int, new_entries: int) -> None:
        room = Room(self._limits, entries=new_entries, size_bytes=growth_bytes)
        root = open_root(self.root)
        try:
            with closing(found_files(root, room)) as files:
                for _ in files:
                    pass
        finally:
            os.close(root)

    def _taken(self, target: Path | None) -> "tuple[SandboxFile, ...]":
        with typed_errors("."):
            root = open_root(self.root)
        taken: dict[str, SandboxFile] = {}
        left_bytes = self._limits.tree_bytes_max
        try:
            with closing(found_files(root, Room(self._limits))) as files:
                for found in files:
                    file = _taken_file(found, target, left_bytes)
                    if file is not None:
                        taken[file.path] = file
                        left_bytes -= file.size_bytes
        finally:
            os.close(root)
        return tuple(taken[path] for path in sorted(taken))


def _taken_file(found: Found, target: Path | None, size_bytes_max: int) -> SandboxFile | None:
    with typed_errors(found.path):
        try:
            with opened(found.folder, found.name, found.path) as (handle, status):
                mode = status.st_mode & 0o777
                # The walk summed up what it saw; a file may have grown since.
                data = chunks(handle, size_bytes_max + 1)
                digest, size_bytes = _digested(data, target and target / found.path, mode)
        except FileNotFoundError:
            return None  # It went since the walk came by.
        except SandboxRefused:
            return None  # It became something else.
    check_size(found.path, size_bytes, size_bytes_max)
    return SandboxFile(path=found.path, size_bytes=size_bytes, mode=mode, digest=digest)


def _digested(data: Iterator[bytes], copy: Path | None, mode: int) -> tuple[str, int]:
    digest, size_bytes = hashlib.sha256(), 0
    with _new_file(copy, mode) as write:
        for chunk in data:
            digest.update(chunk)
            size_bytes += len(chunk)
            write(chunk)
    return digest.hexdigest(), size_bytes


@contextmanager
def _new_file(path: Path | None, mode: int) -> Iterator[Callable[[bytes], object]]:
    if path is None:
        yield len
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            yield stream.write
        path.chmod(mode)
    except OSError as error:
        raise store_error(error, f"copy of a sandbox to {str(path)!r}") from error
