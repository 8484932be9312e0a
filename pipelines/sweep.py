"""The job `reprise_cache_sweep`: expired and surplus cache entries go, in batches, every night.

It only reclaims space; whether an entry still counts is tested when it is read.

Source: specification C11, C24.
"""

from collections.abc import Callable

import dagster as dg

ROWS_BATCH = 200
BATCHES_MAX = 5_000


def sweep_job(sweep: Callable[[], tuple[int, int]]) -> dg.JobDefinition:
    """Return the job.

    Args:
        sweep: Removes what is due; returns how many entries and how many objects went.
    """

    @dg.op(name="sweep", description="Remove expired and surplus cache entries and their objects.")
    def remove(context: dg.OpExecutionContext) -> None:
        entries, objects = sweep()
        context.log.info("%d entries and %d objects removed", entries, objects)

    @dg.job(name="reprise_cache_sweep", description="Reclaim the space of old cache entries.")
    def job() -> None:
        remove()

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
