"""The OpenAI-compatible adapter against a loopback server that speaks the protocol."""

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import JsonValue

from reprise.agents.loop import AgentTask
from reprise.errors import Cancelled, ProviderError
from reprise.model.agent import AgentDefinition, ModelParameters, ToolGroup
from reprise.model.conversation import AgentInputs, Message, ModelRequest, ProjectDocument, ToolCall
from reprise.model.result import Usage
from reprise.tools.catalog import tool_schemas
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from resources.tool_modes import NoToolProvider
from tests.agent_loop import run_agent
from tests.model_endpoint import Asked, EndpointServer, completion, endpoint_server

KEY = "sk-test-0123456789"


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with endpoint_server() as server:
        yield server


@pytest.fixture
def provider(server: EndpointServer) -> Iterator[OpenAICompatibleProvider]:
    provider = OpenAICompatibleProvider(
        Endpoint("local", server.base_url, KEY, timeout_seconds=10), model="tiny-1"
    )
    yield provider
    provider.close()


def agent(**changes: Any) -> AgentDefinition:
    values: dict[str, Any] = {
        "id": "tester",
        "agent_type": "tester",
        "system_prompt": "You test.",
        "parameters": ModelParameters(temperature=0.2, seed=7, max_output_tokens=64),
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


def test_a_reply_carries_text_model_finish_reason_and_usage_in_the_normal_form(
    provider: OpenAICompatibleProvider,
) -> None:
    reply = provider.complete(request(), cancelled=never)
    assert reply.text == "hello"
    assert reply.model == "tiny-1-2026"
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(
        input_uncached=40, cache_read=60, output=20, reasoning=5, calls=1, cost_micros=None
    )


def test_the_request_holds_prompt_messages_sampling_and_bound(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    provider.complete(request(), cancelled=never)
    path, headers, body = server.asked[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "tiny-1",
        "messages": [
            {"role": "system", "content": "You test."},
            {"role": "user", "content": "Hi"},
        ],
        "max_tokens": 64,
        "temperature": 0.2,
        "seed": 7,
    }


def test_the_agents_own_model_goes_before_the_providers(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    own = agent(parameters=ModelParameters(model="big-2"))
    provider.complete(request(agent=own), cancelled=never)
    assert server.asked[0][2]["model"] == "big-2"


def test_a_schema_is_sent_as_response_format_unless_switched_off(server: EndpointServer) -> None:
    schema: dict[str, JsonValue] = {"type": "object"}
    named = request(agent=agent(output_schema_name="thing"), output_schema=schema)
    for structured in (True, False):
        provider = OpenAICompatibleProvider(
            Endpoint("local", server.base_url), structured_output=structured
        )
        provider.complete(named, cancelled=never)
        provider.close()
    assert server.asked[0][2]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "thing", "schema": {"type": "object"}, "strict": False},
    }
    assert "response_format" not in server.asked[1][2]


def test_nothing_of_openais_environment_is_used(
    server: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-from-the-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-from-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/elsewhere")
    provider = OpenAICompatibleProvider(Endpoint("local", server.base_url))
    provider.complete(request(), cancelled=never)
    provider.close()
    headers = server.asked[0][1]
    assert "from-the-environment" not in json.dumps(headers)
    assert "authorization" not in headers, "an endpoint without a key gets none"


def test_tool_calls_go_there_and_back(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    call: JsonValue = {
        "id": "call_9",
        "type": "function",
        "function": {"name": "read_project_file", "arguments": '{"name": "brief.md"}'},
    }

    def respond(endpoint: Asked, body: dict[str, Any]) -> None:
        last = body["messages"][-1]
        if last["role"] == "tool":
            endpoint.answer(completion("it says: " + json.loads(last["content"])["text"]))
        else:
            endpoint.answer(completion(None, finish="tool_calls", tool_calls=[call]))

    server.responder = respond
    reader = agent(tool_groups=frozenset({ToolGroup.PROJECT_READ}))
    inputs = AgentInputs(documents=(ProjectDocument(name="brief.md", text="Be brief."),))
    answer = run_agent(AgentTask(agent=reader, inputs=inputs), provider, cancelled=never)
    assert answer.output == "it says: Be brief."
    assert answer.turns == 2
    assert answer.usage.tokens == 240
    offered = [tool["function"]["name"] for tool in server.asked[0][2]["tools"]]
    assert offered == [
        "list_project_files",
        "read_project_file",
        "read_project_transcript",
        "search_project_files",
    ]
    assistant = server.asked[1][2]["messages"][-2]
    assert assistant["content"] is None
    assert assistant["tool_calls"] == [call]
    assert server.asked[1][2]["messages"][-1]["tool_call_id"] == "call_9"


def test_an_endpoint_without_tools_is_offered_none_and_the_log_says_so(
    server: EndpointServer, provider: OpenAICompatibleProvider, caplog: pytest.LogCaptureFixture
) -> None:
    without = NoToolProvider(provider)
    with caplog.at_level(logging.WARNING):
        without.complete(request(tools=tool_schemas([ToolGroup.PROJECT_READ])), cancelled=never)
    assert "tools" not in server.asked[0][2]
    assert "calls no tools: agent tester answers without list_project_files" in caplog.text
    assert without.identity() != provider.identity()


@pytest.mark.parametrize(
    ("status", "transient"),
    [(400, False), (401, False), (404, False), (408, True), (429, True), (500, True), (503, True)],
)
def test_a_status_says_whether_to_try_again(
    server: EndpointServer, provider: OpenAICompatibleProvider, status: int, transient: bool
) -> None:
    server.responder = lambda endpoint, _: endpoint.answer(
        {"error": {"message": "no such luck", "code": "x"}}, status=status
    )
    with pytest.raises(ProviderError, match=rf"'local' answered {status}: no such luck") as caught:
        provider.complete(request(), cancelled=never)
    assert caught.value.transient is transient
    assert len(server.asked) == 1, "the loop retries, the adapter does not"


def test_a_429_for_want_of_money_is_final(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    server.responder = lambda endpoint, _: endpoint.answer(
        {"error": {"message": "pay first", "code": "insufficient_quota"}}, status=429
    )
    with pytest.raises(ProviderError) as caught:
        provider.complete(request(), cancelled=never)
    assert caught.value.transient is False


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "7"}, 7.0, 7.0),
        ({"Retry-After-Ms": "1500"}, 1.5, 1.5),
        ({"Retry-After": "in an hour"}, 3000.0, 3600.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(
    server: EndpointServer,
    provider: OpenAICompatibleProvider,
    headers: dict[str, str],
    low: float,
    high: float,
) -> None:
    if headers.get("Retry-After") == "in an hour":
        # Made here: the suite may take long between reading this table and this test.
        hour = datetime.now(UTC) + timedelta(hours=1)
        headers = {"Retry-After": format_datetime(hour)}
    server.responder = lambda endpoint, _: endpoint.answer({}, status=429, headers=headers)
    with pytest.raises(ProviderError) as caught:
        provider.complete(request(), cancelled=never)
    after = caught.value.retry_after_seconds
    assert after is not None
    assert low <= after <= high


def test_the_loop_tries_again_after_a_429_and_counts_it(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    def respond(endpoint: Asked, _: dict[str, Any]) -> None:
        if len(server.asked) == 1:
            endpoint.answer({}, status=429, headers={"Retry-After": "0"})
        else:
            endpoint.answer(completion("at last"))

    server.responder = respond
    answer = run_agent(AgentTask(agent=agent()), provider, cancelled=never)
    assert (answer.output, answer.retries, answer.turns) == ("at last", 1, 1)


def test_the_key_is_in_no_error_and_no_identity(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    server.responder = lambda endpoint, _: endpoint.answer(
        {"error": {"message": f"Incorrect API key provided: {KEY}."}}, status=401
    )
    with pytest.raises(ProviderError) as caught:
        provider.complete(request(), cancelled=never)
    assert str(caught.value) == (
        "provider 'local' answered 401: Incorrect API key provided: ***.; "
        "check the provider's `api_key`"
    )
    assert KEY not in provider.identity().model_dump_json()


def test_credentials_in_the_address_are_not_in_the_identity() -> None:
    def endpoint(url: str) -> str:
        return OpenAICompatibleProvider(Endpoint("x", url)).identity().endpoint

    assert endpoint("https://me:secret@host.example:8443/v1") == "https://host.example:8443/v1"
    one, other = endpoint("https://host.example/v1?k=s1"), endpoint("https://host.example/v1?k=s2")
    assert one != other
    assert "s1" not in one


def test_a_silent_endpoint_runs_into_the_deadline(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    server.responder = lambda endpoint, _: _hold(server)
    began = time.monotonic()
    with pytest.raises(
        ProviderError, match=r"no answer from http://127\.0\.0\.1:\d+/v1 within"
    ) as e:
        provider.complete(request(timeout_seconds=0.3), cancelled=never)
    assert e.value.transient is True
    assert time.monotonic() - began < 5


def test_a_stopped_run_gives_the_call_up_at_once(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    server.responder = lambda endpoint, _: _hold(server)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        provider.complete(request(), cancelled=lambda: bool(server.asked))
    assert time.monotonic() - began < 5


def test_no_endpoint_at_all_is_transient_and_says_what_to_check() -> None:
    provider = OpenAICompatibleProvider(Endpoint("gone", "http://127.0.0.1:9/v1"))
    with pytest.raises(ProviderError, match="'gone': no connection to http") as e:
        provider.complete(request(), cancelled=never)
    provider.close()
    assert e.value.transient is True


def test_an_answer_without_a_message_is_an_error(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    server.responder = lambda endpoint, _: endpoint.answer({"choices": []})
    with pytest.raises(ProviderError, match="holds no message"):
        provider.complete(request(), cancelled=never)


def test_a_lone_surrogate_in_a_message_does_not_break_the_request(
    server: EndpointServer, provider: OpenAICompatibleProvider
) -> None:
    messages = (
        Message(role="user", content="broken \ud83d here"),
        Message(
            role="assistant",
            content="",
            tool_calls=(ToolCall(id="a", name="list_project_files", arguments='{"x": "\ud800"}'),),
        ),
        Message(role="tool", content="{}", tool_call_id="a"),
    )
    provider.complete(request(messages=messages), cancelled=never)
    assert server.asked[0][2]["messages"][1]["content"] == "broken \ufffd here"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("eos", "other"),
        ("stop", "stop"),
    ],
)
def test_finish_reasons_are_translated(
    server: EndpointServer, provider: OpenAICompatibleProvider, said: str, reason: str
) -> None:
    server.responder = lambda endpoint, _: endpoint.answer(completion("x", finish=said))
    assert provider.complete(request(), cancelled=never).finish_reason == reason


def _hold(server: EndpointServer) -> None:
    server.release.wait(30)
