"""Sensors: projects of the registry become partitions, in whichever instance this is.

Source: specification D13.
"""

from collections.abc import Callable

import dagster as dg

from pipelines.partitions import PROJECTS
from reprise.ports import ProjectRegistry


def project_partitions_sensor(registry: Callable[[], ProjectRegistry]) -> dg.SensorDefinition:
    """Return the sensor that keeps the partitions in step with the registry, on by default."""

    @dg.sensor(
        name="project_partitions",
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Adds a partition for each new project and removes those of deleted ones.",
    )
    def project_partitions(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        wanted = {project.name for project in registry().projects()}
        present = set(context.instance.get_dynamic_partitions("projects"))
        requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
        if wanted - present:
            requests.append(PROJECTS.build_add_request(sorted(wanted - present)))
        if present - wanted:
            requests.append(PROJECTS.build_delete_request(sorted(present - wanted)))
        return dg.SensorResult(
            dynamic_partitions_requests=requests,
            skip_reason=None if requests else dg.SkipReason("partitions match the projects"),
        )

    return project_partitions
