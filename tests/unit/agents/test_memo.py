"""Made once, found by identity, gone with its object."""

import gc
import threading
import weakref
from collections import Counter
from typing import Any

import orjson
import pytest

from reprise.agents import anthropic_requests, chat_requests
from reprise.agents.cache_marks import NO_MARKS, CacheMarks
from reprise.agents.clean_messages import COPIES, clean
from reprise.agents.history import NOTES, thinned
from reprise.agents.memo import FrameMemo, Memo
from reprise.agents.token_estimate import TOKENS, history_tokens
from reprise.model.agent import AgentDefinition
from reprise.model.conversation import Message, ModelRequest, ToolCall, ToolSchema

MEMOS: dict[str, Memo[Message, Any]] = {
    "chat": chat_requests.FORMS,
    "anthropic": anthropic_requests.FORMS,
    "copies": COPIES,
    "notes": NOTES,
    "tokens": TOKENS,
}


class Made:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __call__(self, message: Message) -> str:
        self.calls[message.content] += 1
        return message.content.upper()


def user(text: str, **more: Any) -> Message:
    return Message(role="user", content=text, **more)


def request(*messages: Message, **changes: Any) -> ModelRequest:
    agent = AgentDefinition(id="a", agent_type="a", system_prompt="x")
    values = {"agent": agent, "system_prompt": "You test.", "messages": messages, **changes}
    return ModelRequest(**values)


def chat(asked: ModelRequest) -> bytes:
    return chat_requests.request_bytes(
        asked, model="m", limit_name="max_tokens", with_schema=True, streamed=False
    )


def anthropic(asked: ModelRequest, marks: CacheMarks = NO_MARKS) -> bytes:
    return anthropic_requests.request_bytes(
        asked, model="m", with_schema=True, marks=marks, streamed=False
    )


def test_a_product_is_made_once() -> None:
    made = Made()
    memo = Memo(made)
    messages = [user("a"), user("b")]
    assert [memo(messages[0]), memo(messages[0])] == ["A", "A"]
    assert memo.each(messages) == memo.each(messages) == ["A", "B"]
    assert made.calls == {"a": 1, "b": 1}


def test_equal_messages_are_two_keys() -> None:
    made = Made()
    memo = Memo(made)
    one, other = user("a"), user("a")
    assert one == other
    assert memo.each((one, other, one)) == ["A", "A", "A"]
    assert made.calls == {"a": 2}


def test_an_entry_goes_with_its_object() -> None:
    memo = Memo(Made())
    kept, dropped = user("a"), user("b")
    memo.each((kept, dropped))
    assert len(memo) == 2
    del dropped
    gc.collect()
    assert len(memo) == 1


def test_a_number_that_is_given_anew_gets_its_own_product() -> None:
    """An object often lies where one lay that was just dropped, and has its `id` then."""
    memo = Memo(Made())
    numbers = set()
    for number in range(1_000):
        message = user(f"m{number}")
        numbers.add(id(message))
        assert memo(message) == f"M{number}"
    assert len(numbers) < 1_000
    assert len(memo) == 1


def test_nothing_is_kept_of_a_failure() -> None:
    def fails(message: Message) -> str:
        raise ValueError(message.content)

    memo = Memo(fails)
    message = user("a")
    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            memo(message)
    assert len(memo) == 0


def test_threads_that_want_the_same_share_one_product() -> None:
    made = Made()
    memo = Memo(made)
    messages = [user(f"m{number}") for number in range(200)]
    expected = [message.content.upper() for message in messages]
    start = threading.Barrier(8)
    wrong: list[int] = []

    def work(number: int) -> None:
        start.wait()
        for _ in range(20):
            if memo.each(messages) != expected:
                wrong.append(number)
            # Objects come and go meanwhile, so that entries are dropped under the others' eyes.
            if memo(user(f"own {number}")) != f"OWN {number}":
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all(made.calls[message.content] == 1 for message in messages)
    gc.collect()
    assert len(memo) == len(messages)


