"""Projects as partitions, kept in step with the project registry.

Source: specification D1, D13.
"""

import dagster as dg

from reprise.ports import ProjectRegistry

PROJECTS = dg.DynamicPartitionsDefinition(name="projects")
"""One partition a project; the key is the project's name."""


def sync_partitions(instance: dg.DagsterInstance, registry: ProjectRegistry) -> tuple[int, int]:
    """Add missing partitions and remove those without a project; return how many of each."""
    wanted = [project.name for project in registry.projects()]
    present = set(instance.get_dynamic_partitions("projects"))
    missing = [name for name in wanted if name not in present]
    if missing:
        instance.add_dynamic_partitions("projects", missing)
    gone = present - set(wanted)
    for name in gone:
        instance.delete_dynamic_partition("projects", name)
    return len(missing), len(gone)
