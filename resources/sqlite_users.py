"""People in a SQLite file.

E-mail addresses are compared by their case-folded form, which is a column of its own: SQLite's
NOCASE folds ASCII letters alone.

Source: specification O1, W9.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from reprise.errors import BadInput
from reprise.model.user import User
from resources.sqlite import METADATA_APPLICATION_ID, SqliteFile, SqliteSchema, transaction

BUSY_SECONDS = 15.0

_SCHEMA = SqliteSchema(
    component="user",
    application_id=METADATA_APPLICATION_ID,
    rebuildable=False,
    migrations=(
        (
            """
            CREATE TABLE user (
                id TEXT PRIMARY KEY,
                email TEXT NOT NULL,
                folded_email TEXT NOT NULL UNIQUE,
                is_admin INTEGER NOT NULL CHECK (is_admin IN (0, 1))
            ) STRICT
            """,
        ),
    ),
)


class SqliteUserRegistry:
    """A `UserRegistry` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.

    Raises:
        StoreUnusable: The path is a folder, or a file that is not ours.
    """

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._file = SqliteFile(path, _SCHEMA, busy_seconds=busy_seconds)

    def add_user(self, user: User) -> None:
        """Add a user; see `UserRegistry`."""
        folded = user.email.casefold()

        def work(connection: sqlite3.Connection) -> list[User]:
            with transaction(connection):
                others = _users(connection, "WHERE id = ? OR folded_email = ?", user.id, folded)
                if not others:
                    connection.execute(
                        "INSERT INTO user (id, email, folded_email, is_admin) VALUES (?, ?, ?, ?)",
                        (user.id, user.email, folded, int(user.is_admin)),
                    )
                return others

        for other in self._file.run(work):
            message = (
                f"there is user {other.id!r} with the e-mail address {other.email!r}; "
                "remove that one first with `reprise user remove`"
            )
            raise BadInput(message)

    def user(self, user_id: str) -> User | None:
        """Return the user of an id, or None."""
        return self._one("WHERE id = ?", user_id)

    def user_of_email(self, email: str) -> User | None:
        """Return the user of an e-mail address, or None."""
        return self._one("WHERE folded_email = ?", email.casefold())

    def users(self) -> Sequence[User]:
        """Return all users, by e-mail address."""
        return self._file.run_if_present(lambda c: _users(c, "ORDER BY folded_email"), absent=[])

    def remove_user(self, user_id: str) -> bool:
        """Remove a user; answer whether there was one."""
        return self._file.run_if_present(
            lambda c: c.execute("DELETE FROM user WHERE id = ?", (user_id,)).rowcount > 0,
            absent=False,
        )

    def close(self) -> None:
        """Close idle connections; the next call opens the file again."""
        self._file.close()

    def _one(self, clause: str, argument: str) -> User | None:
        none: list[User] = []
        found = self._file.run_if_present(lambda c: _users(c, clause, argument), absent=none)
        return found[0] if found else None


def _users(connection: sqlite3.Connection, clause: str, *arguments: str) -> list[User]:
    rows = connection.execute(f"SELECT id, email, is_admin FROM user {clause}", arguments)
    return [User(id=row[0], email=row[1], is_admin=bool(row[2])) for row in rows.fetchall()]
