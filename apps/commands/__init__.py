"""The subcommands of `reprise`, one file each, and how their errors reach a person.

Source: specification, exit codes; STYLE section 7.
"""

import argparse
import importlib
import json
import logging
import sys
from collections.abc import Mapping

from apps.commands.tables import printable
from reprise.errors import BadInput, Cancelled, RepriseError

COMMANDS: Mapping[str, str] = {
    "project": "apps.commands.project",
    "workflow": "apps.commands.workflow",
    "run": "apps.commands.run",
    "plan": "apps.commands.plan",
    "explain": "apps.commands.explain",
    "sandbox": "apps.commands.sandbox",
    "results": "apps.commands.results",
    "savings": "apps.commands.savings",
    "cache": "apps.commands.cache",
    "ui": "apps.commands.ui",
    "user": "apps.commands.user",
    "api": "apps.commands.api",
}
"""Command → the module that has its `main`; imported when it is called."""


TELLS_ITSELF = ("run",)
"""Commands that print their own object when they fail, with `--json`."""


def run_command(arguments: argparse.Namespace) -> int:
    """Run a subcommand; return its exit code."""
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stderr
    )
    command = importlib.import_module(COMMANDS[arguments.command])
    try:
        code: int = command.main(arguments)
    except RepriseError as error:
        if getattr(arguments, "json", False) and arguments.command not in TELLS_ITSELF:
            print(json.dumps({"error": str(error)}))
        return tell_error(error)
    return code


def tell_error(error: RepriseError) -> int:
    """Print an error for a person; return the exit code that goes with it."""
    if isinstance(error, Cancelled):
        print("interrupted", file=sys.stderr)
        return 130
    # A definition file may have several problems, a line each.
    lines = [printable(line) for line in str(error).splitlines()]
    print("error: " + "\n".join(lines), file=sys.stderr)
    return 2 if isinstance(error, BadInput) else 1
