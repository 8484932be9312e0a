"""The one path of every step: build its input, ask the cache, execute on a miss, store, record.

A step in a Dagster asset, an item of a fan-out and a test all come through `run_step`; a hit and a
fresh result leave it alike. Nothing here knows Dagster.

Source: specification C5 to C10, C23, D3, D4, W5.
"""

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue

from pipelines.services import Services, StepContext, StepExecutor
from pipelines.steps import EXECUTORS
from reprise.cache.key import KeyFacts, cache_key, field_digests, key_fields
from reprise.cache.lookup import StepCost, StepIdentity
from reprise.cache.policy import cache_verdict
from reprise.canonical import NotCanonical
from reprise.context.step_input import (
    CONFIG_FIELDS,
    agent_ids,
    body_text,
    is_readable,
    mode_orders,
    read_orders,
    resolved_input,
    sees_request,
    used_names,
)
from reprise.context.variables import substitute, substitute_all
from reprise.errors import Cancelled, UnknownName
from reprise.model.agent import AgentDefinition
from reprise.model.result import (
    CacheReason,
    SeenStep,
    StepRecord,
    StepReference,
    StepResult,
    StepStatus,
)
from reprise.model.variables import REQUEST_VARIABLE
from reprise.model.workflow import Step, Workflow
from reprise.ports import Cancelled as CancelledCheck
from reprise.ports import Lookup, PriorOutput, Progress

logger = logging.getLogger(__name__)


class RunCacheMode(StrEnum):
    """What a run does with the cache (specification C19)."""

    USE = "use"
    """Look up and store."""
    REFRESH = "refresh"
    """Execute and overwrite; the expiry is reset."""
    BYPASS = "bypass"
    """Neither read nor write."""


@dataclass(frozen=True)
class StepRun:
    """One execution of a step that is asked for."""

    workflow: Workflow
    step: Step
    project_id: str
    run_id: str
    history: Mapping[int, SeenStep]
    """Order → what the step's ancestors gave; 0 is the request."""
    cache_mode: RunCacheMode = RunCacheMode.USE
    provider_id: str | None = None
    """Provider of the run; None takes the configured one."""
    progress: Progress = lambda what, share: None
    cancelled: CancelledCheck = lambda: False

    @property
    def where(self) -> str:
        """The step as messages name it."""
        return f"step {self.step.order} ({self.step.label}) of {self.workflow.id}"


@dataclass(frozen=True)
class StepOutcome:
    """A step's result and what the cache had to do with it."""

    result: StepResult
    reason: CacheReason
    detail: str
    cache_key: str | None
    prompt_chars: int
    seconds: float
    started_at: datetime
    finished_at: datetime
    lookup: Lookup | None = None
    """The hit that answered, or None."""


@dataclass(frozen=True)
class _Prepared:
    context: StepContext
    executor: StepExecutor
    variables: dict[str, JsonValue]


def run_step(run: StepRun, services: Services) -> StepOutcome:
    """Give a step's result: an earlier one where the cache has it, else a fresh one.

    Raises:
        RepriseError: The step failed; nothing is stored then.
    """
    started_at, start = services.clock(), time.perf_counter()
    stopped_by = next((seen for seen in run.history.values() if seen.stop_workflow), None)
    if stopped_by is not None:
        reason = f"step {stopped_by.order} ({stopped_by.label}) stopped the workflow"
        result = StepResult(
            status=StepStatus.SKIPPED, skip_reason=reason, sets_output_variable=False
        )
        outcome = StepOutcome(
            result, CacheReason.SKIPPED, reason, None, 0, 0.0, started_at, started_at
        )
        return _timed(outcome, services, start)
    with _workdir(services.scratch) as workdir:
        prepared = _prepare(run, services, workdir)
        outcome = _answer(run, services, prepared, started_at)
    return _timed(outcome, services, start)


def record_of(run: StepRun, outcome: StepOutcome, services: Services) -> StepRecord:
    """Keep the result's body and return the record that the run keeps of it."""
    result = outcome.result
    step = run.step
    body = services.bodies.put(run.project_id, result.output)
    variables = dict(result.variables)
    digests = {name: services.bodies.put(run.project_id, v) for name, v in variables.items()}
    if result.sets_output_variable:
        digests[step.variable] = body
    seen = SeenStep(
        order=step.order,
        label=step.label,
        type=step.type,
        status=result.status,
        body_digest=body,
        variables=digests,
        stop_workflow=result.stop_workflow,
    )
    hit = outcome.lookup.entry if outcome.lookup is not None else None
    reference = StepReference(
        workflow_id=run.workflow.id,
        project_id=run.project_id,
        run_id=run.run_id,
        seen=seen,
        history=dict(run.history),
    )
    return StepRecord(
        run_id=run.run_id,
        workflow_id=run.workflow.id,
        project_id=run.project_id,
        order=step.order,
        label=step.label,
        name=step.name,
        type=step.type,
        status=result.status,
        reference=reference,
        artifacts=result.artifacts,
        output_storage_key=result.output_storage_key,
        from_cache=hit is not None,
        cache_reason=outcome.reason,
        cache_detail=outcome.detail,
        cache_key=outcome.cache_key,
        usage=result.usage,
        seconds=outcome.seconds,
        cached_tokens_saved=hit.usage.tokens if hit is not None else 0,
        cached_seconds_saved=hit.seconds if hit is not None else 0.0,
        cached_cost_micros_saved=hit.usage.cost_micros if hit is not None else 0,
        retries=result.retries,
        model=result.model,
        prompt_chars=outcome.prompt_chars,
        notes=result.notes,
        started_at=outcome.started_at,
        finished_at=outcome.finished_at,
    )


