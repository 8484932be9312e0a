"""Which earlier steps a step waits for, and the fewest edges from which that follows.

Source: specification D2, W6.
"""

from collections.abc import Mapping

from pipelines.prepare import step_agents
from reprise.context.step_input import read_orders
from reprise.model.agent import EFFECT_GROUPS, AgentDefinition, ToolGroup
from reprise.model.workflow import Workflow


def step_reads(
    workflow: Workflow, agents: Mapping[str, AgentDefinition]
) -> dict[int, frozenset[int]]:
    """Return, for each step, the earlier steps that it waits for.

    Source: specification W6.
    """
    reads: dict[int, frozenset[int]] = {}
    last_effect: int | None = None
    last_stop: int | None = None
    for step in workflow.steps:
        its_agents = step_agents(step, agents)
        orders = set(read_orders(step, workflow, its_agents))
        groups = frozenset[ToolGroup]().union(*(agent.tool_groups for agent in its_agents))
        if ToolGroup.WORKFLOW_READ in groups:
            orders |= set(reads)
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
