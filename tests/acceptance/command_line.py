"""The command line as a user has it: processes with a home, workflows and footage of their own.

Ask for the fixture `user`, `add` footage to a project, `call` a command, look at what is `Done`.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from tests.acceptance.warm_start import Command, WarmStart

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 240.0
"""Longest that a command may take here; the machine is busy with other tests."""

LOOK: list[Mapping[str, object]] = [
    {"label": "look", "type": "VideoAnalyze", "video_analyze": {"speech": False}}
]
"""Footage is measured, nothing is heard."""

READ: list[Mapping[str, object]] = [
    *LOOK,
    {
        "label": "read",
        "type": "Agent",
        "agent": "audience",
        "input_mode": "selected_prior_steps",
        "selected_prior_step_orders": [1],
    },
]
"""One agent answers."""

CUT: list[Mapping[str, object]] = [
    *LOOK,
    {
        "label": "room",
        "type": "EditRoom",
        "input_mode": "selected_prior_steps",
        "selected_prior_step_orders": [1],
        "edit_room": {"agents": ["director"]},
    },
    {
        "label": "film",
        "type": "VideoCompile",
        "input_mode": "selected_prior_steps",
        "selected_prior_step_orders": [1, 2],
        "video_compile": {"preset": "medium"},
    },
]
"""A film, whatever there is to hear."""


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        """Standard output, which has to be one JSON value and nothing else."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The error's text, which has to be one line."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        assert self.err.endswith(f"{lines[0]}\n"), self.err
        assert "Traceback" not in self.err, self.err
        return lines[0].removeprefix("error: ")


class User:
    """Somebody with a home in a folder of their own."""

    def __init__(self, root: Path, warm: WarmStart) -> None:
        self._warm = warm
        self.home = root / "home"
        self.workflows = root / "workflows"
        shutil.copytree(ROOT / "workflows", self.workflows)
        self.workflow("look", LOOK)
        self.workflow("read", READ)
        self.workflow("cut", CUT)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("REPRISE_", "DAGSTER_"))},
            "REPRISE_HOME": str(self.home),
            "REPRISE_WORKFLOWS_DIR": str(self.workflows),
        }

    def workflow(self, name: str, steps: Sequence[Mapping[str, object]]) -> Path:
        """Write a workflow; its steps are numbered from 1."""
        numbered = [{"order": place, **step} for place, step in enumerate(steps, start=1)]
        path = self.workflows / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"id": name, "steps": numbered}))
        return path

    def call(self, *arguments: str | Path, **environment: str) -> Done:
        """Run a command to its end."""
        return finish(self.start(*arguments, **environment))

    def add(self, project: str, *paths: Path) -> None:
        """Add files to a project."""
        done = self.call("project", "add", project, *paths)
        assert done.code == 0, done.err

    def start(self, *arguments: str | Path, **environment: str) -> Command:
        """Start a command in a process group of its own."""
        return self._warm.start([*map(str, arguments)], {**self.environment, **environment})

    def runs(self) -> list[dg.DagsterRun]:
        """Return the recorded runs, the newest first."""
        with dg.DagsterInstance.from_config(str(self.home / "dagster")) as instance:
            return list(instance.get_runs())

    def processes(self) -> list[str]:
        """Return the command lines of all living processes that work for this home."""
        mark = f"REPRISE_HOME={self.home}\0".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes() + b"\0":
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue  # It has ended meanwhile.
        return [line for line in found if line]

    def objects(self, kind: str) -> list[Path]:
        """Return the stored files of a kind: `artifacts`, `bodies`, `files`, `units`."""
        return [
            path for path in self.home.glob(f"objects/projects/*/{kind}/**/*") if path.is_file()
        ]

    def leftovers(self) -> list[Path]:
        """Return what is half done: work in progress, and files on their way to their name."""
        scratch = self.home / "scratch"
        return [*(scratch.iterdir() if scratch.is_dir() else ()), *self.home.rglob(".part-*")]


def finish(command: Command) -> Done:
    """Wait for a command; one that takes too long is killed and fails the test."""
    begin = time.monotonic()
    while (code := command.look()) is None:
        if time.monotonic() - begin > SECONDS_MAX:
            command.kill_all()
            message = f"took more than {SECONDS_MAX} s: {command.out}{command.err}"
            raise AssertionError(message)
    return Done(code, command.out, command.err, time.monotonic() - begin)


def wait_until(happened: Callable[[], object], command: Command, what: str) -> None:
    """Wait until something is so while a command works."""
    begin = time.monotonic()
    while not happened():
        if command.look() is not None or time.monotonic() - begin > SECONDS_MAX:
            message = f"never came to {what}: {command.out}{command.err}"
            raise AssertionError(message)
