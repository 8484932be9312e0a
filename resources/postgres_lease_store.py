"""Leases in PostgreSQL, on the database's clock, in the schema of the entries.

Source: specification C14.
"""

from resources.postgres_cache import SCHEMA, PostgresCacheDatabase
from resources.sql_lease_store import SqlLeaseStore


class PostgresLeaseStore(SqlLeaseStore):
    """A `LeaseStore` in a schema of a PostgreSQL database, made on first use.

    Args:
        url: `postgresql://user:password@host:port/database`.
        schema: That of the entries: a store is refused by a lease in the same schema.

    Raises:
        SettingsInvalid: The address cannot be read, or the schema's name is no plain one.
    """

    def __init__(self, url: str, *, schema: str = SCHEMA) -> None:
        super().__init__(PostgresCacheDatabase(url, schema=schema))
