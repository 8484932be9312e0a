"""Tool results cut to what the model's context still holds.

An endpoint refuses a request that is longer than its context, and a loop that ran into that has
spent its turns for nothing. So results are cut before they enter the history, where they stay as
they are: a later cut would change the beginning of each following request, which the provider
keeps.

Source: specification M6; research/agents.md section 3.
"""

from collections.abc import Sequence

from reprise.agents.token_estimate import (
    estimated_tokens,
    frame_tokens,
    history_tokens,
    message_tokens,
)
from reprise.model.conversation import Message, ModelRequest

CUT_NOTE = (
    "\n[cut: {shown} of {whole} characters; the model's context holds no more. "
    "Ask for a smaller part]"
)
"""Stands at the end of a result that was cut."""

RESULTS_SHARE = 0.5
"""The results of one turn take at most this part of what is left: further turns follow."""

RATIO_MAX = 3.0
"""An endpoint's count above the estimate is believed up to this many times it."""


class ContextRoom:
    """What is left of a model's context.

    Args:
        context_tokens: The model's context; None leaves every result whole.
        request: A request of the loop; its messages do not matter.
    """

    def __init__(self, context_tokens: int | None, request: ModelRequest) -> None:
        self._context_tokens = context_tokens
        self._answer_tokens = request.agent.parameters.max_output_tokens
        self._frame_tokens = frame_tokens(request)
        self._ratio = 1.0

    def learn(self, messages: Sequence[Message], input_tokens: int) -> None:
        """Compare the estimate of what was sent with what the endpoint counted.

        Args:
            messages: The messages of a request.
            input_tokens: The endpoint's count of the whole request, 0 where it counts none.
        """
        if self._context_tokens is not None:
            estimate = self._frame_tokens + history_tokens(messages)
            self._ratio = min(RATIO_MAX, max(self._ratio, input_tokens / max(1, estimate)))

    def fitted(self, messages: Sequence[Message], turn: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return a turn's messages, its tool results cut where they would not fit.

        Args:
            messages: The history before them.
            turn: An assistant's calls and their results.
        """
        if self._context_tokens is None:
            return turn
        results = [message for message in turn if message.role == "tool"]
        others = [message for message in turn if message.role != "tool"]
        taken = self._frame_tokens + history_tokens(messages) + history_tokens(others)
        room = (self._context_tokens - self._answer_tokens) / self._ratio - taken
        bound = _bound(list(map(message_tokens, results)), int(room * RESULTS_SHARE))
        return tuple(
            fitted_result(message, bound) if message.role == "tool" else message for message in turn
        )


def fitted_result(message: Message, tokens_max: int) -> Message:
    """Return the message, or one whose text is cut so that its estimate is within a bound.

    A bound below what the note of the cut takes leaves the note alone; what is shorter than the
    note stays as it is.
    """
    if message_tokens(message) <= max(tokens_max, estimated_tokens(_cut(message, 0))):
        return message
    # Each probe is a message of its own: asking the memo would keep the first one's estimate.
    low, high = 0, len(message.content)
    while low < high:
        middle = (low + high + 1) // 2
        if estimated_tokens(_cut(message, middle)) <= tokens_max:
            low = middle
        else:
            high = middle - 1
    return _cut(message, low)


def _cut(message: Message, shown: int) -> Message:
    note = CUT_NOTE.format(shown=shown, whole=len(message.content))
    return message.model_copy(update={"content": message.content[:shown] + note, "parts": ()})


def _bound(sizes: Sequence[int], room: int) -> int:
    """Return the largest size that each may take, so that what is short leaves room to the rest."""
    left, count = max(0, room), len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return left // count
        left -= size
        count -= 1
    return max(sizes, default=0)
