"""Entries as rows of an SQL table, and back.

Source: specification C11, C12.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from reprise.model.cache import CacheEntry, EntrySummary
from reprise.model.result import Artifact, Usage
from resources.entry_listing import size_bytes_of
from resources.micros import from_micros, to_micros

NAMES = (
    *("project_id", "cache_key", "schema_version", "workflow_id", "step_label", "step_type"),
    *("agent_id", "run_id", "created_at", "expires_at", "payload_digest", "payload_key"),
    *("payload_bytes", "artifacts", "field_digests", "usage", "seconds", "payload"),
)
SUMMARY_NAMES = (
    *("project_id", "cache_key", "workflow_id", "step_label", "step_type", "agent_id", "run_id"),
    *("created_at", "expires_at", "last_used_at", "hits", "pinned", "size_bytes", "usage"),
    "seconds",
)

_ARTIFACTS = TypeAdapter(tuple[Artifact, ...])


def row_of(entry: CacheEntry) -> tuple[object, ...]:
    """Return an entry's values in the order of `NAMES`, then its size and its last use."""
    created_at = to_micros(entry.created_at)
    return (
        entry.project_id,
        entry.cache_key,
        entry.schema_version,
        entry.workflow_id,
        entry.step_label,
        entry.step_type,
        entry.agent_id,
        entry.run_id,
        created_at,
        to_micros(entry.expires_at),
        entry.payload_digest,
        entry.payload_key,
        entry.payload_bytes,
        _ARTIFACTS.dump_json(entry.artifacts).decode() if entry.artifacts else "[]",
        orjson.dumps(entry.field_digests).decode(),
        entry.usage.model_dump_json(),
        entry.seconds,
        entry.payload,
        size_bytes_of(entry),
        created_at,
    )


def entry_of(row: Sequence[Any]) -> CacheEntry:
    """Return the entry of a row in the order of `NAMES`.

    Raises:
        ValueError: The row was edited by hand or by a stray program.
    """
    values = dict(zip(NAMES, row, strict=True))
    values["created_at"] = from_micros(values["created_at"])
    values["expires_at"] = from_micros(values["expires_at"])
    for name in ("artifacts", "field_digests", "usage"):
        values[name] = orjson.loads(values[name])
    return CacheEntry.model_validate(values)


def summary_from(row: Sequence[Any]) -> EntrySummary:
    """Return the summary of a row in the order of `SUMMARY_NAMES`."""
    values = dict(zip(SUMMARY_NAMES, row, strict=True))
    for name in ("created_at", "expires_at", "last_used_at"):
        values[name] = from_micros(values[name])
    values["pinned"] = bool(values["pinned"])
    try:
        values["usage"] = Usage.model_validate_json(values["usage"])
    except ValidationError:
        # Edited by hand; the next look-up removes the row, a listing only shows it.
        values["usage"] = Usage()
    return EntrySummary.model_validate(values)
