from datetime import UTC, datetime

from reprise.cache.savings import sum_savings, total_savings
from reprise.model.result import StepRecord, StepStatus, Usage
from reprise.model.savings import Savings, SavingsBy
from reprise.model.workflow import StepType


def record(
    workflow: str = "w", day: int = 1, *, hit: bool = False, order: int = 1, cost: int | None = 7
) -> StepRecord:
    when = datetime(2026, 1, day, 23, 59, tzinfo=UTC)
    return StepRecord(
        run_id="r",
        workflow_id=workflow,
        project_id="p",
        order=order,
        label="a",
        name="s01_a",
        type=StepType.AGENT,
        status=StepStatus.SUCCEEDED,
        from_cache=hit,
        usage=Usage() if hit else Usage(input_uncached=3, output=2, cost_micros=cost),
        seconds=0.5,
        cached_tokens_saved=5 if hit else 0,
        cached_seconds_saved=4.0 if hit else 0.0,
        cached_cost_micros_saved=cost if hit else 0,
        started_at=when,
        finished_at=when,
    )


def test_hits_save_what_their_originals_took() -> None:
    assert sum_savings([record(), record(hit=True)], SavingsBy.WORKFLOW) == [
        Savings(
            group="w",
            steps=2,
            hits=1,
            tokens_used=5,
            tokens_saved=5,
            cost_micros_used=7,
            cost_micros_saved=7,
            seconds_used=1.0,
            seconds_saved=4.0,
        )
    ]


def test_groups_are_days_in_order() -> None:
    rows = sum_savings([record(day=2), record(day=1), record(day=2)], SavingsBy.DAY)
    assert [(row.group, row.steps) for row in rows] == [("2026-01-01", 1), ("2026-01-02", 2)]


def test_the_request_and_failures_do_not_count() -> None:
    failed = record().model_copy(update={"status": StepStatus.FAILED})
    assert sum_savings([record(order=0), failed], SavingsBy.PROJECT) == []


def test_an_unknown_price_is_counted_apart() -> None:
    (row,) = sum_savings([record(cost=None), record()], SavingsBy.PROJECT)
    assert (row.cost_micros_used, row.unpriced) == (7, 1)


def test_the_total_is_the_sum_of_the_groups() -> None:
    rows = sum_savings([record("a"), record("b", hit=True)], SavingsBy.WORKFLOW)
    total = total_savings(rows)
    assert (total.group, total.steps, total.hits, total.seconds_saved) == ("all", 2, 1, 4.0)
