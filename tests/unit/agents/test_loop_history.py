"""What the loop does with its history: repaired once, appended to, thinned, fitted."""

from reprise.agents import chat_requests
from reprise.agents.loop import AgentTask
from reprise.model.agent import AgentDefinition, ModelParameters, ToolGroup
from reprise.model.conversation import (
    AgentInputs,
    Message,
    ModelReply,
    ModelRequest,
    ProjectDocument,
    ToolCall,
)
from reprise.model.result import Usage
from resources.scripted_provider import ScriptedProvider, ScriptItem
from tests.agent_loop import run_agent

AGENT = AgentDefinition(
    id="reader",
    agent_type="reader",
    system_prompt="Read.",
    tool_groups=frozenset({ToolGroup.PROJECT_READ}),
    parameters=ModelParameters(max_output_tokens=100),
)
DOCUMENT = ProjectDocument(name="notes.txt", text="note " * 2_000)


def reading(number: int) -> ModelReply:
    call = ToolCall(id=f"c{number}", name="read_project_file", arguments='{"name": "notes.txt"}')
    usage = Usage(input_uncached=10, output=5, calls=1)
    return ModelReply(
        text="", tool_calls=(call,), finish_reason="tool_calls", usage=usage, model="m"
    )


def asked(context_tokens: int | None = None, **changes: object) -> list[ModelRequest]:
    script: list[ScriptItem] = [reading(1), reading(2), "Done."]
    provider = ScriptedProvider(script, context_tokens=context_tokens)
    values = {"agent": AGENT, "inputs": AgentInputs(documents=(DOCUMENT,)), **changes}
    run_agent(AgentTask.model_validate(values), provider, cancelled=lambda: False)
    return list(provider.requests)


def test_a_turn_appends_and_keeps_every_earlier_message_and_the_frame() -> None:
    """The very objects: what was made of them is found by their identity."""
    first, second, third = asked()
    for before, after in ((first, second), (second, third)):
        assert len(after.messages) == len(before.messages) + 2
        assert all(
            one is other for one, other in zip(before.messages, after.messages, strict=False)
        )
        assert after.system_prompt is before.system_prompt
        assert after.tools is before.tools
        assert after.agent is before.agent


def test_each_request_begins_with_the_one_before() -> None:
    """A provider's prefix cache reads what it knows, and the memo joins what it has."""
    bodies = [
        chat_requests.request_bytes(
            one, model="m", limit_name="max_tokens", with_schema=True, streamed=False
        ).partition(b'],"max_tokens"')[0]
        for one in asked()
    ]
    assert bodies[1].startswith(bodies[0] + b",")
    assert bodies[2].startswith(bodies[1] + b",")


def test_an_earlier_conversation_goes_before_the_task_and_is_repaired() -> None:
    call = ToolCall(id="c0", name="list_project_files", arguments="{}")
    history = (
        Message(role="user", content="Look."),
        Message(role="assistant", content="", tool_calls=(call,)),
    )
    messages = asked(history=history)[0].messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]
    assert messages[2].tool_call_id == "c0"
    assert "interrupted" in messages[2].content


def test_a_superseded_message_of_the_history_is_sent_as_a_note() -> None:
    history = tuple(Message(role="user", content=text, keep_last="plan") for text in ("old", "new"))
    messages = asked(history=history)[0].messages
    assert [message.content for message in messages[:2]] == [
        "[left out: too old, or replaced by a later message]",
        "new",
    ]


def test_results_are_cut_for_a_model_with_a_small_context() -> None:
    whole = asked()[2].messages
    cut = asked(context_tokens=4_000)[2].messages
    assert "[cut: " not in whole[2].content
    assert "characters; the model's context holds no more" in cut[2].content
    assert (
        len(cut[4].content) < len(cut[2].content) < len(whole[2].content) == len(whole[4].content)
    )