def failure_record(
    run: StepRun, error: BaseException, services: Services, *, started_at: datetime
) -> StepRecord:
    """Return the record of a step that failed or was cancelled."""
    cancelled = isinstance(error, Cancelled)
    now = services.clock()
    return StepRecord(
        run_id=run.run_id,
        workflow_id=run.workflow.id,
        project_id=run.project_id,
        order=run.step.order,
        label=run.step.label,
        name=run.step.name,
        type=run.step.type,
        status=StepStatus.CANCELLED if cancelled else StepStatus.FAILED,
        usage=getattr(error, "usage", StepResult().usage),
        error=f"{run.where}: {error}",
        seconds=(now - started_at).total_seconds(),
        started_at=started_at,
        finished_at=now,
    )


def _timed(outcome: StepOutcome, services: Services, start: float) -> StepOutcome:
    seconds = round(time.perf_counter() - start, 6)
    return replace(outcome, seconds=seconds, finished_at=services.clock())


def _prepare(run: StepRun, services: Services, workdir: Path) -> _Prepared:
    step, workflow = run.step, run.workflow
    executor = EXECUTORS.get(step.type)
    if executor is None:
        served = ", ".join(sorted(EXECUTORS))
        message = f"{run.where}: step type {step.type.value!r} is not served; served are: {served}"
        raise UnknownName(message)
    agents = step_agents(step, services.agents)
    names = used_names(step, agents)
    prior = _prior_outputs(run, services, read_orders(step, workflow, agents), agents)
    request_body = services.bodies.get(run.project_id, run.history[0].body_digest)
    request = body_text(request_body)
    request = substitute(request, workflow.variables, where="the request")
    variables = _variables(run, services, names)
    values = {**variables, REQUEST_VARIABLE: request}
    agents = tuple(_substituted_agent(agent, values, run.where) for agent in agents)
    step = _substituted_step(step, values, run.where)
    by_mode = {order: prior[order] for order in mode_orders(step, workflow) if order in prior}
    context = StepContext(
        step=step,
        project_id=run.project_id,
        resolved_input=resolved_input(step, by_mode, where=run.where),
        user_request=request,
        prior=prior,
        agents=agents,
        files=tuple(services.projects.files(run.project_id)),
        provider=services.provider(run.provider_id or services.default_provider),
        services=services,
        workdir=workdir,
        progress=run.progress,
        cancelled=run.cancelled,
        reuse=run.cache_mode is RunCacheMode.USE,
    )
    return _Prepared(context, executor, variables)


def _answer(
    run: StepRun, services: Services, prepared: _Prepared, started_at: datetime
) -> StepOutcome:
    context, executor = prepared.context, prepared.executor
    verdict = cache_verdict(context.step, context.agents)
    identity: StepIdentity | None = None
    facts: KeyFacts | None = None
    looked = Lookup(reason=CacheReason.POLICY, detail=verdict.reason)
    if verdict.cacheable:
        facts = executor.key_facts(context)
        identity, looked = _identify(run, prepared, facts)
    if identity is not None:
        looked = _look_up(run, services, identity)
    if looked.result is not None:
        result = looked.result.model_copy(update={"usage": StepResult().usage})
        return _outcome(prepared, result, looked, identity, started_at, hit=looked)
    started = time.perf_counter()
    result = executor.execute(context)
    if run.cancelled():
        message = f"{run.where} was stopped"
        raise Cancelled(message)
    if identity is not None and facts is not None and run.cache_mode is not RunCacheMode.BYPASS:
        seconds = time.perf_counter() - started
        refusal = _store(run, services, prepared, facts, identity, result, seconds)
        if refusal is not None:
            note = f"{looked.detail}; not stored: {refusal.value}"
            looked = Lookup(reason=looked.reason, detail=note)
    return _outcome(prepared, result, looked, identity, started_at, hit=None)


def _outcome(
    prepared: _Prepared,
    result: StepResult,
    looked: Lookup,
    identity: StepIdentity | None,
    started_at: datetime,
    *,
    hit: Lookup | None,
) -> StepOutcome:
    return StepOutcome(
        result=result,
        reason=looked.reason,
        detail=looked.detail,
        cache_key=identity.cache_key if identity is not None else None,
        prompt_chars=len(prepared.context.resolved_input),
        seconds=0.0,
        started_at=started_at,
        finished_at=started_at,
        lookup=hit,
    )


