"""The one way an adapter opens a SQLite file: safe among threads and processes, made on write.

The contract: `SqliteFile.run` and `run_if_present` run a function with a connection that no
other thread uses at that moment, and turn every SQLite error into a `StoreError`. A file that is
not ours is refused and never touched; a damaged file of a store that can be rebuilt is set aside
once and a fresh one started.

To add a store: give it a `SqliteSchema` with its own component name, and write `INSERT … ON
CONFLICT` statements. To change its tables: append a migration, never edit one. A read followed by a
write goes through `transaction`: a deferred transaction that is promoted to a write fails at once
when another process wrote in between.

Source: specification C13, C15, W9.
"""

import logging
import os
import sqlite3
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reprise.errors import BadInput, StoreError, StoreTimeout, StoreUnusable
from resources.file_system import file_system_kind, is_network
from resources.sqlite_ownership import (
    DAMAGED_SUFFIX,
    application_id_in,
    carried_application_id,
    set_aside,
)

logger = logging.getLogger(__name__)

CACHE_APPLICATION_ID = int.from_bytes(b"RpCa", "big")
"""Marks the file of a store that can be rebuilt."""

METADATA_APPLICATION_ID = int.from_bytes(b"RpMe", "big")
"""Marks the file of stores that hold what cannot be rebuilt: projects and history."""

IDLE_CONNECTIONS_MAX = 8
JOURNAL_BYTES_MAX = 64 * 2**20

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free space or move the file",
    sqlite3.SQLITE_READONLY: "it cannot be written; make the file and its folder writable",
    sqlite3.SQLITE_PERM: "it may not be opened; check the rights of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and is writable",
    sqlite3.SQLITE_IOERR: "the disk failed or is full; check free space and the disk",
}

_Result = TypeVar("_Result")
_Identity = tuple[int, int]


@dataclass(frozen=True)
class SqliteSchema:
    """The tables of one store.

    Several components of the same application id may share a file; each has its own version.
    """

    component: str
    """The store's name inside the file."""
    application_id: int
    """What marks the file as ours; 31 bits, not 0."""
    migrations: tuple[tuple[str, ...], ...]
    """Statements that lead from version n to n + 1, oldest first."""
    rebuildable: bool
    """True for a cache: a damaged file is set aside and a fresh one started."""


@dataclass(frozen=True)
class _Open:
    connection: sqlite3.Connection
    identity: _Identity


class _Pool:
    """Connections that nobody uses at the moment."""

    def __init__(self) -> None:
        self._idle: deque[_Open] = deque()
        self._process = os.getpid()

    def take(self, identity: _Identity | None) -> _Open | None:
        """Return a connection to this very file, or None."""
        if self._process != os.getpid():
            # A child must neither use nor close what its parent opened.
            _INHERITED.append(self._idle)
            self._idle, self._process = deque(), os.getpid()
        while True:
            try:
                opened = self._idle.pop()
            except IndexError:
                return None
            if opened.identity == identity:
                return opened
            opened.connection.close()

    def give(self, opened: _Open) -> None:
        """Keep a connection for the next call."""
        if len(self._idle) >= IDLE_CONNECTIONS_MAX:
            opened.connection.close()
        else:
            self._idle.append(opened)

    def close(self) -> None:
        """Close the idle connections of this process."""
        if self._process == os.getpid():
            with suppress(IndexError):
                while True:
                    self._idle.pop().connection.close()


_INHERITED: list[deque[_Open]] = []
_KNOWN_OURS: set[tuple[_Identity, int]] = set()


