"""The agents with tools of docs/guide/write-a-workflow.md do what the page says."""

import json
import re
from pathlib import Path

import pytest

from reprise.model.conversation import ModelReply, ToolCall
from reprise.model.result import CacheReason, Usage
from reprise.tools.catalog import tool_names
from resources.scripted_provider import ScriptedProvider, ScriptItem
from tests.pipelines.engine import Engine

PAGE = (Path(__file__).parents[2] / "docs/guide/write-a-workflow.md").read_text("utf-8")
BLOCK = re.compile(r"<!-- file: workflows/(\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
NAMES = ("prompts/researcher.md", "prompts/chooser.md", "quotations.yaml")


def uses(tool: str, **arguments: object) -> ModelReply:
    call = ToolCall(id="call_1", name=tool, arguments=json.dumps(arguments))
    return ModelReply(
        text="", tool_calls=(call,), finish_reason="tool_calls", usage=Usage(calls=1), model="m"
    )


def scripts(text: str) -> dict[str, list[ScriptItem]]:
    return {
        "researcher": [
            uses("search_project_files", query="free"),
            uses("write_project_file", name="notes/quotations.md", text=text),
            "1",
        ],
        "chooser": [
            uses("read_project_file", name="notes/quotations.md"),
            uses("read_prior_output", order=1),
            "chosen",
        ],
    }


@pytest.fixture
def page(engine: Engine) -> Engine:
    found = dict(BLOCK.findall(PAGE))
    for name in NAMES:
        (engine.workflows / name).write_text(found[name].replace("id: quotations", "id: w"))
    engine.project("p", brief="It is free to share.")
    return engine


def test_the_second_run_writes_again_and_chooses_from_the_cache(page: Engine) -> None:
    reasons = []
    for text in ("free to share", "free to share", "something else"):
        page.scripted = ScriptedProvider(scripts(text))
        run = page.run()
        assert run.is_success, page.failures
        records = page.records(run)
        reasons.append((records["research"].cache_reason, records["choose"].cache_reason))
    assert reasons == [
        (CacheReason.POLICY, CacheReason.FIRST_TIME),
        (CacheReason.POLICY, CacheReason.HIT),
        (CacheReason.POLICY, CacheReason.FIELD_CHANGED),
    ]
    assert page.scripted is not None
    chooser = [each for each in page.scripted.requests if each.agent.id == "chooser"][-1]
    read, prior = (json.loads(each.content) for each in chooser.messages if each.role == "tool")
    assert read["text"] == "something else"
    assert prior["value"] == "1"


def test_a_prompt_of_the_page_names_only_tools_that_its_agent_has(page: Engine) -> None:
    agents = page.fresh().definitions.agents
    for name in ("researcher", "chooser"):
        named = set(re.findall(r"`((?:read|write|list|search)_\w+)`", agents[name].system_prompt))
        assert named
        assert named <= set(tool_names(agents[name].tool_groups))
