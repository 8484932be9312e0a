"""Which steps are answered from the cache: one table, and the step's own word.

To add a step type: a row in `POLICY`; tests/unit/cache/test_policy.py checks that no type is
missing.

Source: specification C5, C22.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from reprise.model.agent import EFFECT_GROUPS, AgentDefinition
from reprise.model.base import Value
from reprise.model.workflow import CacheMode, Step, StepType


class Default(StrEnum):
    """What the policy says of a step type."""

    YES = "yes"
    NO = "no"
    BY_EFFECTS = "by_effects"
    """Yes unless one of its agents may change something outside its own output."""
    BY_DECLARATION = "by_declaration"
    """Only when its author declared it pure."""


POLICY: Mapping[StepType, tuple[Default, str]] = {
    StepType.EXTRACT: (Default.YES, "deterministic and pure"),
    StepType.VIDEO_ANALYZE: (Default.YES, "deterministic for a given source"),
    StepType.VIDEO_COMPILE: (Default.YES, "deterministic; its film is checked before a hit counts"),
    StepType.EDIT_ROOM: (Default.BY_EFFECTS, "nothing is written outside its own output"),
    StepType.COLOR_GRADE_ROOM: (Default.BY_EFFECTS, "nothing is written outside its own output"),
    StepType.AGENT: (Default.BY_EFFECTS, "its output is its whole effect"),
    StepType.GRAPHICS_ROOM: (Default.NO, "its director may render an overlay while it works"),
    StepType.REVIEW_LOOP: (Default.NO, "it judges each iteration's output afresh"),
    StepType.CONDITIONAL: (Default.NO, "control flow; its branch is cached step by step"),
    StepType.FOR_EACH: (Default.NO, "control flow; its items are cached one by one"),
    StepType.PARALLEL: (Default.NO, "control flow; its branches are cached step by step"),
    StepType.SCRIPT: (Default.NO, "control flow; its calls are cached one by one"),
    StepType.FUNCTION: (Default.BY_DECLARATION, "declared pure by its author"),
}


class Verdict(Value):
    """Whether a step is looked up and stored, and why."""

    cacheable: bool
    """True when it is."""
    reason: str
    """Why, for people."""


def cache_verdict(step: Step, agents: Sequence[AgentDefinition]) -> Verdict:
    """Decide whether a step is looked up and stored.

    Args:
        step: The step.
        agents: Every agent that works in it, those of a room included.

    Source: specification C5: `cache_mode` decides; without one the table does.
    """
    effects = sorted({group for agent in agents for group in agent.tool_groups & EFFECT_GROUPS})
    if step.cache_mode is CacheMode.NEVER:
        return Verdict(cacheable=False, reason="cache_mode: never")
    if step.cache_mode is CacheMode.ALWAYS:
        if effects and not step.allow_skipping_effects:
            reason = f"cache_mode: always would skip the effects of {', '.join(effects)}"
            return Verdict(cacheable=False, reason=reason)
        return Verdict(cacheable=True, reason="cache_mode: always")
    default, why = POLICY[step.type]
    if default is Default.BY_EFFECTS and effects:
        reason = f"it may change things outside its output ({', '.join(effects)})"
        return Verdict(cacheable=False, reason=reason)
    if default is Default.BY_DECLARATION and not (step.function and step.function.pure):
        reason = "a function is cached only when declared `pure: true`"
        return Verdict(cacheable=False, reason=reason)
    return Verdict(cacheable=default is not Default.NO, reason=why)
