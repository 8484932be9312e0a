"""What both protocols have in common: deadlines, streams, errors, and secrets that stay secret."""

import json
import logging
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from pydantic import JsonValue

from reprise.agents.loop import usage_of
from reprise.errors import Cancelled, ProviderError
from reprise.model.agent import AgentDefinition, ModelParameters
from reprise.model.conversation import Message, ModelRequest
from reprise.model.result import Usage
from reprise.ports import ModelProvider
from resources.anthropic_provider import AnthropicProvider
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from tests.model_endpoint import (
    Asked,
    EndpointServer,
    anthropic_message,
    completion,
    endpoint_server,
)

KEY = "sk-secret-0123456789"
PASSWORD = "pass-word-in-the-address"
CODE = "code-in-the-query"
PROMPT = "a prompt that nobody else may read"


class Protocol(NamedTuple):
    """One of the two protocols, for tests that hold for both."""

    name: str
    path: str
    answer: JsonValue
    events: list[tuple[str, JsonValue]]
    """The same answer as a stream."""

    def provider(self, server: EndpointServer, **fields: Any) -> ModelProvider:
        values = {"api_key": KEY, "timeout_seconds": 10.0, **fields}
        if self.name == "anthropic":
            endpoint = Endpoint("far", server.root_url, **values)
            return AnthropicProvider(endpoint, model="claude-test-1")
        endpoint = Endpoint("far", server.base_url, **values)
        return OpenAICompatibleProvider(endpoint, model="tiny-1")


def delta(**fields: JsonValue) -> JsonValue:
    return {"model": "tiny-1-2026", "choices": [{"index": 0, "delta": fields}]}


OPENAI = Protocol(
    "openai",
    "/v1/chat/completions",
    completion("hello"),
    [
        ("", delta(role="assistant", content="hel")),
        ("", delta(content="lo")),
        ("", {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        (
            "",
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "prompt_tokens_details": {"cached_tokens": 60},
                    "completion_tokens_details": {"reasoning_tokens": 5},
                },
            },
        ),
    ],
)


def anthropic_event(kind: str, **fields: JsonValue) -> tuple[str, JsonValue]:
    return kind, {"type": kind, **fields}


STARTED: JsonValue = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test-1",
    "content": [],
    "stop_reason": None,
    "usage": {
        "input_tokens": 40,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
        "output_tokens": 1,
    },
}
ANTHROPIC = Protocol(
    "anthropic",
    "/v1/messages",
    anthropic_message(),
    [
        anthropic_event("message_start", message=STARTED),
        anthropic_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        ("ping", {"type": "ping"}),
        anthropic_event(
            "content_block_delta", index=0, delta={"type": "text_delta", "text": "hel"}
        ),
        anthropic_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"}),
        anthropic_event("content_block_stop", index=0),
        anthropic_event(
            "message_delta",
            delta={"stop_reason": "end_turn"},
            usage={"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5}},
        ),
        anthropic_event("message_stop"),
    ],
)
USAGES = {
    "openai": Usage(
        input_uncached=40, cache_read=60, output=20, reasoning=5, calls=1, cost_micros=None
    ),
    "anthropic": Usage(
        input_uncached=40,
        cache_read=60,
        cache_write=30,
        output=20,
        reasoning=5,
        calls=1,
        cost_micros=None,
    ),
}


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with endpoint_server() as server:
        yield server


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=lambda protocol: protocol.name)
def protocol(request: pytest.FixtureRequest, server: EndpointServer) -> Protocol:
    chosen: Protocol = request.param
    server.responder = lambda asked, _: asked.answer(chosen.answer)
    return chosen


def request(**changes: Any) -> ModelRequest:
    agent = AgentDefinition(
        id="tester",
        agent_type="tester",
        system_prompt="You test.",
        parameters=ModelParameters(max_output_tokens=64),
    )
    values: dict[str, Any] = {
        "agent": agent,
        "system_prompt": "You test.",
        "messages": (Message(role="user", content=PROMPT),),
        "timeout_seconds": 10.0,
    }
    return ModelRequest(**{**values, **changes})


def never() -> bool:
    return False


def stream(asked: Asked, events: list[tuple[str, JsonValue]]) -> None:
    asked.begin_stream()
    for name, data in events:
        asked.event(data, name)


def said(error: BaseException) -> str:
    """Everything of an error that may be shown: with its causes and its notes."""
    return "".join(traceback.format_exception(error))


