"""Eleven steps, each of which reads all before it: what is sent, with the budget and without.

Two prices: a provider that keeps the beginning of a prompt reads it again at a tenth. Where each
step's agent has a system prompt of its own, which comes first, no step shares a beginning with
another; where one agent runs all steps, they share what is equal.

    python -m bench.budget_prompts

Source: specification B10, B13; research, provider prefix caching.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.budget_outputs import OutputMaker
from reprise.canonical import sha256_hex
from reprise.context.budget import ContextBudget, PriorText
from reprise.model.settings import ContextBudgetSettings

SEED = 11
STEPS = 11
CACHED_PRICE = 0.1
"""A character that the provider has kept, in characters that it has not."""

LAYOUTS: dict[str, dict[str, object]] = {
    "no budget": {"enabled": False},
    "budget, defaults": {},
    "budget, `sampled`": {"digest_strategy": "sampled"},
    "budget, one output whole": {"recent_steps_verbatim": 1},
    "budget of 80,000": {"max_input_chars": 80_000},
}


@dataclass(frozen=True)
class Sent:
    """What eleven prompts took."""

    chars: int
    """Characters of all prompts."""
    shared_units: float
    """The same with what the prompt before began with at a tenth."""
    digests: int
    """Digests that were made."""


def measure_prompts() -> bool:
    """Print the tables; answer whether each output was digested at most once."""
    once = True
    for title, scenes in (("20 to 90 KB", (15, 70)), ("20 to 280 KB", (15, 220))):
        outputs = _outputs(scenes)
        chars = sum(len(output.text) for output in outputs)
        print(f"Eleven outputs of {title}, {chars:,} characters in all")
        print()
        print(
            "| prompts | characters sent | an agent each | one agent, prefix kept | digests made |"
        )
        print("| --- | ---: | ---: | ---: | ---: |")
        for name, knobs in LAYOUTS.items():
            sent = _sent(outputs, ContextBudgetSettings.model_validate(knobs))
            once = once and sent.digests <= STEPS
            print(
                f"| {name} | {sent.chars:,} | {sent.chars / 1e6:.2f} M "
                f"| {sent.shared_units / 1e6:.2f} M | {sent.digests} |"
            )
        print()
    print(f"P8 eleven steps digest each output once: {'reached' if once else 'NOT reached'}")
    return once


def _outputs(scenes: tuple[int, int]) -> list[PriorText]:
    maker, least, most = OutputMaker(SEED), *scenes
    sizes = [least + (most - least) * (place * 7 % STEPS) // (STEPS - 1) for place in range(STEPS)]
    texts = [maker.analysis(size).text for size in sizes]
    return [
        PriorText(order, f"step{order}", text, sha256_hex(text))
        for order, text in enumerate(texts, start=1)
    ]


def _sent(outputs: Sequence[PriorText], knobs: ContextBudgetSettings) -> Sent:
    budget = ContextBudget(knobs)
    # The eleventh output is read by nobody yet; a run's last answer is.
    prompts = [budget.compose(outputs[:read], knobs).text for read in range(1, STEPS + 1)]
    chars = sum(map(len, prompts))
    kept = sum(_chars_alike(before, after) for before, after in pairwise(prompts))
    return Sent(chars, chars - kept * (1 - CACHED_PRICE), budget.memo.made)


def _chars_alike(before: str, after: str) -> int:
    """Return with how many of the same characters two texts begin."""
    alike, differ = 0, min(len(before), len(after)) + 1
    while differ - alike > 1:
        middle = (alike + differ) // 2
        if before[alike:middle] == after[alike:middle]:
            alike = middle
        else:
            differ = middle
    return alike


if __name__ == "__main__":
    measure_prompts()
