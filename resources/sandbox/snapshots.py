"""Snapshots of sandboxes, content-addressed: files by the SHA-256 of their bytes, trees by digest.

    blobs/ab/abcd…      the bytes of a file, written once however many trees name it
    trees/ab/abcd….json a `SandboxTree`

Both are checked against their digests when they are read. What is damaged is removed then, so that
the next snapshot of the same content keeps it again.

Source: specification E10.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from reprise.errors import ObjectMissing, SandboxRefused, StoreError
from reprise.model.sandbox import SandboxFile, SandboxTree
from reprise.ports import SandboxFiles
from resources.atomic_file import store_error, write_whole

logger = logging.getLogger(__name__)

LOOKS_MAX = 5
"""So often a sandbox is looked at until two looks agree."""


def tree_of(files: SandboxFiles) -> SandboxTree:
    """Return a sandbox's files as they are listed now, by path."""
    return SandboxTree(files=tuple(sorted(files.list(), key=lambda file: file.path)))


def consistent_tree(
    files: SandboxFiles, holds: Callable[[str], bool], keep: Callable[[str, bytes], None]
) -> SandboxTree:
    """Keep the files of a sandbox that others may edit meanwhile; return a state that there was.

    Args:
        files: The sandbox.
        holds: Answers whether the bytes of a digest are kept already.
        keep: Keeps bytes under their digest.

    Raises:
        StoreError: It changed at every look.
    """
    tree = tree_of(files)
    for _ in range(LOOKS_MAX):
        complete = _kept_all(files, tree, holds, keep)
        again = tree_of(files)
        if complete and again == tree:
            return tree
        tree = again
    message = f"the sandbox changed each of {LOOKS_MAX} times that it was looked at; try again"
    raise StoreError(message)


def _kept_all(
    files: SandboxFiles,
    tree: SandboxTree,
    holds: Callable[[str], bool],
    keep: Callable[[str, bytes], None],
) -> bool:
    for file in tree.files:
        if holds(file.digest):
            continue
        try:
            data = files.read(file.path, size_bytes_max=max(1, file.size_bytes))
        except SandboxRefused:
            return False  # It was there when it was listed; the next look tells.
        if hashlib.sha256(data).hexdigest() != file.digest:
            return False
        keep(file.digest, data)
    return True


class SnapshotFolder:
    """Kept files and trees.

    Args:
        root: Their folder; made on the first write.
    """

    def __init__(self, root: Path) -> None:
        self._blobs = root / "blobs"
        self._trees = root / "trees"

    def holds_file(self, digest: str) -> bool:
        """Answer whether the bytes of a digest are kept."""
        return _placed(self._blobs, digest).is_file()

    def keep_file(self, digest: str, data: bytes) -> None:
        """Keep bytes under their digest.

        Raises:
            StoreError: They cannot be written.
        """
        _write(_placed(self._blobs, digest), data)

    def file(self, digest: str) -> bytes:
        """Return the bytes of a digest.

        Raises:
            ObjectMissing: They are not kept, or were damaged.
            StoreError: They cannot be read.
        """
        path = _placed(self._blobs, digest)
        data = _read(path)
        if hashlib.sha256(data).hexdigest() != digest:
            raise _removed(path, f"file {digest[:16]} of a snapshot")
        return data

    def keep_tree(self, tree: SandboxTree) -> None:
        """Keep a tree, once.

        Raises:
            StoreError: It cannot be written.
        """
        path = _placed(self._trees, tree.digest, ".json")
        if not path.is_file():
            _write(path, tree.model_dump_json().encode())

    def tree(self, digest: str) -> SandboxTree:
        """Return a tree.

        Raises:
            ObjectMissing: It is not kept, or was damaged.
            StoreError: It cannot be read.
        """
        path = _placed(self._trees, digest, ".json")
        data = _read(path)
        try:
            tree = SandboxTree.model_validate_json(data)
        except ValidationError:
            tree = SandboxTree()
        if tree.digest != digest:
            raise _removed(path, f"snapshot {digest[:16]}")
        return tree

    def whole_tree(self, digest: str) -> SandboxTree | None:
        """Return a tree whose files are all kept, or None.

        Raises:
            StoreError: It cannot be read.
        """
        try:
            tree = self.tree(digest)
        except ObjectMissing:
            return None
        return tree if all(self.holds_file(file.digest) for file in tree.files) else None

    def remove_others(self, trees: Collection[str]) -> int:
        """Remove every tree but these, and every file that none of them names; return how many.

        Whoever writes snapshots has to be kept out meanwhile.

        Raises:
            StoreError: A tree that stays cannot be read: nothing is removed then. One that is lost
                or damaged names nothing.
        """
        wanted = {file.digest for digest in trees for file in self._files_of(digest)}
        gone = [path for path in _files(self._trees) if path.stem not in trees]
        gone += [path for path in _files(self._blobs) if path.name not in wanted]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)

    def _files_of(self, digest: str) -> Sequence[SandboxFile]:
        try:
            return self.tree(digest).files
        except ObjectMissing as error:
            logger.warning("sandboxes: %s", error)
            return ()


def _placed(folder: Path, digest: str, suffix: str = "") -> Path:
    return folder / digest[:2] / f"{digest}{suffix}"


def _removed(path: Path, what: str) -> ObjectMissing:
    """Remove what is damaged, and return what to say of it."""
    path.unlink(missing_ok=True)
    return ObjectMissing(
        f"{what} is damaged and was removed; run the workflow again to keep it anew"
    )


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("??/*") if path.is_file())


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: It cannot be written.
    """

    def fill(stream: BinaryIO) -> None:
        stream.write(data)

    write_whole(path, fill)


def _write(path: Path, data: bytes) -> None:
    try:
        write_file(path, data)
    except OSError as error:
        raise store_error(error, f"snapshot file {str(path)!r}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        message = f"snapshot file {path.name[:16]} is not kept any more"
        raise ObjectMissing(message) from error
    except OSError as error:
        raise store_error(error, f"snapshot file {str(path)!r}") from error
