"""A workflow becomes Dagster assets: one a step, one root for the request, one job.

Keys are `[workflow, sNN_label]`, the group is the workflow, the partitions are the projects. Edges
are the transitive reduction of what each step really reads, plus order between steps with side
effects, so independent steps run at once.

Source: specification D1 to D6, W6.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import dagster as dg
from pydantic import JsonValue

from io_managers.step_cache import StepCacheIOManager
from pipelines.cancellation import cancellation
from pipelines.edges import step_reads, transitive_reduction
from pipelines.metadata import failure_metadata, request_metadata, step_metadata
from pipelines.partitions import PROJECTS
from pipelines.prepare import step_agents
from pipelines.records import failure_record, fault_text, record_of
from pipelines.request import REQUEST, ChosenRequest, choose_request
from pipelines.run_options import RequestConfig, run_options
from pipelines.run_step import run_step
from pipelines.services import Services
from pipelines.step_run import StepRun
from pipelines.steps import EXECUTORS
from pipelines.throttle import Throttled
from reprise.cache.key import ALGORITHM_REVISIONS
from reprise.canonical import canonical_json
from reprise.errors import DefinitionInvalid, RepriseError, StoreError
from reprise.model.agent import SANDBOX_GROUPS, AgentDefinition
from reprise.model.execution import Execution, executing
from reprise.model.result import SeenStep, StepRecord, StepReference, StepResult, StepStatus
from reprise.model.sandbox import EarlierRun
from reprise.model.workflow import SandboxConfig, Step, Workflow

logger = logging.getLogger(__name__)

IO_MANAGER_KEY = "step_cache"
SERVICES_KEY = "services"

PARENTS_MAX = 20
"""So many runs back a re-execution looks for a sandbox to go on from."""

RETRY_POLICY = dg.RetryPolicy(
    max_retries=2, delay=2.0, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
"""For transient errors only; a permanent one forbids the retry itself."""


def step_code_version(
    step: Step,
    agents: Sequence[AgentDefinition],
    fingerprint: str | None = None,
    sandbox: SandboxConfig | None = None,
) -> str:
    """Return a digest of all that a person can edit about a step, for Dagster's staleness.

    Args:
        step: The step.
        agents: Those who work in it.
        fingerprint: That of a Function step's code; None when it has none.
        sandbox: What its sandbox begins with; None when its agents have no tools for one.
    """
    definition: dict[str, JsonValue] = {
        "step": step.model_dump(mode="json"),
        "agents": [_agent_json(agent) for agent in agents],
        "revision": ALGORITHM_REVISIONS.get(step.type),
    }
    if fingerprint is not None:
        definition["fingerprint"] = fingerprint
    if sandbox is not None:
        definition["sandbox"] = sandbox.model_dump(mode="json")
    return hashlib.sha256(canonical_json(definition).encode()).hexdigest()[:16]


def _agent_json(agent: AgentDefinition) -> dict[str, JsonValue]:
    data: dict[str, JsonValue] = agent.model_dump(
        mode="json", exclude={"source_path", "tool_groups", "limits"}
    )
    # A set has no order of its own.
    return {**data, "tool_groups": [*sorted(group.value for group in agent.tool_groups)]}


def check_served(workflow: Workflow) -> None:
    """Check that this version can run every step of a workflow.

    Raises:
        DefinitionInvalid: It cannot; names file, step, and what it can run.
    """
    problems = []
    for step in workflow.steps:
        where = f"{workflow.source_path}: step {step.order} ({step.label})"
        if step.type not in EXECUTORS:
            served = ", ".join(sorted(EXECUTORS))
            problems.append(
                f"{where}: this version serves no steps of type {step.type.value!r};"
                f" it serves: {served}"
            )
        elif step.condition is not None:
            problems.append(
                f"{where}: this version serves no conditions, so the step would always run;"
                " remove `condition`"
            )
    if problems:
        raise DefinitionInvalid(problems)


def compile_workflow(
    workflow: Workflow,
    agents: Mapping[str, AgentDefinition],
    fingerprint_of: Callable[[str], str | None],
) -> tuple[list[dg.AssetsDefinition], Any]:
    """Return a workflow's assets and its job.

    Args:
        workflow: The workflow.
        agents: Every agent, by id.
        fingerprint_of: `module:callable` → fingerprint of its code, None when it has none.

    Raises:
        UnknownName: A step names an agent that has no definition.
    """
    edges = transitive_reduction(step_reads(workflow, agents))
    assets = [_request_asset(workflow)]
    for step in workflow.steps:
        function = None if step.function is None else fingerprint_of(step.function.callable)
        its_agents = step_agents(step, agents)
        sandbox = workflow.sandbox if _has_sandbox(its_agents) else None
        version = step_code_version(step, its_agents, function, sandbox)
        assets.append(_step_asset(workflow, step, edges[step.order], version))
    job = dg.define_asset_job(
        workflow.slug,
        selection=dg.AssetSelection.groups(workflow.slug),
        description=workflow.description or None,
        tags={"reprise/workflow": workflow.id},
    )
    return assets, job


def _request_asset(workflow: Workflow) -> dg.AssetsDefinition:
    @dg.asset(
        key=[workflow.slug, REQUEST],
        group_name=workflow.slug,
        partitions_def=PROJECTS,
        io_manager_key=IO_MANAGER_KEY,
        required_resource_keys={SERVICES_KEY},
        kinds={"request"},
        description=(
            "The free-text request. Without one in the run's config it is the project's last one,"
            " else the workflow's default; so backfills and schedules need no config."
        ),
    )
    def request(
        context: dg.AssetExecutionContext, config: RequestConfig
    ) -> dg.MaterializeResult[StepRecord]:
        services: Services = context.resources.services
        try:
            record, chosen = _request_record(workflow, context, services, config.user_request)
        except RepriseError as error:
            # The error says all that a person can use; a cause beneath it would be shown instead.
            raise dg.Failure(
                description=f"request of {workflow.id}: {error}", allow_retries=error.transient
            ) from None
        assert record.reference is not None
        return dg.MaterializeResult(
            value=record,
            data_version=dg.DataVersion(record.reference.seen.version),
            metadata=request_metadata(chosen.text, chosen.origin),
        )

    return request


def _request_record(
    workflow: Workflow, context: dg.AssetExecutionContext, services: Services, given: str | None
) -> tuple[StepRecord, ChosenRequest]:
    project_id = context.partition_key
    now = services.clock()
    chosen = choose_request(workflow, project_id, services, given)
    seen = SeenStep(
        order=0,
        label=REQUEST,
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=services.bodies.put(project_id, chosen.text),
    )
    record = StepRecord(
        run_id=context.run.run_id,
        workflow_id=workflow.id,
        project_id=project_id,
        order=0,
        label=REQUEST,
        name=REQUEST,
        type=None,
        status=StepStatus.SUCCEEDED,
        reference=StepReference(
            workflow_id=workflow.id, project_id=project_id, run_id=context.run.run_id, seen=seen
        ),
        started_at=now,
        finished_at=now,
    )
    return record, chosen


def _step_asset(
    workflow: Workflow,
    step: Step,
    parents: frozenset[int],
    code_version: str,
) -> dg.AssetsDefinition:
    names = [workflow.step(order).name for order in sorted(parents)] or [REQUEST]
    link = {"workflow_id": workflow.id}
    ins = {name: dg.AssetIn(key=[workflow.slug, name], metadata=link) for name in names}

    @dg.asset(
        key=[workflow.slug, step.name],
        ins=ins,
        group_name=workflow.slug,
        partitions_def=PROJECTS,
        io_manager_key=IO_MANAGER_KEY,
        required_resource_keys={SERVICES_KEY, IO_MANAGER_KEY},
        code_version=code_version,
        retry_policy=RETRY_POLICY,
        kinds={step.type.value.lower()},
        tags={"reprise/step_order": str(step.order)},
        metadata={
            "order": step.order,
            "type": step.type.value,
            "input_mode": step.input_mode.value,
        },
        description=f"Step {step.order} of {workflow.id}: {step.label} ({step.type.value})",
    )
    def asset_body(
        context: dg.AssetExecutionContext, **references: StepReference
    ) -> dg.MaterializeResult[StepRecord]:
        # The step asks the IO manager's cache before it executes (specification D4).
        io_manager: StepCacheIOManager = context.resources.step_cache
        services: Services = replace(context.resources.services, cache=io_manager.cache)
        run = _step_run(workflow, step, context, list(references.values()), services)
        # From the run's tags, so that it is the same in every executor and on every machine.
        with executing(_execution(context, services)):
            record, result = _execute(run, context, services)
        assert record.reference is not None
        return dg.MaterializeResult(
            value=record,
            data_version=dg.DataVersion(record.reference.seen.version),
            metadata=step_metadata(record, result, services.objects),
        )

    return asset_body


def _execution(context: dg.AssetExecutionContext, services: Services) -> Execution:
    run = context.run
    return Execution(
        execution_id=run.run_id,
        run_id=run.run_id,
        initiator_id=services.initiator(run.run_id, run.tags),
    )


def _step_run(
    workflow: Workflow,
    step: Step,
    context: dg.AssetExecutionContext,
    references: Sequence[StepReference],
    services: Services,
) -> StepRun:
    options = run_options(context.run, workflow)
    stop = cancellation(context.run.run_id)
    log: Callable[[str], None] = context.log.info
    return StepRun(
        workflow=workflow,
        step=step,
        project_id=context.partition_key,
        run_id=context.run.run_id,
        history=merged_history(references),
        cache_mode=options.cache_of(step),
        provider_id=options.provider,
        earlier=_earlier_runs(step, context, references, services),
        progress=Throttled(log, run_id=context.run.run_id, label=step.label),
        cancelled=stop.is_set,
    )


def _has_sandbox(agents: Sequence[AgentDefinition]) -> bool:
    return any(agent.tool_groups & SANDBOX_GROUPS for agent in agents)


def _earlier_runs(
    step: Step,
    context: dg.AssetExecutionContext,
    references: Sequence[StepReference],
    services: Services,
) -> tuple[EarlierRun, ...]:
    """Return the runs that a run's sandbox goes on from, for a step that has one.

    A re-execution goes on from its parent. Where a step is run alone, it is the run that its inputs
    are from, as that was before the step.
    """
    if not _has_sandbox(step_agents(step, services.agents)):
        return ()
    parents: list[str] = []
    run: dg.DagsterRun | None = context.run
    while run is not None and run.parent_run_id is not None and len(parents) < PARENTS_MAX:
        parents.append(run.parent_run_id)
        run = context.instance.get_run_by_id(run.parent_run_id)
    earlier = [EarlierRun(run_id=run_id) for run_id in parents]
    nearest_first = sorted(references, key=lambda each: each.seen.order, reverse=True)
    inputs = dict.fromkeys(each.run_id for each in nearest_first if each.seen.order > 0)
    return tuple(earlier) + tuple(
        EarlierRun(run_id=run_id, before_order=step.order)
        for run_id in inputs
        if run_id not in (context.run.run_id, *parents)
    )


def merged_history(references: Sequence[StepReference]) -> dict[int, SeenStep]:
    """Return what a step's parents gave and saw; a parent's own result wins over a memory of it."""
    ordered = sorted(references, key=lambda reference: reference.seen.order)
    history: dict[int, SeenStep] = {}
    for reference in ordered:
        history |= reference.history
    return history | {reference.seen.order: reference.seen for reference in ordered}


def _execute(
    run: StepRun, context: dg.AssetExecutionContext, services: Services
) -> tuple[StepRecord, StepResult]:
    started_at = services.clock()
    try:
        outcome = run_step(run, services)
        record = record_of(run, outcome, services)
    except RepriseError as error:
        _record_failure(run, error, services, started_at)
        raise dg.Failure(
            description=f"{run.where}: {error}",
            metadata=failure_metadata(error),
            allow_retries=error.transient,
        ) from error
    except Exception as error:
        # Dagster would retry what it does not know; a fault in code or a full disk stays.
        _record_failure(run, error, services, started_at)
        raise dg.Failure(
            description=f"{run.where}: {fault_text(error)}",
            metadata=failure_metadata(error),
            allow_retries=False,
        ) from error
    except BaseException as error:
        _record_failure(run, error, services, started_at)
        raise
    context.log.info("%s: %s (%s)", run.where, record.cache_reason, record.cache_detail)
    if outcome.result.stop_workflow:
        context.log.info("%s stops the workflow: the steps after it are skipped", run.where)
    return record.model_copy(update={"retries": context.retry_number}), outcome.result


def _record_failure(
    run: StepRun, error: BaseException, services: Services, started_at: datetime
) -> None:
    try:
        services.history.append(failure_record(run, error, services, started_at=started_at))
    except StoreError as fault:
        # The step's own error is what counts, and whether it may be retried.
        logger.warning("the failure of %s is not recorded: %s", run.where, fault)
