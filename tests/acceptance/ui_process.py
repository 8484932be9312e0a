"""`reprise ui` as a process, and what its GraphQL says.

    home = UiHome(tmp_path)
    home.add("p", brief)
    with opened_ui(home) as ui:
        run_id = ui.launch("read", "p", user_request="something calm")
        assert ui.ended(run_id) == "SUCCESS"

Every process of the home is killed at the end, whatever happened.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 240.0
"""Longest wait; the machine is busy with other tests."""

LOOK: dict[str, object] = {
    "label": "look",
    "type": "VideoAnalyze",
    "video_analyze": {"speech": False},
}
READ: dict[str, object] = {
    "label": "read",
    "type": "Agent",
    "agent": "brand",
    "prompt": "Read the brief.",
    "input_mode": "selected_prior_steps",
    "selected_prior_step_orders": [1],
}
ROOM: dict[str, object] = {
    "label": "room",
    "type": "EditRoom",
    "input_mode": "selected_prior_steps",
    "selected_prior_step_orders": [1],
    "edit_room": {"agents": ["director"]},
}
FILM: dict[str, object] = {
    "label": "film",
    "type": "VideoCompile",
    "input_mode": "selected_prior_steps",
    "selected_prior_step_orders": [1, 2],
    "video_compile": {"preset": "veryslow"},
}
WORKFLOWS: dict[str, list[dict[str, object]]] = {
    "look": [LOOK],
    "read": [LOOK, READ],
    "cut": [LOOK, ROOM, FILM],
}
"""Small workflows: footage is measured; one agent answers; a film comes out."""

LOCATION = {"repositoryLocationName": "reprise", "repositoryName": "__repository__"}
ENDED = ("SUCCESS", "FAILURE", "CANCELED")

LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } }
  ... on PythonError { message } ... on RunConfigValidationInvalid { errors { message } } } }"""
RUN = """query($id: ID!) { runOrError(runId: $id) { ... on Run {
  status startTime endTime parentRunId tags { key value } repositoryOrigin {
  repositoryName repositoryLocationName } } } }"""
BACKFILL = """mutation($b: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $b) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
BACKFILL_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status } } }"""
MATERIALIZATION = """query($key: AssetKeyInput!, $names: [String!]) {
  assetOrError(assetKey: $key) { ... on Asset { assetMaterializations(partitions: $names, limit: 1)
  { runId metadataEntries { label ... on TextMetadataEntry { text }
  ... on IntMetadataEntry { intValue } ... on MarkdownMetadataEntry { mdStr } } } } } }"""
ASSETS = """query { assetNodes { assetKey { path } groupName partitionKeys } }"""
SCHEDULES = """query($r: RepositorySelector!) { schedulesOrError(repositorySelector: $r) {
  ... on Schedules { results { name cronSchedule pipelineName scheduleState { status } } } } }"""
TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) { __typename } }"""
REEXECUTE = """mutation($p: ReexecutionParams) { launchRunReexecution(reexecutionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""


class UiHome:
    """A home with small workflows, in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.path = root / "home"
        workflows = root / "workflows"
        shutil.copytree(ROOT / "workflows", workflows, ignore=shutil.ignore_patterns("*.yaml"))
        for name, steps in WORKFLOWS.items():
            numbered = [{"order": place, **step} for place, step in enumerate(steps, start=1)]
            text = yaml.safe_dump({"id": name, "steps": numbered})
            (workflows / f"{name}.yaml").write_text(text)
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("REPRISE_", "DAGSTER_"))
        }
        self.environment = {
            **inherited,
            "REPRISE_HOME": str(self.path),
            "REPRISE_WORKFLOWS_DIR": str(workflows),
        }

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start a command as a shell without job control does: in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "apps.cli", *arguments],
            cwd=ROOT,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Run a command to its end; return its exit code, output and errors."""
        process = self.start(*map(str, arguments))
        return _ended(process, SECONDS_MAX)

    def add(self, project: str, *paths: Path) -> None:
        """Add files to a project."""
        code, _, errors = self.call("project", "add", project, *paths)
        assert code == 0, errors

    def runs(self) -> dict[str, str]:
        """Return the recorded runs' statuses by id."""
        with dg.DagsterInstance.from_config(str(self.path / "dagster")) as instance:
            return {run.run_id: run.status.value for run in instance.get_runs()}

    def processes(self, word: str = "") -> list[int]:
        """Return the ids of the home's processes whose command line has a word in it."""
        mark = f"REPRISE_HOME={self.path}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes()
                    ours = mark in (entry / "environ").read_bytes().split(b"\0")
                    if ours and command and word.encode() in command:
                        found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """Kill all of the home's processes."""
        for found in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(found, signal.SIGKILL)


def _ended(process: "subprocess.Popen[str]", seconds_max: float) -> tuple[int, str, str]:
    try:
        out, errors = process.communicate(timeout=seconds_max)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, out, errors


class Ui:
    """A UI that answers."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.address = f"http://127.0.0.1:{port}"
        self.headers: dict[str, str] = {}
        """What a proxy would add to each request."""

    def ask(self, query: str, **variables: object) -> Any:
        """Send a GraphQL query or mutation and return its data."""
        request = urllib.request.Request(
            f"{self.address}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json", **self.headers},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = json.loads(answer.read())
        assert "errors" not in body, body
        return body["data"]

    def launch(self, job: str, project: str, **config: str) -> str:
        """Launch a run as the Launchpad does; return its id."""
        params = {
            "selector": {**LOCATION, "jobName": job},
            "runConfigData": {"ops": {f"{job}__request": {"config": config}}},
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": project}]},
        }
        answer = self.ask(LAUNCH, p=params)["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def re_execute(self, run_id: str) -> str:
        """Re-execute all of a run, as the button does; return the new run's id."""
        params = {"parentRunId": run_id, "strategy": "ALL_STEPS"}
        answer = self.ask(REEXECUTE, p=params)["launchRunReexecution"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def backfill(self, workflow: str, steps: list[str], projects: list[str]) -> str:
        """Launch a backfill as the asset graph does; return its id."""
        params = {
            "assetSelection": [{"path": [workflow, step]} for step in steps],
            "partitionNames": projects,
        }
        answer = self.ask(BACKFILL, b=params)["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def backfill_ended(self, backfill_id: str) -> str:
        """Wait for a backfill's end and return its status."""

        def status() -> str:
            found = self.ask(BACKFILL_STATUS, id=backfill_id)["partitionBackfillOrError"]
            return str(found["status"])

        self.wait(lambda: status() not in ("REQUESTED", "CANCELING"), "the backfill's end")
        return status()

    def run(self, run_id: str) -> dict[str, Any]:
        """Return what the UI knows of a run."""
        found: dict[str, Any] = self.ask(RUN, id=run_id)["runOrError"]
        return found

    def ended(self, run_id: str) -> str:
        """Wait for a run's end and return its status."""
        self.wait(lambda: self.run(run_id)["status"] in ENDED, f"the end of run {run_id}")
        return str(self.run(run_id)["status"])

    def metadata(self, workflow: str, step: str, project: str) -> dict[str, Any]:
        """Return the metadata of a step's latest result for a project."""
        answer = self.ask(MATERIALIZATION, key={"path": [workflow, step]}, names=[project])
        (found,) = answer["assetOrError"]["assetMaterializations"]
        return {
            entry["label"]: entry.get("text", entry.get("intValue", entry.get("mdStr")))
            for entry in found["metadataEntries"]
        }

    def partitions(self, workflow: str) -> dict[str, list[str]]:
        """Return the assets of a workflow's group, each with its partitions."""
        return {
            node["assetKey"]["path"][-1]: node["partitionKeys"]
            for node in self.ask(ASSETS)["assetNodes"]
            if node["groupName"] == workflow
        }

    def wait(self, happened: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + SECONDS_MAX
        while not happened():
            assert self.process.poll() is None, _ended(self.process, 5.0)
            assert time.monotonic() < deadline, f"never came to {what}"
            time.sleep(0.2)

    def stop(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal to `reprise ui` alone and wait for its end, as `UiHome.call` does."""
        self.process.send_signal(number)
        return self.ended_by_itself()

    def ended_by_itself(self) -> tuple[int, str, str]:
        """Wait for the end of `reprise ui`; return its exit code, output and errors."""
        return _ended(self.process, 60.0)


@contextmanager
def opened_ui(home: UiHome, **environment: str) -> Iterator[Ui]:
    """Start `reprise ui` and wait until it answers."""
    port = free_port()
    process = home.start("ui", "--port", str(port), **environment)
    ui = Ui(process, port)
    try:
        ui.wait(lambda: answers(ui.address), "the web server")
        yield ui
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
        home.kill()


def answers(address: str) -> bool:
    """Whether a web server is there."""
    try:
        with urllib.request.urlopen(f"{address}/server_info", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    """Return a port that nobody uses right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
