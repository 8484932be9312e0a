"""What a step gives: its result, the run's record of it, the reference that travels.

Bodies (a result's output as canonical JSON) live once in the object store, by digest; records and
references name them.

Source: specification W5, C9, C10, D3.
"""

from datetime import datetime
from enum import StrEnum

from pydantic import Field, JsonValue

from reprise.model.base import Value
from reprise.model.budget import BudgetReport
from reprise.model.workflow import StepType


class StepStatus(StrEnum):
    """How a step ended."""

    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CacheReason(StrEnum):
    """Why a step was answered from the cache, or was not: a closed set."""

    HIT = "hit"
    FIRST_TIME = "first_time"
    FIELD_CHANGED = "field_changed"
    EXPIRED = "expired"
    EVICTED = "evicted"
    INVALIDATED = "invalidated"
    ARTIFACT_GONE = "artifact_gone"
    ARTIFACT_UNCHECKED = "artifact_unchecked"
    PAYLOAD_DAMAGED = "payload_damaged"
    SCHEMA_CHANGED = "schema_changed"
    POLICY = "policy"
    REFRESH = "refresh"
    BYPASS = "bypass"
    NOT_HASHABLE = "not_hashable"
    STORE_OFF = "store_off"
    INPUTS_MOVED = "inputs_moved"
    TOO_LARGE = "too_large"
    SUPERSEDED = "superseded"
    SKIPPED = "skipped"


class FieldChange(Value):
    """A key field that differs from the nearest earlier entry's."""

    field: str
    """The key's field."""
    parts: tuple[str, ...] = ()
    """What in it changed, where that can be told: steps, files, programs."""
    before: str | None = None
    """Digest of the earlier text; null when the field was absent."""
    now: str | None = None
    """Digest of the text now; null when the field is absent."""


class Usage(Value):
    """Tokens of model calls, in one normal form, and what they cost."""

    input_uncached: int = Field(default=0, ge=0)
    """Input tokens that the provider read afresh."""
    cache_read: int = Field(default=0, ge=0)
    """Input tokens that the provider read from its prefix cache."""
    cache_write: int = Field(default=0, ge=0)
    """Input tokens that the provider wrote to its prefix cache."""
    output: int = Field(default=0, ge=0)
    """Output tokens, reasoning included."""
    reasoning: int = Field(default=0, ge=0)
    """Output tokens spent on reasoning."""
    calls: int = Field(default=0, ge=0)
    """Model calls."""
    cost_micros: int | None = 0
    """Millionths of a US dollar; null when a model's price is unknown."""

    @property
    def tokens(self) -> int:
        """All tokens, in and out."""
        return self.input_uncached + self.cache_read + self.cache_write + self.output

    def __add__(self, other: "Usage") -> "Usage":
        """Return both together; the cost is unknown when either is."""
        known = self.cost_micros is not None and other.cost_micros is not None
        return Usage(
            input_uncached=self.input_uncached + other.input_uncached,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            calls=self.calls + other.calls,
            cost_micros=(self.cost_micros or 0) + (other.cost_micros or 0) if known else None,
        )


class LoopEnd(StrEnum):
    """Why an agent's loop ended: a closed set."""

    ANSWERED = "answered"
    ANSWER_CUT = "answer_cut"
    ANSWER_REFUSED = "answer_refused"
    ANSWER_INVALID = "answer_invalid"
    TURNS = "turns_max"
    TOKENS = "tokens_max"
    SECONDS = "seconds_max"
    COST = "cost_usd_max"
    PROVIDER = "provider_failed"
    CANCELLED = "cancelled"
    FAULT = "fault"


class Artifact(Value):
    """A file that a step made, in the object store."""

    name: str
    """File name for people, such as `promo.mp4`."""
    storage_key: str
    """Where it is."""
    size_bytes: int = Field(ge=0)
    """Size in bytes."""
    etag: str | None = None
    """The store's tag of these bytes."""
    media_type: str = "application/octet-stream"
    """Internet media type."""


