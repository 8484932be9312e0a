"""Filtering and counting entries in Python, for the stores that have no query language.

Source: specification C19.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from reprise.model.cache import CacheEntry, EntryCaps, EntryFilter, EntryStats, EntrySummary

_Key = TypeVar("_Key", bound=Hashable)


def is_same(entry: CacheEntry, seen: CacheEntry) -> bool:
    """Answer whether an entry is the one that was seen, and no later one of its key."""
    return (entry.created_at, entry.payload_digest) == (seen.created_at, seen.payload_digest)


def means(wanted: EntryFilter, entry: CacheEntry) -> bool:
    """Answer whether a filter means an entry."""
    named = ("project_id", "workflow_id", "step_label", "agent_id")
    if any(getattr(wanted, name) not in (None, getattr(entry, name)) for name in named):
        return False
    if not entry.cache_key.startswith(wanted.key_prefix or ""):
        return False
    if wanted.older_than is not None and entry.created_at >= wanted.older_than:
        return False
    if wanted.newer_than is not None and entry.created_at < wanted.newer_than:
        return False
    return _has_digest(wanted, entry)


def _has_digest(wanted: EntryFilter, entry: CacheEntry) -> bool:
    if wanted.field is None:
        return wanted.field_digest in (None, *entry.field_digests.values())
    if wanted.field not in entry.field_digests:
        return False
    return wanted.field_digest in (None, entry.field_digests[wanted.field])


def summary_of(
    entry: CacheEntry, *, last_used_at: datetime | None = None, hits: int = 0, pinned: bool = False
) -> EntrySummary:
    """Return what a listing shows of an entry; one that was never used was used when made."""
    return EntrySummary(
        project_id=entry.project_id,
        cache_key=entry.cache_key,
        workflow_id=entry.workflow_id,
        step_label=entry.step_label,
        step_type=entry.step_type,
        agent_id=entry.agent_id,
        run_id=entry.run_id,
        created_at=entry.created_at,
        expires_at=entry.expires_at,
        last_used_at=last_used_at or entry.created_at,
        hits=hits,
        pinned=pinned,
        size_bytes=size_bytes_of(entry),
        usage=entry.usage,
        seconds=entry.seconds,
    )


def size_bytes_of(entry: CacheEntry) -> int:
    """Return the size of an entry's payload, wherever it is."""
    if entry.payload_bytes is not None:
        return entry.payload_bytes
    # Twice as fast as encoding where the text is ASCII.
    text = entry.payload
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def stats_of(summaries: Iterable[EntrySummary], *, now: datetime) -> EntryStats:
    """Return the figures of some entries."""
    listed = list(summaries)
    made = [summary.created_at for summary in listed]
    return EntryStats(
        rows=len(listed),
        size_bytes=sum(summary.size_bytes for summary in listed),
        hits=sum(summary.hits for summary in listed),
        pinned=sum(summary.pinned for summary in listed),
        expired=sum(not s.pinned and s.expires_at <= now for s in listed),
        projects=len({summary.project_id for summary in listed}),
        oldest_at=min(made, default=None),
        newest_at=max(made, default=None),
    )


def victims_of(summaries: Mapping[_Key, EntrySummary], caps: EntryCaps) -> list[_Key]:
    """Return the keys to evict, the least recently used of each project first; pinned ones stay."""
    by_project: defaultdict[str, list[_Key]] = defaultdict(list)
    for key in sorted(summaries, key=lambda key: summaries[key].last_used_at):
        by_project[summaries[key].project_id].append(key)
    victims = []
    for keys in by_project.values():
        rows, size_bytes = len(keys), sum(summaries[key].size_bytes for key in keys)
        for key in keys:
            if rows <= caps.rows_max and size_bytes <= caps.size_bytes_max:
                break
            if not summaries[key].pinned:
                victims.append(key)
                rows, size_bytes = rows - 1, size_bytes - summaries[key].size_bytes
    return victims
