"""What the agent runtime costs beside the least it can, and beside other libraries.

Prints tables and verdicts. Each table's rows run in turns in one run, and medians are compared. The
peers are installed into an environment of their own; one that cannot be installed or run is said so
in its row.

    python -m bench.agents [--quick] [--no-peers] [--peers-dir FOLDER]

Parts: `bench.budget_prompts`, `bench.budget_retention`, `bench.budget_speed` (P8),
`bench.agent_turns` (P9).

Source: specification P8, P9, B14.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.agent_turns import compare_turns, measure_turns
from bench.budget_prompts import measure_prompts
from bench.budget_retention import measure_retention
from bench.budget_speed import measure_speed
from bench.interleaved import cores

MEGABYTES = 8.0
"""The history's size that P9 names."""


def main() -> int:
    """Run the bench; return 0 when the goals are reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--no-peers", action="store_true", help="measure the engine alone")
    parser.add_argument("--peers-dir", type=Path, help="where the peers are installed and kept")
    arguments = parser.parse_args()
    print(f"{cores()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    reached = [
        measure_prompts(),
        measure_retention(),
        measure_speed(5 if arguments.quick else 15),
    ]
    gains = measure_turns(MEGABYTES, repetitions=3 if arguments.quick else 9)
    print()
    print(*gains, sep="\n", flush=True)
    if not arguments.no_peers:
        with tempfile.TemporaryDirectory() as name:
            compare_turns(MEGABYTES, (arguments.peers_dir or Path(name)).absolute())
    return 0 if all(reached) and all(gain.reached for gain in gains) else 1


if __name__ == "__main__":
    sys.exit(main())
