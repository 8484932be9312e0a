"""What people and schedules ask of the cache's entries: filters, listings, figures, caps, leases.

Source: specification C14, C19, C24.
"""

from datetime import datetime

from pydantic import AwareDatetime, Field

from reprise.model.base import Value
from reprise.model.result import Artifact, CacheReason, FieldChange, StepResult, Usage


class EntryFilter(Value):
    """Which entries are meant: those that fit every field given; an empty filter means all."""

    project_id: str | None = None
    """Of this project."""
    workflow_id: str | None = None
    """Of this workflow."""
    step_label: str | None = None
    """Of the step of this label."""
    agent_id: str | None = None
    """Of this agent."""
    key_prefix: str | None = Field(default=None, pattern="^[0-9a-f]{1,64}$")
    """Whose cache key begins so."""
    field: str | None = None
    """Whose key has a digest of this name, such as `project_file_fingerprint / b.mp4`."""
    field_digest: str | None = None
    """Whose key has this digest: of the named field, or of any when none is named."""
    older_than: AwareDatetime | None = None
    """Made before this moment."""
    newer_than: AwareDatetime | None = None
    """Made at this moment or later."""


class EntrySummary(Value):
    """What a listing shows of an entry."""

    project_id: str
    """Its project."""
    cache_key: str
    """Its key."""
    workflow_id: str
    """The workflow that made it."""
    step_label: str
    """The step that made it."""
    step_type: str
    """That step's type."""
    agent_id: str | None
    """The agent that answered."""
    run_id: str
    """The run that paid for it."""
    created_at: datetime
    """Aware, UTC."""
    expires_at: datetime
    """Aware, UTC; a pinned entry stays beyond it."""
    last_used_at: datetime
    """When it last answered, as far as written down; its making when it never did."""
    hits: int
    """How often it answered; a process that dies may leave some of its own uncounted."""
    pinned: bool
    """Never expires and is never evicted."""
    size_bytes: int
    """Of its payload."""
    usage: Usage
    """What the original took."""
    seconds: float
    """How long the original took."""


class EntryStats(Value):
    """Figures of the entries of one project, or of all."""

    rows: int = 0
    """Entries, expired ones included."""
    size_bytes: int = 0
    """Of their payloads."""
    hits: int = 0
    """Answers that they gave."""
    pinned: int = 0
    """Entries that are pinned."""
    expired: int = 0
    """Entries that wait for the sweep."""
    projects: int = 0
    """Projects that have any."""
    oldest_at: datetime | None = None
    """When the oldest was made; aware, UTC."""
    newest_at: datetime | None = None
    """When the newest was made; aware, UTC."""


class EntryCaps(Value):
    """How much one project may keep; the least recently used goes first (specification C24)."""

    size_bytes_max: int = Field(default=10 * 2**30, gt=0)
    """Bytes of payloads."""
    rows_max: int = Field(default=200_000, gt=0)
    """Entries."""


class Lease(Value):
    """The right to compute one key, until it expires or someone else takes it."""

    project_id: str
    """The project."""
    cache_key: str
    """The key."""
    holder: str
    """Who has it: a name of its own for every execution."""
    fence: int
    """Rises with every holder of this key; a store with an older one is refused."""


class CacheEntry(Value):
    """A step's earlier result, as the store keeps it."""

    project_id: str
    """Never shared across projects."""
    cache_key: str
    """64 hexadecimal digits."""
    schema_version: int
    """Version of the key's encoding."""
    workflow_id: str
    """For explaining and invalidating; not part of identity."""
    step_label: str
    """For explaining and invalidating; not part of identity."""
    step_type: str
    """For explaining and invalidating; not part of identity."""
    agent_id: str | None = None
    """For explaining and invalidating; not part of identity."""
    run_id: str
    """The run that paid for it."""
    created_at: datetime
    """Aware, UTC."""
    expires_at: datetime
    """Aware, UTC; tested in the query."""
    payload: str
    """The step result as JSON (`StepResult`)."""
    payload_digest: str
    """SHA-256 of the payload; checked on reading."""
    payload_key: str | None = None
    """The object that holds the payload, which is empty here then; null when it is here. Between
    the parts of a store only: no caller of the whole store sees one."""
    payload_bytes: int | None = Field(default=None, ge=0)
    """Size of a payload that an object holds."""
    artifacts: tuple[Artifact, ...] = ()
    """Objects that must be there for a hit to count."""
    field_digests: dict[str, str] = Field(default_factory=dict)
    """Key field → digest, so that a miss can be explained."""
    usage: Usage = Usage()
    """What the original took."""
    seconds: float = 0.0
    """How long the original took."""


class Lookup(Value):
    """What the cache says before a step runs."""

    reason: CacheReason
    """Hit, or why not."""
    detail: str = ""
    """The same for people."""
    result: StepResult | None = None
    """The earlier result, on a hit."""
    entry: CacheEntry | None = None
    """The entry that it came from, on a hit."""
    changes: tuple[FieldChange, ...] = ()
    """On a miss: what differs from the nearest earlier entry of this step."""
    compared_run_id: str | None = None
    """On a miss: the run of that entry."""

    @property
    def is_hit(self) -> bool:
        """True when an earlier result was found."""
        return self.result is not None
