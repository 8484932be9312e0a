"""Projects and their files in this process's memory: the registry's twin, for tests and dry runs.

Extend tests/integration/test_project_registry_contract.py, which all registries pass.

Source: specification W7.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from pydantic import ValidationError

from reprise.errors import BadInput, UnknownName
from reprise.model.project import FileStatus, Project, ProjectFile

_STATE_FIELDS = {"id", "uploaded_at", "summary_status", "indexing_status"}


class MemoryProjectRegistry:
    """A `ProjectRegistry` in memory; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._projects: dict[str, Project] = {}
        self._files: dict[str, dict[str, ProjectFile]] = {}

    def add_project(self, name: str, *, now: datetime, owner_id: str | None = None) -> Project:
        """Make a project, or return the one of this name; see `ProjectRegistry`."""
        try:
            project = Project(id=name, name=name, created_at=now, owner_id=owner_id)
        except ValidationError as error:
            message = (
                f"project name {name!r} cannot be used; take up to 100 letters, digits, `-`, `_` "
                "and `.`, beginning with a letter or a digit"
            )
            raise BadInput(message) from error
        with self._lock:
            self._files.setdefault(project.id, {})
            return self._projects.setdefault(name, project)

    def project(self, name: str) -> Project | None:
        """Return a project, or None; see `ProjectRegistry`."""
        return self._projects.get(name)

    def projects(self) -> Sequence[Project]:
        """Return all projects, by name; see `ProjectRegistry`."""
        with self._lock:
            return sorted(self._projects.values(), key=lambda project: project.name)

    def set_owner(self, name: str, owner_id: str | None) -> bool:
        """Give a project to a user, or to nobody; see `ProjectRegistry`."""
        with self._lock:
            project = self._projects.get(name)
            if project is not None:
                self._projects[name] = project.model_copy(update={"owner_id": owner_id})
        return project is not None

    def remove_project(self, name: str, *, emptied: Callable[[], None] | None = None) -> bool:
        """Remove a project and its file rows; see `ProjectRegistry`."""
        with self._lock:
            project = self._projects.get(name)
            if project is None:
                return False
            if emptied is not None:
                emptied()
            del self._projects[name], self._files[project.id]
        return True

    def put_file(self, file: ProjectFile) -> None:
        """Add a file row, or replace the one of this name when its bytes or its state differ.

        Raises:
            UnknownName: There is no such project.
        """
        with self._lock:
            files = self._files.get(file.project_id)
            if files is None:
                message = (
                    f"file {file.name!r}: there is no project {file.project_id!r}; "
                    "make it first with `reprise project add`"
                )
                raise UnknownName(message)
            kept = files.get(file.name)
            files[file.name] = file if kept is None else _merged(kept, file)

    def files(self, project_id: str) -> Sequence[ProjectFile]:
        """Return a project's files, by name; see `ProjectRegistry`."""
        with self._lock:
            return sorted(self._files.get(project_id, {}).values(), key=lambda file: file.name)

    def set_status(
        self,
        file: ProjectFile,
        *,
        summary: FileStatus | None = None,
        indexing: FileStatus | None = None,
    ) -> bool:
        """Move a file's statuses while its bytes are these; see `ProjectRegistry`."""
        with self._lock:
            files = self._files.get(file.project_id, {})
            kept = files.get(file.name)
            if kept is None or (kept.content_digest, kept.uploaded_at) != (
                file.content_digest,
                file.uploaded_at,
            ):
                return False
            moved = {"summary_status": summary, "indexing_status": indexing}
            update = {name: status for name, status in moved.items() if status is not None}
            files[file.name] = kept.model_copy(update=update)
        return True

    def remove_file(
        self, project_id: str, name: str, *, unused: Callable[[str], None] | None = None
    ) -> bool:
        """Remove a file row; see `ProjectRegistry`."""
        with self._lock:
            files = self._files.get(project_id, {})
            if name not in files:
                return False
            key = files[name].storage_key
            others = (row for known in self._files.values() for row in known.values())
            if unused is not None and sum(row.storage_key == key for row in others) == 1:
                unused(key)
            del files[name]
        return True


def _merged(kept: ProjectFile, file: ProjectFile) -> ProjectFile:
    is_update = file.uploaded_at == kept.uploaded_at
    is_same = kept.model_dump(exclude=_STATE_FIELDS) == file.model_dump(exclude=_STATE_FIELDS)
    if is_same and not is_update:
        return kept
    changes: dict[str, object] = {"id": kept.id}
    if file.content_digest != kept.content_digest:
        changes |= {"summary_status": FileStatus.PENDING, "indexing_status": FileStatus.PENDING}
    return file.model_copy(update=changes)
