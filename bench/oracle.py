"""R1: stale answers over random sequences of edits, cached against uncached.

    python -m bench.oracle --sequences 10000 [--first-seed 0] [--store memory|sqlite]

Prints what was checked and every finding, cut down to the edits that it needs; the exit code is 1
when there is one. tests/oracle runs 300 sequences with every test run.

Source: specification R1, C18, P12.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reprise.ports import EntryStore
from resources.sqlite_entry_store import SqliteEntryStore
from tests.oracle.sequences import Tally, findings_of, sequence_of, shortened

REPORT_SECONDS = 60.0
FINDINGS_MAX = 20


def main() -> int:
    """Run the bench; return 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--first-seed", type=int, default=1_000_000)
    parser.add_argument("--store", choices=("memory", "sqlite"), default="memory")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)
    make_entries = _sqlite if arguments.store == "sqlite" else None
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.sequences)
    return _check(seeds, make_entries)


def _sqlite(folder: Path) -> EntryStore:
    return SqliteEntryStore(folder / "step-cache.db")


def _check(seeds: range, make_entries: Callable[[Path], EntryStore] | None) -> int:
    tally, found = Tally(), 0
    start = told = time.monotonic()
    for seed in seeds:
        sequence = sequence_of(seed)
        if findings_of(sequence, tally, make_entries):
            found += 1
            short = shortened(sequence, lambda fewer: bool(findings_of(fewer, None, make_entries)))
            print(f"seed {seed}: {short}")
            for finding in findings_of(short, None, make_entries):
                print(f"    {finding}")
            if found >= FINDINGS_MAX:
                break
        if time.monotonic() - told > REPORT_SECONDS:
            told = time.monotonic()
            print(f"{tally.sequences} sequences, {found} findings", file=sys.stderr, flush=True)
    seconds = time.monotonic() - start
    share = tally.hits / max(1, tally.steps)
    edits = sum(tally.edits.values())
    print(
        f"{tally.sequences} sequences, {edits} edits of {len(tally.edits)} kinds,"
        f" {tally.runs} runs,"
        f" {tally.steps} cached steps of which {share:.0%} hits, {seconds:.0f} s\n"
        f"stale answers, wrong forecasts, needless runs: {found} (goal: 0):"
        f" {'reached' if not found else 'not reached'}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
