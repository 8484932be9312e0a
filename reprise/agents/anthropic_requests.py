"""Requests of Anthropic's Messages protocol, as the bytes that are sent.

Each message is converted once (`reprise.agents.memo`) into content blocks; a turn joins what is
there. The protocol wants turns that alternate and a batch of tool results at the head of one user
turn, so neighbours of the same role are one turn, and the results come first in it.

Source: specification A4, M1 to M4. The plain reference is tests/unit/agents/plain_requests.py.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from reprise.agents.anthropic_schema import native_schema
from reprise.agents.cache_marks import CacheMarks, marked_turns
from reprise.agents.clean_messages import clean
from reprise.agents.memo import FrameMemo, Memo
from reprise.agents.surrogates import scrubbed, scrubbed_value
from reprise.canonical import canonical_json
from reprise.model.agent import ToolChoice
from reprise.model.conversation import Media, Message, MessageOption, ModelRequest, ToolCall

IMAGE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""The media that the protocol takes; it knows no sound."""

TOOL_CHOICES: Mapping[ToolChoice, str] = {
    ToolChoice.AUTO: "auto",
    ToolChoice.REQUIRED: "any",
    ToolChoice.NONE: "none",
}
"""The protocol's words."""


def request_bytes(
    request: ModelRequest,
    *,
    model: str,
    with_schema: bool,
    marks: CacheMarks,
    streamed: bool,
) -> bytes:
    """Return the body of a request.

    Args:
        request: What is asked.
        model: The model's name.
        with_schema: Send the schema as the format of the answer.
        marks: Which ends to keep in the provider's prefix cache.
        streamed: Ask for the answer as a stream.

    Raises:
        MessageInvalid: A message's parts do not fit its role.
    """
    flags = _Flags(model, with_schema, streamed, marks.system, marks.ttl, request.tool_choice)
    head = _FRAMES(request, flags)
    turns = _turns(FORMS.each(request.messages))
    marked = marked_turns([turn.role for turn in turns], marks)
    pieces: list[bytes] = []
    for index, turn in enumerate(turns):
        pieces.append(_OPENINGS[turn.role])
        blocks = [*turn.results, *turn.others]
        if index in marked:
            blocks[-1] = _marked(blocks[-1], marks.ttl)
        pieces += blocks if len(blocks) == 1 else _with_commas(blocks)
    # Joined once, not each turn and then all.
    if not pieces:
        return head + b"]}"
    pieces[0] = head + pieces[0].removeprefix(_CLOSING + b",")
    pieces.append(_CLOSING + b"]}")
    return b"".join(pieces)


class _Form(NamedTuple):
    """A message as content blocks; each item is one or more, with commas between them."""

    role: str
    results: tuple[bytes, ...]
    """Tool results, which come first in a turn."""
    others: tuple[bytes, ...]
    """Everything else."""


class _Turn(NamedTuple):
    """Neighbours of the same role; the lists are this request's own."""

    role: str
    results: list[bytes]
    others: list[bytes]


class _Flags(NamedTuple):
    model: str
    with_schema: bool
    streamed: bool
    marks_system: bool
    ttl: str
    tool_choice: ToolChoice | None


def _turns(forms: Sequence[_Form]) -> list[_Form | _Turn]:
    """Return the turns; a message that is one by itself is given as it is."""
    turns: list[_Form | _Turn] = []
    said = ""
    for form in forms:
        role, results, others = form
        if not results and not others:
            continue
        if role != said:
            turns.append(form)
            said = role
        else:
            turn = turns[-1]
            if not isinstance(turn, _Turn):
                turn = turns[-1] = _Turn(role, [*turn.results], [*turn.others])
            turn.results.extend(results)
            turn.others.extend(others)
    return turns


def _with_commas(blocks: Sequence[bytes]) -> list[bytes]:
    pieces = [b","] * (2 * len(blocks) - 1)
    pieces[::2] = blocks
    return pieces


