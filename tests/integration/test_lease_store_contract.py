"""What every store of leases promises, run on each; the SQL ones on their database's own clock."""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reprise.ports import EntryStore, LeaseStore
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_lease_store import MemoryLeaseStore
from resources.postgres_entry_store import PostgresEntryStore
from resources.postgres_lease_store import PostgresLeaseStore
from resources.sqlite_entry_store import SqliteEntryStore
from resources.sqlite_lease_store import SqliteLeaseStore
from tests.cache_entries import NOW, entry, key_of
from tests.postgres_server import PostgresTestServer

SHORT_SECONDS = 0.05
LONG_SECONDS = 600.0

KEY = key_of("a")

Stores = tuple[LeaseStore, EntryStore]


def memory(request: pytest.FixtureRequest, folder: Path) -> Stores:
    leases = MemoryLeaseStore()
    return leases, MemoryEntryStore(leases=leases)


def sqlite(request: pytest.FixtureRequest, folder: Path) -> Stores:
    path = folder / "new" / "cache.sqlite"
    return SqliteLeaseStore(path), SqliteEntryStore(path)


def postgres_stores(request: pytest.FixtureRequest, folder: Path) -> Stores:
    server: PostgresTestServer = request.getfixturevalue("postgres")
    schema = server.new_schema()
    stores = (
        PostgresLeaseStore(server.url, schema=schema),
        PostgresEntryStore(server.url, schema=schema),
    )
    for store in stores:
        request.addfinalizer(store.close)
    return stores


KINDS: dict[str, Callable[[pytest.FixtureRequest, Path], Stores]] = {
    "memory": memory,
    "sqlite": sqlite,
    "postgres": postgres_stores,
}


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    return KINDS[request.param](request, tmp_path)


@pytest.fixture
def leases(stores: Stores) -> LeaseStore:
    return stores[0]


def wait_for_expiry(leases: LeaseStore) -> None:
    end = time.monotonic() + 30
    while leases.remaining_seconds("p1", KEY) > 0:
        assert time.monotonic() < end
        threading.Event().wait(0.005)


def test_a_lease_is_had_by_one_holder_at_a_time(leases: LeaseStore) -> None:
    assert leases.remaining_seconds("p1", KEY) == 0
    first = leases.acquire("p1", KEY, holder="one", seconds=LONG_SECONDS)
    assert first is not None
    assert (first.project_id, first.cache_key, first.holder) == ("p1", KEY, "one")
    assert leases.holds(first)
    assert leases.acquire("p1", KEY, holder="two", seconds=LONG_SECONDS) is None
    assert LONG_SECONDS - 60 < leases.remaining_seconds("p1", KEY) <= LONG_SECONDS


def test_leases_of_other_keys_and_projects_are_apart(leases: LeaseStore) -> None:
    for project, name in (("p1", "a"), ("p1", "b"), ("p2", "a")):
        assert leases.acquire(project, key_of(name), holder="x", seconds=LONG_SECONDS) is not None


def test_a_lease_that_is_released_goes_to_the_next_with_a_higher_fence(leases: LeaseStore) -> None:
    first = leases.acquire("p1", KEY, holder="one", seconds=LONG_SECONDS)
    assert first is not None
    leases.release(first)
    assert leases.remaining_seconds("p1", KEY) == 0
    assert not leases.holds(first)
    second = leases.acquire("p1", KEY, holder="two", seconds=LONG_SECONDS)
    assert second is not None
    assert second.fence > first.fence
    leases.release(first)
    assert leases.holds(second)


def test_a_heartbeat_that_comes_after_the_release_brings_nothing_back(leases: LeaseStore) -> None:
    first = leases.acquire("p1", KEY, holder="one", seconds=LONG_SECONDS)
    assert first is not None
    leases.release(first)
    assert not leases.renew(first, seconds=LONG_SECONDS)
    assert leases.acquire("p1", KEY, holder="two", seconds=LONG_SECONDS) is not None


def test_an_expired_lease_is_taken_over_and_its_holder_cannot_renew_it(leases: LeaseStore) -> None:
    first = leases.acquire("p1", KEY, holder="one", seconds=SHORT_SECONDS)
    assert first is not None
    wait_for_expiry(leases)
    second = leases.acquire("p1", KEY, holder="two", seconds=LONG_SECONDS)
    assert second is not None
    assert second.fence > first.fence
    assert not leases.renew(first, seconds=LONG_SECONDS)
    assert not leases.holds(first)


