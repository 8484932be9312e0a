"""The work that every cache is given: eleven steps, each a function of all that came before it.

The step itself is almost free, so a warm chain is pure cache cost.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence

STEPS = 11
OUTPUT_CHARS = 20 * 1024

executed: list[int] = []
"""Steps that were really executed in this process."""


def work(order: int, resolved_input: str) -> str:
    """Return about 22 KB of JSON that depend on everything before."""
    executed.append(order)
    seed = hashlib.sha256(f"{order}:{resolved_input}".encode()).hexdigest()
    rows = [
        {"n": n, "id": f"{seed[:16]}{n:06d}", "text": "lorem ipsum " * 3}
        for n in range(OUTPUT_CHARS // 82)
    ]
    return json.dumps({"step": order, "seed": seed, "rows": rows})


def joined(outputs: Sequence[str]) -> str:
    """Return the input of the step after these."""
    return "\n".join(f"## Step {order}\n{output}" for order, output in enumerate(outputs))


def report(run_chain: Callable[[], str]) -> None:
    """Run a chain, timed, and print what the driver reads: one line of JSON."""
    start = time.perf_counter()
    last = run_chain()
    seconds = time.perf_counter() - start
    digest = hashlib.sha256(last.encode()).hexdigest()
    line = {"seconds": seconds, "executed": len(executed), "digest": digest[:16]}
    print("RESULT " + json.dumps(line), flush=True)
