"""Looking a step up and storing what it gave, so that the cache never fails a run.

The contract: `lookup` and `store` never raise for a broken, slow or absent store; they log a
warning and answer "no cache". A hit is a snapshot: what a caller does to it cannot reach the next
hit.

Source: specification C6 to C10, C12, C17, C23.
"""

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from reprise.cache.explain import changes_text, explain_changes
from reprise.cache.key import SCHEMA_VERSION
from reprise.canonical import NotCanonical, canonical_json, has_wide_integer, sha256_hex
from reprise.model.cache import CacheEntry, Lease, Lookup
from reprise.model.execution import in_this_execution
from reprise.model.result import Artifact, CacheReason, StepResult
from reprise.model.settings import StepCacheSettings
from reprise.model.stored import ObjectInfo
from reprise.ports import EntryStore

logger = logging.getLogger(__name__)

_VALUE_FIELDS = {"output", "variables", "metadata"}
"""Fields of a result that hold any JSON value."""

_WIDE = "wide_integers"
"""Marks a payload whose integers only the slower parser reads right."""

HEADS_MAX = 8
"""Artifacts of one result that are asked for at the same time."""


@dataclass(frozen=True)
class StepIdentity:
    """Who asks: the key and what a person would call the step."""

    project_id: str
    workflow_id: str
    step_label: str
    step_type: str
    agent_id: str | None
    cache_key: str
    field_digests: dict[str, str]


@dataclass(frozen=True)
class StepCost:
    """What an execution took."""

    run_id: str
    seconds: float
    lease: Lease | None = None
    """Under which it ran; a store that comes after another took it over is refused."""


