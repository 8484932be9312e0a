"""The knobs of the core; resources/settings.py reads them from the environment."""

from pydantic import Field

from reprise.model.base import Value


class StepCacheSettings(Value):
    """The step-result cache. Environment: `REPRISE_STEP_CACHE__…`."""

    enabled: bool = True
    """Master switch; off behaves as if there were no cache."""
    store: str = Field(
        default="auto", pattern=r"^(auto|sqlite|postgres|memory|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)$"
    )
    """Where entries are: `sqlite`, `postgres`, `memory` (of one process), or your own as
    `module:factory`; `auto` takes PostgreSQL where `REPRISE_DATABASE__URL` is set, else SQLite."""
    ttl_hours: float = Field(default=168.0, gt=0)
    """Lifetime of an entry, in hours, counted from when it is stored."""
    max_entry_chars: int = Field(default=2_000_000, gt=0)
    """Larger results are not stored, in characters of their JSON."""
    validate_storage_artifacts: bool = True
    """Ask the object store for each artifact before a hit counts."""
    lookup_deadline_seconds: float = Field(default=0.25, gt=0)
    """Longest wait for the database on a lookup."""
    store_deadline_seconds: float = Field(default=0.5, gt=0)
    """Longest wait for the database on a store."""
    head_deadline_seconds: float = Field(default=1.0, gt=0)
    """Longest wait for the object store on a HEAD."""
    payload_deadline_seconds: float = Field(default=5.0, gt=0)
    """Longest wait for the object store on a payload that is kept there."""
    inline_bytes_max: int = Field(default=64 * 1024, ge=0)
    """Larger payloads go to the object store, in bytes."""
    project_size_bytes_max: int = Field(default=10 * 2**30, gt=0)
    """Most bytes of payloads that one project keeps; the least recently used go first."""
    project_rows_max: int = Field(default=200_000, gt=0)
    """Most entries that one project keeps; the least recently used go first."""
    single_flight: bool = True
    """Wait for another execution of the same step instead of paying twice."""
    lease_seconds: float = Field(default=60.0, gt=0)
    """After so long without a heartbeat another execution takes over."""
    heartbeat_seconds: float = Field(default=15.0, gt=0)
    """How often an execution says that it is alive."""
