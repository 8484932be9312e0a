"""Launching a workflow in this process as a real, recorded Dagster run, and summing it up.

Source: specification D7, D12, D15; `reprise run`.
"""

import getpass
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.events import DagsterEvent
from dagster._core.execution.api import execute_run_iterator

from pipelines.definitions import Wiring, build_definitions
from pipelines.executor import INTERACTIVE_TAG
from pipelines.partitions import sync_partitions
from pipelines.run_options import CACHE_TAG, PROVIDER_TAG, request_op
from pipelines.throttle import unwatch, watch
from reprise.model.result import StepRecord, StepStatus
from reprise.model.workflow import Workflow

QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}
"""Keeps Dagster's own log off the terminal; it is in the run all the same."""


@dataclass(frozen=True)
class Launch:
    """What a run is asked to do."""

    workflow: Workflow
    project: str
    request: str | None = None
    cache: str = "use"
    provider: str | None = None


@dataclass(frozen=True)
class RunSummary:
    """How a run went."""

    run_id: str
    workflow_id: str
    project: str
    status: str
    """`succeeded`, `failed` or `cancelled`."""
    seconds: float
    records: tuple[StepRecord, ...]
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the object that `reprise run --json` prints."""
        return {
            "run_id": self.run_id,
            "workflow": self.workflow_id,
            "project": self.project,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "steps": [_step_json(record) for record in self.records],
        }


def _step_json(record: StepRecord) -> dict[str, Any]:
    return {
        "order": record.order,
        "label": record.label,
        "type": record.type.value if record.type is not None else None,
        "status": record.status.value,
        "from_cache": record.from_cache,
        "cache_reason": record.cache_reason.value if record.cache_reason else None,
        "cache_detail": record.cache_detail,
        "seconds": round(record.seconds, 3),
        "tokens_used": record.usage.tokens,
        "cached_tokens_saved": record.cached_tokens_saved,
        "cached_seconds_saved": round(record.cached_seconds_saved, 3),
        "cost": None if record.usage.cost_micros is None else record.usage.cost_micros / 1e6,
        "model": record.model,
        "output_storage_key": record.output_storage_key,
        "storage_keys": [artifact.storage_key for artifact in record.artifacts],
        "error": record.error,
        "notes": list(record.notes),
    }


class Launcher:
    """Runs workflows in this process, one after the other, on one warm set of definitions."""

    def __init__(self, wiring: Wiring, instance: dg.DagsterInstance) -> None:
        self._wiring = wiring
        self._instance = instance
        self._definitions = build_definitions(wiring)

    def run(self, launch: Launch, report: Callable[[str], None]) -> RunSummary:
        """Run a workflow on a project.

        Args:
            launch: What to run.
            report: Called with a line whenever there is something to tell.

        Returns:
            The summary, also of a run that failed or was stopped.
        """
        sync_partitions(self._instance, self._wiring.projects)
        job = self._definitions.resolve_job_def(launch.workflow.slug)
        run_id = str(uuid.uuid4())
        run = self._instance.create_run_for_job(
            job, run_id=run_id, run_config=_run_config(launch), tags=_tags(launch)
        )
        watch(run_id, report)
        failures: list[str] = []
        start = self._wiring.services.clock()
        try:
            for event in execute_run_iterator(InMemoryJob(job), run, self._instance):
                _tell(event, launch.workflow, report, failures)
        finally:
            unwatch(run_id)
        seconds = (self._wiring.services.clock() - start).total_seconds()
        return self._summary(launch, run_id, seconds, failures)

    def _summary(
        self, launch: Launch, run_id: str, seconds: float, failures: Sequence[str]
    ) -> RunSummary:
        run = self._instance.get_run_by_id(run_id)
        records = tuple(r for r in self._wiring.history.of_run(run_id) if r.order > 0)
        status = "failed"
        if run is not None and run.status is dg.DagsterRunStatus.SUCCESS:
            status = "succeeded"
        elif run is not None and run.status is dg.DagsterRunStatus.CANCELED:
            status = "cancelled"
        error = None
        if status == "failed":
            known = [r.error for r in records if r.status is StepStatus.FAILED and r.error]
            error = (known or list(failures) or ["the run failed; see its page in the UI"])[0]
        return RunSummary(
            run_id=run_id,
            workflow_id=launch.workflow.id,
            project=launch.project,
            status=status,
            seconds=seconds,
            records=records,
            error=error,
        )


def _run_config(launch: Launch) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if launch.request is not None:
        config["user_request"] = launch.request
    return {"loggers": QUIET, "ops": {request_op(launch.workflow): {"config": config}}}


def _tags(launch: Launch) -> dict[str, str]:
    tags = {
        "dagster/partition": launch.project,
        # The UI finds a run's job by this tag, to show and re-execute it.
        ".dagster/repository": "__repository__@reprise",
        "reprise/workflow": launch.workflow.id,
        "reprise/project": launch.project,
        "reprise/launched_by": "command line",
        "reprise/user": getpass.getuser(),
        INTERACTIVE_TAG: "true",
        CACHE_TAG: launch.cache,
    }
    if launch.provider is not None:
        tags[PROVIDER_TAG] = launch.provider
    return tags


def _tell(
    event: DagsterEvent, workflow: Workflow, report: Callable[[str], None], failures: list[str]
) -> None:
    name = (event.step_key or "").removeprefix(f"{workflow.slug}__")
    if event.is_step_success and name != "request":
        report(f"{name}: done")
    elif event.is_step_failure:
        data = event.step_failure_data
        cause = data.error
        while cause is not None and cause.cause is not None:
            cause = cause.cause
        text = cause.message.strip() if cause is not None else "failed"
        failures.append(f"step {name}: {text}")
        report(f"{name}: failed")
