"""Every door to the outside, one Protocol each; the adapters are in resources/.

An adapter wraps foreign errors in those of reprise/errors.py. Each port has an adapter for real
use and an in-memory or scripted one that passes the same contract tests (tests/integration/).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import Field, JsonValue

from reprise.model.agent import AgentDefinition
from reprise.model.base import Value
from reprise.model.cache import EntryFilter, EntryStats, EntrySummary, Lease
from reprise.model.function import FunctionInputs
from reprise.model.media import Loudness, Transcript
from reprise.model.project import Project, ProjectFile
from reprise.model.result import (
    Artifact,
    CacheReason,
    FieldChange,
    StepRecord,
    StepResult,
    Usage,
)
from reprise.model.savings import Savings, SavingsBy

Progress = Callable[[str, float | None], None]
"""Called with what is being done and the share done (0 to 1, or None when unknown)."""

Cancelled = Callable[[], bool]
"""Answers whether the run is being stopped; long work asks it at least twice a second."""


class ObjectInfo(Value):
    """What a HEAD tells of an object."""

    key: str
    """Its key."""
    size_bytes: int = Field(ge=0)
    """Its size."""
    etag: str
    """Changes when its bytes change."""
    modified_at: datetime
    """Aware, UTC."""


class ObjectStore(Protocol):
    """Bytes by key: relative, with forward slashes; one that climbs out is refused."""

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object; None only when the store says it is not there.

        Raises:
            StoreError: Any other answer, such as 403, 5xx or none at all.
        """
        ...

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        """Store bytes whole or not at all, replacing what was there."""
        ...

    def put_file(self, key: str, path: Path, *, media_type: str | None = None) -> ObjectInfo:
        """Store a file's bytes whole or not at all, replacing what was there."""
        ...

    def get_bytes(self, key: str, *, size_bytes_max: int = 64 * 2**20) -> bytes:
        """Return an object's bytes.

        Raises:
            ObjectMissing: There is none.
            StoreError: It is larger than the limit, or the store failed.
        """
        ...

    def fetch(self, key: str, target: Path) -> None:
        """Copy an object to a local file, whole or not at all.

        Raises:
            ObjectMissing: There is none.
        """
        ...

    def local_path(self, key: str) -> Path | None:
        """Return a path to read in place (never written), or None when it is not local."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        ...

    def scan(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key begins with the prefix, by rising key."""
        ...

    def url(self, key: str) -> str:
        """Return where a person finds it: a path or an `s3://` address."""
        ...


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


class EntryStore(Protocol):
    """Cache entries by (project, key). One statement a write; expiry is tested in the query."""

    def get(self, project_id: str, cache_key: str, *, now: datetime) -> CacheEntry | None:
        """Return the entry that is valid now, or None."""
        ...

    def put(self, entry: CacheEntry, *, lease: Lease | None = None) -> bool:
        """Insert or replace an entry, in one statement; a pinned one stays pinned.

        Args:
            entry: The entry.
            lease: Under which it was computed; None when single flight was not asked.

        Returns:
            False when another holder took the lease since, and nothing was stored.
        """
        ...

    def delete(
        self, project_id: str, cache_key: str, *, reason: CacheReason, now: datetime
    ) -> None:
        """Remove an entry and leave a tombstone with the reason."""
        ...

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key went, if one did in the last 30 days."""
        ...

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return a step's newest entry, valid or not, to explain a miss by."""
        ...

    def sweep(self, *, now: datetime, rows_max: int = 200) -> int:
        """Remove up to so many entries that expired or are over their project's caps.

        Those over the caps go by when they were last used. Returns how many went; call again
        while that is `rows_max`. Not one of them was pinned.
        """
        ...

    def pin(self, project_id: str, cache_key: str, *, on: bool) -> bool:
        """Keep an entry from expiring and from being evicted, or no longer.

        Returns:
            False when there is no such entry.
        """
        ...

    def find(self, wanted: EntryFilter) -> Iterator[EntrySummary]:
        """Yield the entries that a filter means, the newest first, expired ones included.

        Raises:
            BadInput: The store cannot list.
        """
        ...

    def invalidate(self, wanted: EntryFilter, *, now: datetime) -> int:
        """Remove the entries that a filter means, pinned ones too; return how many went.

        Each leaves the tombstone `invalidated`.

        Raises:
            BadInput: The store cannot list.
        """
        ...

    def stats(self, project_id: str | None = None, *, now: datetime) -> EntryStats:
        """Return figures of one project's entries, or of all.

        Raises:
            BadInput: The store cannot list.
        """
        ...

    def payloads_in_use(self, payload_keys: Sequence[str], *, since: datetime) -> set[str]:
        """Return those that an entry names, or one that went at that moment or later named."""
        ...

    def flush(self) -> None:
        """Write down the uses that this process has counted; asked at the end of a run."""
        ...

    def clear(self) -> None:
        """Remove all entries."""
        ...

    def __len__(self) -> int:
        """Return the number of entries, expired ones included."""
        ...


