"""The prompt-context budget: which prior outputs a prompt holds whole, as digests, or not at all.

When everything fits, the prompt is the plain joining. When it does not, the latest outputs stay
whole and each older one becomes its digest; when that does not fit either, the oldest ones leave
their header and a line. What stays whole is never cut, so a prompt may be longer than its budget.

A prompt is composed once for a step and goes from old to new, digests first. A digest depends on
its output and the settings alone, and outputs are dropped in batches: from step to step the head of
a prompt stays the same, byte for byte, and a provider's prefix cache keeps its worth.

Source: specification B1 to B5, B7, B10, B13; research, provider prefix caching, rules a to d.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reprise.context.digest import digest_text
from reprise.model.budget import CHARS_PER_TOKEN, BudgetedEntry, BudgetReport, Treatment
from reprise.model.settings import ContextBudgetSettings

SEPARATOR = "\n\n"

BATCHES = 8
"""Outputs are dropped so that at least this part of the budget gets free at once: the next ones do
not move the head again (research, rule d)."""

ANSWER_PART = 4
"""This part of a model's context is left for its answer and for what its tools give."""

DIGESTS_IN_CONTEXT = 16
"""So many digests fit into a model's context."""

DIGEST_CHARS_MIN = 200

MEMO_CHARS_MAX = 32 * 2**20


@dataclass(frozen=True)
class PriorText:
    """A prior output as the text that a prompt shows."""

    order: int
    """The step's order."""
    label: str
    """The step's label."""
    text: str
    """The output as text."""
    digest: str
    """Digest of what the text was made from; equal ones mean equal texts."""

    @property
    def header(self) -> str:
        """The line above it."""
        return f"## Step {self.order}: {self.label}\n"


@dataclass(frozen=True)
class ComposedInput:
    """The prior outputs of a prompt in one text."""

    text: str
    report: BudgetReport | None = None
    """What the budget did; None when it changed nothing."""


@dataclass(frozen=True)
class ModelRoom:
    """What a model can hold besides the prior outputs."""

    context_tokens: int
    """Its whole context."""
    other_chars: int
    """Characters of system prompt, tools, request and task."""


class DigestMemo:
    """Digests by output and settings, so that each is made once in a process.

    Bounded; the least recently used go. Nothing is kept on disk: making a digest anew takes about
    as long as parsing the output, and a run that is all hits makes one for each output at most.
    """

    def __init__(self, *, chars_max: int = MEMO_CHARS_MAX) -> None:
        self.made = 0
        """How many digests were made."""
        self._chars_max = chars_max
        self._chars = 0
        self._digests: OrderedDict[tuple[str, ContextBudgetSettings], str] = OrderedDict()
        self._lock = threading.Lock()

    def digest_of(self, prior: PriorText, settings: ContextBudgetSettings) -> str:
        """Return the digest of an output's text."""
        # The rest of the settings does not matter to a digest.
        of_digest = settings.model_copy(
            update={"enabled": True, "max_input_chars": 0, "recent_steps_verbatim": 0}
        )
        key = (prior.digest, of_digest)
        # Held while one is made: the work never lets another thread go on anyway.
        with self._lock:
            if key in self._digests:
                self._digests.move_to_end(key)
                return self._digests[key]
            made = digest_text(prior.text, settings)
            self.made += 1
            self._digests[key] = made
            self._chars += len(made)
            while self._chars > self._chars_max and len(self._digests) > 1:
                self._chars -= len(self._digests.popitem(last=False)[1])
            return made


class ContextBudget:
    """The budget that all steps share.

    Args:
        settings: The knobs.
        memo: Digests that were made before.
    """

    def __init__(self, settings: ContextBudgetSettings, memo: DigestMemo | None = None) -> None:
        self.settings = settings
        self.memo = DigestMemo() if memo is None else memo

    def compose(self, prior: Sequence[PriorText], settings: ContextBudgetSettings) -> ComposedInput:
        """Return prior outputs joined under their headers, within the budget.

        Args:
            prior: The outputs, by order.
            settings: The knobs, perhaps those of a small model (`settings_for`).
        """
        parts = [entry.header + entry.text for entry in prior]
        chars = _joined_chars(parts)
        if not settings.enabled or not 0 < settings.max_input_chars < chars:
            return ComposedInput(SEPARATOR.join(parts))
        return _budgeted(prior, chars, settings, self.memo.digest_of)

    def settings_for(self, room: ModelRoom | None) -> ContextBudgetSettings:
        """Return the knobs for a model whose context is small; the same ones where it is not.

        The cap leaves room for what else is in its context; digests get shorter with the context,
        whatever else is in it, so that they stay the same from agent to agent.
        """
        mine = self.settings
        if room is None or not mine.enabled or mine.max_input_chars <= 0:
            return mine
        context_chars = room.context_tokens * CHARS_PER_TOKEN
        cap = max(1, context_chars - context_chars // ANSWER_PART - room.other_chars)
        digest_cap = max(DIGEST_CHARS_MIN, context_chars // DIGESTS_IN_CONTEXT)
        return mine.model_copy(
            update={
                "max_input_chars": min(mine.max_input_chars, cap),
                "max_digested_step_chars": min(mine.max_digested_step_chars, digest_cap),
            }
        )


def _budgeted(
    prior: Sequence[PriorText],
    chars: int,
    settings: ContextBudgetSettings,
    digest_of: Callable[[PriorText, ContextBudgetSettings], str],
) -> ComposedInput:
    older = max(0, len(prior) - settings.recent_steps_verbatim)
    texts = [entry.text for entry in prior]
    for place in range(older):
        texts[place] = digest_of(prior[place], settings)
    dropped = _dropped(prior, texts, older, settings.max_input_chars)
    for place in range(dropped):
        texts[place] = _left_out(prior[place])
    text = SEPARATOR.join(entry.header + shown for entry, shown in zip(prior, texts, strict=True))
    entries = tuple(
        BudgetedEntry(
            order=entry.order,
            label=entry.label,
            treatment=_treatment(entry.text, shown, is_dropped=place < dropped),
            chars_before=len(entry.text),
            chars_after=len(shown),
        )
        for place, (entry, shown) in enumerate(zip(prior, texts, strict=True))
    )
    report = BudgetReport(
        settings=settings,
        chars_before=chars,
        chars_after=len(text),
        entries=entries,
    )
    return ComposedInput(text, report)


def _dropped(prior: Sequence[PriorText], texts: Sequence[str], older: int, cap: int) -> int:
    """Return how many of the oldest outputs must go, whole batches of them.

    Where the batches end depends on the outputs themselves, so it stays when a step comes.
    """
    over = _joined_chars([e.header + text for e, text in zip(prior, texts, strict=True)]) - cap
    freed = 0
    for place in range(older):
        if over <= 0 and freed == 0:
            return place
        gain = len(texts[place]) - len(_left_out(prior[place]))
        over -= gain
        freed += gain
        if freed >= cap // BATCHES:
            freed = 0
    return older


def _left_out(entry: PriorText) -> str:
    """Return the line that stands for an output that is dropped; a shorter output stays."""
    line = f"…(+{len(entry.text)} chars omitted by context budget)"
    return line if len(line) < len(entry.text) else entry.text


def _treatment(text: str, shown: str, *, is_dropped: bool) -> Treatment:
    if shown == text:
        return Treatment.KEPT
    return Treatment.DROPPED if is_dropped else Treatment.DIGESTED


def _joined_chars(parts: Sequence[str]) -> int:
    return sum(map(len, parts)) + len(SEPARATOR) * max(0, len(parts) - 1)
