"""The job `reprise_cache_sweep`: old cache entries and old sandboxes go, every night.

It only reclaims space; whether an entry still counts is tested when it is read. A sandbox of a run
that has not ended stays.

Source: specification C11, C24, E10.
"""

from collections.abc import Callable, Collection

import dagster as dg

ROWS_BATCH = 200
BATCHES_MAX = 5_000


UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def sweep_job(
    sweep: Callable[[], tuple[int, int]], sweep_sandboxes: Callable[[Collection[str]], int]
) -> dg.JobDefinition:
    """Return the job.

    Args:
        sweep: Removes what is due; returns how many entries and how many objects went.
        sweep_sandboxes: Gets the ids of runs that have not ended; removes old sandboxes of others
            and returns how many.
    """

    @dg.op(name="sweep", description="Remove expired and surplus cache entries and their objects.")
    def remove(context: dg.OpExecutionContext) -> None:
        entries, objects = sweep()
        context.log.info("%d entries and %d objects removed", entries, objects)

    @dg.op(name="sweep_sandboxes", description="Remove sandboxes that no run used for long.")
    def remove_sandboxes(context: dg.OpExecutionContext) -> None:
        unfinished = context.instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED))
        gone = sweep_sandboxes({run.run_id for run in unfinished})
        context.log.info("%d sandboxes removed", gone)

    @dg.job(
        name="reprise_cache_sweep",
        description="Reclaim the space of old cache entries and sandboxes.",
    )
    def job() -> None:
        remove()
        remove_sandboxes()

    return job


def sweep_schedule(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Return the schedule of the job, on by default."""
    return dg.ScheduleDefinition(
        name="reprise_cache_sweep_nightly",
        job=job,
        cron_schedule="30 3 * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
