"""One store of the cache at fault, at every one of its calls.

One rule for all: the run's outputs equal those of a run without a cache, and at most one call is
waited for, which costs one deadline. Then the store heals, and the next run equals it too: nothing
wrong was kept meanwhile.

Source: specification C7, R2; case C14.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pipelines.cache_wiring import CacheWiring
from pipelines.services import Services
from reprise.model.cache import CacheEntry
from reprise.model.result import CacheReason
from reprise.model.settings import StepCacheSettings
from reprise.ports import EntryStore, LeaseStore, ObjectStore
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_lease_store import MemoryLeaseStore
from resources.settings import Settings
from tests.oracle.compare import RunOutcome
from tests.oracle.machine import MEMORY
from tests.oracle.scenes import film_scene
from tests.oracle.world import World
from tests.watched import Fault, Faults, stand_in

REQUEST = "a promo"
DEADLINE_SECONDS = 0.1
"""Of calls that hang; all others have minutes, so that a busy machine is no fault."""

WAITING = (Fault.HANGS, Fault.SLOW)
LYING = (Fault.LOSES, Fault.TRUNCATES, Fault.CORRUPTS, Fault.MIXES_UP)

CASES = [
    (fault, target, inline_bytes_max)
    for fault in Fault
    for target, inline_bytes_max in (
        ("rows", 65_536),
        ("leases", 65_536),
        ("objects", 65_536),
        ("objects", 0),
    )
    # A lease that is said to be another's is waited for, by design and not for ever.
    if not (target == "leases" and fault in LYING)
]
"""Fault, store, and from which size on payloads go to the object store."""


@dataclass
class Stores:
    """What the cache keeps things in."""

    rows: EntryStore
    leases: LeaseStore
    objects: ObjectStore


class Broken(CacheWiring):
    """The cache's own wiring over the stores of a test."""

    def __init__(self, home: Path, stores: Stores, seconds: float, inline_bytes_max: int) -> None:
        knobs = StepCacheSettings(
            lookup_deadline_seconds=seconds,
            store_deadline_seconds=seconds,
            head_deadline_seconds=seconds,
            payload_deadline_seconds=seconds,
            inline_bytes_max=inline_bytes_max,
            lease_seconds=1.0,
            heartbeat_seconds=0.3,
        )
        super().__init__(Settings(home=home, step_cache=knobs), stores.objects)
        self._stores = stores

    @cached_property
    def _rows(self) -> EntryStore:
        return self._stores.rows

    @cached_property
    def _leases(self) -> LeaseStore:
        return self._stores.leases


class Bench:
    """A world whose cache is the engine's, with stores that may be broken."""

    def __init__(self, folder: Path, inline_bytes_max: int) -> None:
        self.world = World(film_scene(), folder)
        self.later_seconds = 0.0
        leases = MemoryLeaseStore(clock=lambda: time.monotonic() + self.later_seconds)
        self.stores = Stores(MemoryEntryStore(leases=leases), leases, self.world.objects)
        self._inline_bytes_max = inline_bytes_max
        self._processes = 0

    def services(self, stores: Stores, seconds: float = 300.0) -> Services:
        """Return the services as a new process of another machine would have them."""
        self._processes += 1
        home = self.world.folder / f"home-{self._processes}"
        wiring = Broken(home, stores, seconds, self._inline_bytes_max)
        return replace(self.world.services(), cache=wiring.cache, flights=wiring.flights)

    def run(self, services: Services) -> RunOutcome:
        """Run the workflow."""
        return self.world.run(services, REQUEST)

    def broken(self, target: str, faults: Faults) -> Stores:
        """Return the stores, one of them at fault."""
        broken = stand_in(getattr(self.stores, target), faults.around)
        return replace(self.stores, **{target: broken})


@pytest.fixture
def make_bench() -> Iterator[Callable[[int], Bench]]:
    folders: list[TemporaryDirectory[str]] = []

    def make(inline_bytes_max: int) -> Bench:
        folders.append(TemporaryDirectory(dir=MEMORY))
        return Bench(Path(folders[-1].name), inline_bytes_max)

    yield make
    for folder in folders:
        folder.cleanup()


def calls_of(bench: Bench, target: str) -> int:
    """Count the calls that a run makes of a sound store; 0 when it has no business there."""
    faults = Faults(Fault.RAISES, lambda _number, _name: False)
    bench.run(bench.services(bench.broken(target, faults)))
    return faults.calls


