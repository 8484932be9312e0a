"""Launching a workflow in this process as a real, recorded Dagster run, and summing it up.

Source: specification D7, D12, D15; `reprise run`.
"""

import getpass
import os
import platform
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.events import DagsterEvent
from dagster._core.execution.api import execute_run_iterator

from apps.commands.tables import one_line
from apps.instance import LOCATION_NAME, job_origin, storage_errors
from apps.progress import RunProgress
from apps.stop_signals import StopSignals
from pipelines.definitions import Wiring, build_definitions
from pipelines.executor import INTERACTIVE_TAG, is_interactive
from pipelines.initiator import PROJECT_TAG, WORKFLOW_TAG
from pipelines.partitions import sync_partitions
from pipelines.request import REQUEST
from pipelines.run_options import CACHE_STEPS_TAG, CACHE_TAG, PROVIDER_TAG, request_op
from pipelines.throttle import unwatch, watch
from reprise.model.result import StepRecord, StepStatus
from reprise.model.user import User
from reprise.model.workflow import Workflow
from reprise.ports import HistoryStore
from resources.scratch_folder import is_in_use

HOST_TAG = "reprise/host"
SCRATCH_TAG = "reprise/scratch"
"""Run tags that name the process that works on it, for whoever finds the run after its death."""

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
    cache_steps: str = ""
    """Cache modes of single steps, as `4=refresh,hook=bypass`."""
    initiator: User | None = None
    """The user in whose name it works."""


@dataclass(frozen=True)
class RunSummary:
    """How a run went."""

    run_id: str | None
    """None when nothing was started."""
    workflow_id: str
    project: str
    status: str
    """`succeeded`, `failed` or `cancelled`."""
    seconds: float
    records: tuple[StepRecord, ...]
    error: str | None = None
    """On one line: the first failed step's, else the run's."""

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
        "prompt_chars": record.prompt_chars,
        "context_budget": _budget_json(record),
        "output_storage_key": record.output_storage_key,
        "storage_keys": [artifact.storage_key for artifact in record.artifacts],
        "error": record.error,
        "notes": list(record.notes),
    }


def _budget_json(record: StepRecord) -> dict[str, Any] | None:
    report = record.context_budget
    if report is None:
        return None
    return {
        "chars_before": report.chars_before,
        "chars_after": report.chars_after,
        "tokens_before_estimated": report.tokens_before,
        "tokens_after_estimated": report.tokens_after,
        "entries": [entry.model_dump(mode="json") for entry in report.entries],
    }


class Launcher:
    """Runs workflows in this process, one after the other, on one warm set of definitions.

    Args:
        wiring: The adapters.
        instance: Where runs are recorded.
        stops: Notes the stops that the process is sent.
    """

    def __init__(self, wiring: Wiring, instance: dg.DagsterInstance, stops: StopSignals) -> None:
        self._wiring = wiring
        self._instance = instance
        self._stops = stops
        self._definitions = build_definitions(wiring)

    def run(self, launch: Launch, progress: RunProgress) -> RunSummary:
        """Run a workflow on a project.

        Args:
            launch: What to run.
            progress: Told what the steps do.

        Returns:
            The summary, also of a run that failed or was stopped.

        Raises:
            StoreError: A store of the home cannot be used.
        """
        with self._stops.held(), storage_errors("the run's record cannot be kept"):
            sync_partitions(self._instance, self._wiring.projects)
            end_abandoned_runs(self._instance)
            job = self._definitions.resolve_job_def(launch.workflow.slug)
            run_id = str(uuid.uuid4())
            run = self._instance.create_run_for_job(
                job,
                run_id=run_id,
                run_config=_run_config(launch),
                tags={
                    **_tags(launch, run_id, self._wiring.scratch.path),
                    **self._wiring.behalf.initiator_tags(launch.initiator, run_id),
                },
                remote_job_origin=job_origin(job.name),
            )
        events = _Events(launch, run_id, self._wiring.history, progress)
        watch(run_id, progress.working)
        start = self._wiring.services.clock()
        try:
            with self._stops.stopping(run_id), storage_errors(f"run {run_id} stopped"):
                for event in execute_run_iterator(InMemoryJob(job), run, self._instance):
                    events.take(event)
        except KeyboardInterrupt:
            # Before Dagster took the signals over; the run has no step yet.
            self._instance.report_run_canceled(run, message="interrupted before its first step")
        finally:
            unwatch(run_id)
        seconds = (self._wiring.services.clock() - start).total_seconds()
        return self._summary(launch, run_id, seconds, events.failures)

    def _summary(
        self, launch: Launch, run_id: str, seconds: float, failures: Sequence[str]
    ) -> RunSummary:
        with storage_errors(f"the record of run {run_id} cannot be read"):
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
            error=None if error is None else one_line(error),
        )


