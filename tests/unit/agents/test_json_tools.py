"""Tools as JSON in a model's text."""

import json
from typing import Any

import jsonschema
import pytest
from pydantic import JsonValue

from reprise.agents.json_tools import json_reply, json_request
from reprise.agents.loop import AgentTask, LoopLimits
from reprise.errors import AnswerInvalid, LimitReached
from reprise.model.agent import AgentDefinition, ToolChoice, ToolGroup
from reprise.model.conversation import (
    AgentInputs,
    Message,
    ModelReply,
    ModelRequest,
    ProjectDocument,
    ToolCall,
    ToolSchema,
)
from reprise.model.result import Usage
from resources.scripted_provider import ScriptedProvider
from resources.tool_modes import JsonToolProvider
from tests.agent_loop import run_agent

POINT: JsonValue = {"type": "object", "properties": {"x": {"type": "integer"}}}
TOOLS = (
    ToolSchema(
        name="read",
        description="Reads a file.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "at": {"$ref": "#/$defs/point"}},
            "required": ["path"],
            "$defs": {"point": POINT},
        },
    ),
    ToolSchema(name="list", description="Lists files.", parameters={"type": "object"}),
)
ANSWER: dict[str, JsonValue] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["point"],
    "properties": {"point": {"$ref": "#/$defs/point"}},
    "$defs": {"point": {"type": "array", "items": {"type": "integer"}}},
}
CALL: JsonValue = {"tool": "read", "arguments": {"path": "a.md"}}
AGENT = AgentDefinition(id="a", agent_type="a", system_prompt="You are a.")


def request(**changes: Any) -> ModelRequest:
    values: dict[str, Any] = {
        "agent": AGENT,
        "system_prompt": "You are a.\n",
        "messages": (Message(role="user", content="Go."),),
        "tools": TOOLS,
        "output_schema": ANSWER,
    }
    return ModelRequest(**{**values, **changes})


def reply(text: str, finish: str = "stop") -> ModelReply:
    return ModelReply(text=text, finish_reason=finish, usage=Usage(calls=1), model="m")


def fits(value: JsonValue, schema: dict[str, JsonValue] | None) -> bool:
    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [
        (CALL, True),
        ({"tool": "list", "arguments": {}}, True),
        ({"point": [1, 2]}, True),
        ({"tool": "read", "arguments": {"path": "a", "at": {"x": 1}}}, True),
        ({"tool": "read", "arguments": {"path": "a", "at": {"x": "one"}}}, False),
        ({"tool": "read", "arguments": {}}, False),
        ({"tool": "delete", "arguments": {}}, False),
        ({"tool": "read"}, False),
        ({"point": {"x": 1}}, False),
        ("text", False),
    ],
)
def test_the_schema_allows_a_call_of_each_tool_or_the_answer(
    value: JsonValue, is_allowed: bool
) -> None:
    """Definitions of the same name in two schemas stay two."""
    assert fits(value, json_request(request()).output_schema) is is_allowed


def test_an_agent_without_a_schema_answers_in_a_frame_that_is_taken_off() -> None:
    asked = request(output_schema=None)
    assert fits({"answer": "a text"}, json_request(asked).output_schema)
    assert json_reply(reply('{"answer": "a text"}'), asked).text == "a text"
    assert json_reply(reply("just a text"), asked).text == "just a text"


def test_the_prompt_tells_tools_and_forms_and_nothing_else_is_offered() -> None:
    asked = json_request(request())
    assert asked.tools == ()
    assert asked.system_prompt.startswith("You are a.\n\n## Tools\n")
    for said in ("`read`: Reads a file.", '"path"', "`list`", '{"tool": "its name"'):
        assert said in asked.system_prompt


def test_a_call_is_read_from_the_text_and_its_id_is_new_in_each_turn() -> None:
    thought = f"<think>A file?</think>\n```json\n{json.dumps(CALL)}\n```"
    first = json_reply(reply(thought), request())
    assert first.tool_calls == (ToolCall(id="call_1", name="read", arguments='{"path": "a.md"}'),)
    assert (first.text, first.finish_reason) == ("", "tool_calls")
    longer = request(messages=request().messages * 3)
    assert json_reply(reply(json.dumps(CALL)), longer).tool_calls[0].id == "call_3"


@pytest.mark.parametrize(
    "text", ['{"point": [1]}', "text", '{"tool": 3, "arguments": {}}', '{"tool": "read", "x": 1}']
)
def test_what_is_no_call_is_left_to_the_loop(text: str) -> None:
    assert json_reply(reply(text), request()) == reply(text)


@pytest.mark.parametrize(
    "text",
    [
        f'The brief quotes {json.dumps(CALL)}, which I left alone. {{"point": [1]}}',
        f"A call is written so:\n```json\n{json.dumps(CALL)}\n```",
        f"<think>I could write {json.dumps(CALL)}",
        f"<think>{json.dumps(CALL)}",
        f'<think>{json.dumps(CALL)}</think>{{"point": [1]}}',
        f"```json\n{json.dumps(CALL)}\n```\n```json\n{json.dumps(CALL)}\n```",
        f"[{json.dumps(CALL)}]",
    ],
)
@pytest.mark.parametrize("schema", [ANSWER, None])
def test_a_call_inside_other_text_is_quoted_and_not_run(
    text: str, schema: dict[str, JsonValue] | None
) -> None:
    assert json_reply(reply(text), request(output_schema=schema)) == reply(text)


