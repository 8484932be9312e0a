"""Leases in the SQLite file of the cache entries, on this machine's clock.

Source: specification C14.
"""

from pathlib import Path

from resources.sql_lease_store import SqlLeaseStore
from resources.sqlite_cache import BUSY_SECONDS, SqliteCacheDatabase


class SqliteLeaseStore(SqlLeaseStore):
    """A `LeaseStore` in a SQLite file.

    Args:
        path: The file of the entries: a store is refused by a lease in the same file.
        busy_seconds: How long a write waits for another writer.

    Raises:
        StoreUnusable: The path is a folder, a file that is not ours, or on a network file system.
    """

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__(SqliteCacheDatabase(path, busy_seconds=busy_seconds))
