"""What every history of runs promises, run on each."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from reprise.model.result import (
    Artifact,
    CacheReason,
    SeenStep,
    StepReference,
    StepStatus,
    Usage,
)
from reprise.model.savings import Savings, SavingsBy
from reprise.model.workflow import StepType
from reprise.ports import HistoryStore
from resources.memory_history import MemoryHistory
from resources.sqlite_history import SqliteHistory
from resources.sqlite_projects import SqliteProjectRegistry
from tests.step_records import NOW, record


def shared_file(folder: Path) -> HistoryStore:
    SqliteProjectRegistry(folder / "metadata.sqlite").add_project("p1", now=NOW)
    return SqliteHistory(folder / "metadata.sqlite")


STORES: dict[str, Callable[[Path], HistoryStore]] = {
    "memory": lambda _: MemoryHistory(),
    "sqlite": lambda folder: SqliteHistory(folder / "new" / "history.sqlite"),
    "sqlite-shared-file": shared_file,
}


@pytest.fixture(params=STORES)
def history(request: pytest.FixtureRequest, tmp_path: Path) -> HistoryStore:
    return STORES[request.param](tmp_path)


def test_a_new_history_knows_nothing(history: HistoryStore) -> None:
    assert list(history.of_run("run-1")) == []
    assert history.of_step("promo", "p1", "s01_step", run_id=None) is None
    assert history.of_step("promo", "p1", "s01_step", run_id="run-1") is None
    assert history.latest_run("promo", "p1") is None


def test_a_record_comes_back_field_by_field(history: HistoryStore) -> None:
    seen = SeenStep(
        order=1,
        label="step 1",
        type=StepType.AGENT,
        status=StepStatus.SUCCEEDED,
        body_digest="d" * 64,
        variables={"é": "e" * 64},
        stop_workflow=True,
    )
    full = record(
        reference=StepReference(
            workflow_id="promo", project_id="p1", run_id="run-1", seen=seen, history={0: seen}
        ),
        artifacts=(Artifact(name="film.mp4", storage_key="p1/film.mp4", size_bytes=9, etag="x"),),
        output_storage_key="p1/film.mp4",
        from_cache=True,
        cache_reason=CacheReason.HIT,
        cache_detail="from run 1, 3 h old",
        cache_key="c" * 64,
        usage=Usage(output=3, cost_micros=None),
        seconds=1.5,
        cached_tokens_saved=1500,
        cached_seconds_saved=12.25,
        cached_cost_micros_saved=None,
        retries=2,
        model="heuristic",
        prompt_chars=12_000,
        error="🎬 what, where, what to do",
        notes=("one", "two"),
    )
    history.append(full)
    assert list(history.of_run("run-1")) == [full]
    assert history.of_step("promo", "p1", "s01_step", run_id="run-1") == full


def test_a_run_has_the_newest_record_of_each_step_by_order(history: HistoryStore) -> None:
    for order in (2, 0, 1):
        history.append(record(order=order, status=StepStatus.FAILED, error="first attempt"))
    history.append(record("run-2", order=1))
    for order in (1, 10, 2):
        history.append(record(order=order))
    found = history.of_run("run-1")
    assert [(one.order, one.status.value) for one in found] == [
        (0, "failed"),
        (1, "succeeded"),
        (2, "succeeded"),
        (10, "succeeded"),
    ]


def test_a_later_failure_is_what_a_run_shows_and_not_what_a_step_gave(
    history: HistoryStore,
) -> None:
    history.append(record(model="good"))
    history.append(record(status=StepStatus.FAILED))
    history.append(record(status=StepStatus.CANCELLED))
    assert [one.status for one in history.of_run("run-1")] == [StepStatus.CANCELLED]
    step = history.of_step("promo", "p1", "s01_step", run_id="run-1")
    assert step is not None
    assert step.model == "good"


def test_a_step_is_found_of_a_run_or_the_newest_of_any(history: HistoryStore) -> None:
    history.append(record("run-1", model="one"))
    history.append(record("run-2", model="two", status=StepStatus.SKIPPED))
    history.append(record("run-3", project_id="p2", model="other project"))
    history.append(record("run-3", workflow_id="other", model="other workflow"))
    history.append(record("run-3", order=2, model="other step"))

    def model(run_id: str | None) -> str | None:
        step = history.of_step("promo", "p1", "s01_step", run_id=run_id)
        return None if step is None else step.model

    assert model("run-1") == "one"
    assert model("run-2") == "two"
    assert model(None) == "two"
    assert model("run-3") is None


def test_the_newest_is_the_last_appended_whatever_the_clock_said(history: HistoryStore) -> None:
    history.append(record("run-1"))
    earlier = NOW - timedelta(hours=1)
    history.append(record("run-2", started_at=earlier, finished_at=earlier))
    step = history.of_step("promo", "p1", "s01_step", run_id=None)
    assert step is not None
    assert step.run_id == "run-2"
    assert history.latest_run("promo", "p1") == "run-2"


def test_the_latest_run_is_the_last_that_gave_a_result(history: HistoryStore) -> None:
    history.append(record("run-1"))
    history.append(record("run-2", order=0))
    history.append(record("run-2", status=StepStatus.FAILED))
    history.append(record("run-3", project_id="p2"))
    assert history.latest_run("promo", "p1") == "run-1"
    assert history.latest_run("promo", "p2") == "run-3"
    assert history.latest_run("other", "p1") is None
    history.append(record("run-4", status=StepStatus.SKIPPED))
    assert history.latest_run("promo", "p1") == "run-4"


def test_names_are_told_apart_by_letter_case(history: HistoryStore) -> None:
    history.append(record("run-1", project_id="Promo"))
    history.append(record("run-2", project_id="promo"))
    assert history.latest_run("promo", "Promo") == "run-1"


def test_threads_that_append_at_once_lose_nothing(history: HistoryStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda order: history.append(record(order=order)), range(1, 101)))
    assert [one.order for one in history.of_run("run-1")] == list(range(1, 101))


def test_changing_what_came_out_changes_nothing_kept(history: HistoryStore) -> None:
    seen = SeenStep(
        order=1, label="a", type=None, status=StepStatus.SUCCEEDED, body_digest="d" * 64
    )
    reference = StepReference(workflow_id="promo", project_id="p1", run_id="run-1", seen=seen)
    history.append(record(reference=reference))
    first = history.of_run("run-1")[0].reference
    assert first is not None
    first.history[7] = seen
    again = history.of_run("run-1")[0].reference
    assert again is not None
    assert again.history == {}


def test_runs_are_found_by_the_beginning_of_their_ids_newest_first(history: HistoryStore) -> None:
    for run_id in ("abc-1", "abd-2", "abc-3", "abc-1"):
        history.append(record(run_id))

    assert history.runs_like("abc") == ["abc-1", "abc-3"]
    assert history.runs_like("abd-2") == ["abd-2"]
    assert history.runs_like("x") == []


def test_savings_are_summed_by_workflow_project_and_day(history: HistoryStore) -> None:
    used = Usage(input_uncached=10, cache_read=3, cache_write=2, output=5, cost_micros=70)
    history.append(record(usage=used, seconds=1.5))
    history.append(
        record(
            "run-2",
            from_cache=True,
            seconds=0.25,
            cached_tokens_saved=20,
            cached_seconds_saved=1.5,
            cached_cost_micros_saved=70,
        )
    )
    history.append(record("run-3", workflow_id="clips", usage=Usage(output=1, cost_micros=None)))
    history.append(record("run-3", order=0))
    history.append(record("run-4", status=StepStatus.FAILED))

    promo = Savings(
        group="promo",
        steps=2,
        hits=1,
        tokens_used=20,
        tokens_saved=20,
        cost_micros_used=70,
        cost_micros_saved=70,
        seconds_used=1.75,
        seconds_saved=1.5,
    )
    clips = Savings(group="clips", steps=1, tokens_used=1, unpriced=1)
    assert history.savings(SavingsBy.WORKFLOW) == [clips, promo]
    assert [(row.group, row.steps) for row in history.savings(SavingsBy.PROJECT)] == [("p1", 3)]
    assert [(r.group, r.steps) for r in history.savings(SavingsBy.DAY)] == [("2026-03-01", 3)]
