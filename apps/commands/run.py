"""`reprise run WORKFLOW PROJECT`: live, in this process, as a recorded Dagster run."""

import argparse
import json
import sys

from apps.commands.summary import summary_text
from apps.instance import open_instance
from apps.launch import Launch, Launcher, RunSummary
from pipelines.definitions import Wiring, check_served, now
from pipelines.ingest import Ingest
from resources.media_kind import media_kind
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    workflow = wiring.definitions.workflow(arguments.workflow)
    check_served(workflow)
    project = Ingest(wiring.projects, wiring.objects, media_kind, now).require(arguments.project)
    if arguments.provider is not None:
        wiring.provider(arguments.provider)
    launch = Launch(workflow, project.name, arguments.request, arguments.cache, arguments.provider)
    with open_instance(wiring.settings) as instance:
        summary = Launcher(wiring, instance).run(launch, report_line)
    if arguments.json:
        print(json.dumps(summary.as_json()))
    elif summary.status == "succeeded":
        print(summary_text(summary, wiring.objects.url))
    return _exit(summary)


def report_line(line: str) -> None:
    """Print a line of progress."""
    print(f"  {line}", file=sys.stderr, flush=True)


def _exit(summary: RunSummary) -> int:
    if summary.status == "succeeded":
        return 0
    if summary.status == "cancelled":
        print("interrupted", file=sys.stderr)
        return 130
    print(f"error: {summary.error}", file=sys.stderr)
    return 1