def some_other_entry(bench: Bench) -> CacheEntry:
    """An entry of another step, sound in itself."""
    services = bench.services(bench.stores)
    record = bench.run(services).records[5]
    assert record.cache_key is not None
    entry = bench.stores.rows.get("p", record.cache_key, now=bench.world.clock.now)
    assert entry is not None
    return entry


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(("fault", "target", "inline_bytes_max"), CASES)
def test_a_run_with_a_store_at_fault_equals_one_without_a_cache(
    make_bench: Callable[[int], Bench], fault: Fault, target: str, warm: bool, inline_bytes_max: int
) -> None:
    sound = make_bench(inline_bytes_max)
    other = some_other_entry(sound) if fault is Fault.MIXES_UP else None
    fresh = sound.world.fresh_services()
    expected = sound.run(fresh)
    if warm:
        sound.run(sound.services(sound.stores))
        hits = sound.run(sound.services(sound.stores)).records.values()
        assert all(record.from_cache for record in hits)
    count = calls_of(sound, target)
    seconds = DEADLINE_SECONDS if fault in WAITING else 300.0
    for first in range(count):
        for only_once in (True,) if fault in WAITING else (True, False):
            bench = make_bench(inline_bytes_max)
            if warm:
                bench.run(bench.services(bench.stores))

            def is_hit(number: int, _name: str, at: int = first, once: bool = only_once) -> bool:
                return number == at if once else number >= at

            faults = Faults(fault, is_hit, other)
            broken = bench.services(bench.broken(target, faults), seconds)

            outcome = bench.run(broken)

            where = f"{target}, call {first} of {count}, once: {only_once}"
            assert bench.world.differences(outcome, broken, expected, fresh) == [], where
            assert faults.hung <= 1, where
            faults.healed.set()
            # A lease that could not be given up expires by itself.
            bench.later_seconds = 1000.0
            healed = bench.services(bench.stores)
            again = bench.run(healed)
            assert bench.world.differences(again, healed, expected, fresh) == [], where


@pytest.mark.parametrize("target", ["rows", "leases", "objects"])
def test_a_store_that_hangs_on_every_call_costs_one_deadline(
    make_bench: Callable[[int], Bench], target: str
) -> None:
    """Case C14: the breaker opens at the first; no other call is made."""
    bench = make_bench(0)
    fresh = bench.world.fresh_services()
    expected = bench.run(fresh)
    faults = Faults(Fault.HANGS, lambda _number, _name: True)
    services = bench.services(bench.broken(target, faults), DEADLINE_SECONDS)

    outcome = bench.run(services)

    assert bench.world.differences(outcome, services, expected, fresh) == []
    assert (faults.calls, faults.hung) == (1, 1)
    faults.healed.set()


def a_folder(path: Path) -> None:
    path.mkdir()


def text(path: Path) -> None:
    path.write_text("dear diary\n" * 500)


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00\xff" * 5000)


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def overwritten_in_the_middle(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xaa" * (len(data) - 4096))


def from_the_future(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE component SET version = 9999")


FILES: dict[str, tuple[bool, Callable[[Path], None]]] = {
    "a folder": (False, a_folder),
    "somebody's text": (False, text),
    "garbage": (False, garbage),
    "ours, cut in half": (True, truncated),
    "ours, overwritten": (True, overwritten_in_the_middle),
    "ours, of a newer version": (True, from_the_future),
}
"""Name → whether a cache was there before, and what is done to its file."""


@pytest.mark.parametrize("name", FILES)
def test_a_run_with_a_file_that_is_no_cache_completes(tmp_path: Path, name: str) -> None:
    """Case C13, and three cases of the probe: garbage, truncated, something else in its place."""
    was_there, spoil = FILES[name]
    world = World(film_scene(), tmp_path)
    settings = Settings(home=tmp_path / "home", step_cache=patient())
    settings.home_path.mkdir()
    fresh = world.fresh_services()
    expected = world.run(fresh, REQUEST)
    if was_there:
        world.run(with_sqlite(world, settings), REQUEST)
    path = settings.home_path / "step-cache.db"
    if spoil is not from_the_future:
        for side in ("-wal", "-shm"):
            path.with_name(path.name + side).unlink(missing_ok=True)
    spoil(path)
    before = path.read_bytes() if path.is_file() else None

    services = with_sqlite(world, settings)
    outcome = world.run(services, REQUEST)

    assert world.differences(outcome, services, expected, fresh) == []
    assert not any(record.from_cache for record in outcome.records.values())
    reasons = {record.cache_reason for record in outcome.records.values()}
    if not was_there or "newer" in name:
        # Not ours to touch: the cache is off, and the file as it was.
        assert reasons == {CacheReason.STORE_OFF}
    if not was_there:
        assert (path.read_bytes() if path.is_file() else None) == before
    services = with_sqlite(world, settings)
    assert world.differences(world.run(services, REQUEST), services, expected, fresh) == []


def patient() -> StepCacheSettings:
    return StepCacheSettings(
        lookup_deadline_seconds=60, store_deadline_seconds=60, head_deadline_seconds=60
    )


def with_sqlite(world: World, settings: Settings) -> Services:
    wiring = CacheWiring(settings, world.objects)
    return replace(world.services(), cache=wiring.cache, flights=wiring.flights)
