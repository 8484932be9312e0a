"""The processes behind `reprise ui`: code server, web server, daemon, started and ended together.

Each has a process group of its own, so that Ctrl-C in the terminal reaches `reprise ui` alone and
it ends them in order: no run is launched any more, runs at work are stopped and kept as cancelled,
then their server goes. On Linux the kernel ends them too when `reprise ui` itself is killed.

`dagster dev` does the same for developers; it warns about the clone's `dagster.yaml`, leaves its
code server behind on SIGTERM and keeps interrupted runs as failed.

Source: specification D16, D18.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import dagster as dg
import yaml

import pipelines
from apps.instance import LOCATION_NAME
from reprise.errors import RepriseError
from resources import limited_exec

ROOT = Path(pipelines.__file__).parents[1]
"""The folder of this engine's packages: a clone, or where the wheel is installed."""

START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 25.0
"""A stopped run waits up to 15 s for its steps, and ffmpeg gets 5 s of them to end."""
POLL_SECONDS = 0.2

GRPC_INFO_TAG = ".dagster/grpc_info"
"""Dagster's run tag that says which code server the run's process belongs to."""

IN_PROGRESS = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


class ServerEnded(RepriseError):
    """A server of the UI ended by itself, or never answered."""


class UiServers:
    """Code server, web server and daemon of one instance.

    Args:
        folder: A short-lived folder for the socket; its path must be short, since a socket's is
            limited to about 100 bytes.
        port: Port of the web server on localhost.
        environment: Environment of the processes; DAGSTER_HOME names the instance.
    """

    def __init__(self, folder: Path, *, port: int, environment: Mapping[str, str]) -> None:
        self._socket = folder / "code.sock"
        self._workspace = folder / "workspace.yaml"
        self._port = port
        # The servers run the code that runs here, first of all; the working folder is the user's,
        # and a folder of theirs that is called as one of our packages must not be taken for it.
        path = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
        self._environment = {
            **environment,
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONSAFEPATH": "1",
        }
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def address(self) -> str:
        """Where the web server answers."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start all three and return when the web server answers.

        Raises:
            ServerEnded: One ended, or did not answer in time.
        """
        entry = {"grpc_server": {"socket": str(self._socket), "location_name": LOCATION_NAME}}
        self._workspace.write_text(yaml.safe_dump({"load_from": [entry]}))
        self._run(
            "code server",
            *("dagster", "code-server", "start", "--socket", str(self._socket)),
            *("--location-name", LOCATION_NAME, "--module-name", "pipelines.definitions"),
            *("--working-directory", str(ROOT), "--log-level", "warning"),
        )
        self._wait(self._code_server_answers, "code server")
        workspace = ("--workspace", str(self._workspace))
        self._run("daemon", "dagster._daemon", "run", "--log-level", "warning", *workspace)
        self._run(
            "web server",
            *("dagster_webserver", "--host", "127.0.0.1", "--port", str(self._port)),
            *("--dagster-log-level", "warning", *workspace),
        )
        self._wait(self._web_server_answers, "web server")

    def watch(self) -> None:
        """Return never; the three work until somebody interrupts.

        Raises:
            ServerEnded: One ended by itself.
        """
        while True:
            self._check()
            time.sleep(POLL_SECONDS)

    def stop(self, instance: dg.DagsterInstance) -> None:
        """End all three and the runs that they work on; those are kept as cancelled."""
        self._interrupt("daemon", "web server")
        for run in instance.get_runs(dg.RunsFilter(statuses=IN_PROGRESS)):
            if code_server_socket(run) == str(self._socket):
                instance.report_run_canceling(run, message="the UI's server is being stopped")
        self._interrupt("code server")
        deadline = time.monotonic() + STOP_SECONDS_MAX
        while self._groups() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """End what is left at once."""
        for group in self._groups():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for process in self._children.values():
            process.wait()

    def _run(self, name: str, module: str, *arguments: str) -> None:
        limits = (str(os.getpid()), "0", "0", "0")
        command = [sys.executable, "-I", "-S", limited_exec.__file__, *limits, sys.executable]
        self._children[name] = subprocess.Popen(
            [*command, "-m", module, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _wait(self, answers: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not answers():
            self._check()
            if time.monotonic() > deadline:
                message = f"the {name} did not answer within {START_SECONDS_MAX:.0f} s"
                raise ServerEnded(message)
            time.sleep(POLL_SECONDS)

    def _check(self) -> None:
        for name, process in self._children.items():
            code = process.poll()
            if code is not None:
                message = f"the {name} ended by itself (exit code {code}); its last lines say why"
                raise ServerEnded(message)

    def _interrupt(self, *names: str) -> None:
        for name in names:
            process = self._children.get(name)
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)

    def _groups(self) -> list[int]:
        """Return the process groups in which somebody still lives."""
        alive: list[int] = []
        for process in self._children.values():
            process.poll()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 0)
                alive.append(process.pid)
        return alive

    def _code_server_answers(self) -> bool:
        return accepts(self._socket)

    def _web_server_answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/server_info", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def accepts(path: Path) -> bool:
    """Answer whether a server listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def code_server_socket(run: dg.DagsterRun) -> str | None:
    """Return the socket of the code server that a run's process belongs to, if it has one."""
    with contextlib.suppress(json.JSONDecodeError, AttributeError):
        path = json.loads(run.tags.get(GRPC_INFO_TAG, "null")).get("socket")
        return path if isinstance(path, str) else None
    return None


def end_orphaned_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs of a UI that was killed as failed, unless their process still works.

    Otherwise they would count as running for ever, and Dagster would hold back their projects'
    queued runs. A process that outlived its UI ends its run by itself.
    """
    for run in instance.get_runs(dg.RunsFilter(statuses=IN_PROGRESS)):
        path = code_server_socket(run)
        if path is None or accepts(Path(path)):
            continue
        if not any(is_alive(process) for process in run_processes(instance, run.run_id)):
            instance.report_run_failed(run, message="the server that it ran on has ended")


def run_processes(instance: dg.DagsterInstance, run_id: str) -> set[int]:
    """Return the ids of the processes that said in a run's events that they work on it."""
    found: set[int] = set()
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        known = event.engine_event_data.metadata.get("pid") if event is not None else None
        if known is not None and str(known.value).isdigit():
            found.add(int(str(known.value)))
    return found


def is_alive(process: int) -> bool:
    """Answer whether a process of this machine lives and is Python's."""
    try:
        # A number that was given again belongs to some other program, most likely.
        return b"python" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        if Path("/proc/self").exists():
            return False
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