def test_an_answer_in_one_piece_and_as_a_stream_are_the_same(
    protocol: Protocol, server: EndpointServer
) -> None:
    whole = protocol.provider(server).complete(request(), cancelled=never)

    def respond(asked: Asked, _: dict[str, Any]) -> None:
        stream(asked, protocol.events)
        asked.end_stream()

    server.responder = respond
    streamed = protocol.provider(server, stream=True).complete(request(), cancelled=never)

    as_one = whole.model_copy(update={"waited_seconds": streamed.waited_seconds})
    assert streamed == as_one
    assert whole.text == "hello"
    assert whole.finish_reason == "stop"
    assert whole.usage == USAGES[protocol.name]
    first, second = (body for _, _, body in server.asked)
    assert "stream" not in first
    assert second["stream"] is True


def test_a_server_that_streams_nothing_is_read_as_it_is(
    protocol: Protocol, server: EndpointServer
) -> None:
    reply = protocol.provider(server, stream=True).complete(request(), cancelled=never)
    assert reply.text == "hello"


def test_the_bytes_go_out_as_json_with_the_key_and_without_the_environment(
    protocol: Protocol, server: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for vendor in ("OPENAI", "ANTHROPIC"):
        for name in ("API_KEY", "AUTH_TOKEN", "ADMIN_KEY", "ORG_ID", "WEBHOOK_SIGNING_KEY"):
            monkeypatch.setenv(f"{vendor}_{name}", "from-the-environment")
        monkeypatch.setenv(f"{vendor}_BASE_URL", "http://127.0.0.1:9/from-the-environment")
        monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "X-Custom: from-the-environment")
    protocol.provider(server).complete(request(), cancelled=never)
    protocol.provider(server, api_key=None).complete(request(), cancelled=never)
    (path, headers, body), (_, without, _) = server.asked
    assert path == protocol.path
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert PROMPT in json.dumps(body)
    assert "authorization" not in without, "an endpoint that wants no key gets none"
    assert "from-the-environment" not in json.dumps([headers, without])


@pytest.mark.parametrize(
    ("status", "transient"),
    [(400, False), (401, False), (404, False), (408, True), (429, True), (500, True), (529, True)],
)
def test_a_status_says_whether_to_try_again(
    protocol: Protocol, server: EndpointServer, status: int, transient: bool
) -> None:
    refusal: JsonValue = {"type": "error", "error": {"type": "x", "message": "no such luck"}}
    server.responder = lambda asked, _: asked.answer(
        refusal, status=status, headers={"Retry-After": "7"}
    )
    with pytest.raises(ProviderError, match=rf"'far' answered {status}: no such luck") as caught:
        protocol.provider(server).complete(request(), cancelled=never)
    assert caught.value.transient is transient
    assert caught.value.retry_after_seconds == 7
    assert len(server.asked) == 1, "the loop retries, the adapter does not"


def test_a_pause_that_one_call_is_told_holds_for_the_next(
    protocol: Protocol, server: EndpointServer
) -> None:
    server.responder = lambda asked, _: asked.answer(
        {}, status=429, headers={"Retry-After-Ms": "400"}
    )
    provider = protocol.provider(server)
    with pytest.raises(ProviderError):
        provider.complete(request(), cancelled=never)
    server.responder = lambda asked, _: asked.answer(protocol.answer)
    reply = provider.complete(request(), cancelled=never)
    assert 0.2 < reply.waited_seconds < 5
    assert provider.complete(request(), cancelled=never).waited_seconds < 0.2


def test_an_endpoint_with_nothing_left_is_not_asked_before_it_has(
    protocol: Protocol, server: EndpointServer
) -> None:
    left = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "400ms"}
    server.responder = lambda asked, _: asked.answer(protocol.answer, headers=left)
    provider = protocol.provider(server)
    provider.complete(request(), cancelled=never)
    assert provider.complete(request(), cancelled=never).waited_seconds > 0.2


def test_threads_share_a_providers_places(protocol: Protocol, server: EndpointServer) -> None:
    lock = threading.Lock()
    now, most = 0, 0

    def respond(asked: Asked, _: dict[str, Any]) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        server.release.wait(0.03)
        with lock:
            now -= 1
        asked.answer(protocol.answer)

    server.responder = respond
    provider = protocol.provider(server, concurrency=2)
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda _: provider.complete(request(), cancelled=never), range(12)))
    assert most == 2
    assert len(replies) == 12


