"""What the PostgreSQL stores do while the server is locked, slow, frozen, killed, gone or newer.

One rule for the faults on a step's path: eleven steps give what they give without a cache, and the
time added is at most one deadline. The deadlines are the real ones; the bound on the clock leaves
room for a loaded machine and is far below the twenty-two deadlines that a store without a breaker
would cost.
"""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import UTC, datetime

import pytest

from reprise.cache.lookup import StepCache, StepCost, StepIdentity
from reprise.canonical import sha256_hex
from reprise.errors import BadInput, SettingsInvalid, StoreError, StoreTimeout, StoreUnusable
from reprise.model.cache import EntryCaps
from reprise.model.result import CacheReason, StepResult
from reprise.model.settings import StepCacheSettings
from reprise.ports import EntryStore
from resources.breaker import BreakerEntryStore, BreakerLeaseStore, CircuitBreaker
from resources.deadline import DeadlineEntryStore, DeadlineLeaseStore
from resources.postgres import CONNECTIONS_MAX, POOL_SECONDS
from resources.postgres_cache import PostgresCacheDatabase
from resources.postgres_entry_store import PostgresEntryStore
from resources.postgres_lease_store import PostgresLeaseStore
from resources.single_flight import SingleFlight
from resources.sql_database import SqlSession
from resources.sql_entry_store import SqlEntryStore
from tests.cache_entries import NOW, entry, key_of
from tests.postgres_server import PostgresTestServer

STEPS = 11
LOOKUP_SECONDS = 0.25
STORE_SECONDS = 0.5
SLACK_SECONDS = 2.0


@pytest.fixture
def schema(postgres: PostgresTestServer) -> str:
    return postgres.new_schema()


@pytest.fixture
def store(postgres: PostgresTestServer, schema: str) -> Iterator[PostgresEntryStore]:
    with closing(PostgresEntryStore(postgres.url, schema=schema)) as store:
        yield store


class Chain:
    """Eleven steps, each reading the output of the one before, over a guarded store."""

    def __init__(self, entries: EntryStore) -> None:
        guarded = DeadlineEntryStore(
            entries, lookup_seconds=LOOKUP_SECONDS, store_seconds=STORE_SECONDS
        )
        self.executed = 0
        self.cache = StepCache(
            BreakerEntryStore(guarded, CircuitBreaker("the store")),
            lambda _: None,
            StepCacheSettings(),
            lambda: datetime.now(UTC),
        )

    def run(self) -> str:
        self.executed = 0
        text = "the request"
        for number in range(STEPS):
            key = sha256_hex(f"{number} {text}")
            step = StepIdentity("p1", "w", f"step {number}", "agent", None, key, {"input": key})
            lookup = self.cache.lookup(step)
            if lookup.result is not None:
                text = str(lookup.result.output)
                continue
            self.executed += 1
            text = f"{number}: {key}"
            self.cache.store(step, StepResult(output=text), StepCost("run", 1.0))
        return text


def uncached_answer() -> str:
    text = "the request"
    for number in range(STEPS):
        text = f"{number}: {sha256_hex(f'{number} {text}')}"
    return text


