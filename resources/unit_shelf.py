"""Where render units are kept between films: in the object store, under their content address.

A unit that cannot be fetched or kept costs an encoding, not a film: store errors are logged here
and go no further.

Source: specification V9; STYLE, habit 9.
"""

import logging
from pathlib import Path

from reprise.errors import StoreError
from reprise.ports import ObjectStore

_log = logging.getLogger(__name__)


class UnitShelf:
    """Units by key, of one prefix.

    Args:
        objects: The store.
        prefix: Comes before each key; empty takes and keeps none.
        folder: Where local copies go.
        reuse: False never takes an earlier unit (new ones are still kept).
    """

    def __init__(self, objects: ObjectStore, prefix: str, folder: Path, *, reuse: bool) -> None:
        self._objects = objects
        self._prefix = prefix.strip("/")
        self._folder = folder
        self._reuse = reuse

    def path(self, name: str) -> Path:
        """Return where a unit lies, or goes, on this disk."""
        return self._folder / name

    def take(self, name: str) -> Path | None:
        """Return an earlier unit as a local file that is not written to, or None."""
        if not (self._reuse and self._prefix):
            return None
        key, target = self._key(name), self.path(name)
        target.unlink(missing_ok=True)
        try:
            in_place = self._objects.local_path(key)
            if in_place is not None and in_place.is_file():
                target.symlink_to(in_place.absolute())
                return target
            if self._objects.head(key) is None:
                return None
            self._objects.fetch(key, target)
        except StoreError as error:
            _log.warning("Could not fetch the render unit %s: %s", key, error)
            return None
        return target

    def keep(self, name: str, *, media_type: str) -> None:
        """Store a new unit, which must have passed its check."""
        if not self._prefix:
            return
        try:
            self._objects.put_file(self._key(name), self.path(name), media_type=media_type)
        except StoreError as error:
            _log.warning("Could not keep the render unit %s: %s", self._key(name), error)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name
