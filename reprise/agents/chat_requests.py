"""Requests of OpenAI's chat-completions protocol, as the bytes that are sent.

Each message is converted once (`reprise.agents.memo`); a turn joins what is there. The protocol
wants a batch of tool results in one piece and knows no media in them, so what users say in between
and the media of the results come behind the batch, in their order.

Source: specification A4, M1 to M4. The replies are in `reprise.agents.chat_completions`; the plain
reference is tests/unit/agents/plain_requests.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from reprise.agents.clean_messages import clean
from reprise.agents.memo import FrameMemo, Memo
from reprise.agents.surrogates import scrubbed, scrubbed_value
from reprise.canonical import canonical_json
from reprise.model.agent import ToolChoice
from reprise.model.conversation import Media, Message, ModelRequest, ToolCall

AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
"""The protocol's name for a media subtype, where it differs."""


def request_bytes(
    request: ModelRequest,
    *,
    model: str,
    limit_name: str,
    with_schema: bool,
    streamed: bool,
) -> bytes:
    """Return the body of a request.

    Args:
        request: What is asked.
        model: The model's name at the endpoint.
        limit_name: Name of the bound on the answer: `max_tokens` or `max_completion_tokens`.
        with_schema: Send the schema as `response_format`.
        streamed: Ask for the answer as a stream.

    Raises:
        MessageInvalid: A message's parts do not fit its role.
    """
    flags = _Flags(model, limit_name, with_schema, streamed, request.tool_choice)
    frame = _FRAMES(request, flags)
    pieces = [frame.head, *_in_order(FORMS.each(request.messages))]
    # Not behind the whole, which would be copied once more.
    pieces[-1] += frame.tail
    return b",".join(pieces)


class _Form(NamedTuple):
    """A message in the protocol's form."""

    role: str
    message: bytes
    media: bytes | None
    """A message of its own, with the media of a tool's result."""


class _Flags(NamedTuple):
    model: str
    limit_name: str
    with_schema: bool
    streamed: bool
    tool_choice: ToolChoice | None


class _Frame(NamedTuple):
    """A request without its messages."""

    head: bytes
    """Everything to the end of the system message."""
    tail: bytes
    """Everything behind the last message."""


def _in_order(forms: Sequence[_Form]) -> list[bytes]:
    """Return the messages with each batch of tool results in one piece."""
    ordered: list[bytes] = []
    behind: list[bytes] = []
    for role, message, media in forms:
        if role == "tool":
            ordered.append(message)
            if media is not None:
                behind.append(media)
        elif role == "user":
            behind.append(message)
        else:
            ordered += behind
            behind.clear()
            ordered.append(message)
    return ordered + behind


def _form(message: Message) -> _Form:
    message = clean(message)
    content: JsonValue = message.content
    media: bytes | None = None
    if message.parts and message.role == "tool":
        content = "\n".join(
            text for text in (message.content, *message.parts) if isinstance(text, str) and text
        )
        media = _media_of_result(message)
    elif message.parts:
        content = [_part(part) for part in (message.content, *message.parts) if part]
    converted: dict[str, object] = {"role": message.role, "content": content}
    if message.tool_calls:
        converted["content"] = content or None
        converted["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        converted["tool_call_id"] = message.tool_call_id
    for option in message.options:
        if option.protocol == "openai":
            converted[option.name] = orjson.Fragment(option.value)
    return _Form(message.role, orjson.dumps(converted), media)


def _media_of_result(message: Message) -> bytes | None:
    media = [_part(part) for part in message.parts if isinstance(part, Media)]
    if not media:
        return None
    label = _part(f"Media in the result of tool call {message.tool_call_id}:")
    return orjson.dumps({"role": "user", "content": [label, *media]})


def _part(part: str | Media) -> JsonValue:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind, subtype = part.media_type.split("/")
    if kind == "image":
        url = f"data:{part.media_type};base64,{part.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    sound: JsonValue = {"data": part.data, "format": AUDIO_FORMATS.get(subtype, subtype)}
    return {"type": "input_audio", "input_audio": sound}


def _tool_call(call: ToolCall) -> JsonValue:
    function: JsonValue = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _frame(request: ModelRequest, flags: _Flags) -> _Frame:
    system: JsonValue = {"role": "system", "content": scrubbed(request.system_prompt)}
    parameters = request.agent.parameters
    behind: dict[str, JsonValue] = {flags.limit_name: parameters.max_output_tokens}
    for name in ("temperature", "top_p", "seed"):
        value = getattr(parameters, name)
        if value is not None:
            behind[name] = value
    if request.tools:
        behind["tools"] = [
            {"type": "function", "function": scrubbed_value(tool.model_dump(mode="json"))}
            for tool in request.tools
        ]
        if flags.tool_choice is not None:
            behind["tool_choice"] = flags.tool_choice.value
    if request.output_schema is not None and flags.with_schema:
        behind["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.agent.output_schema_name or "answer",
                "schema": scrubbed_value(request.output_schema),
                # Strict mode refuses bounds such as maxLength; the loop validates them itself.
                "strict": False,
            },
        }
    if flags.streamed:
        # Without the option a stream has no usage.
        behind |= {"stream": True, "stream_options": {"include_usage": True}}
    head = f'{{"model":{_json(flags.model)},"messages":[{_json(system)}'
    return _Frame(head.encode(), f"],{_json(behind)[1:]}".encode())


def _json(value: JsonValue) -> str:
    return canonical_json(value, sort_keys=False)


FORMS: Memo[Message, _Form] = Memo(_form)
"""Each message in the protocol's form."""
_FRAMES: FrameMemo[_Flags, _Frame] = FrameMemo(_frame)
