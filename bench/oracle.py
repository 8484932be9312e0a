"""R1: stale answers over random sequences of edits, cached against uncached.

    python -m bench.oracle [--sequences 10000] [--processes 2] [--seed N]
    python -m bench.oracle --mutants

Runs the state machine of tests/oracle/machine.py with random seeds, prints what was checked, and
for each wrong answer a program that shows it, cut down to what it needs; the exit code is 1 then.
With `--mutants` the cache is broken on purpose in each way that tests/oracle/mutants.py knows, and
the verdict is whether the machine finds them all.

Source: specification R1, C18, P12.
"""

import argparse
import logging
import multiprocessing
import random
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.oracle.machine import CacheOracle, Tally, run_sequences
from tests.oracle.mutants import MUTANTS, is_found

CHUNK = 50
"""Sequences between two reports of a process."""
MUTANT_SEQUENCES = 500


@dataclass(frozen=True)
class Chunk:
    """What a process did with one seed."""

    tally: Tally
    cpu_seconds: float
    failure: str


def main() -> int:
    """Run the bench; return 0 when the goal is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--mutants", action="store_true")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)
    # Spawned: a worker that is forked from threads may inherit a lock that nobody gives back.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        if arguments.mutants:
            return _mutants(pool)
        counts = [CHUNK] * (arguments.sequences // CHUNK)
        counts += [arguments.sequences % CHUNK] * (arguments.sequences % CHUNK > 0)
        print(f"seed {arguments.seed}", flush=True)
        seeds = range(arguments.seed, arguments.seed + CHUNK * len(counts), CHUNK)
        return _report(pool.map(_run, seeds, counts), arguments.sequences)


def _run(number: int, count: int) -> Chunk:
    logging.disable(logging.ERROR)
    CacheOracle.tally = Tally()
    failure, start = "", time.process_time()
    try:
        run_sequences(CacheOracle, number, count)
    except Exception as error:  # noqa: BLE001 - Whatever it is, it is the finding.
        failure = f"seed {number}: " + "".join(traceback.format_exception(error, limit=-3))
    return Chunk(CacheOracle.tally, time.process_time() - start, failure)


def _report(chunks: Iterator[Chunk], asked: int) -> int:
    tally, cpu_seconds, failures = Tally(), 0.0, 0
    start = told = time.monotonic()
    for chunk in chunks:
        tally.add(chunk.tally)
        cpu_seconds += chunk.cpu_seconds
        if chunk.failure:
            failures += 1
            print(chunk.failure, flush=True)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{tally.sequences} of {asked}, {failures} wrong", file=sys.stderr, flush=True)
    print(
        f"{tally.sequences:,} sequences ({tally.on_disk:,} with stores on disk),"
        f" {tally.runs:,} runs, {tally.steps:,} steps compared, {tally.hits:,} of them hits"
        f" ({tally.hits / max(1, tally.steps):.0%}), {tally.faults:,} faults injected,"
        f" {cpu_seconds:,.0f} CPU seconds in {time.monotonic() - start:,.0f} s\n"
        f"stale answers, wrong forecasts, needless runs: {failures} (goal: 0):"
        f" {'not reached' if failures else 'reached'}"
    )
    return 1 if failures else 0


def _mutants(pool: ProcessPoolExecutor) -> int:
    missed = 0
    counts = [MUTANT_SEQUENCES] * len(MUTANTS)
    for name, after in zip(MUTANTS, pool.map(is_found, MUTANTS, counts), strict=True):
        missed += after is None
        print(f"{name}: {'MISSED' if after is None else f'found after {after}'}", flush=True)
    print(f"{len(MUTANTS) - missed} of {len(MUTANTS)} broken caches found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
