"""Executions of one key in several processes: live, killed and frozen holders, on both databases.

Each process does what the engine does: look, take a flight, compute, store under the lease.
"""

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cache_entries import key_of
from tests.cache_workers import LEASE_SECONDS, NOW, open_stores
from tests.child_process import ROOT
from tests.postgres_server import PostgresTestServer


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "cache.sqlite")
    server: PostgresTestServer = request.getfixturevalue("postgres")
    return f"{server.url}#{server.new_schema()}"


class Workers:
    """The processes, and what they said so far."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cache_workers", where],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said: defaultdict[str, list[list[str]]] = defaultdict(list)
        self.read()

    def tell(self, *commands: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{command}\n" for command in commands))
        self.process.stdin.flush()

    def read(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().split()
        assert line, "the processes ended"
        self.said[line[0]].append(line[1:])

    def wait_for(self, name: str, word: str) -> str:
        """Wait until a process says a word; return what follows it."""
        while True:
            for words in self.said[name]:
                if words[:1] == [word]:
                    return " ".join(words[1:])
            self.read()

    def ends(self) -> dict[str, list[str]]:
        """Wait for all of them to end; return their words but for their pids."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        for line in self.process.stdout:
            self.said[line.split()[0]].append(line.split()[1:])
        assert self.process.wait(timeout=60) == 0
        return {
            name: [words[0] for words in said][1:] for name, said in self.said.items() if said[0]
        }

    def stored_by(self) -> str:
        entry = open_stores(self.where)[1].get("p1", key_of("a"), now=NOW)
        assert entry is not None
        return entry.run_id


@pytest.fixture
def workers(where: str) -> Iterator[Workers]:
    workers = Workers(where)
    yield workers
    with workers.process:
        workers.process.kill()


def test_five_twins_execute_once(workers: Workers) -> None:
    workers.tell(*(f"run w{number} 0.5" for number in range(5)))
    ends = workers.ends()
    assert sorted(ends.values()) == [["hit"]] * 4 + [["runs", "stored"]]
    assert ends[workers.stored_by()] == ["runs", "stored"]


def test_a_killed_holder_is_taken_over_within_a_lease_and_a_second(workers: Workers) -> None:
    workers.tell("run first 60")
    workers.wait_for("first", "runs")
    workers.tell("run second 0.1")
    workers.wait_for("second", "pid")
    killed_at = time.monotonic()
    os.kill(int(workers.wait_for("first", "pid")), signal.SIGKILL)
    took_over_at = float(workers.wait_for("second", "runs"))
    assert took_over_at - killed_at <= LEASE_SECONDS + 1.0
    assert workers.ends()["second"] == ["runs", "stored"]
    assert workers.stored_by() == "second"


def test_a_late_store_of_a_frozen_holder_is_refused(workers: Workers) -> None:
    workers.tell("run frozen 0.5")
    workers.wait_for("frozen", "runs")
    pid = int(workers.wait_for("frozen", "pid"))
    os.kill(pid, signal.SIGSTOP)
    try:
        workers.tell("run successor 0.1")
        workers.wait_for("successor", "stored")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert workers.ends() == {"frozen": ["runs", "refused"], "successor": ["runs", "stored"]}
    assert workers.stored_by() == "successor"


def test_eight_processes_that_make_the_tables_and_store_at_once_lose_nothing(
    workers: Workers,
) -> None:
    workers.tell(*(f"fill w{number} 50" for number in range(8)))
    assert workers.ends() == {f"w{number}": ["filled"] for number in range(8)}
    assert len(open_stores(workers.where)[1]) == 400
