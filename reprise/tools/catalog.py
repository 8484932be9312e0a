"""Which tool belongs to which group: the one table, and what follows from it.

An agent is offered the tools of its groups and no others, and a call of another tool is answered
with an error, whoever asks for it. To add a tool: its row in `TOOL_GROUPS`, and its `Tool` in the
module of its group. tests/unit/tools/test_catalog.py compares them, and the prompts that name
tools.

Source: specification A2, E6; the sandbox's tools are in specification E.
"""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from reprise.model.agent import ToolGroup
from reprise.model.conversation import ToolSchema
from reprise.tools import project_read, project_write, workflow_read
from reprise.tools.tool import Tool

TOOL_GROUPS: Mapping[str, ToolGroup] = {
    "list_project_files": ToolGroup.PROJECT_READ,
    "search_project_files": ToolGroup.PROJECT_READ,
    "read_project_file": ToolGroup.PROJECT_READ,
    "read_project_transcript": ToolGroup.PROJECT_READ,
    "write_project_file": ToolGroup.PROJECT_WRITE,
    "list_prior_steps": ToolGroup.WORKFLOW_READ,
    "read_prior_output": ToolGroup.WORKFLOW_READ,
}
"""Every tool and the group that it belongs to."""

TOOLS: Mapping[str, Tool] = {
    tool.schema.name: tool
    for tool in (*project_read.TOOLS, *project_write.TOOLS, *workflow_read.TOOLS)
}
"""Every tool by name."""


def tool_names(groups: Iterable[ToolGroup]) -> tuple[str, ...]:
    """Return the tools of the groups, sorted."""
    wanted = frozenset(groups)
    return tuple(sorted(name for name, group in TOOL_GROUPS.items() if group in wanted))


def tool_schemas(groups: Iterable[ToolGroup]) -> tuple[ToolSchema, ...]:
    """Return the tools of the groups as a model sees them, sorted by name."""
    return tuple(TOOLS[name].schema for name in tool_names(groups))


def tool_facts(groups: Iterable[ToolGroup]) -> tuple[dict[str, JsonValue], ...]:
    """Return name, schema and revision of each tool of the groups, for the cache key."""
    return tuple(
        {**TOOLS[name].schema.model_dump(mode="json"), "revision": TOOLS[name].revision}
        for name in tool_names(groups)
    )
