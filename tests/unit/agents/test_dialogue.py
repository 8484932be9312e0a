"""Rules that use tools: played anew in each turn, from what the conversation holds."""

import json

import pytest

from reprise.agents.heuristics.dialogue import Ask, Desk, Dialogue, Move, next_move
from reprise.errors import ProviderError
from reprise.model.agent import AgentDefinition, ToolChoice
from reprise.model.conversation import AgentInputs, Message, ModelRequest, ToolSchema

AGENT = AgentDefinition(id="a", agent_type="a", system_prompt="Work.")
TOOLS = tuple(ToolSchema(name=name, description="", parameters={}) for name in ("Look", "Touch"))


def request(*messages: Message, tool_choice: ToolChoice | None = None) -> ModelRequest:
    return ModelRequest(
        agent=AGENT,
        system_prompt="Work.",
        messages=(Message(role="user", content="Go."), *messages),
        tools=TOOLS,
        tool_choice=tool_choice,
        inputs=AgentInputs(user_request="red"),
    )


def conversation(move: Move, *results: object) -> tuple[Message, ...]:
    """Return a turn with calls, and what they were answered."""
    return (
        Message(role="assistant", content="", tool_calls=move.calls),
        *(
            Message(role="tool", content=json.dumps(result), tool_call_id=call.id)
            for call, result in zip(move.calls, results, strict=True)
        ),
    )


def painter(desk: Desk) -> Dialogue:
    """Looks at two things, and touches what is not of the wanted colour."""
    seen = yield [Ask("Look", {"at": "door"}), Ask("Look", {"at": "wall"})]
    wrong = [answer["name"] for answer in seen if answer.get("colour") != desk.inputs.user_request]
    for name in wrong:
        (touched,) = yield [Ask("Touch", {"what": name})]
        if touched.get("ok") is not True:
            return {"failed": touched.get("code")}
    return {"touched": wrong}


def test_a_rule_asks_reads_the_answers_and_asks_on() -> None:
    first = next_move(painter, request())
    assert [(call.name, call.arguments) for call in first.calls] == [
        ("Look", '{"at": "door"}'),
        ("Look", '{"at": "wall"}'),
    ]
    said = conversation(
        first, {"name": "door", "colour": "blue"}, {"name": "wall", "colour": "red"}
    )
    second = next_move(painter, request(*said))
    assert [(call.name, call.arguments) for call in second.calls] == [("Touch", '{"what": "door"}')]
    said += conversation(second, {"ok": True})
    assert next_move(painter, request(*said)) == Move(answer={"touched": ["door"]})


def test_the_same_conversation_gives_the_same_calls_under_the_same_ids() -> None:
    assert next_move(painter, request()) == next_move(painter, request())
    ids = [call.id for call in next_move(painter, request()).calls]
    assert ids == ["rule-0-0", "rule-0-1"]


def test_when_no_tool_can_be_called_any_more_the_rule_says_so_in_its_answer() -> None:
    first = next_move(painter, request())
    said = conversation(
        first, {"name": "door", "colour": "blue"}, {"name": "wall", "colour": "red"}
    )
    last = next_move(painter, request(*said, tool_choice=ToolChoice.NONE))
    assert last == Move(answer={"failed": "no_more_calls"})


def test_a_tool_that_is_not_offered_is_not_called() -> None:
    def curious(_desk: Desk) -> Dialogue:
        (answer,) = yield [Ask("Smell")]
        return dict(answer)

    assert next_move(curious, request()).answer == {
        "ok": False,
        "code": "not_offered",
        "error": "Smell is not offered here",
    }


def test_a_result_that_is_no_json_counts_as_refused() -> None:
    def looker(_desk: Desk) -> Dialogue:
        (answer,) = yield [Ask("Look")]
        return answer.get("ok")

    first = next_move(looker, request())
    torn = Message(role="tool", content='{"ok": tr', tool_call_id=first.calls[0].id)
    turn = Message(role="assistant", content="", tool_calls=first.calls)
    assert next_move(looker, request(turn, torn)) == Move(answer=False)


def test_a_rule_that_does_not_end_is_stopped() -> None:
    def endless(_desk: Desk) -> Dialogue:
        while True:
            yield [Ask("Smell")]

    with pytest.raises(ProviderError, match="more than 24 turns"):
        next_move(endless, request())
