"""What is sent to a model: literal bodies of both protocols."""

from typing import Any

import orjson
import pytest

from reprise.agents import anthropic_requests, chat_requests
from reprise.agents.cache_marks import NO_MARKS, CacheMarks, marked_turns
from reprise.errors import MessageInvalid
from reprise.model.agent import AgentDefinition, ModelParameters, ToolChoice
from reprise.model.conversation import (
    Media,
    Message,
    MessageOption,
    ModelRequest,
    ToolCall,
    ToolSchema,
)

PICTURE = Media(media_type="image/png", data="AAAA")
SOUND = Media(media_type="audio/mpeg", data="BBBB")
MARK = {"type": "ephemeral"}


def request(*messages: Message, **changes: Any) -> ModelRequest:
    values: dict[str, Any] = {
        "agent": AgentDefinition(
            id="tester",
            agent_type="tester",
            system_prompt="x",
            parameters=ModelParameters(temperature=0.5, seed=2**70, max_output_tokens=64),
        ),
        "system_prompt": "You test.",
        "messages": messages,
    }
    return ModelRequest(**{**values, **changes})


def chat(asked: ModelRequest) -> bytes:
    return chat_requests.request_bytes(
        asked, model="m", limit_name="max_tokens", with_schema=True, streamed=False
    )


def anthropic(asked: ModelRequest, marks: CacheMarks = NO_MARKS) -> bytes:
    return anthropic_requests.request_bytes(
        asked, model="m", with_schema=True, marks=marks, streamed=False
    )


def call(number: int, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=f"c{number}", name="look", arguments=arguments)


def result(number: int, text: str = "seen", **more: Any) -> Message:
    return Message(role="tool", content=text, tool_call_id=f"c{number}", **more)


HISTORY = (
    Message(role="user", content="Go", parts=(PICTURE, "and", SOUND)),
    Message(role="assistant", content="", tool_calls=(call(1, '{"n": 1.10}'), call(2, "{"))),
    result(1, parts=(PICTURE,)),
    Message(role="user", content="Quick!"),
    result(2, "no"),
)


def test_a_chat_completions_body() -> None:
    """Results in one piece; what came between them, and their media, behind."""
    url = {"url": "data:image/png;base64,AAAA"}
    body = orjson.loads(chat(request(*HISTORY)))
    assert body["messages"] == [
        {"role": "system", "content": "You test."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Go"},
                {"type": "image_url", "image_url": url},
                {"type": "text", "text": "and"},
                {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"n": 1.10}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{"}},
            ],
        },
        {"role": "tool", "content": "seen", "tool_call_id": "c1"},
        {"role": "tool", "content": "no", "tool_call_id": "c2"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Media in the result of tool call c1:"},
                {"type": "image_url", "image_url": url},
            ],
        },
        {"role": "user", "content": "Quick!"},
    ]


def test_a_messages_body() -> None:
    """Neighbours are one turn, results first; the model's own JSON is sent as it wrote it."""
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    sent = anthropic(request(*HISTORY))
    assert b'"input":{"n": 1.10}' in sent
    assert orjson.loads(sent) == {
        "model": "m",
        "max_tokens": 64,
        "temperature": 0.5,
        "system": [{"type": "text", "text": "You test."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Go"},
                    {"type": "image", "source": source},
                    {"type": "text", "text": "and"},
                    {"type": "text", "text": "[audio/mpeg: this model cannot take it in]"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"n": 1.1}},
                    {"type": "tool_use", "id": "c2", "name": "look", "input": {"arguments": "{"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [
                            {"type": "text", "text": "seen"},
                            {"type": "image", "source": source},
                        ],
                    },
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no"},
                    {"type": "text", "text": "Quick!"},
                ],
            },
        ],
    }


def test_tools_and_schema_are_offered_in_each_protocols_own_form() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["title"],
        "properties": {"title": {"type": ["string", "null"], "maxLength": 10}},
    }
    tool = ToolSchema(name="look", description="Looks.", parameters={"type": "object"})
    asked = request(Message(role="user", content="Go"), tools=(tool,), output_schema=schema)
    body = orjson.loads(chat(asked))
    assert body["seed"] == 2.0**70
    assert body["tools"] == [{"type": "function", "function": tool.model_dump()}]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": False},
    }
    body = orjson.loads(anthropic(asked))
    assert body["tools"] == [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
    ]
    title = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert body["output_config"] == {
        "format": {"type": "json_schema", "schema": {**schema, "properties": {"title": title}}}
    }


