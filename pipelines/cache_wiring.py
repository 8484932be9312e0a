"""The step-result cache wired together; a part of pipelines/definitions.py.

Rows and leases are in SQLite or PostgreSQL, or in memory, or rows in a store of the user's own;
large payloads in the object store. Everything that a
run asks goes through deadlines and circuit breakers that the processes of a home share; what people
ask by hand does not.

Source: specification C7, C13 to C15, C24.
"""

import logging
import sys
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pipelines.sweep import BATCHES_MAX, ROWS_BATCH
from reprise.cache.lookup import StepCache
from reprise.cache.single_flight import Alone, Flights
from reprise.errors import SettingsInvalid, StoreUnusable
from reprise.model.cache import EntryCaps
from reprise.ports import EntryStore, LeaseStore, ObjectStore
from resources.breaker import (
    OPEN_SECONDS,
    BreakerEntryStore,
    BreakerLeaseStore,
    BreakerObjectStore,
    CircuitBreaker,
)
from resources.breaker_state import BreakerState
from resources.deadline import DeadlineEntryStore, DeadlineLeaseStore, DeadlineObjectStore
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_lease_store import MemoryLeaseStore
from resources.payload_offload import PayloadOffload
from resources.postgres_entry_store import PostgresEntryStore
from resources.postgres_lease_store import PostgresLeaseStore
from resources.python_functions import function_folders
from resources.settings import Settings, workflows_path
from resources.single_flight import SingleFlight
from resources.sqlite_entry_store import SqliteEntryStore
from resources.sqlite_lease_store import SqliteLeaseStore
from resources.store_factory import make_store
from resources.user_entry_store import UserEntryStore

logger = logging.getLogger(__name__)

CACHE_FILE = "step-cache.db"


def now() -> datetime:
    """Return the time, aware, UTC."""
    return datetime.now(UTC)


