"""The Dagster UI as it is used: web server, daemon and code server as processes, asked by GraphQL.

Source: specification D1, D13, D16, D20.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.ui_process import (
    LOCATION,
    ROOT,
    SCHEDULES,
    SECONDS_MAX,
    TERMINATE,
    Ui,
    UiHome,
    free_port,
    opened_ui,
)
from tests.media_files import clip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> UiHome:
    root = tmp_path_factory.mktemp("ui")
    brief = root / "brief.md"
    brief.write_text("# Tones for testers\n\nAudience: testers\n")
    footage = clip(root / "tone.mp4", seconds=2.0)
    home = UiHome(root)
    home.add("first", brief, footage)
    home.add("second", brief, footage)
    return home


@pytest.fixture
def home(tmp_path: Path) -> UiHome:
    return UiHome(tmp_path)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clip(tmp_path_factory.mktemp("short") / "short.mp4", seconds=2.0)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Footage that takes its time to encode."""
    return clip(tmp_path_factory.mktemp("long") / "long.mp4", seconds=60.0, size="1280x720")


@pytest.fixture(scope="module")
def ui(shared_home: UiHome) -> Iterator[Ui]:
    with opened_ui(shared_home) as opened:
        yield opened


def test_a_workflow_is_a_group_of_assets_partitioned_by_project(ui: Ui) -> None:
    found = ui.partitions("read")
    assert sorted(found) == ["request", "s01_look", "s02_read"]
    assert sorted(found["s02_read"]) == ["first", "second"]


def test_a_daily_schedule_over_all_projects_is_there_and_off(ui: Ui) -> None:
    found = ui.ask(SCHEDULES, r=LOCATION)["schedulesOrError"]["results"]
    daily = next(schedule for schedule in found if schedule["name"] == "daily_read")
    assert daily == {
        "name": "daily_read",
        "cronSchedule": "0 4 * * *",
        "pipelineName": "read",
        "scheduleState": {"status": "STOPPED"},
    }


def test_a_run_is_launched_for_a_project_with_a_request_text(ui: Ui) -> None:
    run_id = ui.launch("read", "first", user_request="Make it short, make it loud")
    assert ui.ended(run_id) == "SUCCESS"
    assert ui.metadata("read", "request", "first")["user_request"] == "Make it short, make it loud"


def test_a_backfill_over_two_projects_completes(ui: Ui) -> None:
    backfill_id = ui.backfill("read", ["request", "s01_look", "s02_read"], ["first", "second"])
    assert ui.backfill_ended(backfill_id) == "COMPLETED_SUCCESS"
    assert ui.metadata("read", "s02_read", "second")["model"] == "heuristic-1"


def test_a_run_of_the_command_line_is_re_executed_from_the_ui(ui: Ui, shared_home: UiHome) -> None:
    code, out, errors = shared_home.call("run", "read", "first", "--json")
    assert code == 0, errors
    run_id = json.loads(out)["run_id"]
    known = ui.run(run_id)
    assert known["status"] == "SUCCESS"
    assert known["repositoryOrigin"] == LOCATION
    again = ui.re_execute(run_id)
    assert ui.ended(again) == "SUCCESS"
    assert ui.metadata("read", "s02_read", "first")["cache_reason"] == "hit"


def test_a_second_ui_of_the_same_home_is_refused(ui: Ui, shared_home: UiHome) -> None:
    code, _, errors = shared_home.call("ui", "--port", str(free_port()))
    assert code == 2
    assert f"is open already, at {ui.address}" in errors


def test_the_terminal_shows_progress_and_errors_and_no_events(home: UiHome, short: Path) -> None:
    home.add("good", short)
    with opened_ui(home) as ui:
        run_id = ui.launch("cut", "good")
        assert ui.ended(run_id) == "SUCCESS"
        failed = ui.launch("cut", "nosuch")
        assert ui.ended(failed) == "FAILURE"
        _, out, errors = ui.stop(signal.SIGINT)
    shown = out + errors
    assert " DEBUG " not in shown
    assert f"{run_id} - " in shown
    assert " INFO " in shown
    assert f"{failed} - " in shown
    assert " ERROR " in shown


