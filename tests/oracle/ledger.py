"""What the cache should hold, kept beside it by a naive book: who was stored when, until when.

With it the oracle sees the other half of R1: not only that a hit is right, but that a hit came
where one was due, and none from an entry that was never stored, had expired or was removed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.prepare import step_agents
from pipelines.step_run import RunCacheMode
from reprise.cache.policy import cache_verdict
from reprise.model.cache import EntrySummary
from reprise.model.result import CacheReason, StepRecord, StepStatus
from tests.oracle.compare import Finding
from tests.oracle.scene_rules import agents_of
from tests.oracle.scenes import Scene

READS = (RunCacheMode.USE, RunCacheMode.READONLY)
WRITES = (RunCacheMode.USE, RunCacheMode.REFRESH)

Key = tuple[str, str]


@dataclass
class Kept:
    """One entry."""

    from_: datetime
    to: datetime
    """It expires between the two: the book does not see the moment of the store itself."""
    artifacts: frozenset[str]
    pinned: bool = False
    doubtful: bool = False
    """Something was done to it or around it: a hit and a miss are both right."""


class Ledger:
    """The book of one cache."""

    def __init__(self) -> None:
        self._kept: dict[Key, Kept] = {}
        self._keys: dict[tuple[str, int], str] = {}

    def observe(
        self,
        scene: Scene,
        records: Mapping[int, StepRecord],
        now: datetime,
        *,
        touched: int,
        faulty: bool,
    ) -> list[Finding]:
        """Return what a run's records say that the book denies; write down what it stored.

        Args:
            scene: What ran.
            records: Its records, by order.
            now: The latest time that the store was told.
            touched: The first order whose key may be another than in the run before.
            faulty: A store was at fault: hits may have become misses, and stores nothing.
        """
        findings = []
        for order, record in sorted(records.items()):
            findings += self._moved_key(record, touched)
            if record.cache_key is None:
                if record.from_cache:
                    findings.append(Finding("a hit without a key", _where(record)))
                continue
            mode = scene.step_modes.get(order, scene.mode)
            findings += self._hit_or_miss(scene, record, mode, None if faulty else now)
            self._write(scene, record, mode, faulty)
        return findings

    def not_stored(
        self, scene: Scene, records: Mapping[int, StepRecord], agent: str
    ) -> list[Finding]:
        """Return what is wrong when a file moved at the first call of an agent that reads files."""
        for order, record in sorted(records.items()):
            is_asked = agent in agents_of(scene.workflow.step(order)) and not record.from_cache
            if is_asked and record.cache_key is not None:
                writes = scene.step_modes.get(order, scene.mode) in WRITES
                is_wrong = writes and "inputs_moved" not in record.cache_detail
                return [Finding("stored though its files moved", _where(record))] * is_wrong
        return []

    def _moved_key(self, record: StepRecord, touched: int) -> list[Finding]:
        place = (record.project_id, record.order)
        before = self._keys.get(place)
        if record.cache_key is not None:
            self._keys[place] = record.cache_key
        if record.order >= touched or None in (before, record.cache_key):
            return []
        moved = before != record.cache_key
        return [Finding("a key moved, though nothing before it did", _where(record))] * moved

    def _hit_or_miss(
        self, scene: Scene, record: StepRecord, mode: RunCacheMode, due_at: datetime | None
    ) -> list[Finding]:
        kept = self._kept.get((record.project_id, record.cache_key or ""))
        may_read = scene.settings.enabled and mode in READS
        is_past = kept is not None and not kept.pinned and kept.to <= record.started_at
        if record.from_cache:
            step = scene.workflow.step(record.order)
            allowed = cache_verdict(step, step_agents(step, scene.agents)).cacheable
            wrong = {
                "a hit that the policy does not allow": not allowed,
                "a hit in a run that reads nothing": not may_read,
                "a hit of what was not stored, or is gone": kept is None,
                "a hit past its lifetime": is_past,
            }
            return [Finding(what, _where(record)) for what, is_wrong in wrong.items() if is_wrong]
        if kept is None or kept.doubtful or due_at is None or not may_read:
            return []
        is_valid = kept.pinned or kept.from_ > due_at
        return [Finding("a needless run", _where(record))] * is_valid

    def _write(self, scene: Scene, record: StepRecord, mode: RunCacheMode, faulty: bool) -> None:
        key = (record.project_id, record.cache_key or "")
        kept = self._kept.get(key)
        if kept is not None:
            kept.doubtful |= faulty
            if record.cache_reason is CacheReason.EXPIRED and not faulty:
                # A clock that steps back does not bring it back (case C21). A store that denied
                # having it has it still.
                del self._kept[key]
        is_fresh = not record.from_cache and record.status is StepStatus.SUCCEEDED
        is_refused = "not stored" in record.cache_detail or not scene.settings.enabled
        if is_fresh and mode in WRITES and not is_refused:
            lifetime = timedelta(hours=scene.settings.ttl_hours)
            self._kept[key] = Kept(
                record.started_at + lifetime,
                record.finished_at + lifetime,
                frozenset(artifact.storage_key for artifact in record.artifacts),
                pinned=kept is not None and kept.pinned,
                doubtful=faulty,
            )

    # ------------------------------------------------------------------ what is done to entries

    def damage_object(self, key: str) -> None:
        """An object was deleted or written over."""
        for kept in self._kept.values():
            kept.doubtful |= key in kept.artifacts

    def damage_entry(self, entry: EntrySummary) -> None:
        """An entry's payload was changed by hand."""
        kept = self._kept.get((entry.project_id, entry.cache_key))
        if kept is not None:
            kept.doubtful = True

    def remove(self, entry: EntrySummary) -> None:
        """An entry was invalidated."""
        self._kept.pop((entry.project_id, entry.cache_key), None)

    def pin(self, entry: EntrySummary, *, on: bool) -> None:
        """An entry was pinned, or is no longer."""
        kept = self._kept.get((entry.project_id, entry.cache_key))
        if kept is not None:
            kept.pinned = on

    def sweep(self, left: list[EntrySummary]) -> list[Finding]:
        """A sweep left these; what is pinned may not have gone."""
        there = {(entry.project_id, entry.cache_key) for entry in left}
        gone = {key: kept for key, kept in self._kept.items() if key not in there}
        self._kept = {key: kept for key, kept in self._kept.items() if key in there}
        lost = [key for key, kept in gone.items() if kept.pinned and not kept.doubtful]
        return [Finding("a sweep removed what is pinned", f"{key}") for key in lost]


def _where(record: StepRecord) -> str:
    said = f"{record.cache_reason}: {record.cache_detail}"
    return f"step {record.order} ({record.label}), {said}"