def test_a_redirect_is_not_followed_and_no_other_host_sees_key_or_prompt(
    protocol: Protocol, server: EndpointServer
) -> None:
    with endpoint_server() as other:
        elsewhere = f"http://localhost:{other.server_address[1]}/v1"
        server.responder = lambda asked, _: asked.answer(
            {}, status=307, headers={"Location": elsewhere}
        )
        with pytest.raises(ProviderError, match=r"answered 307.*set `base_url`") as caught:
            protocol.provider(server).complete(request(), cancelled=never)
        assert other.asked == []
    assert caught.value.transient is False


@pytest.mark.parametrize("user", [f"me:{PASSWORD}", PASSWORD, f"{PASSWORD}:", f"{PASSWORD}:none"])
def test_no_secret_is_in_an_error_its_causes_or_any_log(
    protocol: Protocol, server: EndpointServer, caplog: pytest.LogCaptureFixture, user: str
) -> None:
    caplog.set_level(logging.DEBUG)
    echo: JsonValue = {"error": {"type": "x", "message": f"bad {KEY} and {PASSWORD} and {CODE}"}}
    address = server.root_url.replace("//", f"//{user}@")
    secret = Endpoint("far", f"{address}/v1?version=2&code={CODE}", KEY)
    shown = repr(secret)
    provider: ModelProvider = OpenAICompatibleProvider(secret, model="m")
    if protocol is ANTHROPIC:
        provider = AnthropicProvider(secret, model="m")
    responders = [
        lambda asked, _: asked.answer(echo, status=401),
        lambda asked, _: asked.answer(protocol.answer),
        lambda asked, _: asked.answer(f"not json {KEY}"),
    ]
    for responder in responders:
        server.responder = responder
        try:
            shown += provider.complete(request(), cancelled=never).model_dump_json()
        except ProviderError as error:
            shown += said(error)
    server.server_close()
    shown += provider.identity().model_dump_json() + caplog.text
    assert len(caplog.text) > 100
    assert KEY not in shown
    assert PASSWORD not in shown
    assert CODE not in shown
    assert {path for path, _, _ in server.asked} == {
        f"{protocol.path if protocol is OPENAI else '/v1/v1/messages'}?version=2&code={CODE}"
    }


def test_a_silent_endpoint_runs_into_the_deadline(
    protocol: Protocol, server: EndpointServer
) -> None:
    server.responder = lambda asked, _: _hold(server)
    began = time.monotonic()
    with pytest.raises(
        ProviderError, match=r"no answer from http://127\.0\.0\.1:\d+.* within 0.3 s"
    ):
        protocol.provider(server).complete(request(timeout_seconds=0.3), cancelled=never)
    assert time.monotonic() - began < 5


def test_an_endpoint_that_drips_runs_into_the_deadline_and_its_call_ends(
    protocol: Protocol, server: EndpointServer
) -> None:
    def drip(asked: Asked, _: dict[str, Any]) -> None:
        asked.send_response(200)
        asked.send_header("Content-Type", "application/json")
        asked.send_header("Content-Length", "100000")
        asked.end_headers()
        while not server.release.wait(0.05):
            asked.wfile.write(b" ")
            asked.wfile.flush()

    server.responder = drip
    with pytest.raises(ProviderError, match=r"within 0.5 s") as caught:
        protocol.provider(server).complete(request(timeout_seconds=0.5), cancelled=never)
    assert caught.value.transient is True
    _wait_for_no_call()


def test_a_stream_that_stalls_ends_after_the_idle_time(
    protocol: Protocol, server: EndpointServer
) -> None:
    def stall(asked: Asked, _: dict[str, Any]) -> None:
        stream(asked, protocol.events[:2])
        _hold(server)

    server.responder = stall
    provider = protocol.provider(server, stream=True, idle_seconds=0.3)
    with pytest.raises(ProviderError, match=r"stopped coming: nothing for 0\.3 s") as caught:
        provider.complete(request(), cancelled=never)
    assert caught.value.transient is True


def test_a_stream_that_keeps_talking_outlives_the_idle_time(
    protocol: Protocol, server: EndpointServer
) -> None:
    def slow(asked: Asked, _: dict[str, Any]) -> None:
        asked.begin_stream()
        for name, data in protocol.events:
            server.release.wait(0.1)
            asked.event(data, name)
        asked.end_stream()

    server.responder = slow
    provider = protocol.provider(server, stream=True, idle_seconds=0.35)
    assert provider.complete(request(), cancelled=never).text == "hello"


