"""Estimates per message, their sum, and tool results fitted to what is left of a context."""

from hypothesis import given
from hypothesis import strategies as st

from reprise.agents.context_room import ContextRoom, fitted_result
from reprise.agents.token_estimate import estimated_tokens, history_tokens, message_tokens
from reprise.model.agent import AgentDefinition, ModelParameters
from reprise.model.conversation import Media, Message, ModelRequest, ToolCall


def user(text: str) -> Message:
    return Message(role="user", content=text)


def result(text: str, number: int = 1) -> Message:
    return Message(role="tool", content=text, tool_call_id=f"c{number}")


def test_an_estimate_is_a_quarter_of_the_bytes_and_a_little() -> None:
    assert estimated_tokens(user("")) == 4
    assert estimated_tokens(user("abcde")) == 6
    assert estimated_tokens(user("日本")) == 6
    asked = ToolCall(id="c1", name="look", arguments='{"x": 1}')
    assert estimated_tokens(Message(role="assistant", content="", tool_calls=(asked,))) == 7
    parts = (Media(media_type="image/png", data="AAAA"), "abcd")
    assert estimated_tokens(Message(role="user", content="", parts=parts)) == 1_605


def test_a_lone_surrogate_is_estimated_as_well() -> None:
    assert estimated_tokens(user("\ud83d")) == 5


def test_recounts_equal_fresh_counts_and_a_list_is_the_sum_of_its_messages() -> None:
    messages = [user("word " * number) for number in range(1, 101)]
    for count in range(1, 101):
        fresh = sum(estimated_tokens(message) for message in messages[:count])
        assert history_tokens(messages[:count]) == fresh
        assert sum(map(message_tokens, messages[:count])) == fresh


def test_replacing_a_message_changes_its_own_estimate_alone() -> None:
    messages = [user("a" * 40), user("b" * 40), user("c" * 40)]
    assert history_tokens(messages) == 42
    messages[1] = messages[1].model_copy(update={"content": "b" * 400})
    assert list(map(message_tokens, messages)) == [14, 104, 14]
    assert history_tokens(messages) == 132


def test_what_fits_is_the_same_object() -> None:
    message = result("x" * 400)
    assert fitted_result(message, 104) is message


@given(
    text=st.text(st.characters(min_codepoint=32), min_size=200, max_size=2_000),
    bound=st.integers(30, 400),
)
def test_a_fitted_result_is_the_longest_beginning_within_its_bound(text: str, bound: int) -> None:
    message = result(text)
    fitted = fitted_result(message, bound)
    assert estimated_tokens(fitted) <= bound
    if fitted is not message:
        shown = fitted.content.index("\n[cut: ") if "\n[cut: " not in text else None
        if shown is not None:
            assert fitted.content[:shown] == text[:shown]
            assert f"[cut: {shown} of {len(text)} characters" in fitted.content
            # One more character may at most reach the bound's next token.
            assert estimated_tokens(fitted) >= bound - 1


def test_probing_a_large_result_is_not_answered_from_the_memo() -> None:
    """A memoised estimate once stayed at that of the first probe."""
    message = result("line of a log file\n" * 130_000)
    fitted = fitted_result(message, 10_000)
    assert message_tokens(message) > 600_000
    assert 9_990 <= message_tokens(fitted) == estimated_tokens(fitted) <= 10_000


def opening(max_output_tokens: int = 100) -> ModelRequest:
    parameters = ModelParameters(max_output_tokens=max_output_tokens)
    agent = AgentDefinition(id="a", agent_type="a", system_prompt="x", parameters=parameters)
    # Frame: 100 for the prompt, 3 for `[[], null]`.
    return ModelRequest(agent=agent, system_prompt="p" * 400, messages=())


def turn(*results: Message) -> tuple[Message, ...]:
    return (Message(role="assistant", content=""), *results)


def test_a_model_without_a_bound_gets_every_result_whole() -> None:
    room = ContextRoom(None, opening())
    made = turn(result("x" * 100_000))
    assert room.fitted((), made) is made


def test_results_share_half_of_what_is_left_and_short_ones_stay_whole() -> None:
    room = ContextRoom(4_000, opening())
    history = (user("u" * 4_000),)
    short, long = result("s" * 40), result("l" * 40_000, 2)
    fitted = room.fitted(history, turn(short, long))
    # 4,000 - 100 - 103 - 1,004 - 4 leave 2,789, half of it is 1,394; the short one takes 14.
    assert fitted[1] is short
    assert message_tokens(fitted[2]) in (1_379, 1_380)


def test_a_full_context_leaves_the_note_of_the_cut_alone() -> None:
    room = ContextRoom(500, opening())
    short = result("ok", 2)
    (_, cut, same) = room.fitted((user("u" * 4_000),), turn(result("x" * 1_000), short))
    assert same is short
    assert cut.content.strip().startswith("[cut: 0 of 1000 characters")


def test_an_endpoint_that_counts_more_leaves_less_room() -> None:
    plain, taught = ContextRoom(4_000, opening()), ContextRoom(4_000, opening())
    history = (user("u" * 400),)
    taught.learn(history, 2 * (103 + 104))
    made = turn(result("x" * 40_000))
    (_, whole), (_, less) = plain.fitted(history, made), taught.fitted(history, made)
    assert message_tokens(whole) - message_tokens(less) in (974, 975, 976)
