"""P1: a warm run of eleven cacheable steps against Dagster running assets of the same shape.

Both run in this process on one SQLite instance, interleaved; the baseline's assets have the same
keys, edges, partition, kinds, metadata and data versions, and empty bodies, under Dagster's own
in-process executor. Medians are compared.

    python -m bench.warm_run [--repetitions 9] [--output-chars 20000]

Source: specification P1.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.definitions.metadata import RawMetadataValue
from dagster._core.execution.api import execute_run_iterator

from pipelines.definitions import Wiring, build_definitions, quiet_beta_notices
from pipelines.partitions import PROJECTS, sync_partitions
from resources.scripted_provider import ScriptedProvider
from resources.settings import Settings

GOAL = 1.15
PROJECT = "bench"
READS: dict[str, list[int]] = {
    "extract": [],
    "analyze": [],
    "brand": [1, 2],
    "audience": [1, 2],
    "hooks": [1, 2],
    "music": [2],
    "script": [1, 2, 3, 4, 5, 6],
    "edit": [1, 2, 3, 4, 5, 6, 7],
    "author": [8],
    "compile": [6, 8],
    "notes": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
}
"""Label of each step and the orders that it reads: 33 reads, 16 edges."""

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def main() -> int:
    """Run the bench; return 0 when the goal is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--output-chars", type=int, default=20_000, help="size of each output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return _bench(Path(folder), arguments.repetitions, arguments.output_chars)


def _bench(root: Path, repetitions: int, output_chars: int) -> int:
    wiring = _wiring(root, output_chars)
    (root / "dagster").mkdir()
    instance = dg.DagsterInstance.local_temp(str(root / "dagster"))
    wiring.projects.add_project(PROJECT, now=wiring.services.clock())
    sync_partitions(instance, wiring.projects)
    job = build_definitions(wiring).resolve_job_def("eleven")
    _run(instance, job)
    empty = _empty_job(instance, job)
    runs: dict[str, Callable[[], dg.DagsterRun]] = {
        "warm run, all hits": lambda: _run(instance, job),
        "empty bodies, in process": lambda: _run(instance, empty),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            start = time.perf_counter()
            done = run()
            seconds[name].append(time.perf_counter() - start)
            if done.status is not dg.DagsterRunStatus.SUCCESS:
                print(f"{name}: the run failed")
                return 1
    hits = sum(r.from_cache for r in wiring.history.of_run(_run(instance, job).run_id))
    print(f"{len(READS)} steps, {hits} hits, outputs of {output_chars} characters\n")
    print(f"{'':28} {'median s':>9} {'min s':>7} {'max s':>7}")
    for name, values in seconds.items():
        print(f"{name:28} {statistics.median(values):9.3f} {min(values):7.3f} {max(values):7.3f}")
    warm, base = (statistics.median(values) for values in seconds.values())
    ratio = warm / base
    verdict = "reached" if ratio <= GOAL else "not reached"
    print(f"\nratio {ratio:.2f}, goal {GOAL}: {verdict}")
    return 0 if ratio <= GOAL and hits == len(READS) else 1


def _wiring(root: Path, output_chars: int) -> Wiring:
    folder = root / "workflows"
    (folder / "prompts").mkdir(parents=True)
    steps = []
    script = {}
    for order, (label, orders) in enumerate(READS.items(), start=1):
        (folder / "prompts" / f"{label}.md").write_text(
            f"---\nagent_type: {label}\noutput_schema_name: o\noutput_schema: {{}}\n---\nAnswer.\n"
        )
        steps.append(
            {
                "order": order,
                "label": label,
                "type": "Agent",
                "agent": label,
                "input_mode": "selected_prior_steps",
                "selected_prior_step_orders": orders,
            }
        )
        words = [f"{label} {number}" for number in range(output_chars // 16)]
        script[label] = [json.dumps({"words": words})]
    (folder / "eleven.yaml").write_text(yaml.safe_dump({"id": "eleven", "steps": steps}))
    wiring = Wiring(Settings(home=root / "home", workflows_dir=folder, provider="scripted"))
    wiring.use_provider("scripted", ScriptedProvider(script))
    return wiring


def _run(instance: dg.DagsterInstance, job: dg.JobDefinition) -> dg.DagsterRun:
    run = instance.create_run_for_job(job, tags={"dagster/partition": PROJECT}, run_config=QUIET)
    list(execute_run_iterator(InMemoryJob(job), run, instance))
    done = instance.get_run_by_id(run.run_id)
    assert done is not None
    return done


class _NoIO(dg.IOManager):
    """Keeps nothing."""

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Do nothing."""

    def load_input(self, context: dg.InputContext) -> None:
        """Do nothing."""


def _empty_job(instance: dg.DagsterInstance, job: dg.JobDefinition) -> dg.JobDefinition:
    """Return a job of assets of the same shape whose bodies only return what was shown before."""
    graph = job.asset_layer.asset_graph
    assets = []
    with quiet_beta_notices():
        for key in graph.toposorted_asset_keys:
            event = instance.get_latest_materialization_event(key)
            assert event is not None
            assert event.asset_materialization is not None
            shown = dict(event.asset_materialization.metadata)
            parents = [parent.path[-1] for parent in graph.get(key).parent_keys]
            assets.append(_empty_asset(key.path[-1], parents, shown))
        return dg.Definitions(
            assets=assets,
            jobs=[dg.define_asset_job("empty")],
            resources={"io_manager": dg.IOManagerDefinition.hardcoded_io_manager(_NoIO())},
            executor=dg.in_process_executor,
        ).resolve_job_def("empty")


def _empty_asset(
    name: str, parents: list[str], shown: Mapping[str, RawMetadataValue]
) -> dg.AssetsDefinition:
    @dg.asset(
        key=dg.AssetKey(["empty", name]),
        ins={parent: dg.AssetIn(key=dg.AssetKey(["empty", parent])) for parent in parents},
        group_name="empty",
        partitions_def=PROJECTS,
        code_version="1",
    )
    def body(**_parents: object) -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(
            value=None, metadata=shown, data_version=dg.DataVersion("0" * 64)
        )

    return body


if __name__ == "__main__":
    sys.exit(main())
