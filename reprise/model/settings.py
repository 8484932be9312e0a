"""The knobs of the core; resources/settings.py reads them from the environment."""

from enum import StrEnum

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


class DigestStrategy(StrEnum):
    """What of a long array and a long string is left in a digest."""

    PLAIN = "plain"
    """The first items and the head."""
    SAMPLED = "sampled"
    """First, last and evenly spaced items; head and tail; ids, keys and scores whole."""


class ContextBudgetSettings(Value):
    """The prompt-context budget. Environment: `REPRISE_CONTEXT_BUDGET__…`."""

    enabled: bool = True
    """Master switch; off puts every prior output into a prompt whole."""
    max_input_chars: int = 160_000
    """Longest joined prior output in a prompt, in characters; a longer one is cut. 0 or less
    switches the budget off."""
    max_digested_step_chars: int = Field(default=12_000, ge=100)
    """Longest digest of one step's output, in characters."""
    recent_steps_verbatim: int = Field(default=2, ge=0)
    """So many of the latest outputs are never cut."""
    digest_max_string_chars: int = Field(default=600, ge=1)
    """Longer texts inside a digest are cut, in characters."""
    digest_max_array_items: int = Field(default=25, ge=1)
    """Longer lists inside a digest are cut."""
    digest_max_depth: int = Field(default=12, ge=1, lt=200)
    """What is nested deeper is left out of a digest."""
    digest_strategy: DigestStrategy = DigestStrategy.PLAIN
    """`plain` keeps the first items of a list and the head of a text; `sampled` also some from the
    rest, and ids, keys and scores whole."""
