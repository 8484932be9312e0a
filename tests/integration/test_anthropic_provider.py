"""The Anthropic adapter against a loopback server that speaks the protocol."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import JsonValue

from reprise.agents.loop import AgentTask, LoopLimits, end_of, usage_of
from reprise.agents.prices import ModelPrice
from reprise.errors import AnswerInvalid, LimitReached
from reprise.model.agent import AgentDefinition, ModelParameters, ToolGroup
from reprise.model.conversation import AgentInputs, Message, ModelRequest, ProjectDocument
from reprise.model.result import LoopEnd, Usage
from reprise.tools.access import ToolAccess
from reprise.tools.toolbox import Toolbox
from resources.anthropic_provider import AnthropicProvider
from resources.model_call import Endpoint
from tests.agent_loop import run_agent
from tests.model_endpoint import Asked, EndpointServer, anthropic_message, endpoint_server

KEY = "sk-ant-test-0123456789"
PRICE = ModelPrice(input=3, cache_read=0.3, cache_write=3.75, output=15)
CALL: JsonValue = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "read_project_file",
    "input": {"name": "brief.md"},
}
INPUTS = AgentInputs(documents=(ProjectDocument(name="brief.md", text="Be brief."),))


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with endpoint_server() as server:
        server.responder = lambda asked, _: asked.answer(anthropic_message())
        yield server


@pytest.fixture
def provider(server: EndpointServer) -> Iterator[AnthropicProvider]:
    provider = AnthropicProvider(
        Endpoint("claude", server.root_url, KEY, timeout_seconds=10),
        model="claude-test-1",
        price_of=lambda model: PRICE if model == "claude-test-1" else None,
    )
    yield provider
    provider.close()


def agent(**changes: Any) -> AgentDefinition:
    values: dict[str, Any] = {
        "id": "tester",
        "agent_type": "tester",
        "system_prompt": "You test.",
        "parameters": ModelParameters(temperature=0.2, max_output_tokens=64),
    }
    return AgentDefinition(**{**values, **changes})


def request(**changes: Any) -> ModelRequest:
    values: dict[str, Any] = {
        "agent": agent(),
        "system_prompt": "You test.",
        "messages": (Message(role="user", content="Hi"),),
        "timeout_seconds": 10.0,
    }
    return ModelRequest(**{**values, **changes})


def never() -> bool:
    return False


def test_a_reply_carries_text_model_usage_and_cost(provider: AnthropicProvider) -> None:
    reply = provider.complete(request(), cancelled=never)
    assert (reply.text, reply.model, reply.finish_reason) == ("hello", "claude-test-1", "stop")
    assert reply.usage == Usage(
        input_uncached=40,
        cache_read=60,
        cache_write=30,
        output=20,
        reasoning=5,
        calls=1,
        # 40 × 3 + 60 × 0.3 + 30 × 3.75 + 20 × 15, rounded.
        cost_micros=550,
    )


def test_the_request_has_version_key_bound_and_cache_marks(
    server: EndpointServer, provider: AnthropicProvider
) -> None:
    provider.complete(request(), cancelled=never)
    path, headers, body = server.asked[0]
    assert path == "/v1/messages"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["anthropic-version"]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("claude-test-1", 64, 0.2)
    assert json.dumps(body).count('"cache_control"') == 2


def test_without_the_prefix_cache_there_is_no_mark(server: EndpointServer) -> None:
    plain = AnthropicProvider(
        Endpoint("claude", server.root_url, KEY), model="claude-test-1", prefix_cache=False
    )
    plain.complete(request(), cancelled=never)
    plain.close()
    assert "cache_control" not in json.dumps(server.asked[0][2])


def test_the_agents_own_model_goes_before_the_providers(
    server: EndpointServer, provider: AnthropicProvider
) -> None:
    own = agent(parameters=ModelParameters(model="claude-other-2"))
    provider.complete(request(agent=own), cancelled=never)
    assert server.asked[0][2]["model"] == "claude-other-2"


def test_tool_calls_go_there_and_back(server: EndpointServer, provider: AnthropicProvider) -> None:
    def respond(asked: Asked, body: dict[str, Any]) -> None:
        (*_, last) = body["messages"][-1]["content"]
        if last["type"] == "tool_result":
            text = f"it says: {json.loads(last['content'])['text']}"
            asked.answer(anthropic_message({"type": "text", "text": text}))
        else:
            asked.answer(anthropic_message(CALL, stop_reason="tool_use"))

    server.responder = respond
    reader = agent(tool_groups=frozenset({ToolGroup.PROJECT_READ}))
    tools = Toolbox(reader.tool_groups, ToolAccess(INPUTS))

    answer = run_agent(AgentTask(agent=reader), provider, cancelled=never, tools=tools)

    assert answer.output == "it says: Be brief."
    assert (answer.turns, answer.usage.tokens, answer.usage.cost_micros) == (2, 300, 1100)
    first, second = (body for _, _, body in server.asked)
    assert "read_project_file" in [tool["name"] for tool in first["tools"]]
    assert second["messages"][-2] == {"role": "assistant", "content": [CALL]}
    assert second["messages"][-1]["content"][0]["tool_use_id"] == "toolu_1"


def test_the_loop_ends_on_a_refusal_with_what_it_took(
    server: EndpointServer, provider: AnthropicProvider
) -> None:
    server.responder = lambda asked, _: asked.answer(anthropic_message(stop_reason="refusal"))
    with pytest.raises(AnswerInvalid, match="content filter") as caught:
        run_agent(AgentTask(agent=agent()), provider, cancelled=never)
    assert end_of(caught.value) is LoopEnd.ANSWER_REFUSED
    assert usage_of(caught.value).cost_micros == 550


def test_the_loop_ends_once_its_money_is_spent(
    server: EndpointServer, provider: AnthropicProvider
) -> None:
    server.responder = lambda asked, _: asked.answer(
        anthropic_message(CALL, stop_reason="tool_use")
    )
    reader = agent(tool_groups=frozenset({ToolGroup.PROJECT_READ}))
    bounds = LoopLimits(cost_usd_max=0.001)
    with pytest.raises(LimitReached, match=r"\$0\.0011 spent") as caught:
        run_agent(AgentTask(agent=reader, limits=bounds), provider, cancelled=never)
    assert end_of(caught.value) is LoopEnd.COST
    assert len(server.asked) == 2


def test_the_loop_tries_again_after_an_overload_and_counts_it(
    server: EndpointServer, provider: AnthropicProvider
) -> None:
    def respond(asked: Asked, _: dict[str, Any]) -> None:
        if len(server.asked) == 1:
            overload: JsonValue = {
                "type": "error",
                "error": {"type": "overloaded_error", "message": "Overloaded"},
            }
            asked.answer(overload, status=529, headers={"Retry-After": "0"})
        else:
            asked.answer(anthropic_message())

    server.responder = respond
    answer = run_agent(AgentTask(agent=agent()), provider, cancelled=never)
    assert (answer.output, answer.retries, answer.turns) == ("hello", 1, 1)


def test_an_answer_without_content_is_an_error(
    server: EndpointServer, provider: AnthropicProvider
) -> None:
    server.responder = lambda asked, _: asked.answer({"type": "message"})
    with pytest.raises(Exception, match="holds no message"):
        provider.complete(request(), cancelled=never)
