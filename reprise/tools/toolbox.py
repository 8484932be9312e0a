"""The tools of one agent, bound to what it may reach: what a loop offers, and the way to run one.

A tool outside the agent's groups is neither offered nor run. Nothing that a model writes raises,
and every result is bounded.

Source: specification A2, A3, E6.
"""

import json
from collections.abc import Collection, Iterable

from pydantic import JsonValue

from reprise.model.agent import ToolGroup
from reprise.model.conversation import ToolSchema
from reprise.tools.access import ToolAccess
from reprise.tools.catalog import TOOLS, tool_names, tool_schemas
from reprise.tools.given_arguments import parsed, problem_of, read_as_meant
from reprise.tools.tool import failure

ANSWER_CHARS_MAX = 40_000
"""Longest result of a call, in characters of JSON; tools keep below it on their own."""


class Toolbox:
    """The tools of one agent in one step.

    Args:
        groups: The agent's groups.
        access: What they may reach.
        withheld: Tools that nobody gets, whatever their group.
    """

    def __init__(
        self,
        groups: Iterable[ToolGroup],
        access: ToolAccess,
        withheld: Collection[str] = frozenset(),
    ) -> None:
        self._groups = frozenset(groups)
        self._access = access
        self._withheld = frozenset(withheld)
        if access.sandbox is not None:
            access.sandbox.tools = frozenset(tool_names(self._groups, self._withheld))

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as a model is shown them, by name."""
        return tool_schemas(self._groups, self._withheld)

    def run(self, name: str, arguments: str) -> str:
        """Return a tool's result as JSON.

        Args:
            name: The tool.
            arguments: Its arguments as the model wrote them: JSON, perhaps broken.

        Raises:
            RepriseError: What the tool reaches does not answer; nothing that the model wrote.
        """
        result = self._result(name, arguments)
        try:
            text = json.dumps(result, ensure_ascii=False, allow_nan=False)
        except ValueError:
            text = json.dumps(failure("the result holds a number that JSON has not; ask for less"))
        if len(text) > ANSWER_CHARS_MAX:
            text = json.dumps(failure(f"the result has {len(text)} characters; ask for less"))
        # A lone surrogate in a name that the model made up could not be sent back to it.
        return text.encode(errors="replace").decode()

    def _result(self, name: str, arguments: str) -> JsonValue:
        offered = tool_names(self._groups, self._withheld)
        if name not in offered:
            names = ", ".join(offered) or "none; answer without tools"
            return failure(f"there is no tool {name[:100]!r} for you; your tools are: {names}")
        tool = TOOLS[name]
        if len(arguments) > tool.arguments_chars_max:
            return failure(
                f"the arguments are longer than {tool.arguments_chars_max} characters; shorten them"
            )
        try:
            values = read_as_meant(parsed(arguments or "{}"), tool.schema.parameters)
        except (ValueError, RecursionError) as error:
            return failure(f"the arguments are not JSON ({str(error)[:200]}); send one JSON object")
        problem = problem_of(values, tool.schema.parameters)
        if problem is not None:
            return failure(f"the arguments do not fit: {problem}; see the tool's schema")
        assert isinstance(values, dict)
        return tool.function(values, self._access)
