"""A real model over HTTP, from llama.cpp's own server: facts of the protocol, never wording."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from reprise.agents.loop import AgentTask, LoopLimits
from reprise.errors import LimitReached, ProviderError
from reprise.model.agent import AgentDefinition, ModelParameters, ToolChoice, ToolGroup
from reprise.model.conversation import (
    AgentInputs,
    Message,
    ModelReply,
    ModelRequest,
    ProjectDocument,
    ProviderIdentity,
    ToolSchema,
)
from reprise.ports import Cancelled, ModelProvider
from reprise.tools.access import ToolAccess
from reprise.tools.toolbox import Toolbox
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from resources.tool_modes import JsonToolProvider
from tests.agent_loop import run_agent
from tests.child_process import start_python
from tests.local_model import LocalModel, local_model

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "rating"],
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 20},
        "rating": {"type": "integer", "minimum": 1, "maximum": 5},
    },
}


class OneFile(Toolbox):
    """One tool with arguments that even this small a model cannot get wrong."""

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        names: JsonValue = {"type": "string", "enum": ["brief.md"]}
        arguments: dict[str, JsonValue] = {
            "type": "object",
            "properties": {"name": names},
            "required": ["name"],
            "additionalProperties": False,
        }
        (tool,) = (tool for tool in super().schemas if tool.name == "read_project_file")
        return (tool.model_copy(update={"parameters": arguments}),)


class Recorded:
    """A provider that keeps what it was asked and what it answered."""

    def __init__(self, inner: ModelProvider) -> None:
        self.inner = inner
        self.requests: list[ModelRequest] = []
        self.replies: list[ModelReply] = []

    @property
    def context_tokens(self) -> int | None:
        return self.inner.context_tokens

    def identity(self) -> ProviderIdentity:
        return self.inner.identity()

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        self.requests.append(request)
        self.replies.append(self.inner.complete(request, cancelled=cancelled))
        return self.replies[-1]


@pytest.fixture
def llama(llama_server: LocalModel) -> Iterator[LocalModel]:
    with llama_server.watched():
        yield llama_server


@pytest.fixture
def provider(llama: LocalModel) -> Iterator[OpenAICompatibleProvider]:
    provider = OpenAICompatibleProvider(
        Endpoint("local", llama.base_url, timeout_seconds=120),
        model=llama.model,
        context_tokens=llama.context_tokens,
    )
    yield provider
    provider.close()


def agent(**changes: Any) -> AgentDefinition:
    values: dict[str, Any] = {
        "id": "namer",
        "agent_type": "namer",
        "system_prompt": "You name films.",
        "parameters": ModelParameters(temperature=0, seed=1, max_output_tokens=48),
    }
    return AgentDefinition(**{**values, **changes})


def request(text: str, **changes: Any) -> ModelRequest:
    values: dict[str, Any] = {
        "agent": agent(),
        "system_prompt": "You name films.",
        "messages": (Message(role="user", content=text),),
        "timeout_seconds": 120.0,
    }
    return ModelRequest(**{**values, **changes})


def never() -> bool:
    return False


def test_a_chat_has_text_model_and_usage(
    llama: LocalModel, provider: OpenAICompatibleProvider
) -> None:
    with llama.watched():
        reply = provider.complete(request("A film about trees."), cancelled=never)
    assert reply.text.strip()
    assert reply.model == llama.model
    assert reply.finish_reason in ("stop", "length")
    assert 0 < reply.usage.output <= 48
    assert reply.usage.input_uncached + reply.usage.cache_read > 10
    assert reply.usage.calls == 1


def test_the_second_turn_reads_the_first_from_the_prefix_cache(
    llama: LocalModel, provider: OpenAICompatibleProvider
) -> None:
    question = Message(role="user", content="Tell me about a film with a dog. " * 12)
    first = request("", messages=(question,))
    with llama.watched():
        one = provider.complete(first, cancelled=never)
        answer = Message(role="assistant", content=one.text)
        more = Message(role="user", content="Shorter.")
        second = request("", messages=(question, answer, more))
        two = provider.complete(second, cancelled=never)
    assert two.usage.cache_read > 80
    assert two.usage.input_uncached < one.usage.tokens


def test_an_agent_with_a_schema_answers_by_it(
    llama: LocalModel, provider: OpenAICompatibleProvider
) -> None:
    rater = agent(output_schema_name="rating", output_schema=SCHEMA)
    with llama.watched():
        answer = run_agent(AgentTask(agent=rater, task="Rate it."), provider, cancelled=never)
    assert isinstance(answer.output, dict)
    assert set(answer.output) == {"title", "rating"}
    assert answer.usage.calls == answer.turns
    assert answer.usage.output > 0


def test_a_tool_is_called_as_json_in_the_models_text(
    llama: LocalModel, provider: OpenAICompatibleProvider
) -> None:
    reader = agent(
        system_prompt="You read files.",
        tool_groups=frozenset({ToolGroup.PROJECT_READ}),
        tool_choice=ToolChoice.REQUIRED,
        output_schema_name="rating",
        output_schema=SCHEMA,
    )
    inputs = AgentInputs(documents=(ProjectDocument(name="brief.md", text="Title: Trees"),))
    recorded = Recorded(JsonToolProvider(provider))
    task = AgentTask(
        agent=reader,
        task="Read brief.md, then rate it.",
        inputs=inputs,
        limits=LoopLimits(turns_max=2),
    )
    tools = OneFile(reader.tool_groups, ToolAccess(inputs))
    with llama.watched(), contextlib.suppress(LimitReached):
        # A model this small may go on calling tools, which the bound ends.
        run_agent(task, recorded, cancelled=never, tools=tools)
    first = recorded.replies[0]
    (call,) = first.tool_calls
    assert call.name == "read_project_file"
    assert json.loads(call.arguments) == {"name": "brief.md"}
    assert first.finish_reason == "tool_calls"
    assert recorded.replies[1].usage.cache_read > 100, (
        "the second turn reads the first one's prefix"
    )
    last = recorded.requests[1].messages[-1]
    assert (last.role, last.tool_call_id) == ("tool", call.id)
    assert "Title: Trees" in last.content


def test_an_answer_as_a_stream_has_the_same_usage(
    llama: LocalModel, provider: OpenAICompatibleProvider
) -> None:
    streaming = OpenAICompatibleProvider(
        Endpoint("local", llama.base_url, stream=True), model=llama.model
    )
    with llama.watched():
        whole = provider.complete(request("A film about rain."), cancelled=never)
        streamed = streaming.complete(request("A film about rain."), cancelled=never)
    streaming.close()
    assert streamed.text == whole.text
    assert streamed.usage.output == whole.usage.output
    assert streamed.usage.tokens == whole.usage.tokens


def test_a_prompt_beyond_the_context_is_refused_for_good(
    llama: LocalModel, provider: OpenAICompatibleProvider
) -> None:
    with llama.watched(), pytest.raises(ProviderError, match="answered 400") as caught:
        provider.complete(request("word " * 3000), cancelled=never)
    assert caught.value.transient is False


def test_a_server_that_hangs_or_crashes_is_told_with_its_log(tmp_path: Path) -> None:
    with local_model(tmp_path, context_tokens=512) as server:
        provider = OpenAICompatibleProvider(Endpoint("hung", server.base_url))
        os.kill(server.process.pid, signal.SIGSTOP)
        hung = request("Hi", timeout_seconds=0.5)
        with pytest.raises(ProviderError, match="no answer") as caught, server.watched():
            provider.complete(hung, cancelled=never)
        assert "listening on http" in caught.value.__notes__[0]
        server.process.kill()
        server.process.wait(30)
        with pytest.raises(AssertionError, match="the local model ended"), server.watched():
            pass
        provider.close()


def test_the_server_does_not_outlive_its_test(tmp_path: Path) -> None:
    code = """
    import sys, time
    from pathlib import Path
    from tests.local_model import local_model
    with local_model(Path(sys.argv[1]), context_tokens=512) as server:
        print(server.process.pid, flush=True)
        time.sleep(600)
    """
    child = start_python(code, str(tmp_path))
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    child.kill()
    child.communicate()
    end = time.monotonic() + 30
    while _lives(pid):
        assert time.monotonic() < end
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    """Whether a process runs; one that nobody has collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
