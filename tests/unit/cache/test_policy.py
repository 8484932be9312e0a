import pytest

from reprise.cache.policy import POLICY, Default, cache_verdict
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.workflow import CacheMode, FunctionConfig, Step, StepType


def agent(*groups: ToolGroup) -> AgentDefinition:
    return AgentDefinition(id="a", agent_type="a", system_prompt="x", tool_groups=frozenset(groups))


def step(kind: StepType, **fields: object) -> Step:
    return Step.model_validate({"order": 1, "label": "x", "type": kind, **fields})


def test_every_step_type_has_a_row_with_a_reason() -> None:
    assert set(POLICY) == set(StepType)
    assert all(reason for _, reason in POLICY.values())


@pytest.mark.parametrize(
    ("kind", "cached"),
    [
        (StepType.EXTRACT, True),
        (StepType.VIDEO_ANALYZE, True),
        (StepType.VIDEO_COMPILE, True),
        (StepType.EDIT_ROOM, True),
        (StepType.COLOR_GRADE_ROOM, True),
        (StepType.AGENT, True),
        (StepType.GRAPHICS_ROOM, False),
        (StepType.REVIEW_LOOP, False),
        (StepType.CONDITIONAL, False),
        (StepType.FOR_EACH, False),
        (StepType.PARALLEL, False),
        (StepType.SCRIPT, False),
        (StepType.FUNCTION, False),
    ],
)
def test_the_default_of_each_type(kind: StepType, cached: bool) -> None:
    assert cache_verdict(step(kind), [agent()]).cacheable is cached


@pytest.mark.parametrize(
    "group", [ToolGroup.PROJECT_WRITE, ToolGroup.SANDBOX_AUTHORING, ToolGroup.SANDBOX_RENDER]
)
@pytest.mark.parametrize("kind", [StepType.AGENT, StepType.EDIT_ROOM])
def test_an_agent_with_effects_is_not_cached(group: ToolGroup, kind: StepType) -> None:
    verdict = cache_verdict(step(kind), [agent(), agent(group)])
    assert not verdict.cacheable
    assert group.value in verdict.reason


@pytest.mark.parametrize(
    "group", [ToolGroup.PROJECT_READ, ToolGroup.WORKFLOW_READ, ToolGroup.SANDBOX_BROWSE]
)
def test_an_agent_that_only_reads_is_cached(group: ToolGroup) -> None:
    assert cache_verdict(step(StepType.AGENT), [agent(group)]).cacheable


def test_never_wins_over_the_table() -> None:
    verdict = cache_verdict(step(StepType.EXTRACT, cache_mode=CacheMode.NEVER), [])
    assert not verdict.cacheable


def test_always_wins_over_the_table() -> None:
    assert cache_verdict(step(StepType.GRAPHICS_ROOM, cache_mode=CacheMode.ALWAYS), []).cacheable


def test_always_on_effects_needs_a_second_word() -> None:
    writer = agent(ToolGroup.PROJECT_WRITE)
    alone = step(StepType.AGENT, cache_mode=CacheMode.ALWAYS)
    both = step(StepType.AGENT, cache_mode=CacheMode.ALWAYS, allow_skipping_effects=True)
    assert not cache_verdict(alone, [writer]).cacheable
    assert cache_verdict(both, [writer]).cacheable


@pytest.mark.parametrize("pure", [True, False])
def test_a_function_is_cached_only_when_declared_pure(pure: bool) -> None:
    config = FunctionConfig(callable="m:f", pure=pure)
    assert cache_verdict(step(StepType.FUNCTION, function=config), []).cacheable is pure


def test_the_table_uses_every_kind_of_default() -> None:
    assert {default for default, _ in POLICY.values()} == set(Default)