class SqliteFile:
    """A SQLite file in WAL mode, opened on first use.

    Args:
        path: The file; `~` is expanded, and its folder is made on the first write.
        schema: The tables.
        busy_seconds: How long a call waits for another writer.
        kind_of: Tells the kind of file system; asked only for a store that can be rebuilt, which
            the engine does without.

    Raises:
        StoreUnusable: The path is a folder, a file that is not ours, or on a network file system.
    """

    def __init__(
        self,
        path: Path,
        schema: SqliteSchema,
        *,
        busy_seconds: float,
        kind_of: Callable[[Path], str | None] = file_system_kind,
    ) -> None:
        self.path = path.expanduser().absolute()
        self._schema = schema
        self._busy_seconds = busy_seconds
        self._pool = _Pool()
        self._closer = weakref.finalize(self, _Pool.close, self._pool)
        if schema.rebuildable:
            self._refuse_network(kind_of(self.path))
        self._refuse_foreign()

    def run_if_present(
        self, work: Callable[[sqlite3.Connection], _Result], *, absent: _Result
    ) -> _Result:
        """Return what `work` returns, or `absent` when there is no file yet; makes none."""
        identity = self._identity()
        return absent if identity is None else self._attempt(work, identity)

    def run(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Return what `work` returns; makes the file and its folder when there is none yet."""
        identity = self._identity()
        if identity is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                message = (
                    f"{self._named}: its folder cannot be made ({error.strerror}); "
                    "make it writable or choose another path"
                )
                raise StoreUnusable(message) from error
        return self._attempt(work, identity)

    def close(self) -> None:
        """Close the idle connections; the next call opens the file again."""
        self._pool.close()

    @property
    def _named(self) -> str:
        return f"{self._schema.component} store {str(self.path)!r}"

    def _identity(self) -> _Identity | None:
        # One stat a call (about 2 µs) notices a file that was removed or replaced under a
        # long-lived process, which would otherwise go on writing to a file without a name.
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            message = f"{self._named}: it cannot be reached ({error.strerror}); check its rights"
            raise StoreUnusable(message) from error
        return status.st_dev, status.st_ino

    def _attempt(
        self, work: Callable[[sqlite3.Connection], _Result], identity: _Identity | None
    ) -> _Result:
        may_set_aside = self._schema.rebuildable
        while True:
            opened = None
            try:
                opened = self._pool.take(identity) or self._open()
                result = work(opened.connection)
            except BaseException as error:
                if opened is not None:
                    self._recover(opened, error)
                if not isinstance(error, sqlite3.Error | UnicodeError | OverflowError):
                    raise
                if may_set_aside and _code(error) in _DAMAGE_CODES and self._set_aside(identity):
                    may_set_aside = False
                    identity = self._identity()
                    continue
                raise self._wrapped(error) from error
            self._pool.give(opened)
            return result

    def _recover(self, opened: _Open, error: BaseException) -> None:
        # Kept where it can be: on a full disk no new connection could be opened, while this one
        # goes on reading.
        try:
            if opened.connection.in_transaction:
                opened.connection.execute("ROLLBACK")
        except sqlite3.Error:
            opened.connection.close()
            return
        if _code(error) in _DAMAGE_CODES:
            opened.connection.close()
        else:
            self._pool.give(opened)

    def _open(self) -> _Open:
        self._refuse_foreign()
        connection = sqlite3.connect(
            self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            identity = self._identity()
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return _Open(connection, identity or (0, 0))

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES_MAX}").fetchall()
        if self._version(connection) < len(self._schema.migrations):
            # Has to come before the first table; lets a sweep give pages back to the disk later.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._migrate(connection)
        if _pragma(connection, "journal_mode") != "wal":
            _enter_wal(connection, self._busy_seconds)
        # NORMAL may lose the last writes when the power fails, and never damages the file; FULL
        # costs an fsync a write, 80 times the time of a cache store.
        connection.execute("PRAGMA synchronous = NORMAL")

    def _version(self, connection: sqlite3.Connection) -> int:
        carried = application_id_in(connection)
        if carried is None:
            return 0
        if carried != self._schema.application_id:
            raise StoreUnusable(self._foreign_message)
        rows = connection.execute(
            "SELECT version FROM component WHERE name = ?", (self._schema.component,)
        ).fetchall()
        version = int(rows[0][0]) if rows else 0
        known = len(self._schema.migrations)
        if version > known:
            message = (
                f"{self._named}: a newer Reprise made it (schema {version}, this one knows "
                f"{known}); upgrade Reprise or choose another path"
            )
            raise StoreUnusable(message)
        return version

    def _migrate(self, connection: sqlite3.Connection) -> None:
        with transaction(connection):
            # Another process may have done it while this one waited for the lock.
            version = self._version(connection)
            connection.execute(f"PRAGMA application_id = {self._schema.application_id}")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS component "
                "(name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT"
            )
            for statements in self._schema.migrations[version:]:
                for statement in statements:
                    connection.execute(statement)
            connection.execute(
                "INSERT INTO component (name, version) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET version = excluded.version",
                (self._schema.component, len(self._schema.migrations)),
            )

    @property
    def _foreign_message(self) -> str:
        return (
            f"{self._named}: the file is not one that this store made, and is left as it is; "
            "choose another path or move it away"
        )

    def _refuse_network(self, kind: str | None) -> None:
        if is_network(kind):
            message = (
                f"{self._named}: it would be on a network file system ({kind}), where SQLite loses"
                " writes; choose a folder on a local disk, or a PostgreSQL database"
            )
            raise StoreUnusable(message)

    def _refuse_foreign(self) -> None:
        identity = self._identity()
        if identity is None or (identity, self._schema.application_id) in _KNOWN_OURS:
            return
        if not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "no regular file"
            message = f"{self._named}: the path is {kind}; choose another path or move it away"
            raise StoreUnusable(message)
        try:
            carried = carried_application_id(self.path)
        except OSError as error:
            message = f"{self._named}: it cannot be read ({error}); check its rights"
            raise StoreUnusable(message) from error
        if carried not in (None, self._schema.application_id):
            raise StoreUnusable(self._foreign_message)
        if carried is not None:
            _KNOWN_OURS.add((identity, carried))

    def _set_aside(self, identity: _Identity | None) -> bool:
        """Answer whether the call is worth another try on a fresh file."""
        if carried_application_id(self.path) not in (None, self._schema.application_id):
            return False
        if set_aside(self.path, is_the_damaged_one=lambda: self._identity() == identity):
            logger.warning(
                "%s is damaged; it was renamed to %r and a fresh one is started",
                self._named,
                self.path.name + DAMAGED_SUFFIX,
            )
        return True

    def _wrapped(self, error: Exception) -> StoreError | BadInput:
        if isinstance(error, UnicodeError | OverflowError):
            return BadInput(f"{self._named}: a value cannot be stored: {error}")
        code = _code(error)
        if code in _BUSY_CODES:
            return StoreTimeout(
                f"{self._named}: another process held it for {self._busy_seconds:g} s; try again"
            )
        if code in _DAMAGE_CODES:
            return StoreUnusable(
                f"{self._named}: the file is damaged ({error}); "
                "restore it from a backup, or move it away"
            )
        if code in _REMEDIES:
            return StoreUnusable(f"{self._named}: {_REMEDIES[code]} ({error})")
        return StoreError(f"{self._named}: {error}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock from the first statement on; commit at the end, undo on an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _pragma(connection: sqlite3.Connection, name: str) -> int | str:
    value: int | str = connection.execute(f"PRAGMA {name}").fetchall()[0][0]
    return value


def _enter_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    # The change needs the file alone and passes by the busy handler. A connection that cannot have
    # it works in rollback mode, slower and as safe; the next one tries again.
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY_CODES:
                raise
            if time.monotonic() >= deadline:
                return
            time.sleep(0.005)
        else:
            return
