"""Files into projects and out of them: copied into the object store, then named in the registry.

A copy is complete before the row that names it is written, so a crash leaves at most an object
that nothing names.

Source: specification W7; STYLE habit 10.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pipelines.project_files import file_id, file_key
from reprise.errors import BadInput, StoreError, UnknownName
from reprise.model.project import MediaKind, Project, ProjectFile
from reprise.ports import ObjectStore, ProjectIndex, ProjectRegistry

logger = logging.getLogger(__name__)

FILES_MAX = 100_000
"""Most files that one call adds."""


class Change(StrEnum):
    """What adding a file did."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Ingest:
    """Adds and removes files of projects."""

    registry: ProjectRegistry
    objects: ObjectStore
    index: ProjectIndex
    kind_of: Callable[[Path, str], tuple[MediaKind, str]]
    clock: Callable[[], datetime]
    owner_id: str | None = None
    """The user who owns the projects that it makes."""

    def add(
        self, project_name: str, paths: Sequence[Path], report: Callable[[str, Change], None]
    ) -> Project:
        """Add files and folders to a project, made when it is not there yet.

        Args:
            project_name: The project.
            paths: Files, or folders that are taken with everything in them except hidden files.
            report: Called with each file's name and what was done.

        Raises:
            BadInput: A path is not there or cannot be read, or two files would have one name.
        """
        found = collect(paths)
        project = self.registry.add_project(project_name, now=self.clock(), owner_id=self.owner_id)
        rows = {file.name: file for file in self.registry.files(project.id)}
        for name, path in found.items():
            report(name, self._add_file(project, name, path, rows.get(name)))
        return project

    def remove_files(self, project_name: str, names: Sequence[str]) -> None:
        """Remove files from a project.

        Raises:
            UnknownName: No such project, or it has no such file; then nothing is removed.
        """
        project = self.require(project_name)
        rows = {file.name: file for file in self.registry.files(project.id)}
        missing = [name for name in names if name not in rows]
        if missing:
            known = ", ".join(rows) or "none"
            message = f"project {project_name!r} has no file {missing[0]!r}; its files: {known}"
            raise UnknownName(message)
        for name in names:
            self.registry.remove_file(project.id, name, unused=self.objects.delete)
            with _index_may_fail():
                self.index.remove(project.id, name)

    def remove_project(self, project_name: str) -> None:
        """Remove a project with its files, bodies and artifacts.

        The project goes last: after a fault it can be removed again.

        Raises:
            UnknownName: No such project.
        """
        project = self.require(project_name)
        prefix = f"projects/{project.id}/"

        def rest() -> None:
            with _index_may_fail():
                self.index.remove_project(project.id)
            for info in list(self.objects.scan(prefix)):
                self.objects.delete(info.key)

        # What may take long goes first, so that the last step, for which others wait, is short.
        for file in self.registry.files(project.id):
            self.registry.remove_file(project.id, file.name, unused=self.objects.delete)
        for info in list(self.objects.scan(prefix)):
            if not info.key.startswith(f"{prefix}files/"):
                self.objects.delete(info.key)
        self.registry.remove_project(project.name, emptied=rest)

    def require(self, project_name: str) -> Project:
        """Return a project.

        Raises:
            UnknownName: No such project; names those that there are.
        """
        project = self.registry.project(project_name)
        if project is None:
            known = ", ".join(item.name for item in self.registry.projects()) or "none yet"
            message = (
                f"no project {project_name!r}; projects: {known}."
                f" Make one with `reprise project add {project_name} PATH`"
            )
            raise UnknownName(message)
        return project

    def _add_file(self, project: Project, name: str, path: Path, row: ProjectFile | None) -> Change:
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            kind, media_type = self.kind_of(path, name)
            size_bytes = path.stat().st_size
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}"
            raise BadInput(message) from error
        key = file_key(project.id, digest, name)
        info = self.objects.head(key)
        is_there = info is not None and info.size_bytes == size_bytes
        if not is_there:
            self._copy(path, key, media_type, digest)
        is_same = row is not None and row.content_digest == digest and row.storage_key == key
        if is_same and is_there:
            return Change.UNCHANGED
        self.registry.put_file(
            ProjectFile(
                id=file_id(project.id, name),
                project_id=project.id,
                name=name,
                storage_key=key,
                size_bytes=size_bytes,
                content_digest=digest,
                media_kind=kind,
                media_type=media_type,
                uploaded_at=self.clock(),
            )
        )
        if self.objects.head(key) is None:
            # The same bytes were removed since they were found there; with the row they stay.
            self._copy(path, key, media_type, digest)
        if is_same:
            return Change.UNCHANGED
        return Change.ADDED if row is None else Change.REPLACED

    def _copy(self, path: Path, key: str, media_type: str, digest: str) -> None:
        """Copy a file's bytes under their digest, unless the file changes meanwhile."""
        self.objects.put_file(key, path, media_type=media_type)
        with path.open("rb") as stream:
            after = hashlib.file_digest(stream, "sha256").hexdigest()
        if after != digest:
            self.objects.delete(key)
            message = f"{path} changed while it was added; add it again when it is complete"
            raise BadInput(message)


@contextmanager
def _index_may_fail() -> Iterator[None]:
    """Let a file go that the index still knows; indexing the project forgets it then."""
    try:
        yield
    except StoreError as error:
        logger.warning("what is removed may still be found by searches: %s", error)


def collect(paths: Sequence[Path]) -> dict[str, Path]:
    """Return project name → file for files and folders, by name.

    Raises:
        BadInput: A path is not there, a folder holds nothing, or two files would have one name.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            message = f"{path} is not there"
            raise BadInput(message)
        pairs = list(_files_in(path)) if path.is_dir() else [(path.name, path)]
        if not pairs:
            message = f"{path} holds no files"
            raise BadInput(message)
        for name, file in pairs:
            _check_name(name, file)
            other = found.setdefault(name, file)
            if other != file:
                message = (
                    f"{other} and {file} would both be {name!r} in the project; add one of them"
                )
                raise BadInput(message)
        if len(found) > FILES_MAX:
            message = f"{path} holds more than {FILES_MAX} files; add it in parts"
            raise BadInput(message)
    return dict(sorted(found.items()))


def _files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(parent) / name
            if not name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _check_name(name: str, file: Path) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        message = f"{str(file)!r}: its name is no valid UTF-8; rename it"
        raise BadInput(message) from error
    if not file.is_file():
        message = f"{file} is no regular file"
        raise BadInput(message)
