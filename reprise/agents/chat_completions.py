"""OpenAI's chat-completions protocol as data: JSON and chunks of a stream to replies.

The requests are in `reprise.agents.chat_requests`.

Source: specification A4; research/agents.md section 5.
"""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from reprise.agents.json_parts import count, items, part, text
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
    choices = items(part(answer, "choices"))
    choice = choices[0] if choices else None
    message = part(choice, "message")
    if not isinstance(message, dict):
        return None
    finish = FINISH_REASONS.get(text(part(choice, "finish_reason")), "other")
    if text(message.get("refusal")):
        finish = "content_filter"
    return ModelReply(
        text=_content(message.get("content")),
        tool_calls=_tool_calls(message.get("tool_calls")),
        finish_reason=finish,
        usage=_usage(part(answer, "usage")),
        model=text(part(answer, "model")) or model,
    )


def assembled(chunks: Iterable[JsonValue]) -> tuple[JsonValue, bool]:
    """Return the answer that a stream's chunks make, and whether it is whole.

    The arguments of a tool arrive in pieces of JSON, which are joined and not parsed.
    """
    answer: dict[str, JsonValue] = {}
    texts: dict[str, str] = {}
    calls: dict[int, dict[str, str]] = {}
    finish: JsonValue = None
    for chunk in chunks:
        for name in ("model", "usage"):
            if part(chunk, name) is not None:
                answer[name] = part(chunk, name)
        choices = items(part(chunk, "choices"))
        choice = choices[0] if choices else None
        finish = part(choice, "finish_reason") or finish
        delta = part(choice, "delta")
        for name in ("content", "refusal"):
            if piece := text(part(delta, name)):
                texts[name] = texts.get(name, "") + piece
        for item in items(part(delta, "tool_calls")):
            _grow(calls.setdefault(count(item, "index"), {}), item)
    message: dict[str, JsonValue] = {
        **texts,
        "tool_calls": [
            {
                "id": call.get("id", ""),
                "function": {"name": call["name"], "arguments": call.get("arguments", "")},
            }
            for _, call in sorted(calls.items())
            if "name" in call
        ],
    }
    answer["choices"] = [{"message": message, "finish_reason": finish}]
    return answer, finish is not None


def _grow(call: dict[str, str], piece: JsonValue) -> None:
    function = part(piece, "function")
    if given := text(part(piece, "id")):
        call["id"] = given
    if name := text(part(function, "name")):
        call["name"] = name
    call["arguments"] = call.get("arguments", "") + text(part(function, "arguments"))


def _content(content: JsonValue) -> str:
    """Return a message's text; some servers give it in parts."""
    if isinstance(content, str):
        return content
    return "".join(text(part(piece, "text")) for piece in items(content))


def _tool_calls(value: JsonValue) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, item in enumerate(items(value), start=1):
        function = part(item, "function")
        name, arguments = part(function, "name"), part(function, "arguments")
        if isinstance(name, str):
            calls.append(
                ToolCall(
                    id=text(part(item, "id")) or f"call_{number}",
                    name=name,
                    arguments=arguments if isinstance(arguments, str) else "{}",
                )
            )
    return tuple(calls)


def _usage(value: JsonValue) -> Usage:
    """Return usage in the normal form: here the prompt's tokens include cached ones."""
    prompt = count(value, "prompt_tokens")
    details = part(value, "prompt_tokens_details")
    cached = min(prompt, count(details, "cached_tokens"))
    written = min(prompt - cached, count(details, "cache_write_tokens"))
    return Usage(
        input_uncached=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=count(value, "completion_tokens"),
        reasoning=count(part(value, "completion_tokens_details"), "reasoning_tokens"),
        calls=1,
        # Whoever knows the endpoint's prices fills it in.
        cost_micros=None,
    )
