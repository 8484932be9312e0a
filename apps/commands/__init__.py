"""The subcommands of `reprise`, one file each, and how their errors reach a person.

Source: specification, exit codes; STYLE section 7.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping

from apps.commands import project, results, run, ui, workflow
from reprise.errors import BadInput, Cancelled, RepriseError

COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "project": project.main,
    "workflow": workflow.main,
    "run": run.main,
    "results": results.main,
    "ui": ui.main,
}


def run_command(arguments: argparse.Namespace) -> int:
    """Run a subcommand; return its exit code."""
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stderr
    )
    try:
        return COMMANDS[arguments.command](arguments)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Cancelled:
        print("interrupted", file=sys.stderr)
        return 130
    except RepriseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
