"""The one path of every step: make it ready, ask the cache, execute on a miss, store.

A step in a Dagster asset, an item of a fan-out and a test all come through `run_step`; a hit and
a fresh result leave it alike. Nothing here knows Dagster.

Source: specification C5 to C10, C23, D4.
"""

import itertools
import logging
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pipelines.identify import identify_step, last_key
from pipelines.prepare import PreparedStep, prepare_step
from pipelines.services import Services
from pipelines.step_run import RunCacheMode, StepOutcome, StepRun
from pipelines.step_sandbox import StepSandbox
from reprise.agents.loop import add_usage
from reprise.cache.explain import TEXT_FIELDS
from reprise.cache.key import KeyFacts
from reprise.cache.lookup import StepCost, StepIdentity
from reprise.errors import Cancelled, StoreError
from reprise.model.budget import BudgetReport
from reprise.model.cache import Lease, Lookup
from reprise.model.heard import HeardAnalysis
from reprise.model.result import CacheReason, SeenStep, StepResult, StepStatus, Usage
from reprise.model.workflow import StepType

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
        workdir = services.scratch() / f"step-{uuid.uuid4().hex}"
        answer = _Attempt(run, services, prepare_step(run, services, workdir)).answer()
    return StepOutcome(
        result=answer.result,
        cache_key=answer.cache_key,
        prompt_chars=answer.prompt_chars,
        budgeted=answer.budgeted,
        seconds=round(time.perf_counter() - start, 6),
        started_at=started_at,
        finished_at=services.clock(),
        lookup=answer.looked,
    )


