"""What a run keeps of a step: its record, and the reference that later steps get.

Source: specification W5, D3.
"""

from datetime import datetime

from pipelines.services import Services
from pipelines.step_run import StepOutcome, StepRun
from reprise.agents.loop import end_of, usage_of
from reprise.errors import Cancelled, RepriseError
from reprise.model.result import SeenStep, StepRecord, StepReference, StepStatus


def record_of(run: StepRun, outcome: StepOutcome, services: Services) -> StepRecord:
    """Keep the result's body and return the record that the run keeps of it."""
    result = outcome.result
    step = run.step
    body = services.bodies.put(run.project_id, result.output)
    shown = result.prompt_output
    prompt = None if shown is None else services.bodies.put(run.project_id, shown)
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
        prompt_digest=prompt,
        variables=digests,
        stop_workflow=result.stop_workflow,
    )
    looked = outcome.lookup
    hit = looked.entry
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
        cache_reason=looked.reason,
        cache_detail=looked.detail,
        cache_key=outcome.cache_key,
        cache_changes=looked.changes,
        cache_run_id=hit.run_id if hit is not None else looked.compared_run_id,
        usage=result.usage,
        seconds=outcome.seconds,
        cached_tokens_saved=hit.usage.tokens if hit is not None else 0,
        cached_seconds_saved=hit.seconds if hit is not None else 0.0,
        cached_cost_micros_saved=hit.usage.cost_micros if hit is not None else 0,
        retries=result.retries,
        model=result.model,
        prompt_chars=outcome.prompt_chars,
        context_budget=outcome.budgeted,
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
        usage=usage_of(error),
        error=f"{run.where}: {fault_text(error)}",
        ended=end_of(error),
        seconds=(now - started_at).total_seconds(),
        started_at=started_at,
        finished_at=now,
    )


def fault_text(error: BaseException) -> str:
    """Return an error for people; one that is none of ours by its first cause."""
    if isinstance(error, RepriseError):
        return str(error)
    while error.__cause__ is not None:
        error = error.__cause__
    hint = ""
    if isinstance(error, OSError) or "disk" in str(error):
        hint = "; check the disk's free space and the folder's rights"
    return f"{type(error).__name__}: {error}{hint}"
