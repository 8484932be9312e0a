"""The chain of eleven under every cache: cold and warm, a process each, in turns."""

import json
import shutil
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from bench.cache_peers.environment import HERE, PeerEnvironment, run_program

STEPS = 11
LIMIT = "raw SQLite"
CHAINS = (
    *("no cache", LIMIT, "reprise, cache alone", "reprise, whole step path"),
    *("joblib", "langgraph", "hamilton", "diskcache", "redun", "prefect"),
)
OWN = {"reprise, cache alone": "cache", "reprise, whole step path": "steps"}
"""Chains of the engine, and the mode of engine_chain.py that runs each."""


@dataclass(frozen=True)
class ChainRun:
    """What one process said of its chain."""

    seconds: float
    executed: int
    digest: str


def compare_chains(root: Path, peers: PeerEnvironment, *, repetitions: int) -> None:
    """Print how long a warm chain takes under each cache.

    Args:
        root: An empty folder for the stores.
        peers: The peers' environment.
        repetitions: Turns.
    """
    runs: dict[str, dict[str, list[ChainRun]]] = {name: {"cold": [], "warm": []} for name in CHAINS}
    errors: dict[str, str] = {}
    for _ in range(repetitions):
        for name in CHAINS:
            store = root / "store"
            shutil.rmtree(store, ignore_errors=True)
            for temperature in ("cold", "warm"):
                if name not in errors:
                    _run(name, store, peers, runs[name][temperature], errors)
    print(f"\nA chain of {STEPS} steps, a process each, medians of {repetitions} turns\n")
    print("| cache | cold ms | warm ms | a hit, ms | x raw SQLite | executed | same output |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    warm_limit = _median(runs[LIMIT]["warm"])
    digests = defaultdict(set)
    for name in CHAINS:
        digests[name] = {run.digest for kind in runs[name].values() for run in kind}
    expected = digests["no cache"]
    for name in CHAINS:
        if name in errors:
            print(f"| {name} | could not be run: {errors[name]} | | | | | |")
            continue
        cold, warm = _median(runs[name]["cold"]), _median(runs[name]["warm"])
        executed = f"{runs[name]['cold'][-1].executed} / {runs[name]['warm'][-1].executed}"
        same = "yes" if digests[name] == expected and len(expected) == 1 else "NO"
        times = f"{cold * 1e3:.0f} | {warm * 1e3:.1f} | {warm * 1e3 / STEPS:.2f}"
        print(f"| {name} | {times} | {warm / warm_limit:.1f} | {executed} | {same} |")


def _run(
    name: str, store: Path, peers: PeerEnvironment, runs: list[ChainRun], errors: dict[str, str]
) -> None:
    why = peers.why_missing(name)
    if why is not None:
        errors[name] = why
        return
    command: list[str | Path]
    if name in OWN:
        command = [sys.executable, "-m", "bench.engine_chain", OWN[name], store]
    else:
        command = [peers.python, HERE / "peers.py", name, store]
    out, error = run_program(command, store)
    lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
    if lines:
        runs.append(ChainRun(**json.loads(lines[-1].removeprefix("RESULT "))))
    else:
        errors[name] = error or "it said nothing"


def _median(runs: list[ChainRun]) -> float:
    return statistics.median(run.seconds for run in runs) if runs else float("nan")