def _marked(blocks: bytes, ttl: str) -> bytes:
    """Return a copy with a cache mark in the last block; all requests share what is copied."""
    return b'%b,"cache_control":%b}' % (blocks[:-1], orjson.dumps(_cache_control(ttl)))


def _cache_control(ttl: str) -> dict[str, JsonValue]:
    # Five minutes are the default, and older endpoints do not know the field.
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def _form(message: Message) -> _Form:
    message = clean(message)
    options = [option for option in message.options if option.protocol == "anthropic"]
    if message.role == "tool":
        return _Form("user", (_serialised(_tool_result(message), options),), ())
    # The protocol refuses a text of blanks alone.
    parts = [message.content, *message.parts]
    blocks = [_part(part) for part in parts if isinstance(part, Media) or part.strip()]
    blocks += [_tool_use(call) for call in message.tool_calls]
    if not blocks:
        return _Form(message.role, (), ())
    others = [*map(orjson.dumps, blocks[:-1]), _serialised(blocks[-1], options)]
    return _Form(message.role, (), (b",".join(others),))


def _serialised(block: dict[str, object], options: Sequence[MessageOption]) -> bytes:
    return orjson.dumps(block | {option.name: orjson.Fragment(option.value) for option in options})


def _tool_result(message: Message) -> dict[str, object]:
    content: object = message.content
    if message.parts:
        parts = [message.content, *message.parts]
        content = [_part(part) for part in parts if isinstance(part, Media) or part.strip()]
    return {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}


def _part(part: str | Media) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.media_type not in IMAGE_TYPES:
        # The model is told at least that there was something.
        return {"type": "text", "text": f"[{part.media_type}: this model cannot take it in]"}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


def _tool_use(call: ToolCall) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}


def _input(arguments: str) -> object:
    """Return a call's input: the model's own JSON, or, where that is broken, what it wrote."""
    if not arguments.strip():
        return {}
    try:
        if isinstance(orjson.loads(arguments), dict):
            # As written: parsing and writing again would change long numbers.
            return orjson.Fragment(arguments)
    except ValueError:
        pass
    return {"arguments": arguments}


def _head(request: ModelRequest, flags: _Flags) -> bytes:
    """Return a request up to its first message."""
    parameters = request.agent.parameters
    head: dict[str, JsonValue] = {"model": flags.model, "max_tokens": parameters.max_output_tokens}
    for name in ("temperature", "top_p"):
        value = getattr(parameters, name)
        if value is not None:
            head[name] = value
    if flags.streamed:
        head["stream"] = True
    if request.system_prompt.strip():
        system: dict[str, JsonValue] = {"type": "text", "text": scrubbed(request.system_prompt)}
        if flags.marks_system:
            system["cache_control"] = _cache_control(flags.ttl)
        head["system"] = [system]
    if request.tools:
        head["tools"] = [
            {
                "name": tool.name,
                "description": scrubbed(tool.description),
                "input_schema": scrubbed_value(tool.parameters),
            }
            for tool in request.tools
        ]
        if flags.tool_choice is not None:
            head["tool_choice"] = {"type": TOOL_CHOICES[flags.tool_choice]}
    if request.output_schema is not None and flags.with_schema:
        schema = native_schema(request.output_schema)
        if schema is not None:
            form: JsonValue = {"type": "json_schema", "schema": scrubbed_value(schema)}
            head["output_config"] = {"format": form}
    return canonical_json(head, sort_keys=False)[:-1].encode() + b',"messages":['


_CLOSING = b"]}"
_OPENINGS = {
    role: _CLOSING + b',{"role":"%b","content":[' % role.encode() for role in ("user", "assistant")
}
"""What ends a turn and begins the next."""

FORMS: Memo[Message, _Form] = Memo(_form)
"""Each message in the protocol's form."""
_FRAMES: FrameMemo[_Flags, bytes] = FrameMemo(_head)
