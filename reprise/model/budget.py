"""What the context budget did to a prompt, entry by entry.

Source: specification B11.
"""

from enum import StrEnum

from pydantic import Field

from reprise.model.base import Value
from reprise.model.settings import ContextBudgetSettings

CHARS_PER_TOKEN = 3
"""Characters that are counted for one token, where no model has counted.

English prose has about four, JSON with its figures and keys two to three. A tokenizer would need
its vocabulary, and a prompt may not depend on whether that can be had.
"""


class Treatment(StrEnum):
    """What became of a prior output in a prompt."""

    KEPT = "kept"
    """It is there whole."""
    DIGESTED = "digested"
    """It is there as its digest."""
    DROPPED = "dropped"
    """Its header is there, with one line that says how much is left out."""


class BudgetedEntry(Value):
    """One prior output in a prompt that the budget changed."""

    order: int
    """The step's order."""
    label: str
    """The step's label."""
    treatment: Treatment
    """What became of it."""
    chars_before: int = Field(ge=0)
    """Characters of the output."""
    chars_after: int = Field(ge=0)
    """Characters of what stands in its place."""


class BudgetReport(Value):
    """What the budget did to a prompt that did not fit."""

    settings: ContextBudgetSettings
    """The knobs, those for a small model where it has one."""
    chars_before: int = Field(ge=0)
    """Characters of all prior outputs with their headers."""
    chars_after: int = Field(ge=0)
    """Characters of what is in the prompt instead."""
    entries: tuple[BudgetedEntry, ...]
    """Every prior output, by order."""

    @property
    def tokens_before(self) -> int:
        """Tokens of all prior outputs, estimated."""
        return estimated_tokens(self.chars_before)

    @property
    def tokens_after(self) -> int:
        """Tokens of what is in the prompt, estimated."""
        return estimated_tokens(self.chars_after)

    @property
    def is_over(self) -> bool:
        """True when it does not fit even so: the outputs that are never cut are too long alone."""
        return self.chars_after > self.settings.max_input_chars


def estimated_tokens(chars: int) -> int:
    """Return about how many tokens so many characters are."""
    return -(-chars // CHARS_PER_TOKEN)