def _identify(
    run: StepRun, prepared: _Prepared, facts: KeyFacts
) -> tuple[StepIdentity | None, Lookup]:
    context = prepared.context
    try:
        fields = key_fields(
            context.step,
            facts,
            project_id=run.project_id,
            resolved_input=context.resolved_input,
            user_request=(context.user_request if sees_request(run.step, context.agents) else None),
            variables=prepared.variables,
        )
        key = cache_key(fields)
        digests = field_digests(fields)
    except (NotCanonical, UnicodeEncodeError) as error:
        logger.warning("step cache: %s has no key: %s", run.where, error)
        return None, Lookup(reason=CacheReason.NOT_HASHABLE, detail=str(error))
    identity = StepIdentity(
        project_id=run.project_id,
        workflow_id=run.workflow.id,
        step_label=run.step.label,
        step_type=run.step.type.value,
        agent_id=run.step.agent,
        cache_key=key,
        field_digests=digests,
    )
    return identity, Lookup(reason=CacheReason.FIRST_TIME)


def _look_up(run: StepRun, services: Services, identity: StepIdentity) -> Lookup:
    if run.cache_mode is RunCacheMode.BYPASS:
        return Lookup(
            reason=CacheReason.BYPASS, detail="this run neither reads nor writes the cache"
        )
    if run.cache_mode is RunCacheMode.REFRESH:
        return Lookup(reason=CacheReason.REFRESH, detail="this run executes every step")
    return services.cache.lookup(identity)


def _store(
    run: StepRun,
    services: Services,
    prepared: _Prepared,
    facts: KeyFacts,
    identity: StepIdentity,
    result: StepResult,
    seconds: float,
) -> CacheReason | None:
    if result.status is not StepStatus.SUCCEEDED:
        return CacheReason.SKIPPED
    files = tuple(services.projects.files(run.project_id))
    now = prepared.executor.key_facts(replace(prepared.context, files=files))
    if now != facts:
        logger.warning("step cache: the inputs of %s moved while it ran; not stored", run.where)
        return CacheReason.INPUTS_MOVED
    return services.cache.store(identity, result, StepCost(run_id=run.run_id, seconds=seconds))


def step_agents(step: Step, agents: Mapping[str, AgentDefinition]) -> tuple[AgentDefinition, ...]:
    """Return the agents that work in a step, in speaking order.

    Raises:
        UnknownName: An agent has no definition.
    """
    found = []
    for name in agent_ids(step):
        agent = agents.get(name)
        if agent is None:
            message = (
                f"step {step.order} ({step.label}): no agent {name!r}; known: {', '.join(agents)}"
            )
            raise UnknownName(message)
        found.append(agent)
    return tuple(found)


def _prior_outputs(
    run: StepRun,
    services: Services,
    orders: list[int],
    agents: tuple[AgentDefinition, ...],
) -> dict[int, PriorOutput]:
    prior: dict[int, PriorOutput] = {}
    for order in orders:
        seen = run.history.get(order)
        if seen is None:
            message = f"{run.where} reads step {order}, which has no result; run that step first"
            raise UnknownName(message)
        if not is_readable(seen.status):
            continue
        source = run.workflow.step(order)
        agent = services.agents.get(source.agent) if source.agent else None
        prior[order] = PriorOutput(
            order=order,
            label=seen.label,
            type=source.type.value,
            agent_type=agent.agent_type if agent is not None else None,
            output=services.bodies.get(run.project_id, seen.body_digest),
        )
    return prior


def _variables(run: StepRun, services: Services, names: set[str]) -> dict[str, JsonValue]:
    visible = {name: v for name, v in run.workflow.variables.items() if name in names}
    for order in sorted(run.history):
        for name, digest in run.history[order].variables.items():
            if name in names and order < run.step.order:
                visible[name] = services.bodies.get(run.project_id, digest)
    return visible


def _substituted_agent(
    agent: AgentDefinition, values: Mapping[str, JsonValue], where: str
) -> AgentDefinition:
    where = f"{where}, agent {agent.id}"
    return agent.model_copy(
        update={
            "system_prompt": substitute(agent.system_prompt, values, where=where),
            "assigned_skills": tuple(
                substitute(skill, values, where=where) for skill in agent.assigned_skills
            ),
        }
    )


def _substituted_step(step: Step, values: Mapping[str, JsonValue], where: str) -> Step:
    update: dict[str, object] = {}
    if step.prompt is not None:
        update["prompt"] = substitute(step.prompt, values, where=where)
    for field in CONFIG_FIELDS:
        blob = getattr(step, field)
        if blob is not None:
            data = substitute_all(blob.model_dump(mode="json"), values, where=where)
            update[field] = type(blob).model_validate(data)
    return step.model_copy(update=update)


@contextmanager
def _workdir(scratch: Path) -> Iterator[Path]:
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="step-", dir=scratch, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)
