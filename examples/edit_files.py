"""The edit tools alone, over a folder of your own: a call a line in, an answer a line out.

    .venv/bin/python examples/edit_files.py FOLDER < calls.jsonl

A call is what a model asks for: `{"name": "EditSandboxFile", "arguments": {"path": …}}`.
"""

import json
import sys
from pathlib import Path

from reprise.model.agent import ToolGroup
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.toolbox import Toolbox
from resources.sandbox import FolderSandbox

GROUPS = [ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING]


def tools_over(folder: Path) -> Toolbox:
    """Return one agent's tools; they remember what it read and changed."""
    return Toolbox(GROUPS, ToolAccess(sandbox=SandboxDoor(FolderSandbox(folder))))


if __name__ == "__main__":
    tools = tools_over(Path(sys.argv[1]))
    for line in sys.stdin:
        call = json.loads(line)
        print(tools.run(call["name"], json.dumps(call["arguments"])))  # noqa: T201 - The answers.
