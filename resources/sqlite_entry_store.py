"""Cache entries in one SQLite file: the embedded default, for any number of processes.

Performance: 22 KB payload, 26 digests: see bench/cache.py, which compares with a bare select and a
bare upsert.

Extend tests/integration/test_entry_store_contract.py, which all entry stores pass.

Source: specification C13, C15, C16.
"""

from pathlib import Path

from reprise.model.cache import EntryCaps
from resources.sql_entry_store import SqlEntryStore
from resources.sqlite_cache import BUSY_SECONDS, SqliteCacheDatabase

GIVE_BACK_STEPS_MAX = 10_000
"""Most steps of one call: 40 GB."""


class SqliteEntryStore(SqlEntryStore):
    """An `EntryStore` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.
        caps: How much one project may keep.

    Raises:
        StoreUnusable: The path is a folder, a file that is not ours, or on a network file system.
    """

    def __init__(
        self, path: Path, *, busy_seconds: float = BUSY_SECONDS, caps: EntryCaps | None = None
    ) -> None:
        database = SqliteCacheDatabase(path, busy_seconds=busy_seconds)
        super().__init__(database, caps=caps or EntryCaps())
        self._sqlite = database

    def give_back(self, *, steps_max: int = GIVE_BACK_STEPS_MAX) -> None:
        """Give the disk what removed entries took, in steps, so that no writer waits for long."""
        self._sqlite.give_back(steps_max)
