"""Objects in this process's memory: the object stores' twin, for tests and dry runs.

Extend tests/integration/test_object_store_contract.py, which all object stores pass.

Source: specification W9.
"""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from reprise.errors import BadInput, ObjectMissing, StoreUnusable
from reprise.model.stored import ObjectInfo
from resources.atomic_file import store_error, write_whole
from resources.object_key import checked_key, checked_prefix

DEFAULT_READ_BYTES_MAX = 64 * 2**20


class MemoryObjectStore:
    """An `ObjectStore` in memory; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, ObjectInfo]] = {}
        self._writes = 0

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object, or None; see `ObjectStore`."""
        found = self._objects.get(checked_key(key))
        return None if found is None else found[1]

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        """Store bytes, replacing what was there; the media type is not kept. See `ObjectStore`."""
        del media_type
        checked_key(key)
        with self._lock:
            self._writes += 1
            info = ObjectInfo(
                key=key,
                size_bytes=len(data),
                etag=f"{self._writes:x}",
                modified_at=datetime.now(UTC),
            )
            self._objects[key] = (bytes(data), info)
        return info

    def put_file(self, key: str, path: Path, *, media_type: str | None = None) -> ObjectInfo:
        """Store a file's bytes, replacing what was there; see `ObjectStore`.

        Raises:
            BadInput: The file cannot be read.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            message = f"file {str(path)!r} cannot be read: {error.strerror}"
            raise BadInput(message) from error
        return self.put_bytes(key, data, media_type=media_type)

    def get_bytes(self, key: str, *, size_bytes_max: int = DEFAULT_READ_BYTES_MAX) -> bytes:
        """Return an object's bytes; see `ObjectStore`."""
        found = self._objects.get(checked_key(key))
        if found is None:
            message = f"object {key!r} in memory: there is none; run the step that made it again"
            raise ObjectMissing(message)
        if len(found[0]) > size_bytes_max:
            message = (
                f"object {key!r} in memory: it has more than {size_bytes_max} bytes; "
                "fetch it to a file instead"
            )
            raise StoreUnusable(message)
        return found[0]

    def fetch(self, key: str, target: Path) -> None:
        """Copy an object to a local file, whole or not at all; see `ObjectStore`."""
        data = self.get_bytes(key, size_bytes_max=2**62)
        try:
            write_whole(target, lambda stream: stream.writelines((data,)))
        except OSError as error:
            raise store_error(error, f"object {key!r} to {str(target)!r}") from error

    def local_path(self, key: str) -> Path | None:
        """Return None: no object has a file."""
        checked_key(key)
        return None

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        checked_key(key)
        with self._lock:
            self._objects.pop(key, None)

    def scan(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key begins with the prefix, by rising key; see `ObjectStore`."""
        checked_prefix(prefix)
        with self._lock:
            found = [info for key, (_, info) in self._objects.items() if key.startswith(prefix)]
        yield from sorted(found, key=lambda info: info.key)

    def url(self, key: str) -> str:
        """Return a `memory:` address."""
        return f"memory:{checked_key(key)}"
