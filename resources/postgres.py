"""The one way an adapter talks to PostgreSQL: pooled sessions, every error a `StoreError`.

SQLAlchemy's engine and `QueuePool` keep the sessions; the stores run their statements on the
driver's cursor. A connection that the server closed is replaced and the call made once more, so
each call has to be harmless when it is made twice. A forked child never uses what its parent
opened. Settings belong to the session: behind a pooler, use its session mode.

Performance: a select of 22 KB on a Unix socket took 108 µs with the driver alone, 150 with the
pool, 260 through SQLAlchemy's `exec_driver_sql`. A ping at each checkout would be one more round
trip; a closed connection is noticed by its first call instead.

A backend that is frozen hangs its caller whatever the server's time-outs say (measured: 4 s and
more): put resources/deadline.py around what is on a step's path.

Source: specification C7, C13, C15.
"""

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar, cast

import psycopg2
from psycopg2 import errorcodes
from psycopg2.extensions import connection as Connection  # noqa: N812 - A class of that name.
from psycopg2.extensions import parse_dsn
from sqlalchemy import QueuePool, create_engine
from sqlalchemy.exc import TimeoutError as PoolTimeout

from reprise.errors import BadInput, SettingsInvalid, StoreError, StoreTimeout, StoreUnusable

CONNECT_SECONDS = 2
STATEMENT_SECONDS = 5.0
LOCK_SECONDS = 1.0
POOL_SECONDS = 0.2
"""Longest wait for a connection of the pool: within the deadline of a look-up."""
IDLE_CONNECTIONS_MAX = 4
CONNECTIONS_MAX = 16
"""As many as may hang at once, see resources/deadline.py."""

_MIGRATION_LOCK = 0x52704361
"""`RpCa`: one process at a time makes or changes tables."""

_BUSY_CODES = frozenset(
    {
        errorcodes.QUERY_CANCELED,
        errorcodes.LOCK_NOT_AVAILABLE,
        errorcodes.DEADLOCK_DETECTED,
        errorcodes.SERIALIZATION_FAILURE,
    }
)
_TABLES_GONE_CODES = frozenset(
    {errorcodes.UNDEFINED_TABLE, errorcodes.UNDEFINED_COLUMN, errorcodes.INVALID_SCHEMA_NAME}
)
_REMEDIES = {
    errorcodes.DISK_FULL: "its disk is full; free space",
    errorcodes.READ_ONLY_SQL_TRANSACTION: "it is read-only; name the primary server",
    errorcodes.INSUFFICIENT_PRIVILEGE: "this user may not; grant the right, or choose another user",
    errorcodes.INVALID_PASSWORD: "the password is wrong",
    errorcodes.INVALID_AUTHORIZATION_SPECIFICATION: "this user may not connect",
    errorcodes.INVALID_CATALOG_NAME: "there is no such database; make it",
}
# What the client library tells of a refused log-in carries no code.
_LOG_IN_REFUSED = re.compile(r"authentication failed|does not exist|no pg_hba.conf entry")

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class PostgresSchema:
    """The tables of one store."""

    component: str
    """The store's name in messages and in its version row."""
    migrations: tuple[tuple[str, ...], ...]
    """Statements that lead from version n to n + 1, oldest first."""


