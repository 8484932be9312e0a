"""What a step waits for on account of the project and of earlier outputs."""

from collections.abc import Mapping

from pipelines.edges import step_reads
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.workflow import FunctionConfig, InputMode, Step, StepType, Workflow

READ, WRITE, STEPS = ToolGroup.PROJECT_READ, ToolGroup.PROJECT_WRITE, ToolGroup.WORKFLOW_READ
BROWSE, AUTHOR = ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING
AGENTS: Mapping[str, AgentDefinition] = {
    name: AgentDefinition(
        id=name, agent_type=name, system_prompt="x", tool_groups=frozenset(groups)
    )
    for name, groups in {
        "plain": (),
        "reader": (READ,),
        "writer": (WRITE,),
        "both": (READ, WRITE),
        "looker": (STEPS,),
        "browser": (BROWSE,),
        "author": (AUTHOR,),
        "editor": (BROWSE, AUTHOR),
        "renderer": (ToolGroup.SANDBOX_RENDER,),
    }.items()
}


def waits(*names: str) -> list[set[int]]:
    """Return what each step waits for; none reads an output."""
    steps = [
        Step(
            order=order,
            label=f"s{order}",
            type=StepType.VIDEO_ANALYZE
            if name == "analysis"
            else StepType.FUNCTION
            if name == "function"
            else StepType.AGENT,
            agent=name if name in AGENTS else None,
            function=FunctionConfig(callable="m:f", pure=True) if name == "function" else None,
            input_mode=InputMode.SELECTED_PRIOR_STEPS,
        )
        for order, name in enumerate(names, start=1)
    ]
    found = step_reads(Workflow(id="w", steps=tuple(steps)), AGENTS)
    return [set(found[order]) for order in sorted(found)]


def test_who_reads_the_project_waits_for_who_wrote_it_before() -> None:
    assert waits("writer", "reader", "plain", "function") == [set(), {1}, set(), {1}]


def test_who_writes_the_project_waits_for_who_reads_it_before() -> None:
    assert waits("reader", "function", "plain", "writer") == [set(), set(), set(), {1, 2}]


def test_readers_work_side_by_side() -> None:
    assert waits("reader", "reader", "function", "reader") == [set(), set(), set(), set()]


def test_who_searches_waits_for_the_analyses_before() -> None:
    assert waits("analysis", "reader", "plain", "analysis", "writer") == [
        set(),
        {1},
        set(),
        set(),
        {2},
    ]


def test_writers_keep_their_order() -> None:
    assert waits("writer", "both", "writer", "reader") == [set(), {1}, {2}, {1, 2, 3}]


def test_who_reads_the_steps_waits_for_all_of_them() -> None:
    assert waits("plain", "analysis", "looker") == [set(), set(), {1, 2}]


def test_who_browses_the_sandbox_waits_for_who_authored_or_rendered_before() -> None:
    assert waits("browser", "author", "plain", "browser", "renderer", "browser") == [
        set(),
        {1},
        set(),
        {2},
        {1, 2, 4},
        {2, 5},
    ]


def test_who_authors_waits_for_who_browses_before_and_keeps_the_order_of_authors() -> None:
    assert waits("browser", "browser", "editor", "author") == [set(), set(), {1, 2}, {1, 2, 3}]
