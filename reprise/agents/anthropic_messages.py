"""Anthropic's Messages protocol as data: JSON and events of a stream to replies.

The requests are in `reprise.agents.anthropic_requests`.

Source: specification A4; research/agents.md section 5. Tests:
tests/unit/agents/test_replies.py.
"""

import json
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from reprise.agents.json_parts import count, part, text
from reprise.model.conversation import ModelReply, ToolCall
from reprise.model.result import Usage

FINISH_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""The protocol's word on why an answer ended → the engine's; anything else is `other`."""


def reply_of(answer: JsonValue, *, model: str) -> ModelReply | None:
    """Return the reply that an endpoint's JSON holds; None when it holds no message.

    Args:
        answer: The endpoint's JSON.
        model: The model that was asked, where the answer names none.
    """
    blocks = part(answer, "content")
    if not isinstance(blocks, list):
        return None
    return ModelReply(
        text="".join(text(part(block, "text")) for block in blocks if _is(block, "text")),
        tool_calls=tuple(
            _tool_call(block, number) for number, block in enumerate(blocks) if _is_call(block)
        ),
        finish_reason=FINISH_REASONS.get(text(part(answer, "stop_reason")), "other"),
        usage=_usage(part(answer, "usage")),
        model=text(part(answer, "model")) or model,
    )


def assembled(events: Iterable[JsonValue]) -> tuple[JsonValue, bool]:
    """Return the message that a stream's events make, and whether it is whole.

    The input of a tool arrives in pieces of JSON, which are joined and not parsed.
    """
    message: dict[str, JsonValue] = {"content": []}
    blocks: dict[int, dict[str, JsonValue]] = {}
    whole = False
    for event in events:
        index = count(event, "index")
        match part(event, "type"):
            case "message_start":
                started = part(event, "message")
                message |= started if isinstance(started, dict) else {}
            case "content_block_start":
                block = part(event, "content_block")
                blocks[index] = dict(block) if isinstance(block, dict) else {}
            case "content_block_delta":
                _grow(blocks.setdefault(index, {}), part(event, "delta"))
            case "message_delta":
                message["stop_reason"] = part(part(event, "delta"), "stop_reason")
                message["usage"] = _later(message.get("usage"), part(event, "usage"))
            case "message_stop":
                whole = True
    message["content"] = [blocks[index] for index in sorted(blocks)]
    return message, whole


def _grow(block: dict[str, JsonValue], delta: JsonValue) -> None:
    match part(delta, "type"):
        case "text_delta":
            block["text"] = text(block.get("text")) + text(part(delta, "text"))
            block.setdefault("type", "text")
        case "input_json_delta":
            block["json"] = text(block.get("json")) + text(part(delta, "partial_json"))


def _later(usage: JsonValue, update: JsonValue) -> JsonValue:
    """Return usage with what a later event says of it; that counts from the beginning as well."""
    before = usage if isinstance(usage, dict) else {}
    now = update if isinstance(update, dict) else {}
    return {**before, **{name: value for name, value in now.items() if value is not None}}


def _is(block: JsonValue, kind: str) -> bool:
    return part(block, "type") == kind


def _is_call(block: JsonValue) -> bool:
    return _is(block, "tool_use") and isinstance(part(block, "name"), str)


def _tool_call(block: JsonValue, number: int) -> ToolCall:
    pieces = text(part(block, "json"))
    given = part(block, "input")
    return ToolCall(
        id=text(part(block, "id")) or f"call_{number}",
        name=text(part(block, "name")),
        arguments=pieces or json.dumps({} if given is None else given, ensure_ascii=False),
    )


def _usage(value: JsonValue) -> Usage:
    """Return usage in the normal form: here the input's tokens leave cached ones out."""
    return Usage(
        input_uncached=count(value, "input_tokens"),
        cache_read=count(value, "cache_read_input_tokens"),
        cache_write=count(value, "cache_creation_input_tokens"),
        output=count(value, "output_tokens"),
        reasoning=count(part(value, "output_tokens_details"), "thinking_tokens"),
        calls=1,
        # Whoever knows the endpoint's prices fills it in.
        cost_micros=None,
    )
