"""P2 to P4: one hit and one store of the engine against the least that either can cost.

The engine's side goes through the real wiring: the step's identity (key and explaining digests),
`StepCache`, offload, breaker, deadline, SQLite. The limit's side is what nobody can do without:
SHA-256 of the input, a select by primary key, a parse of the result; or an upsert of the same row.

Source: specification P2 to P4.
"""

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from bench.cache_engine import PROJECT, BenchEngine, bench_engine
from bench.interleaved import Cost, costs_in_turns, is_crowded
from pipelines.cache_wiring import CACHE_FILE
from pipelines.prepare import PreparedStep
from reprise.canonical import sha256_hex
from reprise.model.result import StepResult
from resources.micros import to_micros
from resources.sql_entry_rows import NAMES, row_of
from resources.sqlite_entry_store import SqliteEntryStore

HIT_GOAL = 2.0
GROWTH_GOAL = 1.5
STORE_GOAL = 3.0
ASKED = 100
"""Entries that are asked for in turn: more than SQLite's page cache holds."""

HIT_LIMIT = "SHA-256 + select + json parse"
HIT = "one hit"
HIT_OF_MANY = "one hit, many entries"
UPSERT = "upsert of the same row"
PUT = "one store (SQLite)"

Work = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """One figure and its goal."""

    goal_id: str
    what: str
    value: float
    goal: float

    @property
    def reached(self) -> bool:
        """True when the figure is within its goal."""
        return self.value <= self.goal

    def __str__(self) -> str:
        verdict = "reached" if self.reached else "NOT REACHED"
        clock = "CPU time: others keep this machine busy" if is_crowded() else "wall time"
        figure = f"{self.value:.2f}, goal {self.goal:g}: {verdict}"
        return f"{self.goal_id}: {self.what}: {figure} ({clock})"


def measure_limits(root: Path, *, repetitions: int, many: int) -> list[Ratio]:
    """Print the tables of P2 to P4 and return their ratios.

    Args:
        root: An empty folder; a store with many entries takes 27 KB an entry.
        repetitions: Turns of each table.
        many: Entries of the large store.
    """
    (root / "small").mkdir()
    (root / "large").mkdir()
    small, large = bench_engine(root / "small"), bench_engine(root / "large")
    result = small.hit(small.prepared).result
    assert result is not None
    variants = [small.variant(number) for number in range(ASKED)]
    for engine in (small, large):
        for variant in variants:
            engine.store(variant, result)
    _fill(large, many - ASKED)
    raw = _RawStore(root / "raw.db", small, variants)
    hits = costs_in_turns(_hits(small, large, raw, variants), repetitions=repetitions)
    _print_hit(small, variants[0], hits, many)
    works = _stores(small, result, variants, root / "upsert.db")
    stores = costs_in_turns(works, repetitions=repetitions)
    _print_table("One store", stores)
    hit, hit_of_many, put = hits[HIT], hits[HIT_OF_MANY], stores[PUT]
    return [
        Ratio("P2", f"{HIT} / {HIT_LIMIT}", hit.ratio(hits[HIT_LIMIT]), HIT_GOAL),
        Ratio("P3", f"{HIT}, {many:,} entries / {ASKED}", hit_of_many.ratio(hit), GROWTH_GOAL),
        Ratio("P4", f"{PUT} / {UPSERT}", put.ratio(stores[UPSERT]), STORE_GOAL),
    ]


def _hits(
    small: BenchEngine, large: BenchEngine, raw: "_RawStore", variants: list[PreparedStep]
) -> dict[str, Work]:
    turns = random.Random(1).sample(variants, len(variants))
    asked, asked_large, asked_raw = cycle(turns), cycle(turns), cycle(turns)
    identities = cycle([small.identity(variant) for variant in turns])
    keys = cycle([small.identity(variant).cache_key for variant in turns])
    store, clock = small.wiring.cache, small.wiring.services.clock
    payload = raw.payload
    # The parts are timed among the wholes, so that they add up under the same load.
    return {
        HIT_LIMIT: lambda: raw.hit(next(asked_raw)),
        HIT: lambda: small.hit(next(asked)),
        HIT_OF_MANY: lambda: large.hit(next(asked_large)),
        "identity: facts, key, digests": lambda: small.identity(next(asked)),
        "cache lookup": lambda: store.lookup(next(identities)),
        "row, bare": lambda: small.bare_rows.get(PROJECT, next(keys), now=clock()),
        "row, wired": lambda: small.wired_rows.get(PROJECT, next(keys), now=clock()),
        "payload digest": lambda: sha256_hex(payload),
        "SHA-256 of the input": lambda: sha256_hex(next(asked_raw).context.resolved_input),
        "json.loads of the result": lambda: json.loads(payload),
    }