@contextmanager
def locked(server: PostgresTestServer, schema: str) -> Iterator[None]:
    with closing(server.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE entry IN ACCESS EXCLUSIVE MODE")
        yield
        cursor.execute("ROLLBACK")


@contextmanager
def slow(server: PostgresTestServer, schema: str) -> Iterator[None]:
    with closing(server.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE entry RENAME TO entry_itself;"
            "CREATE VIEW entry AS SELECT entry_itself.* FROM entry_itself, pg_sleep(4)"
        )
        yield


@contextmanager
def frozen(server: PostgresTestServer, schema: str) -> Iterator[None]:
    pids = backends(server)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def backends(server: PostgresTestServer) -> list[int]:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'reprise'")
        return [int(row[0]) for row in cursor.fetchall()]


FAULTS: dict[str, Callable[[PostgresTestServer, str], AbstractContextManager[None]]] = {
    "a table that another session has locked": locked,
    "a query that takes seconds": slow,
    "a frozen backend": frozen,
}


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_store_that_hangs_costs_a_run_one_deadline(
    postgres: PostgresTestServer,
    schema: str,
    fault: Callable[[PostgresTestServer, str], AbstractContextManager[None]],
    warm: bool,
) -> None:
    with closing(PostgresEntryStore(postgres.url, schema=schema)) as entries:
        chain = Chain(entries)
        if warm:
            chain.run()
        else:
            # Tables and a connection are there, as in a project's first run.
            assert len(entries) == 0
        with fault(postgres, schema):
            begun = time.monotonic()
            assert chain.run() == uncached_answer()
            seconds = time.monotonic() - begun
        assert chain.executed == STEPS
        assert seconds < STORE_SECONDS + SLACK_SECONDS


def test_steps_of_a_healthy_store_hit(store: PostgresEntryStore) -> None:
    chain = Chain(store)
    assert chain.run() == uncached_answer()
    assert chain.executed == STEPS
    assert chain.run() == uncached_answer()
    assert chain.executed == 0


def test_connections_that_the_server_closed_are_replaced_and_hits_go_on(
    postgres: PostgresTestServer, store: PostgresEntryStore
) -> None:
    chain = Chain(store)
    chain.run()
    with closing(postgres.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'reprise'"
        )
    assert chain.run() == uncached_answer()
    assert chain.executed == 0


@pytest.mark.parametrize("address", ["127.0.0.1:1", "192.0.2.1:5432"])
def test_a_server_that_is_not_there_costs_at_most_one_deadline(address: str) -> None:
    """A refused port, and an address that nothing answers for."""
    chain = Chain(PostgresEntryStore(f"postgresql://someone:secret@{address}/cache"))
    begun = time.monotonic()
    assert chain.run() == uncached_answer()
    assert time.monotonic() - begun < LOOKUP_SECONDS + SLACK_SECONDS


def test_a_lease_store_that_is_frozen_lets_the_step_compute(
    postgres: PostgresTestServer, schema: str
) -> None:
    leases = PostgresLeaseStore(postgres.url, schema=schema)
    guarded = BreakerLeaseStore(DeadlineLeaseStore(leases), CircuitBreaker("the store"))
    flights = SingleFlight(guarded)

    def look() -> str | None:
        return None

    with ExitStack() as stack:
        stack.callback(leases.close)
        leases.acquire("p1", key_of("other"), holder="x", seconds=1)
        stack.enter_context(frozen(postgres, schema))
        begun = time.monotonic()
        for _ in range(STEPS):
            with flights.take(
                "p1", key_of("a"), look=look, expected_seconds=None, cancelled=bool
            ) as flight:
                assert (flight.lease, flight.found) == (None, None)
        assert time.monotonic() - begun < STORE_SECONDS + SLACK_SECONDS


def test_the_server_ends_a_wait_for_a_lock_and_a_long_statement(
    postgres: PostgresTestServer, schema: str
) -> None:
    """So a call that its caller has given up does not hang for ever."""
    database = PostgresCacheDatabase(
        postgres.url, schema=schema, lock_seconds=0.1, statement_seconds=0.3
    )
    with closing(SqlEntryStore(database, caps=EntryCaps())) as store:
        store.put(entry())
        with locked(postgres, schema), pytest.raises(StoreTimeout, match="busy for too long"):
            store.get("p1", key_of("a"), now=NOW)
        assert store.get("p1", key_of("a"), now=NOW) == entry()
        with slow(postgres, schema), pytest.raises(StoreTimeout, match="busy for too long"):
            store.get("p1", key_of("a"), now=NOW)


def test_the_session_does_not_wait_for_the_disk(postgres: PostgresTestServer, schema: str) -> None:
    with closing(PostgresCacheDatabase(postgres.url, schema=schema)) as database:
        assert database.rows("SHOW synchronous_commit") == [("off",)]
        assert database.rows("SHOW statement_timeout") == [("5s",)]
        assert database.rows("SHOW lock_timeout") == [("1s",)]


def test_a_failed_transaction_leaves_nothing_and_a_usable_connection(
    postgres: PostgresTestServer, schema: str
) -> None:
    with closing(PostgresEntryStore(postgres.url, schema=schema)) as store:
        store.put(entry())
        with closing(postgres.connect(schema)) as connection, connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tombstone ADD CHECK (reason <> 'invalidated')")
        with pytest.raises(StoreError):
            store.delete("p1", key_of("a"), reason=CacheReason.INVALIDATED, now=NOW)
        assert store.get("p1", key_of("a"), now=NOW) == entry()
        store.delete("p1", key_of("a"), reason=CacheReason.EVICTED, now=NOW)
        assert len(store) == 0


def test_tables_that_are_dropped_under_a_running_process_are_made_anew(
    postgres: PostgresTestServer, store: PostgresEntryStore, schema: str
) -> None:
    store.put(entry())
    with closing(postgres.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(StoreError, match="its tables are gone"):
        store.get("p1", key_of("a"), now=NOW)
    store.put(entry("b"))
    assert store.get("p1", key_of("b"), now=NOW) == entry("b")


def test_tables_of_a_newer_version_are_refused_and_not_changed(
    postgres: PostgresTestServer, store: PostgresEntryStore, schema: str
) -> None:
    store.put(entry())
    with closing(postgres.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE component SET version = 99")
        with pytest.raises(StoreUnusable, match=r"newer Reprise.*schema 99"):
            PostgresEntryStore(postgres.url, schema=schema).put(entry("b"))
        cursor.execute("SELECT count(*) FROM entry")
        assert cursor.fetchall() == [(1,)]


def test_a_row_edited_by_hand_is_removed_and_says_so(
    postgres: PostgresTestServer, store: PostgresEntryStore, schema: str
) -> None:
    store.put(entry())
    with closing(postgres.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE entry SET artifacts = '[{\"oops\": '")
    assert store.get("p1", key_of("a"), now=NOW) is None
    assert store.tombstone("p1", key_of("a")) is CacheReason.PAYLOAD_DAMAGED


def test_a_value_that_the_database_cannot_hold_is_named(store: PostgresEntryStore) -> None:
    for label in ("nul \0 byte", "half \ud800 a pair"):
        with pytest.raises(BadInput, match="cannot be stored"):
            store.put(entry(step_label=label))
    store.put(entry())
    assert len(store) == 1


def test_a_user_without_rights_is_told(postgres: PostgresTestServer, schema: str) -> None:
    with closing(postgres.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {schema} LOGIN")
    url = postgres.url.replace("postgres@", f"{schema}@")
    with pytest.raises(StoreUnusable, match="this user may not"):
        PostgresEntryStore(url, schema=schema).put(entry())


def test_a_user_who_may_not_make_a_schema_uses_one_that_was_made(
    postgres: PostgresTestServer, schema: str
) -> None:
    with closing(postgres.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {schema} LOGIN; CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    url = postgres.url.replace("postgres@", f"{schema}@")
    with closing(PostgresEntryStore(url, schema=schema)) as store:
        store.put(entry())
        assert len(store) == 1


@pytest.mark.parametrize(
    "change", [("/postgres?", "/nothing?"), ("postgres@", "nobody_known:secret@")]
)
def test_a_log_in_that_is_refused_is_told_without_the_password(
    postgres: PostgresTestServer, change: tuple[str, str]
) -> None:
    with pytest.raises(StoreUnusable, match=r"refused the log-in|no such database") as caught:
        PostgresEntryStore(postgres.url.replace(*change)).put(entry())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["not an address", "postgresql://a:secret@[::1/x", "mysql://x"])
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="address cannot be read") as caught:
        PostgresEntryStore(url)
    assert "secret" not in str(caught.value)


def test_a_name_of_a_schema_is_plain() -> None:
    with pytest.raises(SettingsInvalid, match="lower-case"):
        PostgresEntryStore("postgresql://localhost/x", schema='x"; DROP TABLE entry')


def test_sqlalchemys_way_of_naming_the_driver_is_understood(
    postgres: PostgresTestServer, schema: str
) -> None:
    url = postgres.url.replace("postgresql://", "postgresql+psycopg2://")
    with closing(PostgresEntryStore(url, schema=schema)) as store:
        store.put(entry())
        assert store.get("p1", key_of("a"), now=NOW) == entry()


def test_a_forked_child_uses_connections_of_its_own(store: PostgresEntryStore) -> None:
    store.put(entry("parent"))
    child = os.fork()
    if child == 0:
        store.put(entry("child"))
        os._exit(0 if len(store) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.put(entry("parent again"))
    assert len(store) == 3


def test_a_forked_child_leaves_its_parents_sessions_alone(
    postgres: PostgresTestServer, schema: str
) -> None:
    with closing(PostgresCacheDatabase(postgres.url, schema=schema)) as database:
        before = database.rows("SELECT pg_backend_pid()")
        child = os.fork()
        if child == 0:
            other = database.rows("SELECT pg_backend_pid()")
            database.close()
            gc.collect()
            os._exit(0 if other != before else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert database.rows("SELECT pg_backend_pid()") == before


def test_no_more_connections_than_the_pool_has_and_the_wait_for_one_is_short(
    postgres: PostgresTestServer, schema: str
) -> None:
    with closing(PostgresCacheDatabase(postgres.url, schema=schema)) as database:
        database.rows("SELECT 1")
        held = threading.Barrier(CONNECTIONS_MAX + 1)
        free = threading.Event()

        def hold(session: SqlSession) -> None:
            session.rows("SELECT 1")
            held.wait(60)
            assert free.wait(60)

        with ThreadPoolExecutor(CONNECTIONS_MAX) as threads:
            works = [
                threads.submit(database.transact, hold, absent=None) for _ in range(CONNECTIONS_MAX)
            ]
            held.wait(60)
            begun = time.monotonic()
            with pytest.raises(StoreTimeout, match="all its 16 connections are at work"):
                database.rows("SELECT 1")
            assert time.monotonic() - begun < POOL_SECONDS + SLACK_SECONDS
            free.set()
            for work in works:
                work.result(60)
        assert database.rows("SELECT 1") == [(1,)]


def test_a_sweep_passes_by_rows_that_another_sweep_has_taken(
    postgres: PostgresTestServer, store: PostgresEntryStore, schema: str
) -> None:
    for name in "ab":
        store.put(entry(name))
    later = datetime(2027, 1, 1, tzinfo=UTC)
    with closing(postgres.connect(schema)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("DELETE FROM entry WHERE cache_key = %s", (key_of("a"),))
        assert store.sweep(now=later) == 1
        cursor.execute("ROLLBACK")
    assert store.sweep(now=later) == 1
