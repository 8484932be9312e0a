"""Which tool belongs to which group: the one table, and what follows from it.

An agent is offered the tools of its groups and no others, and a call of another tool is answered
with an error, whoever asks for it. What a feature that is off would bring is withheld likewise. To
add a tool: its row in `TOOL_GROUPS`, and its `Tool` in the module of its group.
tests/unit/tools/test_catalog.py compares them, and the prompts that name tools.

Source: specification A2, E6, E11a; the sandbox's tools are in specification E.
"""

from collections.abc import Collection, Iterable, Mapping

from pydantic import JsonValue

from reprise.model.agent import ToolGroup
from reprise.model.conversation import ToolSchema
from reprise.model.feature_blocks import SANDBOX_EDIT_TOOLS
from reprise.tools import (
    project_read,
    project_write,
    sandbox_authoring,
    sandbox_browse,
    sandbox_outline,
    sandbox_render,
    workflow_read,
)
from reprise.tools.tool import Tool

TOOL_GROUPS: Mapping[str, ToolGroup] = {
    "list_project_files": ToolGroup.PROJECT_READ,
    "search_project_files": ToolGroup.PROJECT_READ,
    "read_project_file": ToolGroup.PROJECT_READ,
    "read_project_transcript": ToolGroup.PROJECT_READ,
    "write_project_file": ToolGroup.PROJECT_WRITE,
    "list_prior_steps": ToolGroup.WORKFLOW_READ,
    "read_prior_output": ToolGroup.WORKFLOW_READ,
    "ListSandboxFiles": ToolGroup.SANDBOX_BROWSE,
    "ReadSandboxFile": ToolGroup.SANDBOX_BROWSE,
    "ReadSandboxFileLines": ToolGroup.SANDBOX_BROWSE,
    "GetSandboxFileOutline": ToolGroup.SANDBOX_BROWSE,
    "WriteSandboxFile": ToolGroup.SANDBOX_AUTHORING,
    "EditSandboxFile": ToolGroup.SANDBOX_AUTHORING,
    "ApplySandboxFileEdits": ToolGroup.SANDBOX_AUTHORING,
    "UndoSandboxFileEdit": ToolGroup.SANDBOX_AUTHORING,
    "RenderComposition": ToolGroup.SANDBOX_RENDER,
}
"""Every tool and the group that it belongs to."""

TOOLS: Mapping[str, Tool] = {
    tool.schema.name: tool
    for tool in (
        *project_read.TOOLS,
        *project_write.TOOLS,
        *workflow_read.TOOLS,
        *sandbox_browse.TOOLS,
        sandbox_outline.OUTLINE,
        *sandbox_authoring.TOOLS,
        *sandbox_render.TOOLS,
    )
}
"""Every tool by name."""


FEATURE_TOOLS: Mapping[str, frozenset[str]] = {
    SANDBOX_EDIT_TOOLS: frozenset(
        {
            "ApplySandboxFileEdits",
            "EditSandboxFile",
            "GetSandboxFileOutline",
            "ReadSandboxFileLines",
        }
    ),
}
"""Feature → the tools that there are only while it is on."""


def withheld_tools(features: Collection[str]) -> frozenset[str]:
    """Return the tools that nobody gets while only these features are on."""
    return frozenset[str]().union(
        *(tools for feature, tools in FEATURE_TOOLS.items() if feature not in features)
    )


def tool_names(
    groups: Iterable[ToolGroup], withheld: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Return the tools of the groups, without those withheld, sorted."""
    wanted = frozenset(groups)
    return tuple(
        sorted(
            name for name, group in TOOL_GROUPS.items() if group in wanted and name not in withheld
        )
    )


def tool_schemas(
    groups: Iterable[ToolGroup], withheld: Collection[str] = frozenset()
) -> tuple[ToolSchema, ...]:
    """Return the tools of the groups as a model sees them, sorted by name."""
    return tuple(TOOLS[name].schema for name in tool_names(groups, withheld))


def tool_facts(
    groups: Iterable[ToolGroup], withheld: Collection[str] = frozenset()
) -> tuple[dict[str, JsonValue], ...]:
    """Return name, schema and revision of each tool of the groups, for the cache key."""
    return tuple(
        {**TOOLS[name].schema.model_dump(mode="json"), "revision": TOOLS[name].revision}
        for name in tool_names(groups, withheld)
    )
