"""A sandbox in this process's memory: the folder's twin, for tests and dry runs.

Extend tests/integration/test_sandbox_files_contract.py, which all sandboxes pass.

Source: specification E8.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reprise.errors import StoreTimeout
from reprise.model.sandbox import SandboxFile, SandboxLimits, SandboxTree
from reprise.model.sandbox_path import (
    case_clash,
    check_room,
    check_size,
    clash,
    is_folder,
    not_found,
    plain_path,
    stale,
    under_file,
)
from resources.atomic_file import store_error

_MODE = 0o644
WAIT_SECONDS_MAX = 30.0


class MemorySandbox:
    """A `SandboxFiles` in memory; safe among threads. It has no links, and all files one mode.

    Args:
        files: Path → bytes that it begins with.
        limits: How large it may become.

    Raises:
        SandboxRefused: One of the paths cannot be used.
    """

    def __init__(
        self, files: Mapping[str, bytes] | None = None, *, limits: SandboxLimits | None = None
    ) -> None:
        self._limits = limits or SandboxLimits()
        self._lock = threading.Lock()
        self._files: dict[str, bytes] = {}
        for path, data in (files or {}).items():
            self._files[plain_path(path)] = data

    def resolved(self, path: str) -> str:
        """Return the path of the file that a path leads to; see `SandboxFiles`."""
        return _plain(path, self._files)

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's bytes; see `SandboxFiles`."""
        files = self._files
        path = _plain(path, files)
        data = files.get(path)
        if data is None:
            raise not_found(path)
        limit = self._limits.file_bytes_max if size_bytes_max is None else size_bytes_max
        check_size(path, len(data), limit)
        return data

    def update(
        self, path: str, change: Callable[[bytes | None], bytes | None], *, create: bool = False
    ) -> None:
        """Give a file the bytes that `change` makes of its present ones; see `SandboxFiles`."""
        with self._locked():
            path = _plain(path, self._files)
            present = self._files.get(path)
            if present is None and not create:
                raise not_found(path)
            check_size(path, len(present or b""), self._limits.file_bytes_max)
            data = change(present)
            if data is None or data == present:
                return
            self._check(path, data, present)
            # Anew each time: who reads meanwhile sees all of it as it was.
            self._files = {**self._files, path: bytes(data)}

    def remove(self, path: str, *, digest: str) -> None:
        """Remove a file that has these bytes; see `SandboxFiles`."""
        with self._locked():
            path = _plain(path, self._files)
            data = self._files.get(path)
            if data is None:
                raise not_found(path)
            if hashlib.sha256(data).hexdigest() != digest:
                raise stale(path)
            self._files = {each: self._files[each] for each in self._files if each != path}

    def list(self) -> Sequence[SandboxFile]:
        """Return the files, by path; see `SandboxFiles`."""
        return self._listed(self._files)

    def copy_to(self, target: Path) -> SandboxTree:
        """Copy the files into a folder; see `SandboxFiles`."""
        files = self._files
        for name, data in files.items():
            path = target / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as stream:
                    stream.write(data)
                path.chmod(_MODE)
            except OSError as error:
                raise store_error(error, f"copy of a sandbox to {str(path)!r}") from error
        return SandboxTree(files=self._listed(files))

    def _listed(self, files: Mapping[str, bytes]) -> "tuple[SandboxFile, ...]":
        return tuple(
            SandboxFile(
                path=name,
                size_bytes=len(data),
                mode=_MODE,
                digest=hashlib.sha256(data).hexdigest(),
            )
            for name, data in sorted(files.items())
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=WAIT_SECONDS_MAX):
            message = f"sandbox in memory: another writer has held it for {WAIT_SECONDS_MAX:g} s"
            raise StoreTimeout(message)
        try:
            yield
        finally:
            self._lock.release()

    def _check(self, name: str, data: bytes, present: bytes | None) -> None:
        check_size(name, len(data), self._limits.file_bytes_max)
        if present is not None and len(data) <= len(present):
            return
        after = {**self._files, name: data}
        entries = {each[:end] for each in after for end in _ends(each)}
        check_room(len(entries), sum(map(len, after.values())), self._limits)
        for end in _ends(name):
            folder, _, last = name[:end].rpartition("/")
            beside = [each.rpartition("/") for each in entries]
            other = clash(last, [each[2] for each in beside if each[0] == folder])
            if other is not None:
                raise case_clash(name, f"{folder}/{other}" if folder else other)


def _plain(path: str, files: Mapping[str, bytes]) -> str:
    path = plain_path(path)
    for end in _ends(path)[:-1]:
        if path[:end] in files:
            raise under_file(path, path[:end])
    if any(each.startswith(f"{path}/") for each in files):
        raise is_folder(path)
    return path


def _ends(path: str) -> "list[int]":
    return [index for index, each in enumerate(path) if each == "/"] + [len(path)]