@dataclass
class _Events:
    """A run's events on their way to whoever watches it."""

    launch: Launch
    run_id: str
    history: HistoryStore
    progress: RunProgress
    failures: list[str] = field(default_factory=list)
    """What failed, a line each, the first failure first."""

    def take(self, event: DagsterEvent) -> None:
        """Tell what an event means for a person."""
        workflow = self.launch.workflow
        name = (event.step_key or "").removeprefix(f"{workflow.slug}__")
        label = next((step.label for step in workflow.steps if step.name == name), name)
        if event.is_step_success and name != REQUEST:
            record = self.history.of_step(
                workflow.id, self.launch.project, name, run_id=self.run_id
            )
            if record is not None:
                self.progress.ended(record)
        elif event.is_step_up_for_retry:
            self.progress.failed(label, _message(event.step_retry_data.error), tries_again=True)
        elif event.is_step_failure:
            text = _message(event.step_failure_data.error)
            self.failures.append(f"step {label}: {text}")
            self.progress.failed(label, text, tries_again=False)


def end_abandoned_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs of this machine's dead processes as failed.

    Otherwise a killed `reprise run` would count as running for ever, and Dagster would hold back
    the project's queued runs.
    """
    working = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    statuses = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, *working]
    found = instance.get_runs(
        dg.RunsFilter(statuses=statuses, tags={HOST_TAG: platform.node() or "unknown"})
    )
    for run in found:
        # A run launched again from the UI has its model's tags and another process.
        if is_interactive(run) and not is_in_use(Path(run.tags.get(SCRATCH_TAG, ""))):
            instance.report_run_failed(run, message="its process ended without a word")


def _message(error: Any) -> str:
    """Return the message of an error's first cause, as Dagster keeps it."""
    while error is not None and error.cause is not None:
        error = error.cause
    return str(error.message).strip() if error is not None else "it failed"


def _run_config(launch: Launch) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if launch.request is not None:
        config["user_request"] = launch.request
    return {"loggers": QUIET, "ops": {request_op(launch.workflow): {"config": config}}}


def _tags(launch: Launch, run_id: str, scratch: Path) -> dict[str, str]:
    tags = {
        "dagster/partition": launch.project,
        # By this tag the UI finds a job's runs.
        ".dagster/repository": f"__repository__@{LOCATION_NAME}",
        WORKFLOW_TAG: launch.workflow.id,
        PROJECT_TAG: launch.project,
        "reprise/launched_by": "command line",
        "reprise/user": _user(),
        HOST_TAG: platform.node() or "unknown",
        SCRATCH_TAG: str(scratch),
        INTERACTIVE_TAG: run_id,
        CACHE_TAG: launch.cache,
    }
    if launch.cache_steps:
        tags[CACHE_STEPS_TAG] = launch.cache_steps
    if launch.provider is not None:
        tags[PROVIDER_TAG] = launch.provider
    return tags


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A user without a name, as containers have them.
        return str(os.getuid())
