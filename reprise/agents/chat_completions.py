"""OpenAI's chat-completions protocol as data: requests to JSON, JSON to replies.

Source: specification A4; research/agents.md section 5.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from reprise.model.conversation import Message, ModelReply, ModelRequest, ToolCall
from reprise.model.result import Usage

FINISH_REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
"""The protocol's word on why an answer ended → the engine's; anything else is `other`."""


def payload_of(
    request: ModelRequest, *, model: str, limit_name: str, with_tools: bool, with_schema: bool
) -> dict[str, JsonValue]:
    """Return the JSON of a request.

    Args:
        request: What is asked.
        model: The model's name at the endpoint.
        limit_name: Name of the bound on the answer: `max_tokens` or `max_completion_tokens`.
        with_tools: Offer the request's tools.
        with_schema: Send the schema as `response_format`.
    """
    parameters = request.agent.parameters
    messages: list[JsonValue] = [{"role": "system", "content": scrubbed(request.system_prompt)}]
    messages += [_message(message) for message in request.messages]
    payload: dict[str, JsonValue] = {
        "model": model,
        "messages": messages,
        limit_name: parameters.max_output_tokens,
    }
    for name in ("temperature", "top_p", "seed"):
        value = getattr(parameters, name)
        if value is not None:
            payload[name] = value
    if request.tools and with_tools:
        payload["tools"] = [
            {"type": "function", "function": tool.model_dump(mode="json")} for tool in request.tools
        ]
    if request.output_schema is not None and with_schema:
        payload["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.agent.output_schema_name or "answer",
                "schema": request.output_schema,
                # Strict mode refuses bounds such as maxLength; the loop validates them itself.
                "strict": False,
            },
        }
    return payload


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


def _message(message: Message) -> JsonValue:
    converted: dict[str, JsonValue] = {
        "role": message.role,
        "content": scrubbed(message.content),
    }
    if message.tool_calls:
        converted["content"] = scrubbed(message.content) or None
        converted["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": scrubbed(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        converted["tool_call_id"] = message.tool_call_id
    return converted


def scrubbed(text: str) -> str:
    """Return a text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()


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
    """Return usage in the normal form: OpenAI counts cached tokens among the prompt's."""
    prompt = _count(value, "prompt_tokens")
    cached = min(prompt, _count(_part(value, "prompt_tokens_details"), "cached_tokens"))
    return Usage(
        input_uncached=prompt - cached,
        cache_read=cached,
        output=_count(value, "completion_tokens"),
        reasoning=_count(_part(value, "completion_tokens_details"), "reasoning_tokens"),
        calls=1,
        # No price table yet: a cost that nobody knows is not nothing.
        cost_micros=None,
    )


def _count(value: JsonValue, name: str) -> int:
    number = _part(value, name)
    return max(0, int(number)) if isinstance(number, int | float) else 0
