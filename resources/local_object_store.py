"""Objects as files below one folder: the embedded default.

An object's key is its path below the root. Files appear whole; a file that is being written has a
name that no key can have. Symbolic links are followed only where they stay below the root.

Extend tests/integration/test_object_store_contract.py, which all object stores pass.

Source: specification W9, C8.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from reprise.errors import BadInput, ObjectMissing, StoreError, StoreUnusable
from reprise.model.stored import ObjectInfo
from resources.atomic_file import store_error, write_whole
from resources.object_key import PART_PREFIX, checked_key, checked_prefix

DEFAULT_READ_BYTES_MAX = 64 * 2**20
COPY_CHUNK_BYTES = 2**20


class LocalObjectStore:
    """An `ObjectStore` in a folder.

    Args:
        root: The folder; `~` is expanded, and it is made on the first write.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.expanduser().absolute()

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object, or None; see `ObjectStore`."""
        path = self._path(key)
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, self._named(key)) from error
        return _info(key, status) if S_ISREG(status.st_mode) else None

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        """Store bytes whole or not at all; the media type is not kept. See `ObjectStore`."""
        del media_type
        return self._put(key, lambda stream: _write(stream, data))

    def put_file(self, key: str, path: Path, *, media_type: str | None = None) -> ObjectInfo:
        """Store a copy of a file whole or not at all; see `ObjectStore`.

        A copy, not a link: its owner may go on editing the file.

        Raises:
            BadInput: The file cannot be read.
        """
        del media_type
        if path.exists() and not path.is_file():  # Opening a pipe would wait for its writer.
            message = f"{str(path)!r} cannot be read: it is no regular file"
            raise BadInput(message)
        try:
            source = path.open("rb")
        except OSError as error:
            message = f"file {str(path)!r} cannot be read: {error.strerror}"
            raise BadInput(message) from error
        with source:
            return self._put(
                key, lambda stream: shutil.copyfileobj(source, stream, COPY_CHUNK_BYTES)
            )

    def get_bytes(self, key: str, *, size_bytes_max: int = DEFAULT_READ_BYTES_MAX) -> bytes:
        """Return an object's bytes; see `ObjectStore`."""
        try:
            with self._path(key).open("rb") as stream:
                data = stream.read(size_bytes_max + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise ObjectMissing(self._missing(key)) from error
        except OSError as error:
            raise store_error(error, self._named(key)) from error
        if len(data) > size_bytes_max:
            message = (
                f"{self._named(key)}: it has more than {size_bytes_max} bytes; "
                "fetch it to a file instead"
            )
            raise StoreUnusable(message)
        return data

    def fetch(self, key: str, target: Path) -> None:
        """Copy an object to a local file, whole or not at all; see `ObjectStore`."""
        try:
            source = self._path(key).open("rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise ObjectMissing(self._missing(key)) from error
        except OSError as error:
            raise store_error(error, self._named(key)) from error
        with source:
            try:
                write_whole(
                    target, lambda stream: shutil.copyfileobj(source, stream, COPY_CHUNK_BYTES)
                )
            except OSError as error:
                raise store_error(error, f"{self._named(key)} to {str(target)!r}") from error

    def local_path(self, key: str) -> Path | None:
        """Return the object's own file, for reading only; None when there is no such object."""
        path = self._path(key)
        return path if path.is_file() else None

    def delete(self, key: str) -> None:
        """Remove an object, and the folders that this leaves empty; see `ObjectStore`."""
        path = self._path(key)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return
        except IsADirectoryError:
            return
        except OSError as error:
            if path.is_dir():  # Some systems answer EPERM for a folder.
                return
            raise store_error(error, self._named(key)) from error
        with suppress(OSError):
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()

    def scan(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key begins with the prefix, by rising key; see `ObjectStore`."""
        folder = checked_prefix(prefix).rpartition("/")[0]
        try:
            yield from self._walk(f"{folder}/" if folder else "", prefix)
        except OSError as error:
            raise store_error(error, f"object store {str(self._root)!r}") from error

    def url(self, key: str) -> str:
        """Return the object's path."""
        return str(self._root / checked_key(key))

    def _named(self, key: str) -> str:
        return f"object {key!r} in {str(self._root)!r}"

    def _missing(self, key: str) -> str:
        return (
            f"{self._named(key)}: there is none; run the step that made it again, "
            "or add the file to its project again"
        )

    def _path(self, key: str) -> Path:
        path = self._root / checked_key(key)
        try:
            inside = path.resolve().is_relative_to(self._root.resolve())
        except (OSError, RuntimeError) as error:
            message = f"{self._named(key)}: its links cannot be followed: {error}"
            raise StoreError(message) from error
        if not inside:
            message = f"object key {key!r}: a symbolic link leads out of {str(self._root)!r}"
            raise BadInput(message)
        return path

    def _put(self, key: str, fill: Callable[[BinaryIO], None]) -> ObjectInfo:
        path = self._path(key)
        try:
            status = write_whole(path, fill)
        except OSError as error:
            raise store_error(error, self._named(key)) from error
        return _info(key, status)

    def _walk(self, folder_key: str, prefix: str) -> Iterator[ObjectInfo]:
        try:
            with os.scandir(self._root / folder_key) as entries:
                # A folder sorts as its keys do: `a.txt` comes before `a/b`, since "." < "/".
                found = sorted(
                    (entry.name + "/", entry) if _is_folder(entry) else (entry.name, entry)
                    for entry in entries
                    if not entry.name.startswith(PART_PREFIX)
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        for name, entry in found:
            key = folder_key + name
            if name.endswith("/"):
                if key.startswith(prefix) or prefix.startswith(key):
                    yield from self._walk(key, prefix)
            elif key.startswith(prefix) and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    yield _info(key, entry.stat(follow_symlinks=False))


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    return entry.is_dir(follow_symlinks=False)


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(
        key=key,
        size_bytes=status.st_size,
        etag=f"{status.st_size:x}-{status.st_mtime_ns:x}",
        modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
    )
