"""OpenAI's chat-completions protocol as data: JSON to replies.

The requests are in `reprise.agents.chat_requests`.

Source: specification A4; research/agents.md section 5.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from reprise.model.conversation import ModelReply, ToolCall
from reprise.model.result import Usage

FINISH_REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
"""The protocol's word on why an answer ended → the engine's; anything else is `other`."""


def reply_of(answer: JsonValue, *, model: str) -> ModelReply | None:
    """Return the reply that an endpoint's JSON holds; None when it holds no message.

    Args:
        answer: The endpoint's JSON.
        model: The model that was asked, where the answer names none.
    """
    choice = _first(_part(answer, "choices"))
    message = _part(choice, "message")
    if not isinstance(message, dict):
        return None
    said = _part(choice, "finish_reason")
    finish = FINISH_REASONS.get(said, "other") if isinstance(said, str) else "other"
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        finish = "content_filter"
    named = _part(answer, "model")
    return ModelReply(
        text=_text(message.get("content")),
        tool_calls=_tool_calls(message.get("tool_calls")),
        finish_reason=finish,
        usage=_usage(_part(answer, "usage")),
        model=named if isinstance(named, str) and named else model,
    )


def _part(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, dict) else None


def _first(value: JsonValue) -> JsonValue:
    return value[0] if isinstance(value, list) and value else None


def _text(content: JsonValue) -> str:
    """Return a message's text; some servers give it in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(text for part in parts if isinstance(text := _part(part, "text"), str))


def _tool_calls(value: JsonValue) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, item in enumerate(value if isinstance(value, list) else [], start=1):
        function = _part(item, "function")
        name, arguments = _part(function, "name"), _part(function, "arguments")
        given = _part(item, "id")
        if isinstance(name, str):
            calls.append(
                ToolCall(
                    id=given if isinstance(given, str) and given else f"call_{number}",
                    name=name,
                    arguments=arguments if isinstance(arguments, str) else "{}",
                )
            )
    return tuple(calls)


def _usage(value: JsonValue) -> Usage:
    """Return usage in the normal form: here the prompt's tokens include cached ones."""
    prompt = _count(value, "prompt_tokens")
    details = _part(value, "prompt_tokens_details")
    cached = min(prompt, _count(details, "cached_tokens"))
    written = min(prompt - cached, _count(details, "cache_write_tokens"))
    return Usage(
        input_uncached=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=_count(value, "completion_tokens"),
        reasoning=_count(_part(value, "completion_tokens_details"), "reasoning_tokens"),
        calls=1,
        # Whoever knows the endpoint's prices fills it in.
        cost_micros=None,
    )


def _count(value: JsonValue, name: str) -> int:
    number = _part(value, name)
    return max(0, int(number)) if isinstance(number, int | float) else 0
