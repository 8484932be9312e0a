"""Whose a SQLite file is, told without touching it, and the setting aside of a damaged one.

The trap that shapes this file: closing any plain handle on a database drops the locks that the same
process holds on it (POSIX record locks). So a healthy header is read through SQLite, and raw bytes
only where SQLite says that there is no usable database.

Source: specification C15; tests in tests/integration/test_sqlite_faults.py.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DAMAGED_SUFFIX = ".damaged"
_APPLICATION_ID_OFFSET = 68
_DATABASE_BYTES_MIN = 512


def carried_application_id(path: Path) -> int | None:
    """Return the application id that a file carries; None when it is empty or absent.

    A database without tables and without any id counts as empty: so does one of ours look while
    another process is making it. A file that is no database answers with whatever its bytes 68 to
    71 say.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        size_bytes = path.stat().st_size
        if size_bytes == 0:
            return None
        if size_bytes < _DATABASE_BYTES_MIN:
            # SQLite takes it for an empty database and would write over it.
            return _read_raw(path)
        return _read_through_sqlite(path)
    except FileNotFoundError:
        return None


def _read_through_sqlite(path: Path) -> int | None:
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None
        )
    except sqlite3.OperationalError as error:
        # Opening failed: let the system say why.
        with path.open("rb"):
            raise OSError(0, str(error)) from error
    try:
        return application_id_in(connection)
    except sqlite3.Error:
        return _read_raw(path)
    finally:
        connection.close()


def _read_raw(path: Path) -> int:
    with path.open("rb") as stream:
        stream.seek(_APPLICATION_ID_OFFSET)
        return int.from_bytes(stream.read(4), "big")


def application_id_in(connection: sqlite3.Connection) -> int | None:
    """Return the application id of an open database; None when it is empty."""

    def header(name: str) -> int:
        return int(connection.execute(f"PRAGMA {name}").fetchall()[0][0])

    # One transaction, or the answers could come from before and after another's commit.
    is_nested = connection.in_transaction
    if not is_nested:
        connection.execute("BEGIN")
    carried: int | None = header("application_id")
    if carried == 0 and header("schema_version") == 0 and header("user_version") == 0:
        carried = None
    if not is_nested:
        connection.execute("COMMIT")
    return carried


def set_aside(path: Path, *, is_the_damaged_one: Callable[[], bool]) -> bool:
    """Rename a damaged database and its log; an earlier one that was set aside is replaced.

    Args:
        path: The database.
        is_the_damaged_one: Asked under a lock, since another process may have been faster.

    Returns:
        True when this call renamed it.
    """
    with _folder_lock(path.parent):
        if not is_the_damaged_one():
            return False
        # The log goes first: a fresh file must never meet the log of the damaged one.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{path}{DAMAGED_SUFFIX}{suffix}")
    return True


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