class LeaseStore(Protocol):
    """Leases by (project, key): who computes it just now. Time is the store's own.

    A lease saves work and is not needed to be right: losing one costs a second execution.
    """

    def acquire(
        self, project_id: str, cache_key: str, *, holder: str, seconds: float
    ) -> Lease | None:
        """Take the lease for so long; None while another holder has it."""
        ...

    def renew(self, lease: Lease, *, seconds: float) -> bool:
        """Have it for so long from now; answer False when another holder took it since."""
        ...

    def release(self, lease: Lease) -> None:
        """Give it up; one that was lost is no error."""
        ...

    def remaining_seconds(self, project_id: str, cache_key: str) -> float:
        """Return how long the present holder still has it; 0 when nobody does."""
        ...

    def holds(self, lease: Lease) -> bool:
        """Answer whether nobody took it since."""
        ...


class HistoryStore(Protocol):
    """The append-only record of what every run did (specification W5)."""

    def append(self, record: StepRecord) -> None:
        """Add a record."""
        ...

    def of_run(self, run_id: str) -> Sequence[StepRecord]:
        """Return a run's records: the newest of each step, by order."""
        ...

    def of_step(
        self, workflow_id: str, project_id: str, name: str, *, run_id: str | None
    ) -> StepRecord | None:
        """Return a step's newest record that has a result: of a run, or (None) of any."""
        ...

    def savings(self, by: SavingsBy) -> Sequence[Savings]:
        """Return what the cache saved in steps that succeeded, summed by group, by group."""
        ...

    def runs_like(self, prefix: str) -> Sequence[str]:
        """Return the ids of runs that begin with a text, newest first, at most 20."""
        ...

    def latest_run(self, workflow_id: str, project_id: str) -> str | None:
        """Return the id of the run that last gave this project a result of this workflow."""
        ...


class ProjectRegistry(Protocol):
    """Projects and their files. Each method is one transaction."""

    def add_project(self, name: str, *, now: datetime) -> Project:
        """Make a project, or return the one of this name.

        Raises:
            BadInput: The name holds other than letters, digits, `-`, `_` and `.`.
        """
        ...

    def project(self, name: str) -> Project | None:
        """Return a project, or None."""
        ...

    def projects(self) -> Sequence[Project]:
        """Return all projects, by name."""
        ...

    def remove_project(self, name: str) -> bool:
        """Remove a project and its file rows; answer whether there was one."""
        ...

    def put_file(self, file: ProjectFile) -> None:
        """Add a file row, or replace the one of this name."""
        ...

    def files(self, project_id: str) -> Sequence[ProjectFile]:
        """Return a project's files, by name."""
        ...

    def remove_file(self, project_id: str, name: str) -> bool:
        """Remove a file row; answer whether there was one."""
        ...


