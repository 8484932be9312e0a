"""The product's requests against the plain reference, byte for byte (specification M7)."""

from random import Random
from typing import Any

import pytest

from reprise.agents import anthropic_requests, chat_requests
from reprise.agents.cache_marks import NO_MARKS, CacheMarks
from reprise.agents.history import repaired, thinned
from reprise.model.agent import AgentDefinition, ModelParameters
from reprise.model.conversation import (
    Media,
    Message,
    MessageOption,
    ModelRequest,
    ToolCall,
    ToolSchema,
)
from tests.unit.agents.plain_requests import plain_anthropic, plain_chat, plain_history

LENGTHS = range(1, 61)
TRIALS = 20

TEXTS = (
    *("", " \n", "plain", 'with "quotes" \\ and\ttabs\n', "café 日本 😀", "x" * 300),
    *("\ud83d", "cut \ud83d", "\ude00 cut", "\ud83d\ude00", "\ud83d\ud83d\ude00\ude00"),
)
ARGUMENTS = (
    *("", " \n", "{}", '{"a": [1, {"b": null}]}', "[1]", "{", '"text"', '{"x": NaN}'),
    *('{"n": 123456789012345678901234567890, "x": 1.10}', '{"é": "日本"}'),
    *('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d"}', '{"\\udc00": {"b": ["\\uD800 x"]}}'),
    *('{"a": "\ud83d"}', '{"\udc00": ["\ud83d\ude00"]}', '{"a": "\ud83d", "b": "\\ude00"}'),
)
MEDIA = tuple(Media(media_type=kind, data="AAAA") for kind in ("image/png", "audio/wav", "image/x"))
OPTIONS = (
    MessageOption(protocol="openai", name="name", value='"ada"'),
    MessageOption(protocol="openai", name="weight", value="0"),
    MessageOption(protocol="anthropic", name="is_error", value=" true "),
    MessageOption(protocol="anthropic", name="extra", value='{"k": "\\ud83d \udc00"}'),
)
REQUEST = ModelRequest(
    agent=AgentDefinition(
        id="a",
        agent_type="a",
        system_prompt="x",
        parameters=ModelParameters(temperature=0.5, max_output_tokens=64),
    ),
    system_prompt="You test — thoroughly.",
    messages=(),
    tools=(
        ToolSchema(name="look", description="Looks.", parameters={"type": "object"}),
        ToolSchema(name="see", description="Sees.", parameters={"type": "object"}),
    ),
    output_schema={
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "additionalProperties": False,
    },
)


def random_history(rng: Random, length: int) -> tuple[Message, ...]:
    """Return so many messages: turns of users, answers, batches of calls with their results."""
    messages: list[Message] = []
    while len(messages) < length:
        kind = rng.random()
        if kind < 0.25:
            messages.append(user(rng))
        elif kind < 0.4:
            messages.append(said(rng, ()))
        else:
            messages += batch(rng)
    return tuple(messages[:length])


def batch(rng: Random) -> list[Message]:
    calls = tuple(
        ToolCall(
            id=f"c{rng.choice(TEXTS[2:])}{number}",
            name=rng.choice(("look", "see", "l\ud800")),
            arguments=rng.choice(ARGUMENTS),
        )
        for number in range(rng.randint(1, 4))
    )
    behind = [result(rng, call) for call in calls if rng.random() < 0.9]
    behind += [result(rng, call) for call in calls[:1] if rng.random() < 0.1]
    behind += [user(rng) for _ in range(2) if rng.random() < 0.2]
    rng.shuffle(behind)
    return [said(rng, calls), *behind]


def user(rng: Random) -> Message:
    return Message(role="user", content=rng.choice(TEXTS), parts=parts(rng), **common(rng))


def said(rng: Random, calls: tuple[ToolCall, ...]) -> Message:
    return Message(role="assistant", content=rng.choice(TEXTS), tool_calls=calls, **common(rng))


def result(rng: Random, call: ToolCall) -> Message:
    text = rng.choice(TEXTS)
    return Message(role="tool", content=text, tool_call_id=call.id, parts=parts(rng), **common(rng))


def parts(rng: Random) -> tuple[str | Media, ...]:
    if rng.random() < 0.7:
        return ()
    choices: tuple[str | Media, ...] = (*MEDIA, *TEXTS)
    return tuple(rng.choice(choices) for _ in range(rng.randint(1, 3)))


def common(rng: Random) -> dict[str, Any]:
    options = tuple(option for option in OPTIONS if rng.random() < 0.05)
    return {
        "keep_last": rng.choice(("t", "u")) if rng.random() < 0.1 else None,
        "ttl_turns": rng.randint(1, 4) if rng.random() < 0.1 else None,
        "options": options,
    }


def chat(request: ModelRequest) -> bytes:
    return chat_requests.request_bytes(
        request, model="m", limit_name="max_tokens", with_schema=True, streamed=False
    )


def anthropic(request: ModelRequest, marks: CacheMarks) -> bytes:
    return anthropic_requests.request_bytes(
        request, model="m", with_schema=True, marks=marks, streamed=False
    )


@pytest.mark.parametrize("length", LENGTHS)
def test_requests_are_those_of_the_plain_reference(length: int) -> None:
    rng = Random(length)
    for _ in range(TRIALS):
        history = random_history(rng, length)
        before = [message.model_dump() for message in history]
        # What earlier requests of the same messages left behind must not show.
        earlier = thinned(repaired(history[: rng.randint(0, length)]))
        anthropic(REQUEST.model_copy(update={"messages": earlier}), CacheMarks())

        plain = plain_history(history)
        request = REQUEST.model_copy(update={"messages": thinned(repaired(history))})
        marked = plain_anthropic(request, plain, marked=True)
        assert anthropic(request, CacheMarks()) == marked
        assert anthropic(request, NO_MARKS) == plain_anthropic(request, plain, marked=False)
        assert anthropic(request, CacheMarks()) == marked
        assert chat(request) == plain_chat(request, plain)
        assert [message.model_dump() for message in history] == before