class StepCache:
    """The step-result cache over an entry store, its artifacts in an object store.

    Args:
        entries: Where entries are kept.
        head: Asks the object store for an artifact before a hit counts; see `ObjectStore.head`.
        settings: The knobs.
        clock: Answers the time; aware, UTC.
    """

    def __init__(
        self,
        entries: EntryStore,
        head: Callable[[str], ObjectInfo | None],
        settings: StepCacheSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self._entries = entries
        self._head = head
        self._settings = settings
        self._clock = clock

    @property
    def enabled(self) -> bool:
        """False when the cache is switched off."""
        return self._settings.enabled

    def lookup(
        self,
        step: StepIdentity,
        *,
        read_only: bool = False,
        last_key: Callable[[], str | None] = lambda: None,
    ) -> Lookup:
        """Return the earlier result of this key, or why there is none; a fault means none.

        Args:
            step: Who asks.
            read_only: Leave an entry that cannot be used where it is.
            last_key: Answers the key of the step's latest result. Where the step has no entry of
                its own, as when another workflow's answered, a miss is compared with that key's.
        """
        if not self._settings.enabled:
            return Lookup(reason=CacheReason.STORE_OFF, detail="the step cache is switched off")
        try:
            return self._lookup(step, read_only, last_key)
        except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
            logger.warning("step cache: lookup of %s failed: %s", step.cache_key[:12], error)
            return Lookup(reason=CacheReason.STORE_OFF, detail=f"the store failed: {error}")

    def store(self, step: StepIdentity, result: StepResult, cost: StepCost) -> CacheReason | None:
        """Keep a fresh result; return why it was not kept, or None; a fault keeps nothing."""
        if not self._settings.enabled:
            return CacheReason.STORE_OFF
        try:
            return self._store(step, result, cost)
        except NotCanonical as error:
            logger.warning("step cache: result of %r is not stored: %s", step.step_label, error)
            return CacheReason.NOT_HASHABLE
        except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
            logger.warning("step cache: store of %s failed: %s", step.cache_key[:12], error)
            return CacheReason.STORE_OFF

    def _lookup(
        self, step: StepIdentity, read_only: bool, last_key: Callable[[], str | None]
    ) -> Lookup:
        now = self._clock()
        entry = self._entries.get(step.project_id, step.cache_key, now=now)
        if entry is None:
            return self._explain_miss(step, last_key)
        is_own = (entry.project_id, entry.cache_key) == (step.project_id, step.cache_key)
        if not is_own or sha256_hex(entry.payload) != entry.payload_digest:
            refusal = Lookup(
                reason=CacheReason.PAYLOAD_DAMAGED, detail="its stored result is damaged"
            )
            return refusal if read_only else self._reject(step, refusal, entry)
        result = _result_of(entry.payload)
        if self._settings.validate_storage_artifacts:
            # The result's own list: the payload's digest covers it, the row's copy has none.
            for gone in self._check_artifacts(result.artifacts):
                keep = read_only or gone.reason is not CacheReason.ARTIFACT_GONE
                return gone if keep else self._reject(step, gone, entry)
        hours = (now - entry.created_at).total_seconds() / 3600
        detail = f"from run {entry.run_id[:8]}, {_age(hours)} old"
        return Lookup(reason=CacheReason.HIT, detail=detail, result=result, entry=entry)

    def _check_artifacts(self, artifacts: Sequence[Artifact]) -> list[Lookup]:
        """Return what is wrong with artifacts, those that are gone first; all are asked at once."""
        if len(artifacts) < 2:
            checks = [self._check_artifact(artifact) for artifact in artifacts]
        else:
            with ThreadPoolExecutor(min(HEADS_MAX, len(artifacts))) as pool:
                check_one = in_this_execution(self._check_artifact)
                checks = list(pool.map(check_one, artifacts))
        wrong = [check for check in checks if check is not None]
        return sorted(wrong, key=lambda check: check.reason is not CacheReason.ARTIFACT_GONE)

    def _check_artifact(self, artifact: Artifact) -> Lookup | None:
        try:
            info = self._head(artifact.storage_key)
        except Exception as error:  # noqa: BLE001 - Unknown is not gone: the entry stays (specification C8).
            logger.warning("step cache: HEAD of %s failed: %s", artifact.storage_key, error)
            detail = f"{artifact.name} could not be checked: {error}"
            return Lookup(reason=CacheReason.ARTIFACT_UNCHECKED, detail=detail)
        if info is None:
            detail = f"{artifact.name} is gone from the object store"
            return Lookup(reason=CacheReason.ARTIFACT_GONE, detail=detail)
        same_etag = artifact.etag is None or artifact.etag == info.etag
        if info.size_bytes != artifact.size_bytes or not same_etag:
            detail = f"{artifact.name} changed in the object store"
            return Lookup(reason=CacheReason.ARTIFACT_GONE, detail=detail)
        return None

    def _reject(self, step: StepIdentity, refusal: Lookup, seen: CacheEntry) -> Lookup:
        # What a twin has stored since is not what was found wanting.
        self._entries.delete(
            step.project_id, step.cache_key, reason=refusal.reason, now=self._clock(), seen=seen
        )
        return refusal

    def _explain_miss(self, step: StepIdentity, last_key: Callable[[], str | None]) -> Lookup:
        gone = self._entries.tombstone(step.project_id, step.cache_key)
        if gone is not None:
            return Lookup(reason=gone, detail=f"an entry of these inputs was there: {gone.value}")
        near = self._entries.nearest(step.project_id, step.workflow_id, step.step_label)
        if near is None:
            last = last_key()
            if last is None:
                return Lookup(reason=CacheReason.FIRST_TIME, detail="this step has not run before")
            near = self._entries.of_key(step.project_id, last)
        if near is None:
            detail = "nothing is kept of this step's earlier runs"
            return Lookup(reason=CacheReason.FIRST_TIME, detail=detail)
        if near.cache_key == step.cache_key:
            return Lookup(reason=CacheReason.EXPIRED, detail="its entry has expired")
        if near.schema_version != SCHEMA_VERSION:
            return Lookup(reason=CacheReason.SCHEMA_CHANGED, detail="the key's encoding changed")
        changes = explain_changes(near.field_digests, step.field_digests)
        detail = changes_text(changes)
        if (near.workflow_id, near.step_label) != (step.workflow_id, step.step_label):
            detail += f"; compared with run {near.run_id[:8]} of {near.workflow_id!r}"
        return Lookup(
            reason=CacheReason.FIELD_CHANGED,
            detail=detail,
            changes=changes,
            compared_run_id=near.run_id,
        )

    def _store(self, step: StepIdentity, result: StepResult, cost: StepCost) -> CacheReason | None:
        if result.lossy is not None:
            raise NotCanonical(result.lossy)
        payload = _payload_of(result)
        if len(payload) > self._settings.max_entry_chars:
            logger.warning(
                "step cache: result of %r is not stored: %d characters, max_entry_chars is %d",
                step.step_label,
                len(payload),
                self._settings.max_entry_chars,
            )
            return CacheReason.TOO_LARGE
        now = self._clock()
        kept = self._entries.put(
            CacheEntry(
                project_id=step.project_id,
                cache_key=step.cache_key,
                schema_version=SCHEMA_VERSION,
                workflow_id=step.workflow_id,
                step_label=step.step_label,
                step_type=step.step_type,
                agent_id=step.agent_id,
                run_id=cost.run_id,
                created_at=now,
                expires_at=now + timedelta(hours=self._settings.ttl_hours),
                payload=payload,
                payload_digest=sha256_hex(payload),
                artifacts=result.artifacts,
                field_digests=step.field_digests,
                usage=result.usage,
                seconds=cost.seconds,
            ),
            lease=cost.lease,
        )
        return None if kept else CacheReason.SUPERSEDED


def _payload_of(result: StepResult) -> str:
    # Values go in as they are: a dump would turn a tuple into a list and never tell.
    data = result.model_dump(mode="json", exclude=_VALUE_FIELDS)
    data |= {name: getattr(result, name) for name in _VALUE_FIELDS}
    text = canonical_json(data)
    return canonical_json({**data, _WIDE: True}) if has_wide_integer(data) else text


def _result_of(payload: str) -> StepResult:
    """Return the result that a payload holds.

    Raises:
        ValueError: It is none.
    """
    try:
        data = orjson.loads(payload)
    except orjson.JSONDecodeError:
        # An integer beyond the largest float, unless it is broken.
        if _WIDE not in payload:
            raise
        data = json.loads(payload)
    if not isinstance(data, dict):
        message = "a result is a dictionary"
        raise ValueError(message)
    if data.pop(_WIDE, False):
        data = json.loads(payload)
        del data[_WIDE]
    # What JSON gives is a JSON value: a walk through all of it would find nothing, and take half as
    # long as the parse.
    values = {name: data.pop(name) for name in _VALUE_FIELDS if name in data}
    if not all(isinstance(values.get(name, {}), dict) for name in ("variables", "metadata")):
        message = "variables and metadata are dictionaries"
        raise ValueError(message)
    return StepResult.model_validate(data).model_copy(update=values)


def _age(hours: float) -> str:
    if hours < 1:
        return f"{max(0, round(hours * 60))} min"
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
