"""The command `reprise`: what it takes, and which exit code it gives.

Exit codes: 0 done; 1 the run or the work failed; 2 bad input; 130 interrupted. Subcommands import
what they need when they are called, so that `reprise --help` is quick (specification P11). To add
one: a parser here, a module in apps/commands, its page in docs/reference.
"""

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    Called without `argv` it is the process's own command line, and an interrupt ends the process.
    """
    _prepare_streams()
    if argv is None:
        # The same as Ctrl-C: a supervisor's stop ends processes and leaves no partial file either.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = _guarded(argv)
    if argv is None and code == EXIT_INTERRUPTED:
        # A step's thread may be deep in foreign code that knows no interrupt (a speech model);
        # the interpreter would wait for it, or crash while it goes away beneath it.
        os._exit(code)
    return code


class _UsageError(Exception):
    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    """Tells a wrong word as any other error is told."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(message, self.format_usage())


def _guarded(argv: Sequence[str] | None) -> int:
    try:
        code = _dispatch(build_parser().parse_args(argv))
        sys.stdout.flush()
    except _UsageError as error:
        if "--json" in (sys.argv[1:] if argv is None else argv):
            print(json.dumps({"error": str(error)}), flush=True)
        print(f"{error.usage}error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr, flush=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone, as `head` does; there is nobody to tell.
        _drop_output()
        return EXIT_OK
    except OSError as error:
        _drop_output()
        where = f" {error.filename!r}" if error.filename else ""
        print(f"error: {error.strerror or error}{where}", file=sys.stderr)
        return EXIT_FAILED
    return code


def _prepare_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # File names may hold what a terminal's encoding has no letters for.
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still buffered nowhere, or the interpreter would try again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="reprise",
        description="Footage and a brief in, finished films out; the second run is nearly free.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _project_parser(commands.add_parser("project", help="projects and their files"))
    _workflow_parser(commands.add_parser("workflow", help="workflows and their files"))
    _run_parser(commands.add_parser("run", help="run a workflow on a project"))
    _run_parser(
        commands.add_parser(
            "plan", help="what a run would do; exits with 3 when some step would run"
        )
    )
    explain = commands.add_parser("explain", help="why a step came from the cache, or did not")
    explain.add_argument("run", metavar="RUN", help="run id, or its beginning")
    explain.add_argument("step", metavar="STEP", help="the step's order or label")
    explain.add_argument("--json", action="store_true", help="print one JSON object")
    _sandbox_parser(commands.add_parser("sandbox", help="files that agents of a run worked on"))
    _cache_parser(commands.add_parser("cache", help="entries of the step cache"))
    savings = commands.add_parser("savings", help="what the cache saved so far")
    savings.add_argument("--by", choices=("workflow", "project", "day"), default="workflow")
    savings.add_argument("--json", action="store_true", help="print one JSON object")
    _results_parser(commands.add_parser("results", help="latest outputs of a workflow"))
    ui = commands.add_parser("ui", help="open the Dagster web server and daemon")
    ui.add_argument("--port", type=int, default=3000, help="port on localhost (default: 3000)")
    api = commands.add_parser("api", help="serve the Inference API: searches for signed-in users")
    api.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    api.add_argument("--port", type=int, default=8420, help="port; 0: any (default: 8420)")
    _user_parser(commands.add_parser("user", help="people, for calls in their name"))
    return parser


def _project_parser(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add files or folders; makes the project if needed")
    add.add_argument("name", metavar="NAME")
    add.add_argument("paths", metavar="PATH", nargs="+")
    add.add_argument("--no-index", action="store_true", help="leave the files out of the search")
    index = actions.add_parser("index", help="index what is not indexed yet, with summaries")
    index.add_argument("name", metavar="NAME")
    index.add_argument("--again", action="store_true", help="make all of it anew")
    actions.add_parser("list", help="all projects").add_argument("--json", action="store_true")
    show = actions.add_parser("show", help="a project's files")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true")
    own = actions.add_parser("own", help="give a project to a user")
    own.add_argument("name", metavar="NAME")
    own.add_argument("user", metavar="USER", nargs="?", help="id or e-mail address; none: nobody")
    remove = actions.add_parser("remove", help="remove files, or the whole project")
    remove.add_argument("name", metavar="NAME")
    remove.add_argument("files", metavar="FILE", nargs="*")


def _user_parser(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add a user")
    add.add_argument("email", metavar="EMAIL")
    add.add_argument("--id", metavar="ID", help="the user's id; left out: one is made")
    add.add_argument("--admin", action="store_true", help="may read every project")
    actions.add_parser("list", help="all users").add_argument("--json", action="store_true")
    remove = actions.add_parser("remove", help="remove a user")
    remove.add_argument("user", metavar="USER", help="id or e-mail address")


def _workflow_parser(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="all workflows").add_argument("--json", action="store_true")
    show = actions.add_parser("show", help="a workflow's steps")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true")
    check = actions.add_parser("check", help="check workflow and agent files")
    check.add_argument("files", metavar="FILE", nargs="*")
    actions.add_parser("schema", help="print the JSON Schema of workflow files")


def _run_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workflow", metavar="WORKFLOW")
    parser.add_argument("project", metavar="PROJECT")
    parser.add_argument("--request", metavar="TEXT", help="what you want, in your own words")
    parser.add_argument(
        "--cache",
        choices=("use", "refresh", "bypass", "readonly"),
        default="use",
        help="use earlier results; refresh: execute and overwrite; bypass: leave the cache alone;"
        " readonly: look up, write nothing",
    )
    parser.add_argument(
        "--step",
        metavar="STEP=MODE",
        action="append",
        default=[],
        help="cache mode of one step, by order or label, such as 4=refresh; may be repeated",
    )
    parser.add_argument("--provider", metavar="ID", help="model provider of the agents")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _sandbox_parser(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="the files after a step, or the text of one")
    diff = actions.add_parser("diff", help="what a step changed")
    export = actions.add_parser("export", help="copy the files to a folder")
    for action in (show, diff, export):
        action.add_argument("run", metavar="RUN", help="run id, or its beginning")
        action.add_argument("step", metavar="STEP", help="the step's order or label")
    export.add_argument("target", metavar="TARGET", help="a new or empty folder")
    for action in (show, diff):
        action.add_argument("path", metavar="PATH", nargs="?", help="one file")
    for action in (show, export):
        action.add_argument("--before", action="store_true", help="as they were before the step")
    for action in (show, diff):
        action.add_argument("--json", action="store_true", help="print one JSON object")


def _cache_parser(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="entries, the newest first")
    _entry_filters(listing)
    listing.add_argument("--json", action="store_true")
    show = actions.add_parser("show", help="one entry")
    pin = actions.add_parser("pin", help="keep an entry from expiring and from being evicted")
    for one in (show, pin):
        one.add_argument("key", metavar="KEY", help="its key, or the first digits of it")
        one.add_argument("--project", metavar="NAME")
    show.add_argument("--json", action="store_true")
    pin.add_argument("--off", action="store_true", help="no longer")
    stats = actions.add_parser("stats", help="how many, how large, how often used")
    stats.add_argument("--project", metavar="NAME")
    stats.add_argument("--json", action="store_true")
    invalidate = actions.add_parser("invalidate", help="remove entries, so that their steps run")
    _entry_filters(invalidate)
    invalidate.add_argument("--all", action="store_true", help="all entries")
    invalidate.add_argument("--dry-run", action="store_true", help="only say how many")
    actions.add_parser("prune", help="remove expired entries, and those over a project's caps")


def _entry_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="NAME")
    parser.add_argument("--workflow", metavar="ID")
    parser.add_argument("--step", metavar="LABEL")
    parser.add_argument("--agent", metavar="ID")
    parser.add_argument("--file", metavar="NAME", help="that saw this project file")
    parser.add_argument("--older-than", metavar="AGE", help="made longer ago: 30m, 36h, 7d")
    parser.add_argument("--newer-than", metavar="AGE", help="made since: 30m, 36h, 7d")


def _results_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workflow", metavar="WORKFLOW")
    parser.add_argument("project", metavar="PROJECT")
    parser.add_argument("--copy", metavar="DIR", help="copy outputs and artifacts to a folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.version:
        # The installed version; the metadata reader is not needed for anything else.
        from importlib.metadata import version

        print(f"reprise {version('reprise-engine')}")
        return EXIT_OK
    if arguments.command is None:
        build_parser().print_help()
        return EXIT_BAD_INPUT
    # Commands import pydantic and Dagster, which `--help` must not pay for (specification P11).
    from apps.commands import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
