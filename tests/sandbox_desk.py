r"""A sandbox with its tools, as tests of the tools use them: JSON in, JSON out.

desk = Desk(MemorySandbox())
desk.put("a.ts", b"let a\n")
desk.call("EditSandboxFile", path="a.ts", oldText="a", newText="b")
"""

import json
from collections.abc import Collection
from typing import Any

from reprise.errors import SandboxRefused
from reprise.model.agent import ToolGroup
from reprise.ports import SandboxFiles
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.toolbox import Toolbox

GROUPS = frozenset({ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING})


class Desk:
    """The tools of one agent over a sandbox."""

    def __init__(
        self,
        files: SandboxFiles,
        withheld: Collection[str] = frozenset(),
        groups: Collection[ToolGroup] = GROUPS,
    ) -> None:
        self.files = files
        self.door = SandboxDoor(files)
        self.box = Toolbox(groups, ToolAccess(sandbox=self.door), withheld)

    def raw(self, tool: str, arguments: str) -> dict[str, Any]:
        """Return what a tool answers to arguments as a model wrote them."""
        answer: dict[str, Any] = json.loads(self.box.run(tool, arguments))
        return answer

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Return what a tool answers."""
        return self.raw(tool, json.dumps(arguments))

    def edit(self, path: str, old: str, new: str, **more: object) -> dict[str, Any]:
        """Replace a text."""
        return self.call("EditSandboxFile", path=path, oldText=old, newText=new, **more)

    def apply(self, path: str, *edits: tuple[str, str]) -> dict[str, Any]:
        """Apply several edits."""
        told = [{"oldText": old, "newText": new} for old, new in edits]
        return self.call("ApplySandboxFileEdits", path=path, edits=told)

    def put(self, path: str, data: bytes) -> None:
        """Give a file these bytes, as somebody else does."""
        self.files.update(path, lambda _: data, create=True)

    def data(self, path: str) -> bytes | None:
        """Return a file's bytes; None where there is none."""
        try:
            return self.files.read(path)
        except SandboxRefused:
            return None

    def beside(self) -> "Desk":
        """Return another agent's tools over the same sandbox."""
        return Desk(self.files)