class MediaProbe(Value):
    """What a container says of a video, one frame decoded."""

    duration_seconds: float
    """Length of the picture; of the sound where there is no picture."""
    has_video: bool
    """A moving picture; cover art does not count."""
    has_audio: bool
    """A sound track."""
    width: int = 0
    """Display width after rotation and with square pixels."""
    height: int = 0
    """Display height after rotation and with square pixels."""
    rotation_degrees: int = 0
    """Clockwise rotation that a player applies."""
    frame_rate: str = "0"
    """Rational frames a second."""
    frame_count: int = 0
    """Frames that the container claims, at `frame_rate`."""
    variable_frame_rate: bool = False
    """Unevenly spaced frames."""
    audio_rate_hz: int | None = None
    """Sampling rate."""
    hdr: bool = False
    """PQ or HLG transfer."""
    container: str = ""
    """Demuxer name, such as `mov,mp4,m4a,3gp,3g2,mj2`."""


class MeasuredShot(Value):
    """A shot with its figures and its thumbnail as a local file."""

    start_frame: int
    """First frame."""
    end_frame: int
    """First frame that is not in it."""
    luma: float
    """Mean luma, 0 to 255."""
    saturation: float
    """Mean saturation, 0 to 1."""
    clipped: float
    """Share of pixels at either end of the range."""
    motion: float
    """Mean absolute luma change between frames."""
    motion_x: float = 0.5
    """Where the motion is, across."""
    thumbnail: Path | None = None
    """A JPEG of its middle."""


class FrameMeasures(Value):
    """What one decode of a source measured; all lists by rising time."""

    frame_count: int
    """Frames decoded at `frame_rate`."""
    frame_rate: str
    """Rational frames a second."""
    partial: bool = False
    """Fewer frames than the container claims."""
    shots: tuple[MeasuredShot, ...]
    """They cover the whole source."""
    black: tuple[tuple[float, float], ...]
    """Start and end in seconds."""
    freeze: tuple[tuple[float, float], ...]
    """Start and end in seconds."""
    silence: tuple[tuple[float, float], ...]
    """Start and end in seconds."""
    loudness: Loudness | None
    """Null without sound."""
    letterbox: tuple[int, int, int, int] | None = None
    """Left, top, width, height of the active picture when it has bars."""


class AnalyzeOptions(Value):
    """Thresholds of an analysis; see `VideoAnalyzeConfig`."""

    shot_threshold: float = 1.0
    """1 is the measured default; higher finds fewer cuts."""
    black_seconds_min: float = 0.3
    """Shortest black span."""
    freeze_seconds_min: float = 0.7
    """Shortest frozen span."""
    silence_seconds_min: float = 0.3
    """Shortest silence."""
    silence_db: float = -40.0
    """Below this level it is silence, in dBFS."""


class VideoAnalyzer(Protocol):
    """Probes and measures a source: one process, one open of the input (specification V5)."""

    def toolchain(self) -> Mapping[str, str]:
        """Return what its results depend on besides input and options, for the cache key (V3)."""
        ...

    def probe(self, path: Path) -> MediaProbe:
        """Read the container and decode one frame.

        Raises:
            MediaUnreadable: It is no media file, broken or truncated; the message names the file.
        """
        ...

    def analyze(
        self,
        path: Path,
        options: AnalyzeOptions,
        workdir: Path,
        *,
        progress: Progress,
        cancelled: Cancelled,
    ) -> FrameMeasures:
        """Decode once and measure; writes `workdir/speech.wav` (16 kHz mono s16) for sound.

        Raises:
            MediaUnreadable: The picture cannot be decoded.
            Cancelled: The run is being stopped.
        """
        ...


