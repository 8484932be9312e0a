"""Cache entries in PostgreSQL: for teams, and for executors that run steps on several hosts.

Extend tests/integration/test_entry_store_contract.py, which all entry stores pass.

Source: specification C13, C15, C16.
"""

from reprise.model.cache import EntryCaps
from resources.postgres_cache import SCHEMA, PostgresCacheDatabase
from resources.sql_entry_store import SqlEntryStore


class PostgresEntryStore(SqlEntryStore):
    """An `EntryStore` in a schema of a PostgreSQL database, made on first use.

    Args:
        url: `postgresql://user:password@host:port/database`.
        schema: Name of the schema; made when it is missing.
        caps: How much one project may keep.

    Raises:
        SettingsInvalid: The address cannot be read, or the schema's name is no plain one.
    """

    def __init__(self, url: str, *, schema: str = SCHEMA, caps: EntryCaps | None = None) -> None:
        super().__init__(PostgresCacheDatabase(url, schema=schema), caps=caps or EntryCaps())
