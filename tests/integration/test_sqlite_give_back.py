"""The cache's file gets smaller after entries are removed."""

import sqlite3
from contextlib import closing
from pathlib import Path

from resources.sqlite_cache import GIVE_BACK_PAGES
from resources.sqlite_entry_store import SqliteEntryStore
from tests.cache_entries import NOW, WEEK, entry, key_of

PAYLOAD = "x" * 40_000


def unused_pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def filled(path: Path) -> SqliteEntryStore:
    """Return a store whose sweep leaves more unused pages than one step gives back."""
    store = SqliteEntryStore(path)
    for index in range(200):
        store.put(entry(f"old-{index}", payload=PAYLOAD))
    store.put(entry("new", created_at=NOW + WEEK, payload=PAYLOAD))
    assert store.sweep(now=NOW + WEEK, rows_max=500) == 200
    assert unused_pages(path) > GIVE_BACK_PAGES
    return store


def test_what_removed_entries_took_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = filled(path)
    store.give_back()
    assert unused_pages(path) == 0
    assert path.stat().st_size < 500_000
    assert store.get("p1", key_of("new"), now=NOW + WEEK) is not None


def test_it_goes_in_few_steps(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = filled(path)
    before = unused_pages(path)
    store.give_back(steps_max=1)
    assert before - unused_pages(path) == GIVE_BACK_PAGES


def test_a_reader_in_the_way_delays_it_and_sees_what_it_saw(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        seen = reader.execute("SELECT count(*) FROM entry").fetchone()
        store.give_back()
        assert reader.execute("SELECT count(*) FROM entry").fetchone() == seen == (1,)
        reader.execute("COMMIT")
    store.give_back()
    assert path.stat().st_size < 500_000


def test_without_a_file_nothing_is_made(tmp_path: Path) -> None:
    SqliteEntryStore(tmp_path / "cache.db").give_back()
    assert list(tmp_path.iterdir()) == []