def test_dropping_a_history_frees_all_that_was_made_of_it() -> None:
    """Scrubbed copies and notes included: a product that held its message would keep it."""
    gc.collect()
    before = {name: len(memo) for name, memo in MEMOS.items()}
    messages = tuple(user(f"cut \ud83d {number}", keep_last="t") for number in range(20))
    thin = thinned(messages)
    for history in (messages, thin):
        chat(request(*history))
        anthropic(request(*history))
        history_tokens(history)
    assert all(len(memo) >= before[name] + 19 for name, memo in MEMOS.items())
    first = weakref.ref(messages[0])
    del messages, thin, history
    gc.collect()
    assert first() is None
    assert {name: len(memo) for name, memo in MEMOS.items()} == before


def test_a_turn_converts_only_what_is_new() -> None:
    history = tuple(user(f"m{number}") for number in range(50))
    for send, forms in ((chat, chat_requests.FORMS), (anthropic, anthropic_requests.FORMS)):
        send(request(*history))
        before: list[Any] = forms.each(history)
        count = len(forms)
        new = user("new one")
        send(request(*history, new))
        after: list[Any] = forms.each(history)
        assert all(one is other for one, other in zip(before, after, strict=True))
        assert len(forms) == count + 1


def test_replacing_a_message_changes_its_own_bytes_alone() -> None:
    messages = [user("a"), Message(role="assistant", content="b"), user("c")]
    before = orjson.loads(chat(request(*messages)))["messages"]
    messages[1] = messages[1].model_copy(update={"content": "B"})
    after = orjson.loads(chat(request(*messages)))["messages"]
    assert [one == other for one, other in zip(before, after, strict=True)] == [
        *(True, True, False, True)
    ]


def test_a_mark_of_one_request_does_not_show_in_another() -> None:
    asked = request(user("a"), Message(role="assistant", content="b"), user("c"))
    plain = anthropic(asked)
    marked = anthropic(asked, CacheMarks())
    assert marked.count(b'"cache_control"') == 3
    assert b"cache_control" not in plain
    assert (anthropic(asked), anthropic(asked, CacheMarks())) == (plain, marked)


def test_what_needs_no_scrub_is_not_copied() -> None:
    message = user("café 日本 😀", parts=("more",))
    assert clean(message) is message


def test_what_needs_a_scrub_is_copied_once_and_the_callers_own_is_left_alone() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"\\udc00": [{"a": "\\ud83d"}]}')
    message = Message(role="assistant", content="cut \ud83d", tool_calls=(call,))
    copy = clean(message)
    assert copy is clean(message)
    assert copy.content == "cut \ufffd"
    assert copy.tool_calls[0].arguments == '{"\ufffd": [{"a": "\ufffd"}]}'
    assert message.content == "cut \ud83d"
    assert message.tool_calls == (call,)


def test_the_frame_of_a_loops_requests_is_made_once() -> None:
    made: list[int] = []

    def make(asked: ModelRequest, key: int) -> str:
        made.append(key)
        return asked.system_prompt

    memo = FrameMemo(make)
    first = request(user("a"), output_schema={"type": "object"})
    second = first.model_copy(update={"messages": (user("a"), user("b"))})
    assert [memo(first, 1), memo(second, 1)] == ["You test."] * 2
    assert made == [1]


@pytest.mark.parametrize(
    "changes",
    [
        {"system_prompt": "Another."},
        {"tools": (ToolSchema(name="look", description="Looks.", parameters={}),)},
        {"output_schema": {"type": "string"}},
    ],
)
def test_a_request_with_another_frame_gets_its_own(changes: dict[str, Any]) -> None:
    first = request(user("a"), output_schema={"type": "number"})
    other = first.model_copy(update=changes)
    alone = request(user("a"), **{"output_schema": {"type": "number"}, **changes})
    assert chat(first) != chat(other) == chat(alone)
    assert anthropic(first) != anthropic(other) == anthropic(alone)