def test_a_stream_of_nothing_but_comments_runs_into_the_deadline(
    protocol: Protocol, server: EndpointServer
) -> None:
    def comments(asked: Asked, _: dict[str, Any]) -> None:
        asked.begin_stream()
        while not server.release.wait(0.05):
            asked.chunk(b": still here\n\n")

    server.responder = comments
    provider = protocol.provider(server, stream=True, idle_seconds=5.0)
    with pytest.raises(ProviderError, match=r"within 0.5 s"):
        provider.complete(request(timeout_seconds=0.5), cancelled=never)
    _wait_for_no_call()


@pytest.mark.parametrize("how", ["closed", "ended"])
def test_a_stream_that_breaks_in_the_middle_is_a_passing_error(
    protocol: Protocol, server: EndpointServer, how: str
) -> None:
    def broken(asked: Asked, _: dict[str, Any]) -> None:
        stream(asked, protocol.events[:2])
        if how == "ended":
            asked.end_stream()
        else:
            asked.break_off()

    server.responder = broken
    provider = protocol.provider(server, stream=True)
    with pytest.raises(ProviderError, match=r"broke off|ended before") as caught:
        provider.complete(request(), cancelled=never)
    assert caught.value.transient is True
    if protocol is ANTHROPIC:
        # Its streams begin with what the prompt took.
        assert usage_of(caught.value).cache_read == 60
    else:
        # What it took is not told, so what it cost is not known.
        assert usage_of(caught.value) == Usage(calls=1, cost_micros=None)


def test_an_error_in_a_stream_says_whether_to_try_again(
    protocol: Protocol, server: EndpointServer
) -> None:
    def refuse(kind: str) -> ProviderError:
        body: JsonValue = {"type": "error", "error": {"type": kind, "message": "no more"}}

        def respond(asked: Asked, _: dict[str, Any]) -> None:
            stream(asked, [*protocol.events[:2], ("error", body)])
            asked.end_stream()

        server.responder = respond
        with pytest.raises(ProviderError, match=r"broke off.*no more") as caught:
            protocol.provider(server, stream=True).complete(request(), cancelled=never)
        return caught.value

    assert refuse("overloaded_error").transient is True
    assert refuse("invalid_request_error").transient is False


def test_a_stopped_run_gives_the_call_up_at_once(
    protocol: Protocol, server: EndpointServer
) -> None:
    def stall(asked: Asked, _: dict[str, Any]) -> None:
        stream(asked, protocol.events[:2])
        _hold(server)

    server.responder = stall
    began = time.monotonic()
    with pytest.raises(Cancelled):
        protocol.provider(server, stream=True).complete(
            request(), cancelled=lambda: bool(server.asked)
        )
    assert time.monotonic() - began < 5
    _wait_for_no_call()


def test_no_endpoint_at_all_is_transient_and_says_what_to_check(
    protocol: Protocol, server: EndpointServer
) -> None:
    provider = protocol.provider(server)
    server.server_close()
    with pytest.raises(ProviderError, match=r"'far': no connection to http.*check that") as caught:
        provider.complete(request(), cancelled=never)
    assert caught.value.transient is True


def test_an_answer_without_end_is_given_up(
    protocol: Protocol, server: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.model_call.ANSWER_BYTES_MAX", 100_000)

    def endless(asked: Asked, _: dict[str, Any]) -> None:
        asked.begin_stream()
        for _number in range(1000):
            asked.event({"type": "more", "words": "x" * 1000}, "more")

    server.responder = endless
    with pytest.raises(ProviderError, match="longer than 100000 bytes") as caught:
        protocol.provider(server, stream=True).complete(request(), cancelled=never)
    assert caught.value.transient is False
    server.responder = lambda asked, _: asked.answer("x" * 200_000)
    with pytest.raises(ProviderError, match="longer than 100000 bytes"):
        protocol.provider(server).complete(request(), cancelled=never)


def test_a_page_instead_of_json_is_an_error(protocol: Protocol, server: EndpointServer) -> None:
    def page(asked: Asked, _: dict[str, Any]) -> None:
        asked.send_response(200)
        asked.send_header("Content-Type", "text/html")
        asked.send_header("Content-Length", "6")
        asked.end_headers()
        asked.wfile.write(b"<html>")

    server.responder = page
    with pytest.raises(ProviderError, match="cannot be read"):
        protocol.provider(server).complete(request(), cancelled=never)


def _hold(server: EndpointServer) -> None:
    server.release.wait(30)


def _wait_for_no_call() -> None:
    """Wait until no call's thread is left: one that was given up ends."""
    end = time.monotonic() + 10
    while any(thread.name == "provider-far" for thread in threading.enumerate()):
        assert time.monotonic() < end, "a call that was given up lives on"
        time.sleep(0.02)
