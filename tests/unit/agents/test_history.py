"""Repair where a history enters, and what is thinned by age and tag."""

from reprise.agents.history import LEFT_OUT, NO_RESULT, repaired, thinned
from reprise.model.conversation import Media, Message, ToolCall


def user(text: str = "u", **more: object) -> Message:
    return Message.model_validate({"role": "user", "content": text, **more})


def calls(*names: str) -> Message:
    made = tuple(ToolCall(id=name, name="look", arguments="{}") for name in names)
    return Message(role="assistant", content="", tool_calls=made)


def result(name: str, text: str = "seen", **more: object) -> Message:
    values = {"role": "tool", "content": text, "tool_call_id": name, **more}
    return Message.model_validate(values)


SAID = Message(role="assistant", content="Done.")
MISSING = '{"ok": false, "error": "the call was interrupted and has no result; call it again"}'


def test_a_whole_history_is_the_same_object() -> None:
    history = (user(), calls("a", "b"), result("b"), user("more"), result("a"), SAID, user())
    assert repaired(history) is history
    assert repaired(()) == ()


def test_a_call_without_a_result_gets_one() -> None:
    history = (user(), calls("a", "b"), result("b"), user("go on"))
    whole = repaired(history)
    assert [message.tool_call_id for message in whole] == [None, None, "b", "a", None]
    assert whole[3].content == NO_RESULT == MISSING
    assert all(one in whole for one in history)


def test_a_history_that_ends_in_calls_is_completed() -> None:
    whole = repaired((user(), calls("a", "b")))
    assert [(message.role, message.tool_call_id) for message in whole[2:]] == [
        ("tool", "a"),
        ("tool", "b"),
    ]


def test_results_without_a_call_are_dropped() -> None:
    """Nothing called it; it came after the next turn; it is the second for its call."""
    asked = calls("a")
    first, second, stray = result("a", "1"), result("a", "2"), result("z")
    history = (stray, user(), asked, first, second, SAID, result("a", "3"))
    assert list(map(id, repaired(history))) == list(map(id, (history[1], asked, first, SAID)))


def test_an_id_may_come_again_in_a_later_turn() -> None:
    history = (user(), calls("call_1"), result("call_1"), calls("call_1"), result("call_1"))
    assert repaired(history) is history


def test_repair_is_idempotent() -> None:
    whole = repaired((result("z"), calls("a", "b"), user(), calls("c"), result("c"), result("c")))
    assert repaired(whole) is whole


def test_nothing_to_thin_gives_the_same_object() -> None:
    plain = (user(), SAID)
    assert thinned(plain) is plain
    tagged = (user(keep_last="plan"), user(ttl_turns=2), SAID, user(keep_last="other"))
    assert thinned(tagged) is tagged


def test_the_last_under_a_tag_keeps_its_content() -> None:
    history = (
        calls("a"),
        result("a", "old", keep_last="file"),
        calls("b"),
        result("b", "new", keep_last="file"),
    )
    thin = thinned(history)
    assert [message.content for message in thin] == ["", LEFT_OUT, "", "new"]
    assert thin[1].tool_call_id == "a"
    assert [thin[0], thin[2], thin[3]] == [history[0], history[2], history[3]]


def test_two_neighbours_under_one_tag_are_superseded() -> None:
    thin = thinned((user("1", keep_last="t"), user("2", keep_last="t")))
    assert [message.content for message in thin] == [LEFT_OUT, "2"]


def test_content_goes_after_so_many_assistant_messages() -> None:
    picture = Media(media_type="image/png", data="AAAA")
    brief = user("brief", ttl_turns=2, parts=(picture,))
    assert thinned((brief, SAID, user()))[0] is brief
    note = thinned((brief, SAID, user(), SAID))[0]
    assert (note.content, note.parts, note.role) == (LEFT_OUT, (), "user")


def test_the_note_of_a_message_is_one_object_over_the_turns() -> None:
    """Otherwise it would be converted on every turn."""
    old, new = user("1", keep_last="t"), user("2", keep_last="t")
    assert thinned((old, new))[0] is thinned((old, new, SAID))[0]
