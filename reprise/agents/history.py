"""A conversation's history, put right where it enters, and thinned by age and by tag.

Both give back the very tuple they got when there is nothing to do: what is made of its messages is
kept by their identity.

- `repaired`, once, where a history comes in: providers refuse a tool call without its result, and
  a result without its call. What the loop itself appends needs no repair.
- `thinned`, each turn: what has lived out its `ttl_turns`, or stands before another message with
  its `keep_last` tag, loses its content. The message itself stays as a short note, so that calls
  keep their results and the roles their order.

Source: specification M5.
"""

from collections.abc import Sequence
from operator import is_

from reprise.agents.memo import Memo
from reprise.model.conversation import Message

History = tuple[Message, ...]

NO_RESULT = '{"ok": false, "error": "the call was interrupted and has no result; call it again"}'
"""What a call without a result is answered with."""

LEFT_OUT = "[left out: too old, or replaced by a later message]"
"""What is left of a message that was thinned."""


def repaired(history: History) -> History:
    """Return the history with a result for each tool call and a call for each result.

    A result counts when it comes before the next assistant message. A missing one is put in; one
    without a call, or the second for the same call, is dropped.
    """
    whole: list[Message] = []
    start = 0
    for end in range(1, len(history) + 1):
        if end == len(history) or history[end].role == "assistant":
            whole += _repaired_batch(history[start:end])
            start = end
    same = len(whole) == len(history) and all(map(is_, whole, history))
    return history if same else tuple(whole)


def thinned(history: History) -> History:
    """Return the history with a note in place of each message that is too old or superseded."""
    if not any(message.keep_last or message.ttl_turns for message in history):
        return history
    thin = list(history)
    tags: set[str] = set()
    turns = 0
    for at in range(len(history) - 1, -1, -1):
        message = history[at]
        is_superseded = message.keep_last is not None and message.keep_last in tags
        is_old = message.ttl_turns is not None and turns >= message.ttl_turns
        if is_superseded or is_old:
            thin[at] = NOTES(message)
        if message.keep_last is not None:
            tags.add(message.keep_last)
        turns += message.role == "assistant"
    return history if all(map(is_, thin, history)) else tuple(thin)


def _repaired_batch(batch: Sequence[Message]) -> list[Message]:
    """Return an assistant's message and what follows it up to the next, calls and results even."""
    open_calls = [call.id for call in batch[0].tool_calls]
    kept: list[Message] = []
    behind_results = 1
    for message in batch:
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                continue
            open_calls.remove(message.tool_call_id)
            behind_results = len(kept) + 1
        kept.append(message)
    kept[behind_results:behind_results] = [
        Message(role="tool", content=NO_RESULT, tool_call_id=number) for number in open_calls
    ]
    return kept


def _note(message: Message) -> Message:
    changes = {"content": LEFT_OUT, "parts": (), "keep_last": None, "ttl_turns": None}
    return message.model_copy(update=changes)


NOTES: Memo[Message, Message] = Memo(_note)
"""What is left of each message that was thinned."""
