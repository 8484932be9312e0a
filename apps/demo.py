"""`bin/demo`: the sample project, made into a promo twice, and what the second run saved.

Uses the embedded default throughout: a home in `.reprise/`, the heuristic provider, no key, no
network.
"""

import argparse
import sys
from pathlib import Path

from apps.commands import tell_error
from apps.commands.summary import compare_text, steps_table, summary_text
from apps.instance import open_instance
from apps.launch import Launch, Launcher, RunSummary
from apps.progress import RunProgress
from apps.stop_signals import StopSignals
from pipelines.definitions import Wiring
from pipelines.ingest import Change
from reprise.errors import RepriseError
from resources.settings import data_path, load_settings

WORKFLOW = "quick-win-promo"
PROJECT = "sample"


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(prog="bin/demo", description=__doc__)
    parser.add_argument("--request", metavar="TEXT", help="what you want, in your own words")
    arguments = parser.parse_args()
    try:
        return _demo(arguments.request)
    except RepriseError as error:
        return tell_error(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _demo(request: str | None) -> int:
    wiring = Wiring(load_settings())
    folder = _sample_folder()
    print(f"Project {PROJECT!r}: the files of {folder}")
    _add_sample(wiring, folder)
    launch = Launch(wiring.definitions.workflow(WORKFLOW), PROJECT, request)
    summaries: list[RunSummary] = []
    with StopSignals() as stops, open_instance(wiring.settings) as instance:
        launcher = Launcher(wiring, instance, stops)
        for title in ("First run", "Second run, nothing changed"):
            print(f"\n{title}: {WORKFLOW} on {PROJECT}", flush=True)
            summary = launcher.run(launch, RunProgress())
            if summary.status != "succeeded":
                print(f"error: {summary.error or summary.status}", file=sys.stderr)
                return 130 if summary.status == "cancelled" else 1
            summaries.append(summary)
            print()
            if len(summaries) == 1:
                print(steps_table(summary.records))
    first, second = summaries
    print(summary_text(second, wiring.objects.url))
    print()
    print(compare_text(first, second))
    print(
        "\nOpen the UI with `.venv/bin/reprise ui` and then http://127.0.0.1:3000"
        f"\nTake the film out with `.venv/bin/reprise results {WORKFLOW} {PROJECT} --copy DIR`"
    )
    return 0


def _sample_folder() -> Path:
    folders = sorted(path for path in data_path("examples/projects").iterdir() if path.is_dir())
    return folders[0]


def _add_sample(wiring: Wiring, folder: Path) -> None:
    def tell(name: str, change: Change) -> None:
        print(f"  {change.value}  {name}")

    project = wiring.ingest.add(PROJECT, [folder], tell)
    wiring.indexing.index_project(project, footage=False)


if __name__ == "__main__":
    sys.exit(main())
