"""A run in plain words and a table: what was made, what each step took, what the cache saved."""

from collections.abc import Callable, Sequence

from apps.commands.tables import size_text, table
from apps.launch import RunSummary
from reprise.model.result import Artifact, StepRecord


def summary_text(summary: RunSummary, url: Callable[[str], str]) -> str:
    """Return a run's summary for a terminal."""
    parts = [
        f"{summary.workflow_id} on {summary.project}: {summary.status} in {summary.seconds:.1f} s"
        f" (run {summary.run_id})",
        "",
        steps_table(summary.records),
        "",
        savings_text(summary.records),
    ]
    made = products(summary.records)
    if made:
        parts += ["", "made:"]
        parts += [f"  {a.name} ({size_text(a.size_bytes)})  {url(a.storage_key)}" for a in made]
    notes = [note for record in summary.records for note in record.notes]
    if notes:
        parts += ["", "notes:", *(f"  {note}" for note in dict.fromkeys(notes))]
    return "\n".join(parts)


def steps_table(records: Sequence[StepRecord]) -> str:
    """Return a table of a run's steps."""
    cells = [
        [
            str(record.order),
            record.label,
            record.status.value,
            f"{record.seconds:.2f}",
            "from cache" if record.from_cache else "executed",
            record.cache_detail or (record.cache_reason.value if record.cache_reason else ""),
        ]
        for record in records
    ]
    return table(cells, ["step", "label", "status", "seconds", "how", "why"])


def savings_text(records: Sequence[StepRecord]) -> str:
    """Return in one line what the cache saved."""
    hits = [record for record in records if record.from_cache]
    if not hits:
        return "nothing came from the cache"
    seconds = sum(record.cached_seconds_saved - record.seconds for record in hits)
    tokens = sum(record.cached_tokens_saved for record in hits)
    costs = [record.cached_cost_micros_saved for record in hits]
    money = "" if None in costs else f" and ${sum(c or 0 for c in costs) / 1e6:.4f}"
    return (
        f"{len(hits)} of {len(records)} steps came from the cache:"
        f" {max(0.0, seconds):.1f} s, {tokens:,} tokens{money} saved"
    )


def products(records: Sequence[StepRecord]) -> list[Artifact]:
    """Return the artifacts of the steps that made a main product."""
    return [
        artifact
        for record in records
        if record.output_storage_key is not None
        for artifact in record.artifacts
    ]


def compare_text(first: RunSummary, second: RunSummary) -> str:
    """Return in one line how the second run of the same thing compares with the first."""
    fresh = sum(not record.from_cache for record in second.records)
    executed = sum(not record.from_cache for record in first.records)
    if executed == 0:
        return (
            f"Both runs came from the cache: {first.seconds:.1f} s and {second.seconds:.1f} s."
            " Remove `.reprise` to see a first run again."
        )
    return (
        f"The first run executed {executed} steps in {first.seconds:.1f} s;"
        f" the second executed {fresh} in {second.seconds:.1f} s."
    )
