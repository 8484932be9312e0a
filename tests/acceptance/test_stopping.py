"""Stopping a run: by Ctrl-C, by a supervisor, by the kernel; and what the next run finds."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from tests.acceptance.command_line import ROOT, Done, User, finish, wait_until
from tests.acceptance.silent_server import SilentServer
from tests.acceptance.warm_start import Command

STOP_SECONDS_MAX = 12.0
"""10 s are promised; the machine of the tests is busy."""

TALK = ROOT / "examples/projects/open-film/open-film-talk.mp4"


def ctrl_c(process: Command) -> None:
    """Send what a terminal sends: an interrupt to the whole foreground group."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt(process: Command) -> None:
    os.kill(process.pid, signal.SIGINT)


def terminate(process: Command) -> None:
    os.kill(process.pid, signal.SIGTERM)


def works(user: User, *words: str) -> bool:
    """Whether an ffmpeg works for the user with all these words in its command line."""
    return any(
        "ffmpeg" in line and all(word in line for word in words) for line in user.processes()
    )


def assert_gone(user: User) -> None:
    """Check that the kernel ends what a dead process had started, also what was just starting."""
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while user.processes():
        assert time.monotonic() < deadline, user.processes()
        time.sleep(0.02)


def assert_stopped(user: User, done: Done) -> None:
    """Check what every stopped run leaves behind: a record of it, and nothing else."""
    assert done.code == 130, done
    assert done.err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.err
    assert done.seconds < STOP_SECONDS_MAX
    assert user.processes() == []
    assert [run.status for run in user.runs()] == [dg.DagsterRunStatus.CANCELED]
    assert user.leftovers() == []


@pytest.mark.parametrize("stop", [ctrl_c, interrupt, terminate])
def test_a_run_that_waits_for_a_model_is_stopped(
    user: User,
    brief: Path,
    footage: Path,
    silent: SilentServer,
    stop: Callable[[Command], None],
) -> None:
    user.add("p", brief, footage)
    process = user.start(
        "run", "read", "p", "--provider", "mute", "--json",
        REPRISE_PROVIDERS__MUTE__BASE_URL=silent.url, REPRISE_PROVIDERS__MUTE__MODEL="m",
    )  # fmt: skip
    wait_until(lambda: silent.calls, process, "asking the model")

    stop(process)
    done = finish(process)

    assert_stopped(user, done)
    assert done.json["status"] == "cancelled"
    assert [step["status"] for step in done.json["steps"]] == ["succeeded", "cancelled"]
    assert user.call("run", "read", "p").code == 0


def test_a_run_that_measures_footage_is_stopped(user: User, long_footage: Path) -> None:
    user.add("p", long_footage)
    process = user.start("run", "look", "p")
    wait_until(lambda: works(user, "file:"), process, "measuring")

    ctrl_c(process)

    assert_stopped(user, finish(process))
    assert user.objects("artifacts") == []


def test_a_run_that_encodes_a_film_is_stopped_and_goes_on_where_it_was(
    user: User, long_footage: Path
) -> None:
    user.add("p", long_footage)
    process = user.start("run", "cut", "p")
    wait_until(lambda: works(user, "libx264"), process, "encoding")

    interrupt(process)

    assert_stopped(user, finish(process))
    assert [path for path in user.objects("artifacts") if path.suffix != ".jpg"] == []
    again = user.call("run", "cut", "p", "--json").json
    assert again["status"] == "succeeded"
    assert [step["from_cache"] for step in again["steps"]] == [True, True, False]


@pytest.mark.slow
def test_a_run_that_recognises_speech_is_stopped(user: User) -> None:
    user.workflow("hear", [{"label": "hear", "type": "VideoAnalyze"}])
    user.add("p", TALK)
    process = user.start("run", "hear", "p")
    wait_until(lambda: "recognising speech" in process.err, process, "recognising")

    ctrl_c(process)

    assert_stopped(user, finish(process))
    assert user.call("run", "hear", "p").code == 0


def test_a_killed_run_leaves_nothing_that_troubles_the_next_one(
    user: User, long_footage: Path
) -> None:
    # What the dead run was working on is its own for so long.
    user.environment["REPRISE_STEP_CACHE__LEASE_SECONDS"] = "3"
    user.add("p", long_footage)
    process = user.start("run", "cut", "p")
    wait_until(lambda: works(user, "libx264"), process, "encoding")

    os.kill(process.pid, signal.SIGKILL)
    done = finish(process)
    assert done.code == -signal.SIGKILL
    assert_gone(user)
    assert any((user.home / "scratch").iterdir())

    again = user.call("run", "cut", "p", "--json")
    assert again.json["status"] == "succeeded"
    assert [step["from_cache"] for step in again.json["steps"]] == [True, True, False]
    assert [run.status for run in user.runs()] == [
        dg.DagsterRunStatus.SUCCESS,
        dg.DagsterRunStatus.FAILURE,
    ]
    assert user.leftovers() == []


@pytest.mark.parametrize("later_seconds", [0.0, 0.15, 0.3, 0.45])
def test_stopping_before_the_first_step_is_no_fault_either(
    user: User, brief: Path, footage: Path, silent: SilentServer, later_seconds: float
) -> None:
    """An interrupt that meets a callback of the garbage collector is not lost."""
    user.add("p", brief, footage)
    shutil.rmtree(user.home / "dagster")
    # One that ends of its own accord might do so before a busy machine sends the signal.
    process = user.start(
        "run", "read", "p", "--provider", "mute",
        REPRISE_PROVIDERS__MUTE__BASE_URL=silent.url, REPRISE_PROVIDERS__MUTE__MODEL="m",
    )  # fmt: skip
    wait_until((user.home / "dagster" / "dagster.yaml").exists, process, "opening the instance")
    time.sleep(later_seconds)

    interrupt(process)
    done = finish(process)

    assert done.code == 130
    assert done.err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.err
    assert user.leftovers() == []
    assert user.call("run", "read", "p").code == 0
