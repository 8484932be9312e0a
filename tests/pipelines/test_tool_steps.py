"""Agents with tools, from the workflow's files to the second run."""

import json
from typing import Any

import pytest

from reprise.model.agent import ToolGroup
from reprise.model.conversation import ModelReply, ToolCall
from reprise.model.result import CacheReason, StepRecord, Usage
from reprise.tools.catalog import tool_names
from resources.scripted_provider import ScriptedProvider, ScriptItem
from resources.settings import SandboxEditToolsSettings
from tests.pipelines.engine import Engine

USAGE = Usage(input_uncached=10, output=5, calls=1)


def uses(*calls: tuple[str, dict[str, object]]) -> ModelReply:
    return ModelReply(
        text="",
        tool_calls=tuple(
            ToolCall(id=f"call_{at}", name=name, arguments=json.dumps(arguments))
            for at, (name, arguments) in enumerate(calls)
        ),
        finish_reason="tool_calls",
        usage=USAGE,
        model="scripted-1",
    )


def play(engine: Engine, **scripts: list[ScriptItem]) -> dict[str, StepRecord]:
    """Run the workflow with these replies by agent, and return what it kept of the steps."""
    engine.scripted = ScriptedProvider(scripts)
    run = engine.run("p")
    assert run.is_success, engine.failures
    return engine.records(run)


def results(engine: Engine, agent: str) -> list[Any]:
    """Return what the tools of an agent answered in the last run."""
    assert engine.scripted is not None
    asked = [request for request in engine.scripted.requests if request.agent.id == agent]
    return [json.loads(each.content) for each in asked[-1].messages if each.role == "tool"]


def reasons(records: dict[str, StepRecord]) -> dict[str, CacheReason | None]:
    return {label: record.cache_reason for label, record in records.items()}


LOOKING: list[ScriptItem] = [
    uses(("list_project_files", {}), ("search_project_files", {"query": "moths"})),
    uses(("read_project_file", {"name": "brief.md"})),
    "moths",
]


@pytest.fixture
def reader(engine: Engine) -> Engine:
    engine.agent("reader", "You read.", tool_groups=["ProjectRead"])
    engine.agents_workflow({"reader": []})
    engine.project("p", brief="# Brief\n\nAbout moths.")
    return engine


def test_an_agent_lists_searches_and_reads_the_project(reader: Engine) -> None:
    reader.wiring.indexing.index_project(reader.wiring.ingest.require("p"))
    play(reader, reader=LOOKING)
    listed, found, read = results(reader, "reader")
    assert [row["name"] for row in listed["files"]] == ["brief.md"]
    assert [(hit["name"], hit["start_line"]) for hit in found["hits"]] == [("brief.md", 3)]
    assert read["text"] == "# Brief\n\nAbout moths."


def test_what_has_been_indexed_is_in_the_key_once(reader: Engine) -> None:
    assert reasons(play(reader, reader=LOOKING)) == {"reader": CacheReason.FIRST_TIME}
    assert reasons(play(reader)) == {"reader": CacheReason.HIT}
    reader.wiring.indexing.index_project(reader.wiring.ingest.require("p"))
    indexed = play(reader, reader=LOOKING)["reader"]
    assert indexed.cache_detail == "changed: project_file_fingerprint (brief.md)"
    reader.wiring.indexing.index_project(reader.wiring.ingest.require("p"))
    assert reasons(play(reader)) == {"reader": CacheReason.HIT}


def test_a_new_file_invalidates_the_answer_of_an_agent_that_reads_the_project(
    reader: Engine,
) -> None:
    play(reader, reader=LOOKING)
    reader.project("p", brief="# Brief\n\nAbout moths.", notes="more")
    record = play(reader, reader=LOOKING)["reader"]
    assert record.cache_detail == "changed: project_file_fingerprint (notes.md, new)"


