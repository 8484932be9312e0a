"""Hits cost no statement: they are counted in memory and written down in batches."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from reprise.model.cache import EntryCaps, EntryFilter
from resources.entry_uses import DUE_ROWS_MAX, TOUCH_MICROS, EntryUses, Use
from resources.sql_database import Dialect, Rows, SqlSession, Values
from resources.sql_entry_store import SqlEntryStore
from resources.sqlite_cache import SqliteCacheDatabase
from tests.cache_entries import HOUR, NOW, entry, key_of

_Result = TypeVar("_Result")


def test_uses_of_a_row_are_added_up() -> None:
    uses = EntryUses()
    for now in (10, 30, 20):
        uses.record(7, written_at=0, now=now)
    uses.record(3, written_at=0, now=5)
    assert uses.take() == [Use(3, 1, 5, due=False), Use(7, 3, 30, due=False)]
    assert uses.take() == []


def test_rows_touched_less_than_an_hour_ago_wait() -> None:
    uses = EntryUses()
    uses.record(1, written_at=0, now=TOUCH_MICROS - 1)
    uses.record(2, written_at=0, now=TOUCH_MICROS)
    assert [use.row_id for use in uses.take(due_only=True)] == [2]
    assert [use.row_id for use in uses.take()] == [1]


def test_it_is_time_to_write_when_enough_rows_are_due() -> None:
    uses = EntryUses()
    times = [uses.record(row, written_at=0, now=TOUCH_MICROS) for row in range(DUE_ROWS_MAX)]
    assert times == [False] * (DUE_ROWS_MAX - 1) + [True]


class CountedDatabase:
    """A database that counts its statements."""

    dialect: Dialect = SqliteCacheDatabase.dialect

    def __init__(self, inner: SqliteCacheDatabase) -> None:
        self.inner = inner
        self.statements = 0

    def rows(self, statement: str, values: Values = (), *, write: bool = False) -> Rows:
        self.statements += 1
        return self.inner.rows(statement, values, write=write)

    def count(self, statement: str, values: Values = (), *, write: bool = False) -> int:
        self.statements += 1
        return self.inner.count(statement, values, write=write)

    def transact(self, work: Callable[[SqlSession], _Result], *, absent: _Result) -> _Result:
        self.statements += 2
        return self.inner.transact(work, absent=absent)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[CountedDatabase]:
    with closing(SqliteCacheDatabase(tmp_path / "cache.sqlite")) as inner:
        yield CountedDatabase(inner)


def test_a_hit_is_one_statement_and_so_is_a_store(database: CountedDatabase) -> None:
    store = SqlEntryStore(database, caps=EntryCaps())
    for index in range(20):
        store.put(entry(f"{index}"))
    assert database.statements == 20
    for index in range(20):
        assert store.get("p1", key_of(f"{index}"), now=NOW + 2 * HOUR) is not None
    assert database.statements == 40
    store.flush()
    assert database.statements == 41


def test_a_long_process_writes_uses_down_without_being_asked(database: CountedDatabase) -> None:
    store = SqlEntryStore(database, caps=EntryCaps())
    for index in range(DUE_ROWS_MAX):
        store.put(entry(f"{index}"))
    later = NOW + timedelta(hours=1)
    for index in range(DUE_ROWS_MAX):
        assert store.get("p1", key_of(f"{index}"), now=later) is not None
    assert database.statements == 2 * DUE_ROWS_MAX + 1
    assert {summary.last_used_at for summary in store.find(EntryFilter())} == {later}
