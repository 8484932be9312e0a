"""Runs of `quick-win-promo` through the command `reprise`, each in a process of its own.

ffmpeg is reached through a script that writes a line for each process before it becomes ffmpeg.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.media_files import ffmpeg_binary

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "examples" / "projects" / "open-film"
TRUTH = ROOT / "examples" / "truth" / "open-film.json"
WORKFLOW = "quick-win-promo"
STEPS = {
    *("video_analyze", "content", "audience", "brand", "hook", "visual"),
    *("edit_room", "video_compile"),
}
"""Labels of the workflow's steps."""
RUN_SECONDS_MAX = 600.0


@dataclass(frozen=True)
class PromoRun:
    """A run as `reprise run --json` tells it."""

    summary: Mapping[str, Any]
    ffmpeg_count: int
    """ffmpeg processes that it started."""

    @property
    def steps(self) -> dict[str, Mapping[str, Any]]:
        """The steps by label."""
        return {step["label"]: step for step in self.summary["steps"]}

    @property
    def executed(self) -> set[str]:
        """Labels of the steps that did not come from the cache."""
        return {label for label, step in self.steps.items() if not step["from_cache"]}


@dataclass
class PromoHome:
    """A home in a temporary folder."""

    root: Path
    workflows: Path = ROOT / "workflows"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables."""
    seconds_max: float = RUN_SECONDS_MAX
    """Longest that one command may take."""
    _log: Path = field(init=False)
    _program: Path = field(init=False)

    def __post_init__(self) -> None:
        self._log = self.root / "ffmpeg.log"
        self._program = self.root / "ffmpeg"
        self._log.touch()
        self._program.write_text(
            f"#!/bin/sh\necho \"$*\" >> '{self._log}'\nexec '{ffmpeg_binary().path}' \"$@\"\n"
        )
        self._program.chmod(0o755)

    @property
    def objects(self) -> Path:
        """Folder of the object store."""
        return self.root / "home" / "objects"

    def add(self, project: str, *paths: Path) -> None:
        """Add files to a project."""
        self._reprise("project", "add", project, *map(str, paths))

    def run(self, project: str, *options: str) -> PromoRun:
        """Run the workflow, which must succeed."""
        before = self._ffmpeg_count()
        text = self._reprise("run", WORKFLOW, project, "--json", *options)
        return PromoRun(json.loads(text.splitlines()[-1]), self._ffmpeg_count() - before)

    def results(self, project: str, target: Path) -> Path:
        """Copy a project's latest outputs and artifacts into a folder, which is returned."""
        self._reprise("results", WORKFLOW, project, "--copy", str(target))
        return target

    def _reprise(self, *arguments: str) -> str:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("REPRISE_")
        }
        environment.pop("DAGSTER_HOME", None)
        environment |= {
            "REPRISE_HOME": str(self.root / "home"),
            "REPRISE_WORKFLOWS_DIR": str(self.workflows),
            "REPRISE_FFMPEG": str(self._program),
            **self.settings,
        }
        command = [sys.executable, "-m", "apps.cli", *arguments]
        return _output(command, environment, self.seconds_max)

    def _ffmpeg_count(self) -> int:
        return len(self._log.read_text().splitlines())


def _output(command: Sequence[str], environment: Mapping[str, str], seconds_max: float) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert done.returncode == 0, f"{command[3:]} failed:\n{done.stderr[-4000:]}"
    return done.stdout