class SpeechRecognizer(Protocol):
    """Turns speech into words with times (specification V8)."""

    def identity(self) -> Mapping[str, str]:
        """Return engine, version, model and its digest, for the cache key.

        Raises:
            SpeechModelMissing: No model can be found; says how to get one.
        """
        ...

    def transcribe(
        self,
        wav: Path,
        *,
        language: str | None,
        source_id: str,
        progress: Progress,
        cancelled: Cancelled,
    ) -> Transcript:
        """Recognise 16 kHz mono s16 speech; sentence ids are `{source_id}.t001` and so on."""
        ...


class RenderSource(Value):
    """A source of a film, as a local file."""

    id: str
    """Id in the analysis."""
    path: Path
    """Readable local file."""
    content_digest: str
    """SHA-256 of its bytes."""
    frame_rate: str
    """Rational frames a second at which its frames are counted."""
    frame_count: int
    """Frames at that rate."""
    width: int
    """Display width."""
    height: int
    """Display height."""
    has_audio: bool
    """Has it a sound track."""
    hdr: bool = False
    """Needs tone-mapping."""


class RenderCut(Value):
    """A stretch of a source in the film, in the source's frames."""

    source_id: str
    """Which source."""
    start_frame: int
    """First frame."""
    end_frame: int
    """First frame that is not in it."""


class Caption(Value):
    """A caption on the film's clock."""

    start_seconds: float
    """When it appears."""
    end_seconds: float
    """When it goes."""
    text: str
    """At most two lines."""


class RenderPlan(Value):
    """Everything that a film is made of; the same plan and toolchain give the same film."""

    sources: tuple[RenderSource, ...]
    """The sources that the cuts name."""
    cuts: tuple[RenderCut, ...] = Field(min_length=1)
    """In the film's order."""
    frame_rate: str
    """Rational frames a second of the film."""
    width: int
    """Even."""
    height: int
    """Even."""
    title: str | None = None
    """Text of the title; null for none. It lies over the film's first seconds and adds no time."""
    title_seconds: float = 2.0
    """How long the title shows."""
    captions: tuple[Caption, ...] = ()
    """Burnt-in captions, on the film's clock."""
    loudness_lufs: float | None = -14.0
    """Wanted integrated loudness; null leaves it."""
    audio_fade_seconds: float = 0.03
    """Fade at the audio edges of each cut."""
    crf: int = 20
    """x264 quality."""
    preset: str = "veryfast"
    """x264 preset."""


class RenderedFilm(Value):
    """A film that was made and verified."""

    path: Path
    """The finished file."""
    frame_count: int
    """Frames in it."""
    duration_seconds: float
    """Its length."""
    loudness: Loudness | None
    """As measured on the finished film."""
    units_rendered: int
    """Render units that were encoded."""
    units_reused: int
    """Render units that were taken from earlier films."""
    notes: tuple[str, ...] = ()
    """What a person should know, such as a loudness that could not be reached."""


class FilmRenderer(Protocol):
    """Renders a plan by units with one audio pass, and verifies it (specification V9)."""

    def toolchain(self) -> Mapping[str, str]:
        """Return what its results depend on besides the plan, for the cache key (V3)."""
        ...

    def render(
        self,
        plan: RenderPlan,
        workdir: Path,
        *,
        reuse_units: bool,
        unit_prefix: str,
        progress: Progress,
        cancelled: Cancelled,
    ) -> RenderedFilm:
        """Render to a file in `workdir`. Units are kept in the object store under `unit_prefix`.

        Raises:
            MediaError: A source cannot be read, or the film failed its verification.
            Cancelled: The run is being stopped.
        """
        ...


class ToolCall(Value):
    """A tool that the model wants to use."""

    id: str
    """The provider's id of the call."""
    name: str
    """The tool."""
    arguments: str
    """Its arguments as the model wrote them: JSON, perhaps broken."""


class Message(Value):
    """One message of a conversation."""

    role: str = Field(pattern="^(user|assistant|tool)$")
    """Who speaks."""
    content: str
    """The text."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls that an assistant message asks for."""
    tool_call_id: str | None = None
    """The call that a tool message answers."""


