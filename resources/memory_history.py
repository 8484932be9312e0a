"""What every run did, in this process's memory: the history's twin, for tests and dry runs.

Extend tests/integration/test_history_contract.py, which all history stores pass.

Source: specification W5.
"""

import threading
from collections.abc import Sequence

from reprise.cache.savings import sum_savings
from reprise.model.result import StepRecord, StepStatus
from reprise.model.savings import Savings, SavingsBy

_GAVE_A_RESULT = (StepStatus.SUCCEEDED, StepStatus.SKIPPED)


class MemoryHistory:
    """A `HistoryStore` in memory; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[StepRecord] = []

    def append(self, record: StepRecord) -> None:
        """Add a record; see `HistoryStore`."""
        with self._lock:
            self._records.append(record.model_copy(deep=True))

    def of_run(self, run_id: str) -> Sequence[StepRecord]:
        """Return a run's records, the newest of each step, by order; see `HistoryStore`."""
        newest: dict[str, StepRecord] = {}
        for record in self._snapshot():
            if record.run_id == run_id:
                newest.pop(record.name, None)  # The place in the mapping is that of the newest.
                newest[record.name] = record
        return sorted(newest.values(), key=lambda record: record.order)

    def of_step(
        self, workflow_id: str, project_id: str, name: str, *, run_id: str | None
    ) -> StepRecord | None:
        """Return a step's newest record that gave a result; see `HistoryStore`."""
        step = (workflow_id, project_id, name)
        with self._lock:
            records = list(self._records)
        for record in reversed(records):
            is_of_run = run_id is None or record.run_id == run_id
            is_of_step = (record.workflow_id, record.project_id, record.name) == step
            if is_of_run and is_of_step and record.status in _GAVE_A_RESULT:
                return record.model_copy(deep=True)
        return None

    def runs_like(self, prefix: str) -> Sequence[str]:
        """Return the ids of runs that begin with a text, newest first; see `HistoryStore`."""
        ids = [record.run_id for record in reversed(self._snapshot())]
        return [name for name in dict.fromkeys(ids) if name.startswith(prefix)][:20]

    def latest_run(self, workflow_id: str, project_id: str) -> str | None:
        """Return the run that last gave this project a result; see `HistoryStore`.

        The request alone, order 0, is no result.
        """
        for record in reversed(self._snapshot()):
            is_result = record.order > 0 and record.status in _GAVE_A_RESULT
            if is_result and (record.workflow_id, record.project_id) == (workflow_id, project_id):
                return record.run_id
        return None

    def savings(self, by: SavingsBy) -> Sequence[Savings]:
        """Return what the cache saved, by group; see `HistoryStore`."""
        return sum_savings(self._snapshot(), by)

    def _snapshot(self) -> list[StepRecord]:
        with self._lock:
            return [record.model_copy(deep=True) for record in self._records]