@pytest.mark.parametrize(
    ("choice", "at_openai", "at_anthropic"),
    [
        (ToolChoice.AUTO, "auto", {"type": "auto"}),
        (ToolChoice.REQUIRED, "required", {"type": "any"}),
        (ToolChoice.NONE, "none", {"type": "none"}),
    ],
)
def test_a_tool_choice_is_said_in_each_protocols_own_word_and_may_change_between_turns(
    choice: ToolChoice, at_openai: str, at_anthropic: dict[str, str]
) -> None:
    tool = ToolSchema(name="look", description="Looks.", parameters={"type": "object"})
    silent = request(Message(role="user", content="Go"), tools=(tool,))
    asked = silent.model_copy(update={"tool_choice": choice})
    for _ in range(2):
        assert "tool_choice" not in orjson.loads(chat(silent))
        assert "tool_choice" not in orjson.loads(anthropic(silent))
        assert orjson.loads(chat(asked))["tool_choice"] == at_openai
        assert orjson.loads(anthropic(asked))["tool_choice"] == at_anthropic


def test_a_stream_is_asked_for_inside_the_body() -> None:
    asked = request(Message(role="user", content="Go"))
    body = chat_requests.request_bytes(
        asked, model="m", limit_name="n", with_schema=True, streamed=True
    )
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    plain = orjson.loads(chat(asked))
    bound = plain.pop("max_tokens")
    assert orjson.loads(body) == {**plain, **stream, "n": bound}
    sent = anthropic_requests.request_bytes(
        asked, model="m", with_schema=True, marks=NO_MARKS, streamed=True
    )
    assert orjson.loads(sent) == {**orjson.loads(anthropic(asked)), "stream": True}


def test_a_schema_that_anthropic_cannot_take_is_left_to_the_prompt() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "number"}}
    asked = request(Message(role="user", content="Go"), output_schema=schema)
    assert "output_config" not in orjson.loads(anthropic(asked))


def test_marks_are_at_the_system_prompt_the_first_and_the_last_two_user_turns() -> None:
    history = [Message(role="user", content="task")]
    for number in range(4):
        history.append(Message(role="assistant", content="", tool_calls=(call(number),)))
        history.append(result(number))
    body = orjson.loads(anthropic(request(*history), CacheMarks()))
    assert body["system"] == [{"type": "text", "text": "You test.", "cache_control": MARK}]
    marks = [
        (at, "cache_control" in block)
        for at, turn in enumerate(body["messages"])
        for block in turn["content"]
    ]
    assert [at for at, is_marked in marks if is_marked] == [0, 6, 8]


def test_a_longer_life_of_the_prefix_is_said() -> None:
    sent = anthropic(request(Message(role="user", content="Go")), CacheMarks(ttl="1h"))
    assert sent.count(b'"cache_control":{"type":"ephemeral","ttl":"1h"}') == 2


def test_more_than_four_marks_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 4"):
        CacheMarks(last_turns=3)


def test_placement_depends_on_the_roles_alone() -> None:
    roles = ["user", "assistant", "user", "assistant", "user"]
    assert marked_turns(roles, CacheMarks()) == {0, 2, 4}
    assert marked_turns(roles, CacheMarks(first_turn=False, last_turns=1)) == {4}
    assert marked_turns(roles, NO_MARKS) == frozenset()
    assert marked_turns([], CacheMarks()) == frozenset()


def test_an_option_reaches_its_own_protocol_alone() -> None:
    failed = MessageOption(protocol="anthropic", name="is_error", value="true")
    named = MessageOption(protocol="openai", name="name", value='"ada"')
    history = (
        Message(role="user", content="Go", options=(named,)),
        Message(role="assistant", content="", tool_calls=(call(1),)),
        result(1, options=(failed,)),
    )
    body = orjson.loads(chat(request(*history)))["messages"]
    assert body[1] == {"role": "user", "content": "Go", "name": "ada"}
    assert body[3] == {"role": "tool", "content": "seen", "tool_call_id": "c1"}
    body = orjson.loads(anthropic(request(*history)))["messages"]
    assert body[0] == {"role": "user", "content": [{"type": "text", "text": "Go"}]}
    assert body[2]["content"][0]["is_error"] is True


def option(name: str, value: str = "1") -> MessageOption:
    return MessageOption(protocol="anthropic", name=name, value=value)


@pytest.mark.parametrize(
    "message",
    [
        Message(role="tool", content="x"),
        Message(role="user", content="x", tool_call_id="c1"),
        Message(role="user", content="x", tool_calls=(call(1),)),
        Message(role="assistant", content="x", parts=(PICTURE,)),
        Message(role="user", content="x", options=(option("cache_control", "{}"),)),
        Message(role="user", content="x", options=(option("a"), option("a"))),
        Message(role="user", content="x", options=(option("a", "{"),)),
        Message(role="user", content="x").model_copy(update={"role": "system"}),
    ],
)
def test_a_message_whose_parts_do_not_fit_its_role_is_refused(message: Message) -> None:
    with pytest.raises(MessageInvalid, match="cannot be sent"):
        chat(request(message))
    with pytest.raises(MessageInvalid, match="cannot be sent"):
        anthropic(request(message))