def test_a_holder_that_was_late_keeps_a_lease_that_nobody_took(leases: LeaseStore) -> None:
    first = leases.acquire("p1", KEY, holder="one", seconds=SHORT_SECONDS)
    assert first is not None
    wait_for_expiry(leases)
    assert leases.holds(first)
    assert leases.renew(first, seconds=LONG_SECONDS)
    assert leases.acquire("p1", KEY, holder="two", seconds=LONG_SECONDS) is None


def test_asking_twice_by_the_same_name_is_asking_once(leases: LeaseStore) -> None:
    """A call whose answer was lost with its connection is made again."""
    assert leases.acquire("p1", KEY, holder="one", seconds=LONG_SECONDS) is not None
    again = leases.acquire("p1", KEY, holder="one", seconds=LONG_SECONDS)
    assert again is not None
    assert leases.holds(again)


def test_of_many_that_ask_at_once_one_gets_it(leases: LeaseStore) -> None:
    barrier = threading.Barrier(8)

    def ask(number: int) -> bool:
        barrier.wait(60)
        return leases.acquire("p1", KEY, holder=f"{number}", seconds=LONG_SECONDS) is not None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 1


def test_a_store_under_a_lease_that_is_held_is_kept(stores: Stores) -> None:
    leases, entries = stores
    lease = leases.acquire("p1", KEY, holder="one", seconds=LONG_SECONDS)
    assert entries.put(entry("a"), lease=lease)
    assert entries.put(entry("a", run_id="again"), lease=lease)
    assert entries.get("p1", KEY, now=NOW) == entry("a", run_id="again")


def test_a_late_store_of_a_holder_that_lost_its_lease_is_refused(stores: Stores) -> None:
    leases, entries = stores
    late = leases.acquire("p1", KEY, holder="late", seconds=SHORT_SECONDS)
    wait_for_expiry(leases)
    successor = leases.acquire("p1", KEY, holder="successor", seconds=LONG_SECONDS)
    assert successor is not None
    assert not entries.put(entry("a", run_id="late"), lease=late)
    assert entries.get("p1", KEY, now=NOW) is None
    assert entries.put(entry("a", run_id="successor"), lease=successor)
    leases.release(successor)
    assert not entries.put(entry("a", run_id="late"), lease=late)
    kept = entries.get("p1", KEY, now=NOW)
    assert kept is not None
    assert kept.run_id == "successor"


def test_a_lease_of_another_key_does_not_let_a_store_through(stores: Stores) -> None:
    leases, entries = stores
    lease = leases.acquire("p1", key_of("b"), holder="one", seconds=LONG_SECONDS)
    assert lease is not None
    forged = lease.model_copy(update={"cache_key": KEY})
    assert not entries.put(entry("a"), lease=forged)


def test_a_sweep_forgets_leases_of_yesterday_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    leases, entries = SqliteLeaseStore(path), SqliteEntryStore(path)
    for name in ("old", "held"):
        leases.acquire("p1", key_of(name), holder="x", seconds=LONG_SECONDS)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE lease SET expires_at = 1 WHERE cache_key = ?", (key_of("old"),))
    connection.close()
    entries.sweep(now=NOW)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT cache_key FROM lease").fetchall() == [(key_of("held"),)]
    connection.close()


def test_a_lease_from_before_the_clock_was_set_back_is_void(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    leases = SqliteLeaseStore(path)
    first = leases.acquire("p1", KEY, holder="one", seconds=60)
    assert leases.acquire("p1", KEY, holder="two", seconds=60) is None
    hour = 3600 * 1_000_000
    with sqlite3.connect(path) as connection:
        # What the row looks like after the clock was set back by an hour.
        connection.execute(
            "UPDATE lease SET renewed_at = renewed_at + ?, expires_at = expires_at + ?",
            (hour, hour),
        )
    connection.close()
    second = leases.acquire("p1", KEY, holder="two", seconds=60)
    assert second is not None
    assert first is not None
    assert second.fence > first.fence
