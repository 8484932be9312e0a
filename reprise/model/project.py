"""What a project is: a named set of files in the object store.

Source: specification W7.
"""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from reprise.model.base import Value

PROJECT_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"


class FileStatus(StrEnum):
    """How far a summary or an index of a file has come."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class MediaKind(StrEnum):
    """What a file is, by its content where it can be told, else by its name."""

    VIDEO = "video"
    AUDIO = "audio"
    IMAGE = "image"
    DOCUMENT = "document"
    OTHER = "other"


class ProjectFile(Value):
    """One file of a project, in the object store."""

    id: str
    """Stable id of this file name in this project."""
    project_id: str
    """The project that it belongs to."""
    name: str
    """Path inside the project, with forward slashes."""
    storage_key: str
    """Where its bytes are in the object store."""
    size_bytes: int = Field(ge=0)
    """Size in bytes."""
    content_digest: str
    """SHA-256 of its bytes, hexadecimal."""
    media_kind: MediaKind
    """What it is."""
    media_type: str = "application/octet-stream"
    """Internet media type."""
    uploaded_at: datetime
    """When these bytes were added; aware, UTC."""
    summary_status: FileStatus = FileStatus.PENDING
    """Has it been summarised."""
    indexing_status: FileStatus = FileStatus.PENDING
    """Has it been indexed for search."""


class Project(Value):
    """A named set of files."""

    id: str
    """Unique id; it is the name, so that partitions and keys read well."""
    name: str = Field(pattern=PROJECT_NAME_PATTERN)
    """Unique name; also the Dagster partition key."""
    created_at: datetime
    """Aware, UTC."""
    owner_id: str | None = None
    """The user who may read it over the Inference API; None leaves it to admins."""
