"""B14: how many planted facts survive a digest, by class, for each strategy at equal size.

The `plain` digest is made first; `sampled` gets its length as its cap, so it is never the longer
one. Beside them, the same number of characters from the text's head, and from both its ends.

    python -m bench.budget_retention

Source: specification B14.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from bench.budget_outputs import CLASSES, TEXT_MIDDLE, OutputMaker, Planted
from reprise.context.digest import digest_text
from reprise.context.text_cut import cut_middle
from reprise.model.settings import ContextBudgetSettings, DigestStrategy

SEED = 14
OF_EACH_KIND = 25
CAP_CHARS = 12_000
CAP_CHARS_MIN = 100

Shares = Mapping[str, Mapping[str, float]]
"""Strategy → class → share of its facts that survive."""


def measure_retention(of_each_kind: int = OF_EACH_KIND) -> bool:
    """Print the table; answer whether `sampled` does what the specification asks of it."""
    outputs = OutputMaker(SEED).all_kinds(of_each_kind)
    digests = {name: [make(output.text) for output in outputs] for name, make in _makers().items()}
    shares = {name: _shares(outputs, made) for name, made in digests.items()}
    chars = sum(len(output.text) for output in outputs)
    print(f"Facts that survive, {len(outputs)} outputs, {chars:,} characters, cap {CAP_CHARS:,}")
    print()
    print("| class | " + " | ".join(shares) + " |")
    print("| --- |" + " ---: |" * len(shares))
    sizes = [sum(map(len, digests[name])) / chars for name in shares]
    print("| size, of the whole | " + " | ".join(f"{size:.1%}" for size in sizes) + " |")
    for kind in (*CLASSES, TEXT_MIDDLE):
        print(f"| {kind} | " + " | ".join(f"{shares[name][kind]:.1%}" for name in shares) + " |")
    means = [mean(shares[name][kind] for kind in CLASSES) for name in shares]
    print(
        "| **mean, the middle of texts apart** | "
        + " | ".join(f"{share:.1%}" for share in means)
        + " |"
    )
    print()
    return _verdict(shares)


def _verdict(shares: Shares) -> bool:
    plain, sampled = (
        {kind: shares[name][kind] for kind in CLASSES} for name in ("plain", "sampled")
    )
    verdicts = {
        "sampled keeps some of every class": min(sampled.values()) > 0,
        "sampled keeps more on average": mean(sampled.values()) > mean(plain.values()),
        "sampled keeps at least a third of what plain keeps, in every class": all(
            sampled[kind] >= plain[kind] / 3 for kind in CLASSES
        ),
    }
    for text, holds in verdicts.items():
        print(f"B14 {text}: {'reached' if holds else 'NOT reached'}")
    return all(verdicts.values())


def _makers() -> dict[str, Callable[[str], str]]:
    return {
        "plain": _plain,
        "sampled": lambda text: _digest(text, DigestStrategy.SAMPLED, _cap(text)),
        "head alone": lambda text: text[: _cap(text)],
        "both ends": lambda text: cut_middle(text, _cap(text)),
    }


def _plain(text: str) -> str:
    return _digest(text, DigestStrategy.PLAIN, CAP_CHARS)


def _cap(text: str) -> int:
    return max(CAP_CHARS_MIN, len(_plain(text)))


def _digest(text: str, strategy: DigestStrategy, cap: int) -> str:
    knobs = ContextBudgetSettings(digest_strategy=strategy, max_digested_step_chars=cap)
    return digest_text(text, knobs)


def _shares(outputs: Sequence[Planted], digests: Sequence[str]) -> dict[str, float]:
    shares = {}
    for kind in (*CLASSES, TEXT_MIDDLE):
        found = [
            fact in digest
            for output, digest in zip(outputs, digests, strict=True)
            for fact in output.facts[kind]
        ]
        shares[kind] = mean(found)
    return shares


if __name__ == "__main__":
    sys.exit(0 if measure_retention() else 1)
