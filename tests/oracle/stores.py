"""What the oracle's world keeps: the embedded stores on disk, or their twins in memory."""

from dataclasses import dataclass
from pathlib import Path

from reprise.model.cache import EntryCaps
from reprise.ports import (
    EntryStore,
    HistoryStore,
    ObjectStore,
    ProjectIndex,
    ProjectRegistry,
)
from resources.local_object_store import LocalObjectStore
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_history import MemoryHistory
from resources.memory_object_store import MemoryObjectStore
from resources.memory_project_index import MemoryProjectIndex
from resources.memory_projects import MemoryProjectRegistry
from resources.payload_offload import PayloadOffload
from resources.sqlite_entry_store import SqliteEntryStore
from resources.sqlite_history import SqliteHistory
from resources.sqlite_project_index import SqliteProjectIndex
from resources.sqlite_projects import SqliteProjectRegistry


@dataclass
class Stores:
    """What outlives a process."""

    entries: EntryStore
    objects: ObjectStore
    history: HistoryStore
    projects: ProjectRegistry
    index: ProjectIndex


CAPS = EntryCaps(rows_max=4)
"""So few are kept after a sweep, or no small sequence would see an eviction."""


def in_memory(_folder: Path | None = None) -> Stores:
    """Return the twins."""
    return Stores(
        MemoryEntryStore(caps=CAPS),
        MemoryObjectStore(),
        MemoryHistory(),
        MemoryProjectRegistry(),
        MemoryProjectIndex(),
    )


def on_disk(folder: Path) -> Stores:
    """Return the embedded stores as a new process opens them, each payload an object of its own."""
    objects = LocalObjectStore(folder / "objects")
    rows = SqliteEntryStore(folder / "step-cache.db", caps=CAPS)
    return Stores(
        PayloadOffload(rows, objects, inline_bytes_max=0),
        objects,
        SqliteHistory(folder / "reprise.db"),
        SqliteProjectRegistry(folder / "reprise.db"),
        SqliteProjectIndex(folder / "project-index.db"),
    )
