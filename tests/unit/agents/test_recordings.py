"""The lines of a recording: written, torn at any byte, read again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.agents.recordings import asked, differences, lines_of, read_recording
from reprise.model.agent import AgentDefinition
from reprise.model.conversation import Message, ModelReply, ModelRequest
from reprise.model.result import Usage

AGENT = AgentDefinition(id="a", agent_type="a", system_prompt="You are a.")
TEXTS = st.text(max_size=30)


def request(*texts: str, system_prompt: str = "You are a.") -> ModelRequest:
    messages = tuple(Message(role="user", content=text) for text in texts)
    return ModelRequest(agent=AGENT, system_prompt=system_prompt, messages=messages)


def reply(text: str) -> ModelReply:
    return ModelReply(text=text, finish_reason="stop", usage=Usage(), model="m")


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5), st.data())
def test_a_recording_cut_anywhere_holds_the_calls_before_the_cut(
    talks: list[tuple[str, str]], data: st.DataObject
) -> None:
    written = b""
    ends = []
    for said, answered in talks:
        known = read_recording(written, "r").parts
        written += lines_of(asked(request(said)), reply(answered), known)
        ends.append(len(written))
    cut = data.draw(st.integers(0, len(written)))

    recording = read_recording(written[:cut], "r")

    whole = sum(end <= cut for end in ends)
    assert [call.reply.text for call in recording.calls] == [text for _, text in talks[:whole]]
    for call in recording.calls:
        assert {*call.parts.values(), *call.messages} <= recording.parts.keys()


@given(TEXTS, TEXTS)
def test_two_requests_have_one_digest_only_if_they_show_the_same(one: str, other: str) -> None:
    same = one.encode(errors="replace") == other.encode(errors="replace")
    assert (asked(request(one)).digest == asked(request(other)).digest) is same


def test_the_nearest_call_is_the_one_that_a_request_is_compared_with() -> None:
    first = asked(request("one", "two"))
    second = asked(request("one", "three", system_prompt="Be brief."))
    recorded = lines_of(first, reply("x"), ()) + lines_of(second, reply("y"), first.values)
    recording = read_recording(recorded, "r")
    (told,) = differences(asked(request("one", "twa")), recording)
    assert told == "message 2 `content` differs from character 3 on: recorded 'two', asked 'twa'"
