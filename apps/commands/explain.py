"""`reprise explain RUN STEP`: why a step came from the cache, or why it did not."""

import argparse
import json
from collections.abc import Mapping

from pipelines.definitions import Wiring
from reprise.cache.explain import TEXT_FIELDS, text_difference
from reprise.context.bodies import Bodies
from reprise.errors import StoreError, UnknownName
from reprise.model.result import CacheReason, FieldChange, StepRecord
from reprise.model.workflow import slug
from resources.settings import load_settings

MEANINGS: Mapping[CacheReason, str] = {
    CacheReason.HIT: "an earlier result was taken",
    CacheReason.FIRST_TIME: "no earlier result of this step is kept for this project",
    CacheReason.FIELD_CHANGED: "something that its answer depends on changed",
    CacheReason.EXPIRED: "its earlier result was too old",
    CacheReason.EVICTED: "its earlier result had to make room for newer ones",
    CacheReason.INVALIDATED: "its earlier result was invalidated by hand",
    CacheReason.ARTIFACT_GONE: "a file of its earlier result is gone or changed",
    CacheReason.ARTIFACT_UNCHECKED: "the object store could not be asked for a file of it",
    CacheReason.PAYLOAD_DAMAGED: "its earlier result was damaged",
    CacheReason.SCHEMA_CHANGED: "this version of Reprise makes keys in another way",
    CacheReason.POLICY: "the policy says that this step always runs",
    CacheReason.REFRESH: "the run was asked to execute it and overwrite its result",
    CacheReason.BYPASS: "the run was asked to leave the cache alone",
    CacheReason.NOT_HASHABLE: "something that its answer depends on could not be put into a key",
    CacheReason.STORE_OFF: "the cache was off or its store failed",
    CacheReason.INPUTS_MOVED: "its inputs changed while it ran",
    CacheReason.TOO_LARGE: "its result was too large to keep",
    CacheReason.SUPERSEDED: "another execution of the same step took over meanwhile",
    CacheReason.SKIPPED: "it was skipped",
}
"""Each reason, for people; tests/unit/apps/test_explain.py checks that none is missing."""


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    run_id = find_run(wiring, arguments.run)
    record = find_step(wiring, run_id, arguments.step)
    differences = _differences(wiring.services.bodies, record)
    if arguments.json:
        data = {
            "run_id": run_id,
            "order": record.order,
            "label": record.label,
            "from_cache": record.from_cache,
            "reason": record.cache_reason,
            "detail": record.cache_detail,
            "compared_run_id": record.cache_run_id,
            "changes": [change.model_dump(mode="json") for change in record.cache_changes],
            "differences": differences,
        }
        print(json.dumps(data))
        return 0
    print("\n".join(explanation(record, differences)))
    return 0


def find_run(wiring: Wiring, name: str) -> str:
    """Return the id of a run, given it or its beginning.

    Raises:
        UnknownName: No run begins so, or several do.
    """
    found = wiring.history.runs_like(name)
    if len(found) == 1 or name in found:
        return name if name in found else found[0]
    if not found:
        message = f"no run {name!r}; `reprise run` prints the id of each run, the UI lists all"
        raise UnknownName(message)
    shown = ", ".join(run_id[:13] for run_id in found[:5])
    message = f"{len(found)} runs begin with {name!r}: {shown}; give more of the id"
    raise UnknownName(message)


def find_step(wiring: Wiring, run_id: str, name: str) -> StepRecord:
    """Return a run's record of a step, given its order or its label.

    Raises:
        UnknownName: The run has no such step.
    """
    records = [record for record in wiring.history.of_run(run_id) if record.order > 0]
    for record in records:
        if name in (str(record.order), record.label, record.name) or slug(name) == slug(
            record.label
        ):
            return record
    known = ", ".join(f"{record.order} ({record.label})" for record in records) or "none"
    message = f"run {run_id[:8]} has no step {name!r}; its steps: {known}"
    raise UnknownName(message)


def explanation(record: StepRecord, differences: Mapping[str, list[str]]) -> list[str]:
    """Return the lines that explain a step."""
    title = f"step {record.order} ({record.label}) of run {record.run_id[:8]}"
    if record.cache_reason is None:
        return [f"{title}: {record.status.value}; it did not get as far as the cache"]
    what = "from the cache" if record.from_cache else "executed"
    lines = [f"{title}: {what}, {MEANINGS[record.cache_reason]}"]
    if record.cache_detail and record.cache_reason is not CacheReason.FIELD_CHANGED:
        lines.append(f"  {record.cache_detail}")
    for change in record.cache_changes:
        lines.append(f"  {change.field}: {_how(change)}")
        lines += [f"    {part}" for part in change.parts]
        lines += [f"    {line}" for line in differences.get(change.field, [])]
    if record.cache_changes and record.cache_run_id:
        lines.append(f"  compared with the result of run {record.cache_run_id[:8]}")
    return lines


def _how(change: FieldChange) -> str:
    if change.before is None:
        return "was not there before"
    return "is not there any more" if change.now is None else "changed"


def _differences(bodies: Bodies, record: StepRecord) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for change in record.cache_changes:
        if change.field not in TEXT_FIELDS or change.before is None or change.now is None:
            continue
        try:
            texts = [bodies.get(record.project_id, d) for d in (change.before, change.now)]
        except StoreError:
            continue
        found[change.field] = text_difference(str(texts[0]), str(texts[1]))
    return found
