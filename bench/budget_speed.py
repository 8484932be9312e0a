"""P8: the digest's speed beside reading the same JSON and writing it again.

    python -m bench.budget_speed

Source: specification P8.
"""

import json
from functools import partial

import orjson

from bench.budget_outputs import OutputMaker
from bench.interleaved import Cost, costs_in_turns, is_crowded
from reprise.context.digest import digest_text
from reprise.model.settings import ContextBudgetSettings, DigestStrategy

SEED = 8
SCENES = (2_000, 250, 60, 15)
GOAL = 0.9
BASE = "orjson, parse and dump"


def measure_speed(repetitions: int = 15) -> bool:
    """Print the table; answer whether the digest of the largest output is quick enough."""
    clock = "CPU" if is_crowded() else "wall"
    print(f"One digest beside orjson's parse and dump of the same text; {clock} time")
    print()
    print("| characters | work | ms | speed |")
    print("| ---: | --- | ---: | ---: |")
    speeds = []
    for scenes in SCENES:
        text = OutputMaker(SEED).analysis(scenes).text
        works = {
            BASE: partial(_rewritten, text),
            "digest, plain": partial(digest_text, text, ContextBudgetSettings()),
            "digest, sampled": partial(
                digest_text, text, ContextBudgetSettings(digest_strategy=DigestStrategy.SAMPLED)
            ),
            "json, parse and dump": partial(_rewritten_slowly, text),
        }
        costs = costs_in_turns(works, repetitions=repetitions)
        for name, cost in costs.items():
            speed = costs[BASE].ratio(cost)
            print(f"| {len(text):,} | {name} | {_ms(cost):.2f} | {speed:.2f} |")
            if scenes == SCENES[0] and name.startswith("digest"):
                speeds.append(speed)
    reached = min(speeds) >= GOAL
    print()
    print(
        f"P8 a digest of {SCENES[0]:,} scenes at least {GOAL} times as quick:"
        f" {min(speeds):.2f} {'reached' if reached else 'NOT reached'}"
    )
    return reached


def _rewritten(text: str) -> str:
    return orjson.dumps(orjson.loads(text)).decode()


def _rewritten_slowly(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False)


def _ms(cost: Cost) -> float:
    return 1_000 * (cost.cpu_seconds if is_crowded() else cost.wall_seconds)


if __name__ == "__main__":
    measure_speed()
