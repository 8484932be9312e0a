"""What the cache saved: tokens, money and seconds, by workflow, project or day.

Source: specification C10, D10.
"""

from collections.abc import Callable, Iterable, Mapping

from reprise.model.result import StepRecord, StepStatus
from reprise.model.savings import Savings, SavingsBy

_GROUPS: Mapping[SavingsBy, Callable[[StepRecord], str]] = {
    SavingsBy.WORKFLOW: lambda record: record.workflow_id,
    SavingsBy.PROJECT: lambda record: record.project_id,
    SavingsBy.DAY: lambda record: record.finished_at.date().isoformat(),
}


def sum_savings(records: Iterable[StepRecord], by: SavingsBy) -> list[Savings]:
    """Return the sums of each group, by group."""
    sums: dict[str, Savings] = {}
    for record in records:
        if record.order == 0 or record.status is not StepStatus.SUCCEEDED:
            continue
        group = _GROUPS[by](record)
        sums[group] = _plus(sums.get(group, Savings(group=group)), record)
    return [sums[group] for group in sorted(sums)]


def total_savings(rows: Iterable[Savings]) -> Savings:
    """Return the sum of all groups."""
    total: dict[str, float] = {}
    for row in rows:
        for name, value in row.model_dump(exclude={"group"}).items():
            total[name] = total.get(name, 0) + value
    return Savings.model_validate({"group": "all", **total})


def _plus(row: Savings, record: StepRecord) -> Savings:
    costs = (record.usage.cost_micros, record.cached_cost_micros_saved)
    return Savings(
        group=row.group,
        steps=row.steps + 1,
        hits=row.hits + record.from_cache,
        tokens_used=row.tokens_used + record.usage.tokens,
        tokens_saved=row.tokens_saved + record.cached_tokens_saved,
        cost_micros_used=row.cost_micros_used + (costs[0] or 0),
        cost_micros_saved=row.cost_micros_saved + (costs[1] or 0),
        unpriced=row.unpriced + (None in costs),
        seconds_used=row.seconds_used + record.seconds,
        seconds_saved=row.seconds_saved + record.cached_seconds_saved,
    )
