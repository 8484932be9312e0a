"""Which tool belongs to which group, and the one way to run a tool.

An agent is offered the tools of its groups and no others, and a call of another tool is answered
with an error, whoever asks for it. To add a tool: its row here, and what the module of its group
says.

Source: specification A2; the later groups' tools are in specification E.
"""

import json
from collections.abc import Callable, Iterable, Mapping

import jsonschema
from pydantic import JsonValue

from reprise.model.agent import ToolGroup
from reprise.model.conversation import AgentInputs, ToolSchema
from reprise.tools import project_read

TOOL_GROUPS: Mapping[str, ToolGroup] = {
    "list_project_files": ToolGroup.PROJECT_READ,
    "read_project_file": ToolGroup.PROJECT_READ,
}
"""Every tool and the group that it belongs to."""

_SCHEMAS: Mapping[str, ToolSchema] = {
    schema.name: schema for schema in (project_read.LIST_FILES, project_read.READ_FILE)
}

_FUNCTIONS: Mapping[str, Callable[[Mapping[str, JsonValue], AgentInputs], JsonValue]] = {
    **project_read.FUNCTIONS,
}

ARGUMENTS_CHARS_MAX = 100_000
"""Longest arguments of a call, in characters."""


def tool_names(groups: Iterable[ToolGroup]) -> tuple[str, ...]:
    """Return the tools of the groups, sorted."""
    wanted = frozenset(groups)
    return tuple(sorted(name for name, group in TOOL_GROUPS.items() if group in wanted))


def tool_schemas(groups: Iterable[ToolGroup]) -> tuple[ToolSchema, ...]:
    """Return the tools of the groups as a model sees them, sorted by name."""
    return tuple(_SCHEMAS[name] for name in tool_names(groups))


def tool_revisions(groups: Iterable[ToolGroup] = tuple(ToolGroup)) -> dict[str, str]:
    """Return the revision of each tool of the groups, for the cache key (specification C2)."""
    return {name: project_read.REVISIONS[name] for name in tool_names(groups)}


def tool_facts(groups: Iterable[ToolGroup]) -> tuple[dict[str, JsonValue], ...]:
    """Return name, schema and revision of each tool of the groups, for the cache key."""
    revisions = tool_revisions()
    return tuple(
        {**schema.model_dump(mode="json"), "revision": revisions[schema.name]}
        for schema in tool_schemas(groups)
    )


def run_tool(name: str, arguments: str, groups: Iterable[ToolGroup], inputs: AgentInputs) -> str:
    """Return a tool's result as JSON; nothing that a model writes here raises.

    Args:
        name: The tool.
        arguments: Its arguments as the model wrote them: JSON, perhaps broken.
        groups: The agent's groups; a tool outside them is not run.
        inputs: What the agent may read.
    """
    text = json.dumps(_result(name, arguments, groups, inputs), ensure_ascii=False)
    # A lone surrogate in a name that the model made up could not be sent back to it.
    return text.encode(errors="replace").decode()


def _result(
    name: str, arguments: str, groups: Iterable[ToolGroup], inputs: AgentInputs
) -> JsonValue:
    offered = tool_names(groups)
    if name not in offered:
        names = ", ".join(offered) or "none; answer without tools"
        return _error(f"there is no tool {name[:100]!r} for you; your tools are: {names}")
    if len(arguments) > ARGUMENTS_CHARS_MAX:
        return _error(
            f"the arguments are longer than {ARGUMENTS_CHARS_MAX} characters; shorten them"
        )
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        return _error(f"the arguments are not JSON ({str(error)[:200]}); send one JSON object")
    problem = next(
        iter(jsonschema.Draft202012Validator(_SCHEMAS[name].parameters).iter_errors(values)), None
    )
    if problem is not None:
        return _error(f"the arguments do not fit: {problem.message[:300]}; see the tool's schema")
    return _FUNCTIONS[name](values, inputs)


def _error(text: str) -> JsonValue:
    return {"ok": False, "error": text}