class StepResult(Value):
    """What a step gives, fresh or from the cache."""

    status: StepStatus = StepStatus.SUCCEEDED
    """Succeeded or skipped; a failure is raised, not returned."""
    output: JsonValue = None
    """The step's answer."""
    prompt_output: JsonValue = None
    """What later prompts show in its place; null shows the output. Whoever reads outputs as values
    gets `output` all the same."""
    artifacts: tuple[Artifact, ...] = ()
    """Files that it made."""
    output_storage_key: str | None = None
    """The artifact that is the step's main product."""
    variables: dict[str, JsonValue] = Field(default_factory=dict)
    """Variables that it sets besides its output variable."""
    sets_output_variable: bool = True
    """False when it ended before writing its output variable."""
    stop_workflow: bool = False
    """True when the steps that follow are to be skipped."""
    skip_reason: str | None = None
    """Why it was skipped."""
    usage: Usage = Usage()
    """What its model calls took."""
    retries: int = Field(default=0, ge=0)
    """Attempts beyond the first."""
    model: str | None = None
    """The model that answered, or the heuristic's name."""
    notes: tuple[str, ...] = ()
    """What a person should know."""
    lossy: str | None = None
    """What JSON could not hold of it; such a result serves its run and is never stored (C12)."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Small figures for the UI; not read by any step."""


class SeenStep(Value):
    """A step's result as a later step saw it."""

    order: int
    """The step's order; 0 is the request."""
    label: str
    """The step's label."""
    type: StepType | None
    """The step's type; null for the request."""
    status: StepStatus
    """How it ended."""
    body_digest: str
    """SHA-256 of its output's canonical JSON."""
    prompt_digest: str | None = None
    """The same of what later prompts show in the output's place; null where that is the output."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Variable name → digest of its value's canonical JSON."""
    stop_workflow: bool = False
    """True when the steps after it are to be skipped."""

    @property
    def version(self) -> str:
        """Tells apart what later steps may see of it, as a value or in a prompt."""
        words = self.prompt_digest
        return self.body_digest if words is None else f"{self.body_digest}-{words}"


class StepReference(Value):
    """What travels from step to step: digests, never bodies."""

    workflow_id: str
    """The workflow."""
    project_id: str
    """The project."""
    run_id: str
    """The run that made it."""
    seen: SeenStep
    """This step's own result."""
    history: dict[int, SeenStep] = Field(default_factory=dict)
    """Order → result of every step, and of the request, that this one descends from."""


class StepRecord(Value):
    """What a run keeps of one step (append-only)."""

    run_id: str
    """The run."""
    workflow_id: str
    """The workflow."""
    project_id: str
    """The project."""
    order: int
    """The step's order; 0 is the request."""
    label: str
    """The step's label."""
    name: str
    """Dagster's name of the step, such as `s03_audience`; `request` for the request."""
    type: StepType | None
    """The step's type; null for the request."""
    status: StepStatus
    """How it ended."""
    reference: StepReference | None = None
    """What later steps get; null for a failure."""
    artifacts: tuple[Artifact, ...] = ()
    """Files that it made."""
    output_storage_key: str | None = None
    """Its main product."""
    from_cache: bool = False
    """True when an earlier result was taken."""
    cache_reason: CacheReason | None = None
    """Why it was taken, or was not."""
    cache_detail: str = ""
    """The same for people: which field changed, how old the entry is."""
    cache_key: str | None = None
    """The entry's key; null when none could be made or the policy says no."""
    cache_changes: tuple[FieldChange, ...] = ()
    """On a miss: what differs from the nearest earlier entry of this step."""
    cache_run_id: str | None = None
    """The run of the entry that answered, or that the miss was compared with."""
    usage: Usage = Usage()
    """What this run spent: nothing on a hit."""
    seconds: float = 0.0
    """How long it took in this run."""
    cached_tokens_saved: int = 0
    """Tokens that the original took and this run did not."""
    cached_seconds_saved: float = 0.0
    """Seconds that the original took."""
    cached_cost_micros_saved: int | None = 0
    """Money that the original took; null when its price is unknown."""
    retries: int = 0
    """Attempts beyond the first."""
    model: str | None = None
    """The model that answered."""
    prompt_chars: int = 0
    """Characters of its input, as an agent is shown it."""
    context_budget: BudgetReport | None = None
    """What the context budget did to its input; null when it changed nothing."""
    error: str | None = None
    """Why it failed: what, where, what to do."""
    ended: LoopEnd | None = None
    """Why its agent's loop ended, where it failed in one."""
    notes: tuple[str, ...] = ()
    """What a person should know."""
    started_at: datetime
    """When it began; aware, UTC."""
    finished_at: datetime
    """When it ended; aware, UTC."""
