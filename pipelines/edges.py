"""Which earlier steps a step waits for, and the fewest edges from which that follows.

Source: specification D2, W6.
"""

from collections.abc import Mapping

from pipelines.prepare import step_agents
from reprise.context.step_input import read_orders
from reprise.model.agent import EFFECT_GROUPS, AgentDefinition, ToolGroup
from reprise.model.workflow import Step, StepType, Workflow


def step_reads(
    workflow: Workflow, agents: Mapping[str, AgentDefinition]
) -> dict[int, frozenset[int]]:
    """Return, for each step, the earlier steps that it waits for.

    Source: specification W6.
    """
    reads: dict[int, frozenset[int]] = {}
    last_effect: int | None = None
    last_stop: int | None = None
    project, sandbox = _ProjectOrder(), _SandboxOrder()
    for step in workflow.steps:
        its_agents = step_agents(step, agents)
        orders = set(read_orders(step, workflow, its_agents))
        groups = frozenset[ToolGroup]().union(*(agent.tool_groups for agent in its_agents))
        orders |= project.waits(step, groups) | sandbox.waits(step, groups)
        if last_stop is not None:
            orders.add(last_stop)
        if step.function is not None and step.function.stops:
            last_stop = step.order
        if groups & EFFECT_GROUPS or (step.function is not None and not step.function.pure):
            if last_effect is not None:
                orders.add(last_effect)
            last_effect = step.order
        reads[step.order] = frozenset(orders)
    return reads


class _ProjectOrder:
    """The order between steps that read a project and steps that change what is read there.

    An agent with ProjectRead sees what earlier agents wrote, and searches what earlier analyses
    heard; what a later agent writes it does not see.
    """

    def __init__(self) -> None:
        self._writers: set[int] = set()
        self._analyses: set[int] = set()
        self._readers: set[int] = set()

    def waits(self, step: Step, groups: frozenset[ToolGroup]) -> set[int]:
        """Return the earlier steps that a step waits for on account of the project."""
        waits: set[int] = set()
        searches = ToolGroup.PROJECT_READ in groups
        reads = searches or step.type in (StepType.EXTRACT, StepType.FUNCTION)
        if reads:
            waits |= self._writers
        if searches:
            waits |= self._analyses
        if ToolGroup.PROJECT_WRITE in groups:
            waits |= self._readers
            self._writers.add(step.order)
        if reads:
            self._readers.add(step.order)
        if step.type is StepType.VIDEO_ANALYZE:
            self._analyses.add(step.order)
        return waits


class _SandboxOrder:
    """The order between steps that browse the sandbox and steps that change it.

    Who browses sees what earlier steps authored and rendered; what a later step does it does not.
    """

    def __init__(self) -> None:
        self._authors: set[int] = set()
        self._browsers: set[int] = set()

    def waits(self, step: Step, groups: frozenset[ToolGroup]) -> set[int]:
        """Return the earlier steps that a step waits for on account of the sandbox."""
        waits: set[int] = set()
        browses = ToolGroup.SANDBOX_BROWSE in groups
        if browses:
            waits |= self._authors
        if groups & {ToolGroup.SANDBOX_AUTHORING, ToolGroup.SANDBOX_RENDER}:
            waits |= self._browsers
            self._authors.add(step.order)
        if browses:
            self._browsers.add(step.order)
        return waits


def transitive_reduction(reads: Mapping[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    """Return the fewest edges from which all the reads follow. Orders rise along every edge."""
    ancestors: dict[int, frozenset[int]] = {}
    for order in sorted(reads):
        ancestors[order] = reads[order].union(*(ancestors[parent] for parent in reads[order]))
    return {
        order: frozenset(
            parent
            for parent in parents
            if not any(parent in ancestors[other] for other in parents if other != parent)
        )
        for order, parents in reads.items()
    }
