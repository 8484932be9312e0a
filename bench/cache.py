"""P2 to P4: the step cache against the least that it can cost, and beside other Python caches.

Prints tables and verdicts. Each table's rows run in turns in one run, and medians are compared. The
peers are installed into an environment of their own on the first use of a folder; one that cannot
be installed or run is said so in its row.

    python -m bench.cache [--quick] [--no-peers] [--peers-dir FOLDER]

To add a peer: its requirement and a file in bench/cache_peers/ (see there).

Source: specification P2 to P4, R1, R4.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.cache_limits import measure_limits
from bench.cache_peers.chains import compare_chains
from bench.cache_peers.environment import PeerEnvironment
from bench.cache_peers.probes import compare_behaviour
from bench.interleaved import cores


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    repetitions: int
    """Turns of the tables of one hit and one store."""
    many: int
    """Entries of the large store."""
    chains: int
    """Turns of the chain of eleven."""


FULL = Effort(repetitions=300, many=100_000, chains=7)
QUICK = Effort(repetitions=100, many=10_000, chains=3)


def main() -> int:
    """Run the bench; return 0 when the goals are reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer turns, 10,000 entries, no behaviour table"
    )
    parser.add_argument("--no-peers", action="store_true", help="measure the engine alone")
    parser.add_argument("--peers-dir", type=Path, help="where the peers are installed and kept")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{cores()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        limits = folder / "limits"
        limits.mkdir()
        ratios = measure_limits(limits, repetitions=effort.repetitions, many=effort.many)
        print()
        print(*ratios, sep="\n", flush=True)
        if not arguments.no_peers:
            peers = PeerEnvironment((arguments.peers_dir or folder / "peers").absolute())
            peers.install()
            (folder / "chains").mkdir()
            with peers.prefect_server(folder / "prefect"):
                compare_chains(folder / "chains", peers, repetitions=effort.chains)
                if not arguments.quick:
                    compare_behaviour(folder / "behaviour", peers)
    return 0 if all(ratio.reached for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