def test_a_call_of_a_tool_that_there_is_not_is_told_so_or_no_answer() -> None:
    unknown = reply('{"tool": "delete", "arguments": {}}')
    assert json_reply(unknown, request()) == unknown
    (call,) = json_reply(unknown, request(output_schema=None)).tool_calls
    assert call.name == "delete"


def test_a_cut_call_is_not_run() -> None:
    cut = reply(json.dumps(CALL), finish="length")
    assert json_reply(cut, request()) == cut


def test_an_answer_that_looks_like_a_call_and_fits_the_schema_is_the_answer() -> None:
    loose = request(output_schema={"type": "object"})
    assert json_reply(reply(json.dumps(CALL)), loose).tool_calls == ()


def test_a_choice_of_tools_is_kept() -> None:
    required = json_request(request(tool_choice=ToolChoice.REQUIRED))
    assert fits(CALL, required.output_schema)
    assert not fits({"point": [1]}, required.output_schema)
    none = request(tool_choice=ToolChoice.NONE)
    assert json_request(none).output_schema == ANSWER
    assert json_request(none).system_prompt == (
        "You are a.\n\n## Tools\n\nNo tool can be called now. Give your answer in its own form.\n"
    )
    free = json_request(none.model_copy(update={"output_schema": None}))
    assert '{"answer": "your text"}' in free.system_prompt
    assert fits({"answer": "a text"}, free.output_schema)
    assert not fits(CALL, free.output_schema)


def test_calls_and_results_of_earlier_turns_become_text_and_stay_the_same_objects() -> None:
    turn = Message(
        role="assistant",
        content="",
        tool_calls=(ToolCall(id="c", name="read", arguments='{"path": "ä"}'),),
    )
    result = Message(role="tool", content='{"ok": true}', tool_call_id="c")
    asked = request(messages=(*request().messages, turn, result))
    one, two = json_request(asked), json_request(asked)
    assert [(message.role, message.content) for message in one.messages] == [
        ("user", "Go."),
        ("assistant", '{"tool": "read", "arguments": {"path": "ä"}}'),
        ("user", 'Result of your call:\n{"ok": true}'),
    ]
    assert all(message.tool_call_id is None for message in one.messages)
    for mine, other in zip(one.messages, two.messages, strict=True):
        assert mine is other, "what is made of a message is kept by its identity"
    assert one.system_prompt is two.system_prompt
    assert one.output_schema is two.output_schema


def test_a_request_without_tools_is_not_changed() -> None:
    plain = request(tools=())
    assert json_request(plain) == plain


def call_of(tool: str, **arguments: JsonValue) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


def test_a_call_where_none_may_be_is_not_run_and_is_no_answer() -> None:
    writer = AGENT.model_copy(
        update={
            "tool_groups": frozenset({ToolGroup.PROJECT_WRITE}),
            "tool_choice": ToolChoice.NONE,
        }
    )
    write = call_of("write_project_file", name="a.md", text="x")
    inner = ScriptedProvider([write, '{"answer": "Done."}'])
    answer = run_agent(AgentTask(agent=writer), JsonToolProvider(inner), cancelled=lambda: False)
    assert answer.output == "Done."
    assert answer.notes == ("the answer could be used after 1 corrections",)
    shown, told = inner.requests[1].messages[-2:]
    assert shown.content == 'write_project_file {"name": "a.md", "text": "x"}'
    assert "it calls a tool, and no tool can be called now" in told.content
    stubborn = JsonToolProvider(ScriptedProvider([write] * 3))
    with pytest.raises(AnswerInvalid, match="cannot be used after 2 corrections: it calls a tool"):
        run_agent(AgentTask(agent=writer), stubborn, cancelled=lambda: False)


def test_a_model_that_only_calls_has_not_answered_on_its_last_turn() -> None:
    lister = AGENT.model_copy(update={"tool_groups": frozenset({ToolGroup.WORKFLOW_READ})})
    task = AgentTask(agent=lister, limits=LoopLimits(turns_max=3))
    inner = ScriptedProvider([call_of("list_prior_steps")] * 3)
    with pytest.raises(LimitReached, match="no answer within 3 turns"):
        run_agent(task, JsonToolProvider(inner), cancelled=lambda: False)
    assert "No tool can be called now" in inner.requests[2].system_prompt


def test_the_loop_runs_tools_through_it() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "required": ["title"],
        "properties": {"title": {"type": "string"}},
    }
    reader = AGENT.model_copy(
        update={"tool_groups": frozenset({ToolGroup.PROJECT_READ}), "output_schema": schema}
    )
    inputs = AgentInputs(documents=(ProjectDocument(name="brief.md", text="Title: Go"),))
    inner = ScriptedProvider(
        ['{"tool": "read_project_file", "arguments": {"name": "brief.md"}}', '{"title": "Go"}']
    )
    provider = JsonToolProvider(inner)
    answer = run_agent(AgentTask(agent=reader, inputs=inputs), provider, cancelled=lambda: False)
    assert answer.output == {"title": "Go"}
    assert answer.turns == 2
    assert "Title: Go" in inner.requests[1].messages[-1].content
    assert provider.identity().revision == "tools=json:2"
    assert provider.context_tokens is None
