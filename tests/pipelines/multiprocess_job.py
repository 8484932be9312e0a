"""The workflow `w` with a process for each step, as each of these processes makes it anew."""

import dagster as dg

from pipelines.definitions import Wiring, build_definitions
from resources.settings import load_settings


def multiprocess_job() -> dg.JobDefinition:
    """Return the job, from the settings of the environment."""
    made = build_definitions(Wiring(load_settings()))
    alike = dg.Definitions(
        assets=made.assets,
        jobs=made.jobs,
        resources=made.resources,
        executor=dg.multiprocess_executor,
    )
    return alike.resolve_job_def("w")
