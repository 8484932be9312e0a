"""Which request a run works on: the one given, else the project's last one, else the default.

Source: specification D1.
"""

from dataclasses import dataclass

from pipelines.services import Services
from reprise.context.step_input import body_text
from reprise.errors import ObjectMissing
from reprise.model.workflow import Workflow

REQUEST = "request"
"""Name of the request's asset and of its records."""


@dataclass(frozen=True)
class ChosenRequest:
    """A request and where it comes from."""

    text: str
    origin: str
    """For people."""


def choose_request(
    workflow: Workflow, project_id: str, services: Services, given: str | None
) -> ChosenRequest:
    """Return the request of a run; reads the history and writes nothing."""
    if given is not None:
        return ChosenRequest(given, "this run's config")
    earlier = services.history.of_step(workflow.id, project_id, REQUEST, run_id=None)
    if earlier is not None and earlier.reference is not None:
        try:
            body = services.bodies.get(project_id, earlier.reference.seen.body_digest)
        except ObjectMissing:
            # The project was removed and made again since.
            return ChosenRequest(workflow.default_request, "the workflow's default")
        return ChosenRequest(body_text(body), "the project's last request")
    return ChosenRequest(workflow.default_request, "the workflow's default")
