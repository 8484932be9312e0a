"""The tools of an agent: offered by group, bounded, and never raising."""

import json
import re
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.agents.messages import system_prompt
from reprise.model.agent import ToolGroup
from reprise.model.conversation import AgentInputs, ProjectDocument
from reprise.model.feature_blocks import FEATURES
from reprise.model.project import MediaKind, ProjectFile
from reprise.tools.access import ToolAccess
from reprise.tools.catalog import (
    FEATURE_TOOLS,
    TOOL_GROUPS,
    TOOLS,
    tool_facts,
    tool_names,
    tool_schemas,
    withheld_tools,
)
from reprise.tools.toolbox import Toolbox
from resources.definition_files import load_definitions

READ = (ToolGroup.PROJECT_READ,)


def file(name: str, kind: MediaKind, size: int = 10) -> ProjectFile:
    return ProjectFile(
        id=name,
        project_id="p",
        name=name,
        storage_key=f"p/{name}",
        size_bytes=size,
        content_digest="0" * 64,
        media_kind=kind,
        uploaded_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


INPUTS = AgentInputs(
    files=(
        file("talk.mp4", MediaKind.VIDEO),
        file("brief.md", MediaKind.DOCUMENT, 17),
        file("logo.png", MediaKind.IMAGE),
    ),
    documents=(ProjectDocument(name="brief.md", text="one\ntwo\nthree\nfour"),),
)


def run_tool(tool: str, arguments: str, groups: Collection[ToolGroup], inputs: AgentInputs) -> str:
    return Toolbox(groups, ToolAccess(inputs)).run(tool, arguments)


def run(tool: str, inputs: AgentInputs = INPUTS, /, **arguments: object) -> dict[str, object]:
    found = json.loads(run_tool(tool, json.dumps(arguments), READ, inputs))
    assert isinstance(found, dict)
    return found


def test_tools_are_offered_by_group_and_sorted() -> None:
    assert tool_names(READ) == (
        "list_project_files",
        "read_project_file",
        "read_project_transcript",
        "search_project_files",
    )
    assert tool_names([ToolGroup.PROJECT_WRITE]) == ("write_project_file",)
    assert tool_names([ToolGroup.WORKFLOW_READ]) == ("list_prior_steps", "read_prior_output")
    assert [schema.name for schema in tool_schemas(READ)] == list(tool_names(READ))


def test_every_tool_has_one_group_one_schema_one_revision_and_facts_for_the_key() -> None:
    assert set(TOOLS) == set(TOOL_GROUPS)
    for name, tool in TOOLS.items():
        assert tool.schema.name == name
        assert tool.function.__name__ == snake_case(name)
        assert tool.revision.isdecimal()
        jsonschema.Draft202012Validator.check_schema(tool.schema.parameters)
        assert tool.schema.parameters["additionalProperties"] is False
    facts = tool_facts(ToolGroup)
    assert {fact["name"]: fact["revision"] for fact in facts} == {
        name: tool.revision for name, tool in TOOLS.items()
    }


def test_every_feature_says_which_tools_it_brings() -> None:
    assert set(FEATURE_TOOLS) == FEATURES
    assert withheld_tools(FEATURES) == frozenset()
    assert withheld_tools(()) == frozenset(
        {
            "ApplySandboxFileEdits",
            "EditSandboxFile",
            "GetSandboxFileOutline",
            "ReadSandboxFileLines",
        }
    )


def test_a_tool_that_is_withheld_is_neither_offered_nor_run_nor_in_the_key() -> None:
    groups = [ToolGroup.WORKFLOW_READ]
    withheld = frozenset({"list_prior_steps"})
    assert tool_names(groups, withheld) == ("read_prior_output",)
    assert [fact["name"] for fact in tool_facts(groups, withheld)] == ["read_prior_output"]
    box = Toolbox(groups, ToolAccess(), withheld)
    assert [schema.name for schema in box.schemas] == ["read_prior_output"]
    assert json.loads(box.run("list_prior_steps", "{}")) == {
        "ok": False,
        "error": "there is no tool 'list_prior_steps' for you; your tools are: read_prior_output",
    }


SHIPPED = Path(__file__).parents[3] / "workflows"
AGENTS = {
    switch: load_definitions(SHIPPED, features=features).agents
    for switch, features in (("on", FEATURES), ("off", frozenset[str]()))
}
NAMED = re.compile(
    r"\b(?:(?:list|read|search|write)_[a-z_]+"
    r"|(?:Apply|Edit|Get|List|Read|Undo|Write)Sandbox\w+|RenderComposition)\b"
)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def test_a_tool_that_a_prompt_may_name_is_recognised() -> None:
    assert [name for name in TOOLS if NAMED.fullmatch(name) is None] == []


@pytest.mark.parametrize("switch", AGENTS)
@pytest.mark.parametrize("name", AGENTS["on"])
def test_a_prompt_names_only_tools_that_its_agent_has(name: str, switch: str) -> None:
    """With its skills, and with and without what the setting withholds."""
    agent = AGENTS[switch][name]
    withheld = withheld_tools(FEATURES if switch == "on" else ())
    named = set(NAMED.findall(system_prompt(agent)))
    assert named <= set(tool_names(agent.tool_groups, withheld))


def test_every_skill_is_some_agents() -> None:
    held = {skill for agent in AGENTS["on"].values() for skill in agent.assigned_skills}
    assert len(held) == len(list((SHIPPED / "skills").glob("*.md")))


@pytest.mark.parametrize("groups", [[group] for group in ToolGroup], ids=lambda each: each[0])
def test_a_tool_speaks_only_of_tools_that_are_there_without_features(
    groups: list[ToolGroup],
) -> None:
    """What is withheld is named nowhere, in descriptions of the others either."""
    withheld = withheld_tools(())
    said = json.dumps([schema.model_dump() for schema in tool_schemas(groups, withheld)])
    assert withheld.isdisjoint(NAMED.findall(said))


def test_files_are_listed_by_name_with_kind_and_whether_they_can_be_read() -> None:
    assert run("list_project_files") == {
        "ok": True,
        "total": 3,
        "cut": False,
        "files": [
            {"name": "brief.md", "kind": "document", "size_bytes": 17, "readable": True},
            {"name": "logo.png", "kind": "image", "size_bytes": 10, "readable": False},
            {"name": "talk.mp4", "kind": "video", "size_bytes": 10, "readable": False},
        ],
    }


def test_a_long_listing_is_cut_and_says_how_to_go_on() -> None:
    many = AgentInputs(files=tuple(file(f"f{n:04d}", MediaKind.OTHER) for n in range(450)))
    first = run("list_project_files", many)
    assert (first["total"], first["cut"], first["next_offset"]) == (450, True, 200)
    last = run("list_project_files", many, offset=400)
    assert isinstance(last["files"], list)
    assert (len(last["files"]), last["cut"]) == (50, False)


def test_a_document_is_read_by_lines() -> None:
    assert run("read_project_file", name="brief.md", start_line=2, line_count=2) == {
        "ok": True,
        "name": "brief.md",
        "start_line": 2,
        "end_line": 3,
        "total_lines": 4,
        "text": "two\nthree",
        "cut": True,
        "next_start_line": 4,
    }


def test_a_long_document_is_cut_and_says_how_to_go_on() -> None:
    text = "\n".join(["x" * 99] * 1000)
    long = AgentInputs(documents=(ProjectDocument(name="long.md", text=text),))
    found = run("read_project_file", long, name="long.md")
    assert (found["cut"], found["next_start_line"]) == (True, 199)
    assert len(str(found["text"])) == 19_799


def test_an_endless_line_is_cut_and_says_so() -> None:
    endless = AgentInputs(documents=(ProjectDocument(name="one.txt", text="y" * 50_000),))
    found = run("read_project_file", endless, name="one.txt")
    assert len(str(found["text"])) == 20_000
    assert found["note"] == (
        "line 1 takes more than 20000 characters; its end is left out, search_project_files finds "
        "words in it"
    )


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("brif.md", "there is no file 'brif.md'; did you mean 'brief.md'?"),
        ("zzz", "there is no file 'zzz'; call list_project_files for the names"),
        (
            "talk.mp4",
            "'talk.mp4' is video; read_project_transcript reads what is said in it, the footage "
            "analysis tells its shots",
        ),
        ("logo.png", "'logo.png' (image) holds no text that can be read; go on without it"),
    ],
)
def test_what_cannot_be_read_names_the_next_action(name: str, error: str) -> None:
    assert run("read_project_file", name=name) == {"ok": False, "error": error}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("{", "the arguments are not JSON"),
        ("[]", "the arguments do not fit: what was sent is of type array, not object"),
        ("{}", "the arguments do not fit: 'name' is a required property"),
        ('{"name": "brief.md", "start_line": 99}', "'brief.md' has 4 lines; start_line 99 is"),
        (
            '{"name": "brief.md", "x": 1}',
            "the arguments do not fit: there is no argument 'x'; there",
        ),
        ('{"name": "' + "z" * 100_001 + '"}', "the arguments are longer than 100000 characters"),
    ],
)
def test_bad_arguments_are_answered(arguments: str, error: str) -> None:
    found = json.loads(run_tool("read_project_file", arguments, READ, INPUTS))
    assert found["ok"] is False
    assert found["error"].startswith(error)


@given(st.text(max_size=60), st.text(max_size=200))
def test_nothing_that_a_model_writes_raises(name: str, arguments: str) -> None:
    for tool in (name, "list_project_files", "read_project_file"):
        text = run_tool(tool, arguments, READ, INPUTS)
        assert "ok" in json.loads(text)
        text.encode()


def test_a_tool_outside_the_groups_is_refused_even_when_it_exists() -> None:
    found = json.loads(run_tool("list_project_files", "{}", [ToolGroup.WORKFLOW_READ], INPUTS))
    assert found["ok"] is False
