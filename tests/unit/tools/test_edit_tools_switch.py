"""With and without `sandbox_edit_tools`: what every agent of a sandbox is told and offered.

The expected texts are in tests/golden/sandbox_agents, one file an agent and state of the switch;
`bin/test --update-golden` on this file writes them anew.
"""

import json
from pathlib import Path

import pytest

from reprise.agents.messages import system_prompt
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.feature_blocks import FEATURES
from reprise.model.loading import parse_agent
from reprise.tools.access import ToolAccess
from reprise.tools.catalog import withheld_tools
from reprise.tools.toolbox import Toolbox
from resources.definition_files import load_definitions
from resources.memory_sandbox import MemorySandbox
from tests.sandbox_desk import Desk

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "sandbox_agents"
SWITCH: dict[str, frozenset[str]] = {"on": FEATURES, "off": frozenset()}
SANDBOX = {ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING, ToolGroup.SANDBOX_RENDER}
EVERY_GROUP = """---
agent_type: every_group
tool_groups: [SandboxBrowse, SandboxAuthoring, SandboxRender]
---
You work in a sandbox.
<!-- with sandbox_edit_tools -->
Prefer EditSandboxFile.
<!-- end -->
<!-- without sandbox_edit_tools -->
Read the file and write it whole.
<!-- end -->
"""


def agents(switch: str) -> dict[str, AgentDefinition]:
    """Return the shipped agents that hold a sandbox's groups, and one that holds all."""
    features = SWITCH[switch]
    shipped = load_definitions(ROOT / "workflows", features=features).agents
    held = {name: agent for name, agent in shipped.items() if agent.tool_groups & SANDBOX}
    return {**held, "every-group": parse_agent(EVERY_GROUP, "every-group.md", features=features)}


AGENTS = {switch: agents(switch) for switch in SWITCH}


def told(agent: AgentDefinition, switch: str) -> str:
    """Return what a model is told of itself and its tools, as text to read and compare."""
    box = Toolbox(agent.tool_groups, ToolAccess(), withheld_tools(SWITCH[switch]))
    shown = {
        "system_prompt": system_prompt(agent).split("\n"),
        "tools": [schema.model_dump(mode="json") for schema in box.schemas],
    }
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("switch", SWITCH)
@pytest.mark.parametrize("name", AGENTS["on"])
def test_an_agent_of_a_sandbox_is_told_what_is_written_down(
    name: str, switch: str, update_golden: bool
) -> None:
    path = GOLDEN / f"{name}.{switch}.json"
    found = told(AGENTS[switch][name], switch)
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.read_text("utf-8") == found


def test_what_is_written_down_is_of_agents_that_there_are() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {
        f"{name}.{switch}.json" for name in AGENTS["on"] for switch in SWITCH
    }


@pytest.mark.parametrize("name", AGENTS["off"])
def test_what_is_withheld_is_named_to_nobody(name: str) -> None:
    text = told(AGENTS["off"][name], "off")
    assert [tool for tool in withheld_tools(()) if tool in text] == []


def test_agents_without_a_sandbox_are_the_same_with_the_switch_on_and_off() -> None:
    on, off = (
        load_definitions(ROOT / "workflows", features=features).agents
        for features in (FEATURES, frozenset[str]())
    )
    for name, agent in on.items():
        if not agent.tool_groups & SANDBOX:
            assert agent == off[name]
            assert told(agent, "on") == told(agent, "off")


@pytest.mark.parametrize("tool", sorted(withheld_tools(())))
def test_a_tool_that_is_withheld_is_not_run_and_not_named_as_one(tool: str) -> None:
    desk = Desk(MemorySandbox({"a.ts": b"a\n"}), withheld_tools(()))
    answer = desk.call(
        tool, path="a.ts", oldText="a", newText="b", edits=[{"oldText": "a", "newText": "b"}]
    )
    assert answer == {
        "ok": False,
        "error": (
            f"there is no tool {tool!r} for you; your tools are: ListSandboxFiles, "
            "ReadSandboxFile, UndoSandboxFileEdit, WriteSandboxFile"
        ),
    }
    assert desk.data("a.ts") == b"a\n"


def test_no_refusal_of_what_is_left_names_what_is_withheld() -> None:
    desk = Desk(
        MemorySandbox({"a.bin": b"\0", "b.ts": b"b\n", "c.txt": b"\xff"}), withheld_tools(())
    )
    answers = [desk.call("ListSandboxFiles", folder="zzz")]
    for path in ("a.bin", "b.ts", "c.txt", "no.ts", "../out", "B.ts"):
        for _ in range(4):
            answers += [
                desk.call("ReadSandboxFile", path=path, offset=999),
                desk.call("WriteSandboxFile", path=path, content="x", expectHash="0"),
                desk.call("WriteSandboxFile", path=path, content="x\0"),
                desk.call("UndoSandboxFileEdit", path=path),
            ]
    said = json.dumps(answers)
    assert [tool for tool in withheld_tools(()) if tool in said] == []
