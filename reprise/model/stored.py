"""What a HEAD tells of an object in the object store.

Source: specification C8, W9.
"""

from datetime import datetime

from pydantic import Field

from reprise.model.base import Value


class ObjectInfo(Value):
    """What a HEAD tells of an object."""

    key: str
    """Its key."""
    size_bytes: int = Field(ge=0)
    """Its size."""
    etag: str
    """Changes when its bytes change."""
    modified_at: datetime
    """Aware, UTC."""
