"""A message as it may be sent: checked, and without lone surrogates.

The first stage of every protocol's conversion. A message that needs no scrub is given as it is; one
that does is copied once, and the caller's own is left alone.

Source: specification M1, M4.
"""

from collections.abc import Mapping, Sequence

import orjson

from reprise.agents.memo import Memo
from reprise.agents.surrogates import scrubbed, scrubbed_json
from reprise.errors import MessageInvalid
from reprise.model.conversation import Media, Message, MessageOption, ToolCall

RESERVED_OPTIONS: Mapping[str, frozenset[str]] = {
    "openai": frozenset({"role", "content", "tool_calls", "tool_call_id"}),
    "anthropic": frozenset(
        {"type", "text", "id", "name", "input", "source", "tool_use_id", "content", "cache_control"}
    ),
}
"""Fields that no option may set: the conversion writes them, and `cache_control` is placed by
`reprise.agents.cache_marks`."""


def clean(message: Message) -> Message:
    """Return the message, or its scrubbed copy.

    Raises:
        MessageInvalid: Its parts do not fit its role.
    """
    return COPIES(message) or message


def checked_copy(message: Message) -> Message | None:
    """Check a message; return its scrubbed copy, or None when there is nothing to scrub.

    Raises:
        MessageInvalid: Its parts do not fit its role.
    """
    problem = _problem(message)
    if problem is not None:
        text = f"A message with the role {message.role!r} cannot be sent: {problem}"
        raise MessageInvalid(text)
    changes: dict[str, object] = {
        "content": scrubbed(message.content),
        "parts": tuple(
            part if isinstance(part, Media) else scrubbed(part) for part in message.parts
        ),
        "tool_calls": tuple(_clean_call(call) for call in message.tool_calls),
        "tool_call_id": message.tool_call_id and scrubbed(message.tool_call_id),
        "options": tuple(_clean_option(option) for option in message.options),
    }
    same = all(getattr(message, name) == value for name, value in changes.items())
    return None if same else message.model_copy(update=changes)


COPIES: Memo[Message, Message | None] = Memo(checked_copy)
"""The scrubbed copy of each checked message that needed one."""


def _clean_call(call: ToolCall) -> ToolCall:
    return ToolCall(
        id=scrubbed(call.id), name=scrubbed(call.name), arguments=scrubbed_json(call.arguments)
    )


def _clean_option(option: MessageOption) -> MessageOption:
    return option.model_copy(update={"value": scrubbed_json(option.value)})


def _problem(message: Message) -> str | None:
    if message.role not in ("user", "assistant", "tool"):
        return "there is no such role"
    if (message.role == "tool") != (message.tool_call_id is not None):
        return "a tool's message, and it alone, names the call that it answers (`tool_call_id`)"
    if message.tool_calls and message.role != "assistant":
        return "an assistant's message alone has `tool_calls`"
    if message.role == "assistant" and any(isinstance(part, Media) for part in message.parts):
        return "an assistant's message holds no media"
    return _option_problem(message.options)


def _option_problem(options: Sequence[MessageOption]) -> str | None:
    seen: set[tuple[str, str]] = set()
    for option in options:
        place = (option.protocol, option.name)
        if option.name in RESERVED_OPTIONS[option.protocol] or place in seen:
            return f"its option {option.name!r} sets a field that is already set"
        seen.add(place)
        try:
            orjson.loads(scrubbed_json(option.value))
        except ValueError:
            return f"the value of its option {option.name!r} is no JSON"
    return None
