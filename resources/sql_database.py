"""What the SQL stores of the cache ask of a database, and where SQLite and PostgreSQL differ.

Their statements are written once, with `?` for each value, and run on both. To add a database: give
its `Dialect` and an object with the methods of `SqlDatabase`, then its case in
tests/integration/test_entry_store_contract.py and tests/integration/test_lease_store_contract.py.

Source: specification C13, C15.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

_Result = TypeVar("_Result")

Values = Sequence[object]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Dialect:
    """The few words that differ."""

    now_micros: str
    """Expression: the database's own time, in microseconds since 1970."""
    skip_locked: str
    """Ends a select of rows to remove: leave those that another sweep is removing."""
    digests: str
    """Table expression `f (key, value)` over the column `field_digests`."""


class SqlSession(Protocol):
    """A connection inside a transaction."""

    def rows(self, statement: str, values: Values = ()) -> Rows:
        """Run a statement that returns rows."""
        ...

    def count(self, statement: str, values: Values = ()) -> int:
        """Run a statement and return how many rows it changed."""
        ...


class SqlDatabase(Protocol):
    """A database that holds the cache; each method leaves no transaction open.

    Raises:
        StoreTimeout: It was busy for too long.
        StoreUnusable: It stays unusable until a person acts.
        StoreError: Any other failure.
    """

    dialect: Dialect

    def rows(self, statement: str, values: Values = (), *, write: bool = False) -> Rows:
        """Run one statement and return its rows; none while there is no database yet.

        Args:
            statement: The statement.
            values: Its values.
            write: Make the database when there is none yet.
        """
        ...

    def count(self, statement: str, values: Values = (), *, write: bool = False) -> int:
        """Run one statement and return how many rows it changed; 0 without a database."""
        ...

    def transact(self, work: Callable[[SqlSession], _Result], *, absent: _Result) -> _Result:
        """Run statements in one transaction, or return `absent` without a database."""
        ...

    def close(self) -> None:
        """Close idle connections; the next call opens new ones."""
        ...


def marks(columns: int, rows: int = 1) -> str:
    """Return `(?, ?), (?, ?)`: the values of so many rows."""
    row = f"({', '.join('?' * columns)})"
    return ", ".join([row] * rows)
