"""`reprise run WORKFLOW PROJECT`: live, in this process, as a recorded Dagster run."""

import argparse
import json
import sys

from apps.commands.summary import summary_text
from apps.instance import open_instance
from apps.launch import Launch, Launcher, RunSummary
from apps.progress import RunProgress
from apps.providers import check_providers
from apps.stop_signals import StopSignals
from pipelines.compile import check_served
from pipelines.definitions import Wiring
from pipelines.run_options import step_modes
from reprise.errors import Cancelled, RepriseError
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand; with `--json` an object is printed whatever happens."""
    try:
        wiring = Wiring(load_settings())
        launch = _launch(wiring, arguments)
        try:
            with StopSignals() as stops:
                with stops.held():
                    instance = open_instance(wiring.settings)
                with instance:
                    summary = Launcher(wiring, instance, stops).run(launch, RunProgress())
        finally:
            wiring.close()
    except (RepriseError, KeyboardInterrupt) as error:
        if arguments.json:
            print(json.dumps(_no_run(arguments, error).as_json()))
        raise
    if arguments.json:
        print(json.dumps(summary.as_json()))
    else:
        print(summary_text(summary, wiring.objects.url))
    return _exit(summary)


def _launch(wiring: Wiring, arguments: argparse.Namespace) -> Launch:
    """Return what is to be run.

    Raises:
        BadInput: Workflow, project or provider are not there; nothing has run then.
    """
    workflow = wiring.definitions.workflow(arguments.workflow)
    check_served(workflow)
    project = wiring.ingest.require(arguments.project)
    check_providers(wiring, workflow, arguments.provider)
    steps = ",".join(arguments.step)
    step_modes(steps, workflow)
    return Launch(
        workflow,
        project.name,
        arguments.request,
        arguments.cache,
        arguments.provider,
        steps,
        wiring.behalf.command_line_user(),
    )


def _no_run(arguments: argparse.Namespace, error: BaseException) -> RunSummary:
    stopped = isinstance(error, KeyboardInterrupt | Cancelled)
    return RunSummary(
        run_id=None,
        workflow_id=arguments.workflow,
        project=arguments.project,
        status="cancelled" if stopped else "failed",
        seconds=0.0,
        records=(),
        error=None if stopped else str(error),
    )


def _exit(summary: RunSummary) -> int:
    if summary.status == "succeeded":
        return 0
    if summary.status == "cancelled":
        print("interrupted", file=sys.stderr)
        return 130
    print(f"error: {summary.error}", file=sys.stderr)
    return 1
