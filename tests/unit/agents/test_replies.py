"""What endpoints say, whole or in pieces, to replies."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from reprise.agents import anthropic_messages, chat_completions
from reprise.model.conversation import ToolCall

ARGUMENTS = '{"path": "src/Röot.tsx", "lines": [10, 20]}'
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "content", "type", "index", "usage", "tool_calls"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_arguments_of_chat_completions_are_joined_across_chunks_and_not_parsed(size: int) -> None:
    calls: list[JsonValue] = [{"index": 0, "id": "a", "function": {"name": "read"}}]
    calls += [{"index": 0, "function": {"arguments": piece}} for piece in pieces(ARGUMENTS, size)]
    calls += [{"index": 1, "id": "b", "function": {"name": "list", "arguments": ""}}]
    chunks: list[JsonValue] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})

    answer, whole = chat_completions.assembled(chunks)
    reply = chat_completions.reply_of(answer, model="m")

    assert whole
    assert reply is not None
    assert reply.tool_calls == (
        ToolCall(id="a", name="read", arguments=ARGUMENTS),
        ToolCall(id="b", name="list", arguments=""),
    )
    assert reply.finish_reason == "tool_calls"
    assert reply.model == "m"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_input_of_anthropic_is_joined_across_events_and_not_parsed(size: int) -> None:
    block: JsonValue = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    deltas: list[JsonValue] = [
        {"type": "input_json_delta", "partial_json": piece} for piece in pieces(ARGUMENTS, size)
    ]
    events: list[JsonValue] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "index": 1, "content_block": block},
        *({"type": "content_block_delta", "index": 1, "delta": delta} for delta in deltas),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]

    answer, whole = anthropic_messages.assembled(events)
    reply = anthropic_messages.reply_of(answer, model="m")

    assert whole
    assert reply is not None
    assert reply.tool_calls == (ToolCall(id="t", name="read", arguments=ARGUMENTS),)
    assert reply.finish_reason == "tool_calls"


def test_a_whole_input_of_anthropic_is_given_as_json() -> None:
    answer: JsonValue = {
        "content": [
            {"type": "text", "text": "I read. "},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "ä"}},
            {"type": "tool_use", "id": "u", "name": "list", "input": {}},
        ],
        "stop_reason": "tool_use",
    }
    reply = anthropic_messages.reply_of(answer, model="m")
    assert reply is not None
    assert reply.text == "I read. "
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"path": "ä"}, {}]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        (None, "other"),
    ],
)
def test_anthropics_stop_reasons_are_translated(said: str | None, reason: str) -> None:
    reply = anthropic_messages.reply_of({"content": [], "stop_reason": said}, model="m")
    assert reply is not None
    assert reply.finish_reason == reason


def test_a_write_to_openais_prefix_cache_is_counted_apart() -> None:
    answer: JsonValue = {
        "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 50, "cache_write_tokens": 30},
        },
    }
    reply = chat_completions.reply_of(answer, model="m")
    assert reply is not None
    usage = reply.usage
    assert (usage.input_uncached, usage.cache_read, usage.cache_write) == (20, 50, 30)


@settings(max_examples=60)
@given(st.lists(ANYTHING, max_size=6))
def test_no_stream_is_so_strange_that_it_is_not_read(events: list[JsonValue]) -> None:
    for protocol in (chat_completions, anthropic_messages):
        answer, _ = protocol.assembled(events)
        protocol.reply_of(answer, model="m")
        for event in events:
            protocol.reply_of(event, model="m")
