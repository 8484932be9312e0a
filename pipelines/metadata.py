"""What a step shows in Dagster's UI: the same names for a hit and a fresh result.

Whole numbers and floats get a plot over time and projects, so `cache_hit` is 0 or 1 beside the
boolean `from_cache`.

Source: specification D4, D8.
"""

from collections.abc import Callable, Mapping

from dagster import MetadataValue, TableRecord
from dagster._core.definitions.metadata import RawMetadataValue

from pipelines.previews import preview
from reprise.agents.loop import end_of, usage_of
from reprise.model.budget import estimated_tokens
from reprise.model.result import StepRecord, StepResult
from reprise.ports import ObjectStore

ARTIFACTS_SHOWN_MAX = 20

OVER_NOTE = (
    "the latest outputs, which are never cut, alone are longer than {:,} characters; "
    "fewer stay whole with `REPRISE_CONTEXT_BUDGET__RECENT_STEPS_VERBATIM`"
)


def request_metadata(text: str, origin: str) -> Mapping[str, RawMetadataValue]:
    """Return what the request asset shows."""
    return {"user_request": MetadataValue.text(text), "origin": MetadataValue.text(origin)}


def step_metadata(
    record: StepRecord, result: StepResult, objects: ObjectStore
) -> Mapping[str, RawMetadataValue]:
    """Return what a step's asset shows, the most wanted first: what it gave, then what it took."""
    shown: dict[str, RawMetadataValue] = {"status": record.status.value}
    if result.skip_reason:
        shown["skip_reason"] = result.skip_reason
    shown |= preview(record.type, result.output, objects)
    shown |= {name: value for name, value in result.metadata.items() if _plottable(value)}
    if record.notes:
        shown["notes"] = MetadataValue.md("\n".join(f"- {note}" for note in record.notes))
    if record.artifacts:
        rows = [
            TableRecord({"name": item.name, "bytes": item.size_bytes}) for item in record.artifacts
        ]
        shown["artifacts"] = MetadataValue.table(rows[:ARTIFACTS_SHOWN_MAX])
    for item in record.artifacts[:ARTIFACTS_SHOWN_MAX]:
        shown[item.name] = _link(objects.url, item.storage_key)
    return shown | _cache_and_costs(record)


def failure_metadata(error: BaseException) -> Mapping[str, RawMetadataValue]:
    """Return what a failed step shows besides its error: what its model calls took."""
    usage, ended = usage_of(error), end_of(error)
    if ended is None and not usage.calls:
        return {}
    return {
        "ended": ended.value if ended is not None else "after the agents",
        "tokens_used": usage.tokens,
        "cost_usd": _dollars(usage.cost_micros),
    }


def _cache_and_costs(record: StepRecord) -> dict[str, RawMetadataValue]:
    return {
        "from_cache": record.from_cache,
        "cache_reason": record.cache_reason.value if record.cache_reason else "none",
        "cache_detail": record.cache_detail,
        "seconds": round(record.seconds, 3),
        "cached_seconds_saved": round(record.cached_seconds_saved, 3),
        "model": record.model or "none",
        "tokens_used": record.usage.tokens,
        "cached_tokens_saved": record.cached_tokens_saved,
        "cost_usd": _dollars(record.usage.cost_micros),
        "cached_cost_usd_saved": _dollars(record.cached_cost_micros_saved),
        **_prompt(record),
        "retries": record.retries,
        "cache_hit": int(record.from_cache),
        "cache_key": record.cache_key or "none",
    }


def _prompt(record: StepRecord) -> dict[str, RawMetadataValue]:
    """Return how long the input was before and after the budget, and what became of each output."""
    report = record.context_budget
    before = record.prompt_chars if report is None else report.chars_before
    shown: dict[str, RawMetadataValue] = {
        "prompt_chars_before_budget": before,
        "prompt_chars": record.prompt_chars,
        "prompt_tokens_before_budget_estimated": estimated_tokens(before),
        "prompt_tokens_estimated": estimated_tokens(record.prompt_chars),
    }
    if report is not None:
        rows = [
            TableRecord(
                {
                    "step": f"{entry.order} ({entry.label})",
                    "in the prompt": entry.treatment.value,
                    "chars before": entry.chars_before,
                    "chars after": entry.chars_after,
                }
            )
            for entry in report.entries
        ]
        shown["context_budget"] = MetadataValue.table(rows)
        if report.is_over:
            shown["context_budget_exceeded"] = OVER_NOTE.format(report.settings.max_input_chars)
    return shown


def _dollars(micros: int | None) -> RawMetadataValue:
    return "unknown" if micros is None else micros / 1_000_000


def _plottable(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _link(url: Callable[[str], str], key: str) -> RawMetadataValue:
    address = url(key)
    return MetadataValue.url(address) if "://" in address else MetadataValue.path(address)
