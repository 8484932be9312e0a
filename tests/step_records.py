"""Records of steps for the tests of histories."""

from datetime import UTC, datetime, timedelta

from reprise.model.result import StepRecord, StepStatus
from reprise.model.workflow import StepType

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def record(run_id: str = "run-1", order: int = 1, **changes: object) -> StepRecord:
    plain = StepRecord(
        run_id=run_id,
        workflow_id="promo",
        project_id="p1",
        order=order,
        label=f"step {order}",
        name=f"s{order:02}_step" if order else "request",
        type=StepType.AGENT if order else None,
        status=StepStatus.SUCCEEDED,
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=2),
    )
    return StepRecord.model_validate({**plain.model_dump(), **changes})