class ToolSchema(Value):
    """A tool as the model sees it."""

    name: str
    """Its name."""
    description: str
    """What it does, for the model."""
    parameters: dict[str, JsonValue]
    """JSON Schema of its arguments."""


class PriorOutput(Value):
    """A prior step's output as an agent may read it."""

    order: int
    """The step's order."""
    label: str
    """The step's label."""
    type: str
    """The step's type."""
    agent_type: str | None = None
    """Type of the agent that gave it."""
    output: JsonValue = None
    """The raw output."""


class ProjectDocument(Value):
    """A text file of the project as an agent may read it."""

    name: str
    """Its name."""
    text: str
    """Its text, perhaps cut."""


class AgentInputs(Value):
    """The same things that the prompt holds, as values: the heuristic provider reads these."""

    user_request: str = ""
    """The free-text request."""
    prior: tuple[PriorOutput, ...] = ()
    """Prior outputs that the step reads, by order."""
    documents: tuple[ProjectDocument, ...] = ()
    """Project documents; only for an agent with ProjectRead."""
    files: tuple[ProjectFile, ...] = ()
    """Project files; only for an agent with ProjectRead."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Figures of the step, such as an edit room's wanted length."""


class ModelRequest(Value):
    """One call of a model."""

    agent: AgentDefinition
    """Who is asked."""
    system_prompt: str
    """The agent's prompt with its variables replaced and its skills appended."""
    messages: tuple[Message, ...]
    """The conversation so far."""
    tools: tuple[ToolSchema, ...] = ()
    """Tools that may be used."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the final answer."""
    inputs: AgentInputs = AgentInputs()
    """The inputs as values."""
    timeout_seconds: float = 300.0
    """Total deadline of the call."""


class ModelReply(Value):
    """What a model answered."""

    text: str
    """The answer's text."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Tools that it wants to use."""
    finish_reason: str
    """`stop`, `tool_calls`, `length`, `content_filter` or `other`."""
    usage: Usage
    """What the call took."""
    model: str
    """The model that answered."""


class ProviderIdentity(Value):
    """What of a provider belongs into a cache key."""

    id: str
    """Provider id in the settings: `heuristic`, `openai`, …"""
    kind: str
    """Adapter: `heuristic`, `openai_compatible`, `scripted`."""
    endpoint: str = ""
    """Base address, without credentials."""
    model: str = ""
    """Model that answers when the agent names none."""
    revision: str = ""
    """Revision of the rules, for a deterministic provider."""
    reads_values: bool = True
    """True when its answers may depend on a request's `inputs`, not on what the model is shown
    alone; what they hold is part of the key then."""


class ModelProvider(Protocol):
    """Answers model requests."""

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        ...

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: The endpoint refused, failed or did not answer; `transient` tells
                whether to try again.
        """
        ...


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


class ModuleSource(Value):
    """A Python module of the user's own, as text."""

    name: str
    """The name by which the user's code imports it."""
    text: str
    """The text that is both run and fingerprinted."""
    path: str
    """Its file, for messages."""
    is_package: bool = False
    """It is a package's `__init__`."""


class LoadedFunction(Protocol):
    """A user's callable, loaded and checked."""

    def fingerprint(self) -> str:
        """Return the fingerprint of its code as it was loaded (specification C20).

        Raises:
            NotCanonical: Its source cannot be had.
        """
        ...

    def call(self, inputs: FunctionInputs) -> object:
        """Call it; whatever it raises goes up."""
        ...

    def place_of(self, error: BaseException) -> str:
        """Return where in the user's own code an error was raised, as `file:line`."""
        ...


class FunctionLoader(Protocol):
    """Finds the callables of Function steps; an edited file is loaded anew."""

    def load(self, reference: str) -> LoadedFunction:
        """Load `module:callable`.

        Raises:
            UnknownName: There is no such module, or no such name in it.
            BadInput: The module cannot be loaded, or the name is no plain function of one
                argument; names file and line.
        """
        ...
