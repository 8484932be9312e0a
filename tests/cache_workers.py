"""Processes that share a cache, for tests: one that has everything imported forks the others.

`python -m tests.cache_workers WHERE` reads commands, a line each, and forks a process for each:
`run NAME SECONDS` does what the engine does with one key (look, take a flight, compute, store under
the lease), `fill NAME COUNT` stores and reads so many entries. Each tells what it does as lines
that begin with its name.
"""

import os
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

from reprise.model.cache import CacheEntry
from reprise.ports import EntryStore, LeaseStore
from resources.postgres_entry_store import PostgresEntryStore
from resources.postgres_lease_store import PostgresLeaseStore
from resources.single_flight import SingleFlight
from resources.sqlite_entry_store import SqliteEntryStore
from resources.sqlite_lease_store import SqliteLeaseStore
from tests.cache_entries import entry, key_of

LEASE_SECONDS = 1.5
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def open_stores(where: str) -> tuple[LeaseStore, EntryStore]:
    """The stores in a file, or in `ADDRESS#SCHEMA`."""
    if "://" not in where:
        return SqliteLeaseStore(Path(where)), SqliteEntryStore(Path(where))
    url, schema = where.split("#")
    return PostgresLeaseStore(url, schema=schema), PostgresEntryStore(url, schema=schema)


def _run(where: str, name: str, seconds: float) -> None:
    leases, entries = open_stores(where)
    flights = SingleFlight(leases, lease_seconds=LEASE_SECONDS, heartbeat_seconds=0.3)

    def look() -> CacheEntry | None:
        return entries.get("p1", key_of("a"), now=NOW)

    found = look()
    if found is not None:
        _say(name, "hit", found.run_id)
        return
    with flights.take(
        "p1", key_of("a"), look=look, expected_seconds=None, cancelled=bool
    ) as flight:
        if flight.found is not None:
            _say(name, "hit", flight.found.run_id)
            return
        _say(name, "runs", str(time.monotonic()))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.02)
        kept = entries.put(entry("a", created_at=NOW, run_id=name), lease=flight.lease)
        _say(name, "stored" if kept else "refused")


def _fill(where: str, name: str, count: int) -> None:
    _, entries = open_stores(where)
    for index in range(count):
        key = f"{name}-{index}"
        entries.put(entry(key, created_at=NOW, payload="x" * 22_000))
        assert entries.get("p1", key_of(key), now=NOW) is not None
    _say(name, "filled")


def _say(*words: str) -> None:
    # One write of less than a page is whole among those of the others.
    os.write(1, (" ".join(words) + "\n").encode())


def _serve(where: str) -> None:
    _say("ready")
    for line in sys.stdin:
        command, name, amount = line.split()
        if os.fork():
            continue
        try:
            _say(name, "pid", str(os.getpid()))
            if command == "run":
                _run(where, name, float(amount))
            else:
                _fill(where, name, int(amount))
        except BaseException:  # noqa: BLE001 - A fork must not go on as its parent would.
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    _serve(sys.argv[1])