class CacheWiring:
    """The cache's adapters, each made on first use.

    Args:
        settings: All knobs.
        objects: The object store.
        store: A store of the user's own, instead of the one that the settings choose.
    """

    def __init__(
        self, settings: Settings, objects: ObjectStore, *, store: object | None = None
    ) -> None:
        self._settings = settings
        self._store = store
        self._knobs = settings.step_cache
        self._objects = objects

    @property
    def home(self) -> Path:
        """Folder of the embedded database and of the breakers' states."""
        return self._settings.home_path

    @cached_property
    def entries(self) -> PayloadOffload:
        """The entries, for people's commands: without deadlines."""
        return self._with_payloads(self._rows, self._objects)

    @cached_property
    def cache(self) -> StepCache:
        """The step-result cache; each operation has a deadline, each store a circuit breaker.

        A store that cannot be used turns the cache off, with one warning (specification C13, C15).
        """
        knobs = self._knobs
        entries: EntryStore = MemoryEntryStore()
        if knobs.enabled:
            try:
                entries = self._guarded
                # An indexed look-up: a file of a newer version is noticed when it is opened.
                entries.tombstone("", "")
            except (StoreUnusable, SettingsInvalid) as error:
                logger.warning("the step cache is off, every step executes: %s", error)
                entries, knobs = MemoryEntryStore(), knobs.model_copy(update={"enabled": False})
            except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
                # Busy or slow for now, or a user's own store; each call answers for itself.
                logger.warning("the step cache's store failed: %s", error)
        return StepCache(entries, self._guarded_objects.head, knobs, now)

    @cached_property
    def flights(self) -> Flights:
        """Concurrent executions of one step pay once; each alone where that is switched off."""
        if not (self._knobs.single_flight and self.cache.enabled):
            return Alone()
        leases = DeadlineLeaseStore(self._leases, seconds=self._knobs.store_deadline_seconds)
        return SingleFlight(
            BreakerLeaseStore(leases, self._breaker),
            lease_seconds=self._knobs.lease_seconds,
            heartbeat_seconds=self._knobs.heartbeat_seconds,
        )

    def flush(self) -> None:
        """Write down which entries were used; a fault is logged (specification C7)."""
        if not self.cache.enabled:
            return
        try:
            self._guarded.flush()
        except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
            logger.warning("step cache: uses of entries are not written down: %s", error)

    def sweep(self) -> tuple[int, int]:
        """Remove expired and surplus entries, then objects that none names; return how many.

        The embedded database gives the space that they took back to the disk.
        """
        entries = 0
        for _ in range(BATCHES_MAX):
            gone = self.entries.sweep(now=now(), rows_max=ROWS_BATCH)
            entries += gone
            if gone < ROWS_BATCH:
                break
        if isinstance(self._rows, SqliteEntryStore):
            self._rows.give_back()
        if not self._uses_objects:
            return entries, 0
        return entries, self.entries.sweep_objects(now=now())

    @property
    def _kind(self) -> str:
        chosen = self._knobs.store
        if chosen == "auto":
            return "sqlite" if self._settings.database.url is None else "postgres"
        return chosen

    @property
    def _url(self) -> str:
        url = self._settings.database.url
        if url is None:
            message = "REPRISE_STEP_CACHE__STORE is `postgres`: set REPRISE_DATABASE__URL too"
            raise SettingsInvalid(message)
        return url.get_secret_value()

    @cached_property
    def _rows(self) -> EntryStore:
        caps = EntryCaps(
            size_bytes_max=self._knobs.project_size_bytes_max,
            rows_max=self._knobs.project_rows_max,
        )
        if self._store is not None:
            return UserEntryStore(self._store, caps=caps, leases=self._leases)
        if self._kind == "postgres":
            return PostgresEntryStore(self._url, caps=caps)
        if self._kind == "sqlite":
            return SqliteEntryStore(self.home / CACHE_FILE, caps=caps)
        if self._kind == "memory":
            return MemoryEntryStore(caps=caps, leases=self._leases)
        made = make_store(self._kind, function_folders(workflows_path(self._settings)))
        try:
            return UserEntryStore(made, caps=caps, leases=self._leases)
        except TypeError as error:
            message = f"REPRISE_STEP_CACHE__STORE: {error}"
            raise StoreUnusable(message) from error

    @cached_property
    def _leases(self) -> LeaseStore:
        """Beside the entries; those of a user's own store in the database or the home."""
        own = self._store is not None or ":" in self._kind
        if self._kind == "memory" and not own:
            return MemoryLeaseStore()
        if self._kind == "postgres" or (own and self._settings.database.url is not None):
            return PostgresLeaseStore(self._url)
        try:
            return SqliteLeaseStore(self.home / CACHE_FILE)
        except StoreUnusable as error:
            if not own:
                raise
            logger.warning("identical steps of other processes are not waited for: %s", error)
            return MemoryLeaseStore()

    @property
    def _uses_objects(self) -> bool:
        """Large payloads go to the object store where unused ones can be found again."""
        if isinstance(self._rows, UserEntryStore):
            return self._rows.can_list
        return self._kind != "memory"

    @cached_property
    def _guarded(self) -> PayloadOffload:
        rows = DeadlineEntryStore(
            self._rows,
            lookup_seconds=self._knobs.lookup_deadline_seconds,
            store_seconds=self._knobs.store_deadline_seconds,
        )
        return self._with_payloads(BreakerEntryStore(rows, self._breaker), self._guarded_objects)

    def _with_payloads(self, rows: EntryStore, objects: ObjectStore) -> PayloadOffload:
        inline_bytes_max = self._knobs.inline_bytes_max if self._uses_objects else sys.maxsize
        return PayloadOffload(rows, objects, inline_bytes_max=inline_bytes_max)

    @cached_property
    def _guarded_objects(self) -> ObjectStore:
        """The object store as the cache asks it: in a hurry, and not again while it is down."""
        objects = DeadlineObjectStore(
            self._objects,
            head_seconds=self._knobs.head_deadline_seconds,
            transfer_seconds=self._knobs.payload_deadline_seconds,
        )
        breaker = CircuitBreaker("the object store", shared=self._breaker_state("objects"))
        return BreakerObjectStore(objects, breaker)

    @cached_property
    def _breaker(self) -> CircuitBreaker:
        # Shared by the processes of a run, or each would pay a deadline to a dead store.
        return CircuitBreaker("the step cache's store", shared=self._breaker_state("database"))

    def _breaker_state(self, name: str) -> BreakerState:
        return BreakerState(self.home / "breakers" / f"{name}.json", open_seconds=OPEN_SECONDS)