class PostgresServer:
    """A schema of a PostgreSQL database, opened and made on first use; safe among threads.

    Args:
        url: `postgresql://user:password@host:port/database`.
        tables: The tables.
        schema: Name of the schema that holds them; made when it is missing.
        statement_seconds: The server ends a statement after so long.
        lock_seconds: The server ends a wait for a lock after so long.

    Raises:
        SettingsInvalid: The address cannot be read, or the schema's name is no plain one.
    """

    def __init__(
        self,
        url: str,
        tables: PostgresSchema,
        *,
        schema: str,
        statement_seconds: float = STATEMENT_SECONDS,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        if re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema) is None:
            message = f"schema {schema!r}: use lower-case letters, digits and `_`"
            raise SettingsInvalid(message)
        # SQLAlchemy's way of naming the driver is what Dagster's own settings have.
        self._dsn = re.sub(r"^postgres(ql)?(\+psycopg2)?://", "postgresql://", url)
        self._tables = tables
        self._schema = schema
        self._statement_seconds = statement_seconds
        self._lock_seconds = lock_seconds
        self._named = f"{tables.component} store in {_describe(self._dsn)}"
        self._engine = create_engine(
            "postgresql+psycopg2://",
            creator=self._open,
            poolclass=QueuePool,
            pool_size=IDLE_CONNECTIONS_MAX,
            max_overflow=CONNECTIONS_MAX - IDLE_CONNECTIONS_MAX,
            pool_timeout=POOL_SECONDS,
            # The same few connections do the work, and the others end.
            pool_use_lifo=True,
            # A connection commits each statement by itself; see `_attempt` for the rest.
            pool_reset_on_return=None,
        )
        self._process = os.getpid()
        self._is_ready = False
        self._lock = threading.Lock()

    def run(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return what `work` returns; its connection commits each statement by itself.

        `work` may be called twice, when the first connection turns out to be closed.
        """
        if self._process != os.getpid():
            # A child must neither use nor close what its parent opened: closing says goodbye to
            # the parent's session.
            self._engine.dispose(close=False)
            self._process, self._lock = os.getpid(), threading.Lock()
        try:
            try:
                return self._attempt(work)
            except _ConnectionClosed:
                # The server ended it, most likely with all others, such as on a restart.
                self.close()
                return self._attempt(work)
        except PoolTimeout as error:
            message = f"{self._named}: all its {CONNECTIONS_MAX} connections are at work; try again"
            raise StoreTimeout(message) from error
        except _ConnectionClosed as error:
            raise self._wrapped(error.cause) from error.cause
        except (psycopg2.Error, ValueError, UnicodeError) as error:
            raise self._wrapped(error) from error

    def close(self) -> None:
        """Close the idle connections; the next call opens new ones."""
        self._engine.dispose(close=self._process == os.getpid())

    def _attempt(self, work: Callable[[Connection], _Result]) -> _Result:
        pooled = self._engine.raw_connection()
        connection = cast("Connection", pooled.driver_connection)
        try:
            if not self._is_ready:
                self._migrate(connection)
            return work(connection)
        except BaseException as error:
            _roll_back(connection)
            if connection.closed:
                pooled.invalidate()
                if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError):
                    raise _ConnectionClosed(error) from error
            raise
        finally:
            pooled.close()

    def _open(self) -> Connection:
        connection = psycopg2.connect(
            self._dsn,
            connect_timeout=CONNECT_SECONDS,
            application_name="reprise",
            client_encoding="UTF8",
            # A host that vanished is noticed although nothing is sent.
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                # Nothing in a cache is worth waiting for the disk: 13 times faster.
                cursor.execute(
                    f"SET statement_timeout = {round(self._statement_seconds * 1000)};"
                    f"SET lock_timeout = {round(self._lock_seconds * 1000)};"
                    "SET idle_in_transaction_session_timeout = 10000;"
                    "SET synchronous_commit = off;"
                    f"SET search_path = {self._schema}"
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: Connection) -> None:
        with self._lock, connection.cursor() as cursor:
            if self._version(connection) < len(self._tables.migrations):
                cursor.execute("BEGIN")
                # Held to the end of the transaction; whoever waited finds the work done.
                cursor.execute(f"SET LOCAL lock_timeout = {CONNECT_SECONDS * 5000}")
                cursor.execute(f"SET LOCAL statement_timeout = {CONNECT_SECONDS * 60_000}")
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
                version = self._version(connection)
                if version == 0:
                    self._start(connection)
                for statements in self._tables.migrations[version:]:
                    for statement in statements:
                        cursor.execute(statement)
                cursor.execute(
                    "INSERT INTO component (name, version) VALUES (%s, %s) "
                    "ON CONFLICT (name) DO UPDATE SET version = excluded.version",
                    (self._tables.component, len(self._tables.migrations)),
                )
                cursor.execute("COMMIT")
            self._is_ready = True

    def _start(self, connection: Connection) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self._schema,))
            # IF NOT EXISTS asks for the right to make one even where it is there.
            if not cursor.fetchall():
                cursor.execute(f"CREATE SCHEMA {self._schema}")
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS component "
                "(name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
            )

    def _version(self, connection: Connection) -> int:
        with connection.cursor() as cursor:
            # Not `to_regclass`: it answers from a cache that nothing refreshes inside a
            # transaction, and whoever waited for the lock would make the tables once more.
            cursor.execute(
                "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
                "WHERE nspname = %s AND relname = 'component'",
                (self._schema,),
            )
            if not cursor.fetchall():
                return 0
            cursor.execute(
                "SELECT version FROM component WHERE name = %s", (self._tables.component,)
            )
            rows = cursor.fetchall()
        version = int(rows[0][0]) if rows else 0
        known = len(self._tables.migrations)
        if version > known:
            message = (
                f"{self._named}: a newer Reprise made its tables (schema {version}, this one knows "
                f"{known}); upgrade Reprise or choose another database"
            )
            raise StoreUnusable(message)
        return version

    def _wrapped(self, error: Exception) -> StoreError | BadInput:
        if isinstance(error, psycopg2.DataError) or not isinstance(error, psycopg2.Error):
            return BadInput(f"{self._named}: a value cannot be stored: {error}")
        code, text = error.pgcode, str(error).strip().splitlines()[0] if str(error) else ""
        if code in _BUSY_CODES:
            return StoreTimeout(f"{self._named}: it was busy for too long ({text}); try again")
        if code in _TABLES_GONE_CODES:
            # The next call makes them anew.
            self._is_ready = False
            return StoreError(f"{self._named}: its tables are gone ({text}); try again")
        if code in _REMEDIES:
            return StoreUnusable(f"{self._named}: {_REMEDIES[code]} ({text})")
        if code is None and _LOG_IN_REFUSED.search(text):
            return StoreUnusable(f"{self._named}: it refused the log-in ({text})")
        return StoreError(f"{self._named}: {text}; see whether it is up")


class _ConnectionClosed(Exception):
    def __init__(self, cause: psycopg2.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _roll_back(connection: Connection) -> None:
    with suppress(psycopg2.Error):
        if not connection.closed and connection.info.transaction_status:
            with connection.cursor() as cursor:
                cursor.execute("ROLLBACK")


def _describe(dsn: str) -> str:
    """Return what an address names, without its password."""
    try:
        parts = parse_dsn(dsn)
    except psycopg2.ProgrammingError:
        # The library's message may show the password.
        message = "the PostgreSQL address cannot be read; write postgresql://user@host/database"
        raise SettingsInvalid(message) from None
    host, port = parts.get("host", "localhost"), parts.get("port", "5432")
    return f"PostgreSQL database {parts.get('dbname', '')!r} at {host}:{port}"
