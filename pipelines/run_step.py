"""The one path of every step: make it ready, ask the cache, execute on a miss, store.

A step in a Dagster asset, an item of a fan-out and a test all come through `run_step`; a hit and
a fresh result leave it alike. Nothing here knows Dagster.

Source: specification C5 to C10, C23, D4.
"""

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.prepare import PreparedStep, prepare_step
from pipelines.services import Services, StepExecutor
from pipelines.step_run import RunCacheMode, StepOutcome, StepRun
from pipelines.steps import EXECUTORS
from reprise.cache.key import KeyFacts, cache_key, field_digests, key_fields
from reprise.cache.lookup import StepCost, StepIdentity
from reprise.cache.policy import cache_verdict
from reprise.canonical import NotCanonical
from reprise.context.step_input import sees_request
from reprise.errors import Cancelled, UnknownName
from reprise.model.result import CacheReason, SeenStep, StepResult, StepStatus, Usage
from reprise.ports import Lookup

logger = logging.getLogger(__name__)


def run_step(run: StepRun, services: Services) -> StepOutcome:
    """Give a step's result: an earlier one where the cache has it, else a fresh one.

    Raises:
        RepriseError: The step failed; nothing is stored then.
    """
    started_at, start = services.clock(), time.perf_counter()
    stopped_by = next((seen for seen in run.history.values() if seen.stop_workflow), None)
    if stopped_by is not None:
        answer = _stopped(stopped_by)
    else:
        with _workdir(services.scratch) as workdir:
            answer = _Attempt(run, services, prepare_step(run, services, workdir)).answer()
    return StepOutcome(
        result=answer.result,
        reason=answer.looked.reason,
        detail=answer.looked.detail,
        cache_key=answer.cache_key,
        prompt_chars=answer.prompt_chars,
        seconds=round(time.perf_counter() - start, 6),
        started_at=started_at,
        finished_at=services.clock(),
        lookup=answer.looked if answer.looked.is_hit else None,
    )


@dataclass(frozen=True)
class _Answer:
    """A result, and what the cache said before it."""

    result: StepResult
    looked: Lookup
    cache_key: str | None = None
    prompt_chars: int = 0


def _stopped(by: SeenStep) -> _Answer:
    reason = f"step {by.order} ({by.label}) stopped the workflow"
    result = StepResult(status=StepStatus.SKIPPED, skip_reason=reason, sets_output_variable=False)
    return _Answer(result, Lookup(reason=CacheReason.SKIPPED, detail=reason))


class _Attempt:
    """One step on its way from lookup to store."""

    def __init__(self, run: StepRun, services: Services, prepared: PreparedStep) -> None:
        self._run = run
        self._services = services
        self._context = prepared.context
        self._variables = prepared.variables
        self._executor = _executor(run)
        self._key: str | None = None

    def answer(self) -> _Answer:
        """Return the earlier result, or execute and store."""
        verdict = cache_verdict(self._context.step, self._context.agents)
        if not verdict.cacheable:
            looked = Lookup(reason=CacheReason.POLICY, detail=verdict.reason)
            return self._given(self._execute(), looked)
        facts = self._executor.key_facts(self._context)
        try:
            identity = self._identity(facts)
        except (NotCanonical, UnicodeEncodeError) as error:
            # Without a whole key there is neither lookup nor store (specification C23).
            logger.warning("step cache: %s has no key: %s", self._run.where, error)
            looked = Lookup(reason=CacheReason.NOT_HASHABLE, detail=str(error))
            return self._given(self._execute(), looked)
        self._key = identity.cache_key
        looked = self._look_up(identity)
        if looked.result is not None:
            # This run spent nothing; what the original took is in the entry (specification C10).
            return self._given(looked.result.model_copy(update={"usage": Usage()}), looked)
        started = time.perf_counter()
        result = self._execute()
        cost = StepCost(self._run.run_id, time.perf_counter() - started)
        refusal = self._store(identity, facts, result, cost)
        if refusal is not None:
            detail = f"{looked.detail}; not stored: {refusal.value}"
            looked = looked.model_copy(update={"detail": detail})
        return self._given(result, looked)

    def _given(self, result: StepResult, looked: Lookup) -> _Answer:
        return _Answer(result, looked, self._key, len(self._context.resolved_input))

    def _execute(self) -> StepResult:
        result = self._executor.execute(self._context)
        if self._run.cancelled():
            message = f"{self._run.where} was stopped"
            raise Cancelled(message)
        return result

    def _identity(self, facts: KeyFacts) -> StepIdentity:
        run, context = self._run, self._context
        sees = sees_request(run.step, context.agents)
        fields = key_fields(
            context.step,
            facts,
            project_id=run.project_id,
            resolved_input=context.resolved_input,
            user_request=context.user_request if sees else None,
            variables=self._variables,
        )
        return StepIdentity(
            project_id=run.project_id,
            workflow_id=run.workflow.id,
            step_label=run.step.label,
            step_type=run.step.type.value,
            agent_id=run.step.agent,
            cache_key=cache_key(fields),
            field_digests=field_digests(fields),
        )

    def _look_up(self, identity: StepIdentity) -> Lookup:
        match self._run.cache_mode:
            case RunCacheMode.BYPASS:
                detail = "this run neither reads nor writes the cache"
                return Lookup(reason=CacheReason.BYPASS, detail=detail)
            case RunCacheMode.REFRESH:
                detail = "this run executes every step"
                return Lookup(reason=CacheReason.REFRESH, detail=detail)
            case RunCacheMode.USE:
                return self._services.cache.lookup(identity)

    def _store(
        self, identity: StepIdentity, facts: KeyFacts, result: StepResult, cost: StepCost
    ) -> CacheReason | None:
        if self._run.cache_mode is RunCacheMode.BYPASS:
            return None
        if result.status is not StepStatus.SUCCEEDED:
            return CacheReason.SKIPPED
        files = tuple(self._services.projects.files(self._run.project_id))
        if self._executor.key_facts(replace(self._context, files=files)) != facts:
            # It serves this run and no other (specification C23).
            logger.warning("step cache: inputs of %s moved while it ran", self._run.where)
            return CacheReason.INPUTS_MOVED
        return self._services.cache.store(identity, result, cost)


def _executor(run: StepRun) -> StepExecutor:
    executor = EXECUTORS.get(run.step.type)
    if executor is None:
        served = ", ".join(sorted(EXECUTORS))
        message = f"{run.where}: no steps of type {run.step.type.value!r}; served are: {served}"
        raise UnknownName(message)
    return executor


@contextmanager
def _workdir(scratch: Path) -> Iterator[Path]:
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="step-", dir=scratch, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)