@dataclass(frozen=True)
class _Answer:
    """A result, and what the cache said before it."""

    result: StepResult
    looked: Lookup
    cache_key: str | None = None
    prompt_chars: int = 0
    budgeted: BudgetReport | None = None


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
        self._identified = identify_step(run, prepared)

    def answer(self) -> _Answer:
        """Return the earlier result, or execute and store."""
        identity = self._identified.identity
        if identity is None:
            looked = self._identified.refusal or Lookup(reason=CacheReason.POLICY)
            return self._given(self._execute(), looked)
        looked = self._look_up(identity)
        if looked.result is None and self._run.cache_mode is RunCacheMode.USE:
            return self._once(identity, looked)
        return self._hit(looked) if looked.is_hit else self._fresh(identity, looked, None)

    def _once(self, identity: StepIdentity, looked: Lookup) -> _Answer:
        """Execute under the key's lease, or take what its holder stores meanwhile."""
        looks = itertools.count()

        def look() -> Lookup | None:
            # The first look may be for what a holder that has just ended left.
            if next(looks) > 0:
                self._run.progress("waiting for another run that works on the same", None)
            again = self._services.cache.lookup(identity)
            return again if again.is_hit else None

        with self._services.flights.take(
            identity.project_id,
            identity.cache_key,
            look=look,
            expected_seconds=self._expected_seconds(),
            cancelled=self._run.cancelled,
        ) as flight:
            if flight.found is not None:
                return self._hit(flight.found)
            return self._fresh(identity, looked, flight.lease)

    def _hit(self, looked: Lookup) -> _Answer:
        assert looked.result is not None
        # This run spent nothing; what the original took is in the entry (specification C10).
        return self._given(looked.result.model_copy(update={"usage": Usage()}), looked)

    def _fresh(self, identity: StepIdentity, looked: Lookup, lease: Lease | None) -> _Answer:
        self._keep_texts()
        started = time.perf_counter()
        result = self._execute()
        cost = StepCost(self._run.run_id, time.perf_counter() - started, lease)
        refusal = self._store(identity, result, cost)
        if refusal is not None:
            detail = f"{looked.detail}; not stored: {refusal.value}"
            looked = looked.model_copy(update={"detail": detail})
        return self._given(result, looked)

    def _expected_seconds(self) -> float | None:
        """Return how long the step took the last time on this project, or None."""
        run = self._run
        try:
            last = self._services.history.of_step(
                run.workflow.id, run.project_id, run.step.name, run_id=None
            )
        except StoreError:
            return None
        if last is None:
            return None
        return last.cached_seconds_saved if last.from_cache else last.seconds

    def _given(self, result: StepResult, looked: Lookup) -> _Answer:
        self._take_transcripts(result)
        identity = self._identified.identity
        key = identity.cache_key if identity is not None else None
        context = self._context
        return _Answer(result, looked, key, len(context.resolved_input), context.budgeted)

    def _take_transcripts(self, result: StepResult) -> None:
        """Let later steps search what an analysis heard; without an index they find less."""
        if self._run.step.type is not StepType.VIDEO_ANALYZE:
            return
        try:
            analysis = HeardAnalysis.model_validate(result.output)
            self._services.project_files.take_analysis(self._run.project_id, analysis)
        except (StoreError, ValidationError) as error:
            logger.warning("the transcripts of %s are not indexed: %s", self._run.where, error)

    def _execute(self) -> StepResult:
        sandbox = self._context.sandbox
        with _folder(self._context.workdir):
            if sandbox is None:
                result = self._identified.executor.execute(self._context)
            else:
                result = self._in_sandbox(sandbox)
        if self._run.cancelled():
            message = f"{self._run.where} was stopped"
            stopped = Cancelled(message)
            stopped.usage = result.usage
            raise stopped
        return result

    def _in_sandbox(self, sandbox: StepSandbox) -> StepResult:
        spent = Usage()
        try:
            with sandbox.opened() as figures:
                result = self._identified.executor.execute(self._context)
                spent = result.usage
        except BaseException as error:
            # Something only where the work was done and the sandbox is not kept after it.
            add_usage(error, spent)
            raise
        return result.model_copy(update={"metadata": {**result.metadata, **figures}})

    def _look_up(self, identity: StepIdentity) -> Lookup:
        match self._run.cache_mode:
            case RunCacheMode.BYPASS:
                detail = "this run neither reads nor writes the cache"
                return Lookup(reason=CacheReason.BYPASS, detail=detail)
            case RunCacheMode.REFRESH:
                detail = "this run executes the step and overwrites its result"
                return Lookup(reason=CacheReason.REFRESH, detail=detail)
            case RunCacheMode.USE | RunCacheMode.READONLY:
                read_only = self._run.cache_mode is RunCacheMode.READONLY
                return self._services.cache.lookup(
                    identity,
                    read_only=read_only,
                    last_key=lambda: last_key(self._run, self._services),
                )

    @property
    def _may_write(self) -> bool:
        return self._run.cache_mode in (RunCacheMode.USE, RunCacheMode.REFRESH)

    def _keep_texts(self) -> None:
        """Keep the texts of the key that a person may want to compare later; a fault keeps none."""
        if not self._may_write or not self._services.cache.enabled:
            return
        try:
            for name, text in (self._identified.fields or {}).items():
                if name in TEXT_FIELDS and text is not None:
                    self._services.bodies.put(self._run.project_id, text)
        except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
            logger.warning("step cache: texts of %s are not kept: %s", self._run.where, error)

    def _store(
        self, identity: StepIdentity, result: StepResult, cost: StepCost
    ) -> CacheReason | None:
        if not self._may_write:
            return None
        if result.status is not StepStatus.SUCCEEDED:
            return CacheReason.SKIPPED
        if self._facts_now() != self._identified.facts:
            # It serves this run and no other (specification C23).
            logger.warning("step cache: inputs of %s moved while it ran", self._run.where)
            return CacheReason.INPUTS_MOVED
        return self._services.cache.store(identity, result, cost)

    def _facts_now(self) -> KeyFacts | None:
        """Return the facts of the step's key as they are now; None when they cannot be had."""
        try:
            return self._identified.executor.key_facts(self._context.as_of_now())
        except Exception as error:  # noqa: BLE001 - The cache never fails a run (specification C7).
            # The result is there; what it would be stored under is not (specification C7, C23).
            logger.warning("step cache: %s is not stored: %s", self._run.where, error)
            return None


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Have a folder while a step executes; a hit needs none."""
    path.mkdir(parents=True, mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)
