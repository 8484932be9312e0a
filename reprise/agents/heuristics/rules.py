"""Which rule answers which agent type."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from reprise.agents.heuristics.audience import audience_analyst
from reprise.agents.heuristics.author import author_agent
from reprise.agents.heuristics.brand import brand_analyst
from reprise.agents.heuristics.component_translator import remotion_component_translator
from reprise.agents.heuristics.content import content_analyst
from reprise.agents.heuristics.dialogue import ToolRule
from reprise.agents.heuristics.director import director
from reprise.agents.heuristics.file_summary import file_summarizer
from reprise.agents.heuristics.hook import hook_analyst
from reprise.agents.heuristics.material import Material
from reprise.agents.heuristics.motion_director import motion_graphics_director
from reprise.agents.heuristics.motion_planner import motion_graphics_planner
from reprise.agents.heuristics.pacing_critic import pacing_critic
from reprise.agents.heuristics.story_editor import story_editor
from reprise.agents.heuristics.visual import visual_analyst
from reprise.model.conversation import AgentInputs

REVISION = "2"
"""Raised whenever a rule would answer the same inputs otherwise (specification C2)."""

RULES: Mapping[str, Callable[[Material], JsonValue]] = {
    "content_analyst": content_analyst,
    "audience_analyst": audience_analyst,
    "brand_analyst": brand_analyst,
    "hook_analyst": hook_analyst,
    "visual_analyst": visual_analyst,
    "story_editor": story_editor,
    "pacing_critic": pacing_critic,
    "director": director,
}
"""Agent type → its rule."""

PLAIN_RULES: Mapping[str, Callable[[AgentInputs], JsonValue]] = {"file_summarizer": file_summarizer}
"""The same for agents that need no footage."""

TOOL_RULES: Mapping[str, ToolRule] = {
    "motion_graphics_planner": motion_graphics_planner,
    "motion_graphics_director": motion_graphics_director,
    "remotion_component_translator": remotion_component_translator,
    "author_agent": author_agent,
}
"""The same for agents that work with tools. The types are the specification's names
(MotionGraphicsPlanner, …) in snake case, as all types are."""
