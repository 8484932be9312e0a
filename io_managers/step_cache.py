"""The IO manager of every step: asked before it executes, and carrier of references.

An IO manager of Dagster runs around a step's work, never in its place. So the step's body calls
`lookup` first and executes only on a miss; hit or fresh, the same record then goes through
`handle_output`. What travels is a `StepReference`: digests, never bodies. References are kept per
run, so two runs of one project never read each other's.

Source: specification D3, D4, C9.
"""

from collections.abc import Callable

import dagster as dg

from reprise.cache.lookup import StepCache
from reprise.model.result import StepRecord, StepReference
from reprise.ports import HistoryStore


class StepCacheIOManager(dg.IOManager):
    """Carries step references, and answers from the step-result cache.

    Args:
        cache: Gives the step-result cache; called on first use.
        history: Gives the record of what every run did; called on first use.
    """

    def __init__(self, cache: Callable[[], StepCache], history: Callable[[], HistoryStore]) -> None:
        self._cache = cache
        self._history = history

    @property
    def cache(self) -> StepCache:
        """The step-result cache: `lookup` before a step executes, `store` after it succeeded."""
        return self._cache()

    def handle_output(self, context: dg.OutputContext, obj: StepRecord) -> None:
        """Append the step's record to the history; later steps and later runs find it there."""
        del context
        self._history().append(obj)

    def load_input(self, context: dg.InputContext) -> StepReference:
        """Return the reference of an upstream step: of this run or its parent, else the latest.

        Raises:
            DagsterInvariantViolationError: The upstream step has no result for this project yet.
        """
        workflow_slug, name = context.asset_key.path
        project_id = context.asset_partition_key
        upstream = context.upstream_output
        run_id = upstream.run_id if upstream is not None else None
        history = self._history()
        workflow_id = str((context.definition_metadata or {}).get("workflow_id", workflow_slug))
        record = None
        if run_id is not None:
            record = history.of_step(workflow_id, project_id, name, run_id=run_id)
        if record is None:
            record = history.of_step(workflow_id, project_id, name, run_id=None)
        if record is None or record.reference is None:
            message = (
                f"{workflow_slug}/{name} has no result for project {project_id!r} yet;"
                " run that step first, or the whole workflow"
            )
            raise dg.DagsterInvariantViolationError(message)
        return record.reference