def test_a_run_terminated_in_the_ui_is_cancelled_and_its_ffmpeg_killed(
    home: UiHome, long: Path
) -> None:
    home.add("p", long)
    with opened_ui(home) as ui:
        run_id = ui.launch("cut", "p")
        ui.wait(lambda: home.processes("ffmpeg-"), "ffmpeg at work")
        begin = time.monotonic()
        answer = ui.ask(TERMINATE, id=run_id)["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess"
        assert ui.ended(run_id) == "CANCELED"
        assert time.monotonic() - begin < 15.0
        assert home.processes("ffmpeg-") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_the_ui_cancels_its_run_and_ends_every_process(
    home: UiHome, long: Path, number: signal.Signals
) -> None:
    home.add("p", long)
    with opened_ui(home) as ui:
        run_id = ui.launch("cut", "p")
        ui.wait(lambda: home.processes("ffmpeg-"), "ffmpeg at work")
        code, _, _ = ui.stop(number)
        assert code == 130
        assert home.processes() == []
        assert home.runs() == {run_id: "CANCELED"}


def test_a_ui_whose_daemon_dies_says_so_and_the_next_one_goes_on(home: UiHome, short: Path) -> None:
    home.add("p", short)
    with opened_ui(home) as ui:
        for process in home.processes("dagster._daemon"):
            os.kill(process, signal.SIGSTOP)
        # Nobody takes it from the queue now.
        run_id = ui.launch("read", "p")
        for process in home.processes("dagster._daemon"):
            os.kill(process, signal.SIGKILL)
        code, _, errors = ui.ended_by_itself()
        assert code == 1
        assert "error: the daemon ended by itself (exit code -9)" in errors
        assert home.processes() == []
    with opened_ui(home) as ui:
        assert ui.ended(run_id) == "SUCCESS"


def test_a_killed_ui_leaves_no_process_once_its_run_has_ended(home: UiHome, short: Path) -> None:
    home.add("p", short)
    with opened_ui(home) as ui:
        run_id = ui.launch("look", "p")
        ui.wait(lambda: ui.run(run_id)["status"] == "STARTED", "the run at work")
        ui.process.kill()
        ui.process.communicate()
        deadline = time.monotonic() + SECONDS_MAX
        while home.processes() and time.monotonic() < deadline:
            time.sleep(0.5)
        assert home.processes() == []
    assert home.runs() == {run_id: "SUCCESS"}


def test_a_run_whose_process_was_killed_with_its_ui_does_not_count_as_running(
    home: UiHome, long: Path
) -> None:
    home.add("p", long)
    with opened_ui(home) as ui:
        lost = ui.launch("look", "p")
        ui.wait(lambda: home.processes("ffmpeg-"), "ffmpeg at work")
        ui.process.kill()
        home.kill()
        ui.process.communicate()
    assert home.runs() == {lost: "STARTED"}
    with opened_ui(home) as ui:
        assert ui.run(lost)["status"] == "FAILURE"
        assert ui.ended(ui.launch("look", "p")) == "SUCCESS"


def test_a_new_project_becomes_a_partition_of_an_instance_that_the_command_line_does_not_know(
    home: UiHome, short: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other-instance"
    other.mkdir()
    (other / "dagster.yaml").write_bytes((ROOT / "dagster.yaml").read_bytes())
    with opened_ui(home, DAGSTER_HOME=str(other)) as ui:
        assert ui.partitions("read")["s02_read"] == []
        home.add("p", short)
        ui.wait(lambda: ui.partitions("read")["s02_read"] == ["p"], "the new partition")
        assert home.call("project", "remove", "p")[0] == 0
        ui.wait(lambda: ui.partitions("read")["s02_read"] == [], "its removal")
