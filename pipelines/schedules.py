"""Schedules: each workflow over all projects, once a day, off until somebody turns it on.

Source: specification D13.
"""

from typing import Any

import dagster as dg

from reprise.model.workflow import Workflow

DAILY = "0 4 * * *"


def daily_schedule(workflow: Workflow, job: Any) -> dg.ScheduleDefinition:
    """Return a schedule that launches a run a project every day at 04:00."""

    @dg.schedule(
        name=f"daily_{workflow.slug}",
        cron_schedule=DAILY,
        job=job,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Run {workflow.id} over all projects every day at 04:00 UTC.",
        execution_timezone="UTC",
    )
    def daily(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        projects = context.instance.get_dynamic_partitions("projects")
        tick = context.scheduled_execution_time.isoformat()
        if not projects:
            return dg.SkipReason("there are no projects; add one with `reprise project add`")
        return [
            dg.RunRequest(
                run_key=f"{tick}-{name}",
                partition_key=name,
                tags={"reprise/project": name, "reprise/launched_by": "schedule"},
            )
            for name in projects
        ]

    return daily
