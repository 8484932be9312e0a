"""Whether the providers that a run would ask are configured, before anything runs."""

from pipelines.definitions import Wiring
from reprise.context.step_input import agent_ids
from reprise.model.workflow import Workflow


def check_providers(wiring: Wiring, workflow: Workflow, chosen: str | None) -> None:
    """Check the providers of a workflow's agents.

    Args:
        wiring: Knows the configured ones.
        workflow: The workflow.
        chosen: The run's own; None takes the configured default.

    Raises:
        UnknownName: One is not configured; says how to.
    """
    names = [name for step in workflow.steps for name in agent_ids(step)]
    if names:
        wiring.provider(chosen or wiring.settings.provider)
    for name in names:
        own = wiring.definitions.agents[name].inference_provider_id
        if own is not None:
            wiring.provider(own)