def test_another_way_to_search_is_another_answer(
    reader: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(reader, reader=LOOKING)
    monkeypatch.setattr("pipelines.services.SEARCH_REVISION", "another")
    record = play(reader, reader=LOOKING)["reader"]
    assert record.cache_detail == "changed: project_file_fingerprint (search)"


def test_an_index_that_changes_while_an_agent_searches_gives_nothing_to_later_runs(
    reader: Engine,
) -> None:
    wiring = reader.wiring

    class Meddler(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            wiring.indexing.index_project(wiring.ingest.require("p"))
            return super().complete(*args, **kwargs)

    reader.scripted = Meddler({"reader": LOOKING})
    run = reader.run("p")
    assert reader.records(run)["reader"].cache_detail.endswith("not stored: inputs_moved")
    assert reasons(play(reader, reader=LOOKING)) == {"reader": CacheReason.FIRST_TIME}


def test_an_answer_from_an_index_that_came_back_is_not_stored(reader: Engine) -> None:
    wiring = reader.wiring
    wiring.indexing.index_project(wiring.ingest.require("p"))
    known = wiring.index.file("p", "brief.md")
    assert known is not None
    files = iter([known.model_copy(update={"passages": ()}), known, known])

    class Meddler(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            wiring.index.put("p", next(files))
            return super().complete(*args, **kwargs)

    reader.scripted = Meddler({"reader": LOOKING})
    record = reader.records(reader.run("p"))["reader"]
    assert record.cache_detail.endswith("not stored: not_hashable")
    assert wiring.index.file("p", "brief.md") == known


@pytest.fixture
def writer(engine: Engine) -> Engine:
    engine.agent("writer", "You write.", tool_groups=["ProjectWrite"])
    engine.agent("reader", "You read.", tool_groups=["ProjectRead"])
    engine.agents_workflow({"writer": [], "reader": []})
    engine.project("p")
    return engine


def writes(text: str) -> list[ScriptItem]:
    return [uses(("write_project_file", {"name": "notes.md", "text": text})), "written"]


FINDS: list[ScriptItem] = [
    uses(
        ("search_project_files", {"query": "ideas"}),
        ("read_project_file", {"name": "notes.md"}),
    ),
    "read",
]


def test_a_writer_runs_every_time_and_who_follows_sees_what_it_wrote(writer: Engine) -> None:
    first = play(writer, writer=writes("some ideas"), reader=FINDS)
    found, read = results(writer, "reader")
    assert [hit["name"] for hit in found["hits"]] == ["notes.md"]
    assert read["text"] == "some ideas"
    assert reasons(first) == {"writer": CacheReason.POLICY, "reader": CacheReason.FIRST_TIME}

    same = play(writer, writer=writes("some ideas"))
    assert reasons(same) == {"writer": CacheReason.POLICY, "reader": CacheReason.HIT}

    other = play(writer, writer=writes("other ideas"), reader=FINDS)
    assert reasons(other) == {"writer": CacheReason.POLICY, "reader": CacheReason.FIELD_CHANGED}
    assert results(writer, "reader")[1]["text"] == "other ideas"


def test_a_forced_writer_is_refused_without_the_second_word(writer: Engine) -> None:
    step = {"label": "writer", "type": "Agent", "agent": "writer", "cache_mode": "always"}
    writer.workflow([step])
    problems = " ".join(writer.fresh().definitions.all_problems)
    assert "cache_mode: always would skip what agent 'writer' does with ProjectWrite" in problems
    writer.workflow([{**step, "allow_skipping_effects": True}])
    assert reasons(play(writer, writer=writes("x"))) == {"writer": CacheReason.FIRST_TIME}
    assert reasons(play(writer)) == {"writer": CacheReason.HIT}


def test_an_agent_with_workflow_read_re_reads_what_it_is_not_shown(engine: Engine) -> None:
    engine.agent("critic", "You compare.", tool_groups=["WorkflowRead"])
    engine.agents_workflow({"a": [], "b": [], "critic": [2]})
    engine.project("p")
    reading: list[ScriptItem] = [
        uses(("list_prior_steps", {})),
        uses(("read_prior_output", {"order": 1})),
        "compared",
    ]
    play(engine, a=["alpha"], b=["beta"], critic=reading)
    listed, output = results(engine, "critic")
    assert [row["label"] for row in listed["steps"]] == ["a", "b"]
    assert output["value"] == "alpha"
    assert reasons(play(engine))["critic"] is CacheReason.HIT

    engine.agent("a", "You are another a.")
    moved = play(engine, a=["omega"], critic=reading)["critic"]
    assert moved.cache_detail == "changed: history_digest (step 1 (a))"


BLOCK = "You browse.\n<!-- with sandbox_edit_tools -->\nRead by lines.\n<!-- end -->"


def test_the_setting_takes_tools_and_words_from_an_agent_and_is_in_its_key(engine: Engine) -> None:
    engine.agent("browser", BLOCK, tool_groups=["SandboxBrowse"])
    engine.agents_workflow({"browser": []})
    engine.project("p")
    offered = []
    details = []
    for enabled in (True, False):
        engine.sandbox_edit_tools = SandboxEditToolsSettings(enabled=enabled)
        details.append(play(engine, browser=["done"])["browser"].cache_detail)
        assert engine.scripted is not None
        (asked,) = engine.scripted.requests
        offered.append(("Read by lines." in asked.system_prompt, {t.name for t in asked.tools}))
    assert offered[0] == (True, set(tool_names([ToolGroup.SANDBOX_BROWSE])))
    assert offered[1] == (False, {"ListSandboxFiles", "ReadSandboxFile"})
    assert details[1] == (
        "changed: agent_system_prompt, agent_tools (GetSandboxFileOutline, gone; "
        "ReadSandboxFileLines, gone)"
    )


def test_the_setting_changes_no_key_of_an_agent_without_a_sandbox(reader: Engine) -> None:
    play(reader, reader=LOOKING)
    reader.sandbox_edit_tools = SandboxEditToolsSettings(enabled=False)
    assert reasons(play(reader)) == {"reader": CacheReason.HIT}
