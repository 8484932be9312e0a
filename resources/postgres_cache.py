"""The cache's tables in PostgreSQL, and how the SQL stores run their statements there.

To change a table: append a migration to `_TABLES`, never edit one, and do the same in
resources/sqlite_cache.py.

Source: specification C11, C13, C15.
"""

from collections.abc import Callable
from typing import TypeVar

from psycopg2.extensions import connection as Connection  # noqa: N812 - A class of that name.

from resources.postgres import LOCK_SECONDS, STATEMENT_SECONDS, PostgresSchema, PostgresServer
from resources.sql_database import Dialect, Rows, SqlSession, Values

SCHEMA = "reprise_step_cache"

_Result = TypeVar("_Result")

_TABLES = PostgresSchema(
    component="step cache",
    migrations=(
        (
            # No foreign keys: editing a workflow must not remove entries that are still valid.
            """
            CREATE TABLE entry (
                id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                schema_version INTEGER NOT NULL,
                workflow_id TEXT NOT NULL,
                step_label TEXT NOT NULL,
                step_type TEXT NOT NULL,
                agent_id TEXT,
                run_id TEXT NOT NULL,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                last_used_at BIGINT NOT NULL,
                hits BIGINT NOT NULL DEFAULT 0,
                pinned INTEGER NOT NULL DEFAULT 0,
                size_bytes BIGINT NOT NULL,
                seconds DOUBLE PRECISION NOT NULL,
                payload_digest TEXT NOT NULL,
                payload_key TEXT,
                payload_bytes BIGINT,
                usage TEXT NOT NULL,
                artifacts TEXT NOT NULL,
                field_digests TEXT NOT NULL,
                payload TEXT NOT NULL,
                UNIQUE (project_id, cache_key)
            )
            """,
            """
            CREATE INDEX entry_by_step
                ON entry (project_id, workflow_id, step_label, created_at, id)
            """,
            "CREATE INDEX entry_by_expiry ON entry (expires_at)",
            """
            CREATE INDEX entry_by_use ON entry (project_id, pinned, last_used_at, id, size_bytes)
            """,
            "CREATE INDEX entry_by_payload ON entry (payload_key) WHERE payload_key IS NOT NULL",
            """
            CREATE TABLE tombstone (
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                payload_key TEXT,
                reason TEXT NOT NULL,
                gone_at BIGINT NOT NULL,
                PRIMARY KEY (project_id, cache_key)
            )
            """,
            "CREATE INDEX tombstone_by_age ON tombstone (gone_at)",
            """
            CREATE INDEX tombstone_by_payload ON tombstone (payload_key)
                WHERE payload_key IS NOT NULL
            """,
            """
            CREATE TABLE lease (
                project_id TEXT NOT NULL,
                cache_key TEXT NOT NULL,
                holder TEXT NOT NULL,
                fence BIGINT NOT NULL,
                renewed_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                PRIMARY KEY (project_id, cache_key)
            )
            """,
        ),
    ),
)

_DIALECT = Dialect(
    now_micros="(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    skip_locked="FOR UPDATE SKIP LOCKED",
    digests="jsonb_each_text(entry.field_digests::jsonb) AS f (key, value)",
)


class PostgresCacheDatabase:
    """The `SqlDatabase` in a schema of a PostgreSQL database, made on first use.

    Args:
        url: `postgresql://user:password@host:port/database`.
        schema: Name of the schema.
        statement_seconds: The server ends a statement after so long.
        lock_seconds: The server ends a wait for a lock after so long.

    Raises:
        SettingsInvalid: The address cannot be read, or the schema's name is no plain one.
    """

    dialect = _DIALECT

    def __init__(
        self,
        url: str,
        *,
        schema: str = SCHEMA,
        statement_seconds: float = STATEMENT_SECONDS,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        self._server = PostgresServer(
            url,
            _TABLES,
            schema=schema,
            statement_seconds=statement_seconds,
            lock_seconds=lock_seconds,
        )

    def rows(self, statement: str, values: Values = (), *, write: bool = False) -> Rows:
        """Run one statement and return its rows; see `SqlDatabase`."""
        del write
        return self._server.run(lambda connection: _Session(connection).rows(statement, values))

    def count(self, statement: str, values: Values = (), *, write: bool = False) -> int:
        """Run one statement and return how many rows it changed; see `SqlDatabase`."""
        del write
        return self._server.run(lambda connection: _Session(connection).count(statement, values))

    def transact(self, work: Callable[[SqlSession], _Result], *, absent: _Result) -> _Result:
        """Run statements in one transaction; see `SqlDatabase`."""
        del absent

        def whole(connection: Connection) -> _Result:
            session = _Session(connection)
            session.count("BEGIN")
            # An error before the end is undone where the connection is given back.
            result = work(session)
            session.count("COMMIT")
            return result

        return self._server.run(whole)

    def close(self) -> None:
        """Close idle connections; the next call opens new ones."""
        self._server.close()


class _Session:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Values = ()) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(_with_percents(statement), values)
            return cursor.fetchall()

    def count(self, statement: str, values: Values = ()) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(_with_percents(statement), values)
            return cursor.rowcount


def _with_percents(statement: str) -> str:
    # The statements hold neither a literal `?` nor a `%`.
    return statement.replace("?", "%s")
