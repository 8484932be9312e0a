"""Where a request asks the provider to keep its prefix: at most four marks.

A mark at the end of a block keeps everything up to it, and a later request that begins with the
same bytes reads it at a tenth of the price. Placement is a function of the turns' roles alone, so
that the same history gives the same request.

Source: specification M3; research/agents.md sections 3 and 4.
"""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from reprise.model.base import Value

MARKS_MAX = 4
"""Most marks that Anthropic takes in a request."""


class CacheMarks(Value):
    """Which ends are marked."""

    system: bool = True
    """The system prompt; the tools lie before it and are kept with it."""
    first_turn: bool = True
    """The first user turn: the task with its inputs, the same in the whole loop."""
    last_turns: int = Field(default=2, ge=0)
    """So many of the last user turns. With two, each request reads what the one before it kept,
    also when its last turn, a correction, was replaced."""
    ttl: Literal["5m", "1h"] = "5m"
    """How long the provider keeps a prefix that nobody reads."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.system + self.first_turn + self.last_turns > MARKS_MAX:
            message = f"more than {MARKS_MAX} cache marks"
            raise ValueError(message)
        return self


NO_MARKS = CacheMarks(system=False, first_turn=False, last_turns=0)
"""No prefix is kept."""


def marked_turns(roles: Sequence[str], marks: CacheMarks) -> frozenset[int]:
    """Return the indexes of the turns whose end is marked.

    Args:
        roles: Who speaks in each turn.
        marks: Which ends to mark.
    """
    users = [index for index, role in enumerate(roles) if role == "user"]
    first = users[:1] if marks.first_turn else []
    last = users[-marks.last_turns :] if marks.last_turns else []
    return frozenset(first + last)
