"""Requests made the plain way: each time everything, from copies, with nothing kept.

The reference that the product's requests are compared with, byte for byte (specification M7). It
copies and scrubs each message, checks it by its model again, and writes into what it made as it
goes; it shares no code with `reprise.agents` but the note's texts.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import orjson

from reprise.agents.history import LEFT_OUT, NO_RESULT
from reprise.model.conversation import Message, ModelRequest

Plain = dict[str, Any]

PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
LONE = re.compile("[\ud800-\udfff]")


def plain_history(history: Sequence[Message]) -> list[Plain]:
    """Return copies of the messages: scrubbed, calls and results even, thinned."""
    copies = [_copied(message) for message in history]
    return _thinned(_even(copies))


def plain_chat(request: ModelRequest, history: Sequence[Plain]) -> bytes:
    """Return the body of a chat-completions request."""
    messages = [{"role": "system", "content": request.system_prompt}]
    for segment in _segments(history):
        converted = [_chat_messages(message) for message in segment]
        messages += [own for own, _ in converted if own["role"] == "assistant"]
        messages += [own for own, _ in converted if own["role"] == "tool"]
        for own, media in converted:
            messages += [media] if media else []
            messages += [own] if own["role"] == "user" else []
    body: Plain = {"model": "m", "messages": messages}
    body["max_tokens"] = request.agent.parameters.max_output_tokens
    body["temperature"] = request.agent.parameters.temperature
    body["tools"] = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in request.tools
    ]
    named = {"name": "answer", "schema": request.output_schema, "strict": False}
    body["response_format"] = {"type": "json_schema", "json_schema": named}
    return orjson.dumps(body)


def plain_anthropic(request: ModelRequest, history: Sequence[Plain], *, marked: bool) -> bytes:
    """Return the body of an Anthropic request, with the usual marks or none."""
    turns: list[Plain] = []
    for message in history:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks(message)
        if blocks and turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    system: Plain = {"type": "text", "text": request.system_prompt}
    if marked:
        users = [turn for turn in turns if turn["role"] == "user"]
        for turn in users[:1] + users[-2:]:
            turn["content"][-1]["cache_control"] = {"type": "ephemeral"}
        system["cache_control"] = {"type": "ephemeral"}
    body: Plain = {"model": "m", "max_tokens": request.agent.parameters.max_output_tokens}
    body["temperature"] = request.agent.parameters.temperature
    body["system"] = [system]
    body["tools"] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]
    body["output_config"] = {"format": {"type": "json_schema", "schema": request.output_schema}}
    body["messages"] = turns
    return orjson.dumps(body)


def _copied(message: Message) -> Plain:
    """Return a copy without lone surrogates, checked by the model of messages."""
    copy: Plain = _scrubbed(message.model_dump())
    for call in copy["tool_calls"]:
        call["arguments"] = _scrubbed_json(call["arguments"])
    for option in copy["options"]:
        option["value"] = _scrubbed_json(option["value"])
    Message.model_validate(copy)
    return copy


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        paired = PAIR.sub(lambda two: chr(_code_point(two[1], two[2])), value)
        return LONE.sub("\ufffd", paired)
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    return value


def _code_point(high: str, low: str) -> int:
    return 0x10000 + ((ord(high) - 0xD800) << 10) + (ord(low) - 0xDC00)


def _scrubbed_json(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    is_clean = LONE.search(json.dumps(value, ensure_ascii=False)) is None
    return text if is_clean else json.dumps(_scrubbed(value), ensure_ascii=False)


def _segments(history: Sequence[Plain]) -> list[list[Plain]]:
    """Return the messages in pieces that begin at each assistant message."""
    segments: list[list[Plain]] = [[]]
    for message in history:
        if message["role"] == "assistant":
            segments.append([])
        segments[-1].append(message)
    return segments


def _even(history: Sequence[Plain]) -> list[Plain]:
    even: list[Plain] = []
    for segment in _segments(history):
        waiting = [
            call["id"] for message in segment[:1] for call in message.get("tool_calls") or []
        ]
        kept: list[Plain] = []
        for message in segment:
            if message["role"] != "tool":
                kept.append(message)
            elif message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
                kept.append(message)
        results = [at for at, message in enumerate(kept) if message["role"] == "tool"]
        at = max(results, default=0) + 1
        for call_id in reversed(waiting):
            message = {"role": "tool", "content": NO_RESULT, "tool_call_id": call_id}
            missing = Message.model_validate(message)
            kept.insert(at, missing.model_dump())
        even += kept
    return even


def _thinned(history: list[Plain]) -> list[Plain]:
    for at, message in enumerate(history):
        later = history[at + 1 :]
        turns = sum(other["role"] == "assistant" for other in later)
        tag, ttl = message["keep_last"], message["ttl_turns"]
        superseded = tag is not None and any(other["keep_last"] == tag for other in later)
        if superseded or (ttl is not None and turns >= ttl):
            message["content"], message["parts"] = LEFT_OUT, []
    return history


def _chat_messages(message: Plain) -> tuple[Plain, Plain | None]:
    """Return a message, and one of its own for the media of a tool's result."""
    own: Plain = {"role": message["role"], "content": message["content"]}
    media: Plain | None = None
    everything = [message["content"], *message["parts"]]
    if message["role"] == "tool":
        own["content"] = "\n".join(part for part in everything if part and isinstance(part, str))
        if not message["parts"]:
            own["content"] = message["content"]
        shown = [_chat_part(part) for part in everything if not isinstance(part, str)]
        label = f"Media in the result of tool call {message['tool_call_id']}:"
        if shown:
            media = {"role": "user", "content": [{"type": "text", "text": label}, *shown]}
    elif message["parts"]:
        own["content"] = [_chat_part(part) for part in everything if part]
    if message["tool_calls"]:
        own["content"] = own["content"] or None
        own["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in message["tool_calls"]
        ]
    if message["role"] == "tool":
        own["tool_call_id"] = message["tool_call_id"]
    return own | _options(message, "openai"), media


def _chat_part(part: Any) -> Plain:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part["media_type"].startswith("image/"):
        url = f"data:{part['media_type']};base64,{part['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    sound = {"data": part["data"], "format": part["media_type"].removeprefix("audio/")}
    return {"type": "input_audio", "input_audio": sound}


def _blocks(message: Plain) -> list[Plain]:
    everything = [message["content"], *message["parts"]]
    blocks = [_block(part) for part in everything if not isinstance(part, str) or part.strip()]
    for call in message["tool_calls"]:
        use: Plain = {"type": "tool_use", "id": call["id"], "name": call["name"]}
        use["input"] = _input(call["arguments"])
        blocks.append(use)
    if message["role"] == "tool":
        content = blocks if message["parts"] else message["content"]
        own = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        blocks = [own]
    if blocks:
        blocks[-1] |= _options(message, "anthropic")
    return blocks


def _block(part: Any) -> Plain:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part["media_type"] != "image/png":
        return {"type": "text", "text": f"[{part['media_type']}: this model cannot take it in]"}
    source = {"type": "base64", "media_type": "image/png", "data": part["data"]}
    return {"type": "image", "source": source}


def _input(arguments: str) -> Any:
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        value = None
    # As the model wrote it, so that long numbers stay as they are.
    return orjson.Fragment(arguments) if isinstance(value, dict) else {"arguments": arguments}


def _options(message: Plain, protocol: str) -> Plain:
    mine = [option for option in message["options"] if option["protocol"] == protocol]
    return {option["name"]: orjson.Fragment(option["value"]) for option in mine}
