"""The run queue of the instance, which writes down who started a run.

Dagster asks the coordinator with each run that the web server or the daemon submits. From there the
initiator is known for sure: the header that the proxy sets, where a request started the run; the
user of the settings, where a schedule or a sensor did; the parent's, where the daemon retries a
run. What a client put into these tags is overwritten. A backfill works in nobody's name: the daemon
submits its runs, long after the request, with tags that a client may have set.

`dagster.yaml` names the class.

Source: specification O2a, D15.
"""

import logging
from functools import cached_property

import dagster as dg
from dagster._core.definitions.assets.job.asset_job import is_reserved_asset_job_name
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.storage.tags import (
    BACKFILL_ID_TAG,
    PARTITION_NAME_TAG,
    SCHEDULE_NAME_TAG,
    SENSOR_NAME_TAG,
)
from starlette.requests import HTTPConnection

from pipelines.behalf_wiring import BehalfWiring
from pipelines.initiator import (
    INITIATOR_TAG,
    NOBODY,
    PROJECT_TAG,
    PROOF_TAG,
    WORKFLOW_TAG,
)
from reprise.model.user import User
from reprise.model.workflow import slug
from resources.settings import load_settings

logger = logging.getLogger(__name__)


class InitiatorRunCoordinator(QueuedRunCoordinator[dg.DagsterInstance]):
    """A queue that takes the initiator from where it can be trusted, and from nowhere else."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Tag a run, then queue it."""
        run = context.dagster_run
        # One that was submitted before has its tags, and may be at work.
        if run.status is dg.DagsterRunStatus.NOT_STARTED:
            initiator = self._behalf.initiator_tags(self._initiator(context), run.run_id)
            tags = {**_where(run), **_taken_off(run), **initiator}
            self._instance.add_run_tags(run.run_id, tags)
        return super().submit_run(context)

    @cached_property
    def _behalf(self) -> BehalfWiring:
        return BehalfWiring(load_settings())

    def _initiator(self, context: SubmitRunContext) -> User | None:
        run = context.dagster_run
        source = getattr(context.workspace, "source", None)
        if source is not None:
            return self._signed_in(source)
        if BACKFILL_ID_TAG in run.tags:
            return None
        if run.parent_run_id is not None:
            return self._behalf.initiator_of_run(self._instance.get_run_by_id(run.parent_run_id))
        if SCHEDULE_NAME_TAG in run.tags or SENSOR_NAME_TAG in run.tags:
            return self._behalf.scheduled_user()
        return None

    def _signed_in(self, source: object) -> User | None:
        header = self._behalf.proxy_header
        if header is None or not isinstance(source, HTTPConnection):
            return None
        names = source.headers.getlist(header)
        if len(names) != 1:
            # A proxy that adds its header to the client's own would leave two.
            logger.warning("a run is launched with %d headers %s; it needs one", len(names), header)
            return None
        return self._behalf.known_user(names[0].strip(), f"header {header}")


def _taken_off(run: dg.DagsterRun) -> dict[str, str]:
    return {tag: NOBODY for tag in (INITIATOR_TAG, PROOF_TAG) if tag in run.tags}


def _where(run: dg.DagsterRun) -> dict[str, str]:
    """Return the tags that say what a run works on, where a client may have said otherwise."""
    tags = {}
    project = run.tags.get(PARTITION_NAME_TAG, NOBODY)
    if project != NOBODY or PROJECT_TAG in run.tags:
        tags[PROJECT_TAG] = project
    workflow = run.job_name
    if is_reserved_asset_job_name(workflow):
        groups = {key.path[0] for key in run.asset_selection or ()}
        workflow = groups.pop() if len(groups) == 1 else NOBODY
    elif WORKFLOW_TAG not in run.tags:
        return tags
    if slug(run.tags.get(WORKFLOW_TAG, "")) != workflow:
        tags[WORKFLOW_TAG] = workflow
    return tags