def _print_hit(
    engine: BenchEngine, prepared: PreparedStep, costs: Mapping[str, Cost], many: int
) -> None:
    entry = engine.hit(prepared).entry
    assert entry is not None
    chars = len(prepared.context.resolved_input)
    title = f"One hit: input {chars:,} characters, result {len(entry.payload):,}"
    digests = f"{len(entry.field_digests)} digests"
    _print_table(f"{title}, {digests}; {ASKED} entries, many are {many:,}", costs)


def _print_table(title: str, costs: Mapping[str, Cost]) -> None:
    print(f"\n{title}\n")
    limit = next(iter(costs.values()))
    print(f"| {'':34} | {'wall µs':>8} | {'x':>5} | {'CPU µs':>8} | {'x':>5} |")
    print(f"| {'-' * 34} | -------: | ----: | -------: | ----: |")
    for name, cost in costs.items():
        wall, cpu = cost.wall_seconds, cost.cpu_seconds
        walls = f"{wall * 1e6:8.0f} | {wall / limit.wall_seconds:5.2f}"
        print(f"| {name:34} | {walls} | {cpu * 1e6:8.0f} | {cpu / limit.cpu_seconds:5.2f} |")


class _RawStore:
    """What a hit cannot do without: SHA-256 of the input, a select, a parse."""

    def __init__(self, path: Path, engine: BenchEngine, variants: list[PreparedStep]) -> None:
        self._connection = _wal(path)
        self._connection.execute(
            "CREATE TABLE entry (project TEXT, key BLOB, payload TEXT, expires_at REAL, "
            "PRIMARY KEY (project, key))"
        )
        entry = engine.hit(engine.prepared).entry
        assert entry is not None
        self.payload = entry.payload
        for variant in variants:
            key = hashlib.sha256(variant.context.resolved_input.encode()).digest()
            row = (PROJECT, key, self.payload, 1e12)
            self._connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", row)

    def hit(self, prepared: PreparedStep) -> object:
        """Return the result of an input."""
        key = hashlib.sha256(prepared.context.resolved_input.encode()).digest()
        rows = self._connection.execute(
            "SELECT payload FROM entry WHERE project = ? AND key = ? AND expires_at > ?",
            (PROJECT, key, 1.0),
        ).fetchall()
        return json.loads(rows[0][0])


def _stores(
    engine: BenchEngine, result: StepResult, variants: list[PreparedStep], path: Path
) -> dict[str, Work]:
    entry = engine.hit(engine.prepared).entry
    assert entry is not None
    row = row_of(entry)
    entries = cycle(
        [entry.model_copy(update={"cache_key": engine.identity(v).cache_key}) for v in variants]
    )
    names = ", ".join((*NAMES, "size_bytes", "last_used_at"))
    replaced = ", ".join(f"{name} = excluded.{name}" for name in names.split(", ")[2:])
    connection = _wal(path)
    connection.execute(f"CREATE TABLE entry ({names}, PRIMARY KEY (project_id, cache_key))")
    upsert = (
        f"INSERT INTO entry ({names}) VALUES ({', '.join('?' * len(row))}) "
        f"ON CONFLICT (project_id, cache_key) DO UPDATE SET {replaced}"
    )
    keys = cycle([engine.identity(variant).cache_key for variant in variants])
    asked = cycle(variants)
    # Each on a file of its own: a connection reads anew what another one has written.
    store = SqliteEntryStore(path.with_name("store.db"))
    return {
        UPSERT: lambda: connection.execute(upsert, (row[0], next(keys), *row[2:])),
        PUT: lambda: store.put(next(entries)),
        "the same, deadline and breaker too": lambda: engine.wired_rows.put(next(entries)),
        "a fresh result: key, JSON, store": lambda: engine.store(next(asked), result),
    }


def _fill(engine: BenchEngine, count: int) -> None:
    """Copy an entry under so many random keys, the larger part of a second for 10,000."""
    entry = engine.hit(engine.prepared).entry
    assert entry is not None
    row = row_of(entry)
    names = ", ".join((*NAMES, "size_bytes", "last_used_at"))
    later = to_micros(entry.created_at)
    connection = sqlite3.connect(engine.wiring.home / CACHE_FILE, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    numbers = random.Random(2)
    for start in range(0, count, 1000):
        batch = [
            (row[0], f"{numbers.getrandbits(256):064x}", *row[2:8], later + start + n, *row[9:])
            for n in range(min(1000, count - start))
        ]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            f"INSERT INTO entry ({names}) VALUES ({', '.join('?' * len(row))})", batch
        )
        connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def _wal(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection
