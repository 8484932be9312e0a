"""Every door to the outside, one Protocol each; the adapters are in resources/.

An adapter wraps foreign errors in those of reprise/errors.py. Each port has an adapter for real
use and an in-memory or scripted one that passes the same contract tests (tests/integration/).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from reprise.model.base import Value
from reprise.model.cache import CacheEntry, EntryFilter, EntryStats, EntrySummary, Lease
from reprise.model.conversation import (
    ModelReply,
    ModelRequest,
    ProviderIdentity,
)
from reprise.model.function import FunctionInputs
from reprise.model.measures import AnalyzeOptions, FrameMeasures, MediaProbe
from reprise.model.media import Transcript
from reprise.model.project import FileStatus, Project, ProjectFile
from reprise.model.render import RenderedFilm, RenderPlan
from reprise.model.result import (
    CacheReason,
    StepRecord,
)
from reprise.model.sandbox import (
    CompositionRequest,
    RenderedComposition,
    SandboxExecution,
    SandboxFile,
    SandboxMoment,
    SandboxSnapshot,
    SandboxTree,
)
from reprise.model.savings import Savings, SavingsBy
from reprise.model.search import IndexedFile, IndexRow, SearchAnswer
from reprise.model.stored import ObjectInfo
from reprise.model.user import User
from reprise.model.workflow import Step

Progress = Callable[[str, float | None], None]
"""Called with what is being done and the share done (0 to 1, or None when unknown)."""

Cancelled = Callable[[], bool]
"""Answers whether the run is being stopped; long work asks it at least twice a second."""


class Clock(Protocol):
    """The time that an agent's loop counts in and waits by."""

    def monotonic(self) -> float:
        """Return seconds since some moment in the past; they only rise."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


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
        self,
        project_id: str,
        cache_key: str,
        *,
        reason: CacheReason,
        now: datetime,
        seen: CacheEntry | None = None,
    ) -> None:
        """Remove an entry and leave a tombstone with the reason.

        Args:
            project_id: The project.
            cache_key: The key.
            reason: Why.
            now: The time.
            seen: Remove it only while it is this one: a twin may have stored another since.
        """
        ...

    def tombstone(self, project_id: str, cache_key: str) -> CacheReason | None:
        """Return why an entry of this key went, if one did in the last 30 days."""
        ...

    def nearest(self, project_id: str, workflow_id: str, step_label: str) -> CacheEntry | None:
        """Return a step's newest entry, valid or not, to explain a miss by."""
        ...

    def of_key(self, project_id: str, cache_key: str) -> CacheEntry | None:
        """Return the entry of a key, valid or not, to explain a miss by; that is no use of it."""
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

    def add_project(self, name: str, *, now: datetime, owner_id: str | None = None) -> Project:
        """Make a project, or return the one of this name; that one keeps its owner.

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

    def set_owner(self, name: str, owner_id: str | None) -> bool:
        """Give a project to a user, or to nobody; answer whether there is such a project."""
        ...

    def remove_project(self, name: str, *, emptied: Callable[[], None] | None = None) -> bool:
        """Remove a project and its file rows; answer whether there was one.

        Args:
            name: The project.
            emptied: Called when it goes, and no row is added meanwhile; what it raises leaves
                project and rows. Every other writer waits for it.
        """
        ...

    def put_file(self, file: ProjectFile) -> None:
        """Add a file row, or replace the one of this name."""
        ...

    def files(self, project_id: str) -> Sequence[ProjectFile]:
        """Return a project's files, by name."""
        ...

    def set_status(
        self,
        file: ProjectFile,
        *,
        summary: FileStatus | None = None,
        indexing: FileStatus | None = None,
    ) -> bool:
        """Move a file's statuses, in one statement; None leaves one as it is.

        Returns:
            False when these are not the file's bytes any more, and nothing was moved.
        """
        ...

    def remove_file(
        self, project_id: str, name: str, *, unused: Callable[[str], None] | None = None
    ) -> bool:
        """Remove a file row; answer whether there was one.

        Args:
            project_id: The project.
            name: The file's name.
            unused: Called with the row's storage key when no other row names it, and no row is
                added meanwhile; what it raises leaves the row.
        """
        ...


class ProjectSearch(Protocol):
    """Finds passages in a project's documents and transcripts (specification W8)."""

    def search(self, project_id: str, query: str, *, limit: int) -> SearchAnswer:
        """Return the passages that hold words of a query, the best first.

        Args:
            project_id: The project; an unknown one holds nothing.
            query: Any text; all of it is words, none of it is syntax.
            limit: Most hits, taken into 1 to `HITS_MAX`.

        Raises:
            StoreError: It cannot be answered now.
        """
        ...

    def revision(self, project_id: str) -> str:
        """Return a digest of all that a search in the project is answered from.

        Raises:
            StoreError: It cannot be told now.
        """
        ...


class ProjectIndex(ProjectSearch, Protocol):
    """What searches are answered from; can be made again from files and analyses."""

    def put(self, project_id: str, file: IndexedFile) -> None:
        """Take a file in, in place of what was known of this name; the same again is no change."""
        ...

    def remove(self, project_id: str, name: str) -> bool:
        """Forget a file; answer whether it was known."""
        ...

    def remove_project(self, project_id: str) -> None:
        """Forget a project; one that is not known is no error."""
        ...

    def file(self, project_id: str, name: str) -> IndexedFile | None:
        """Return what is known of a file, with its passages in order, or None."""
        ...

    def rows(self, project_id: str) -> Sequence[IndexRow]:
        """Return what is known of each file, by name."""
        ...


class UserRegistry(Protocol):
    """People, by id and by e-mail address. Each method is one transaction."""

    def add_user(self, user: User) -> None:
        """Add a user.

        Raises:
            BadInput: There is one of this id or this e-mail address; names it.
        """
        ...

    def user(self, user_id: str) -> User | None:
        """Return the user of an id, or None."""
        ...

    def user_of_email(self, email: str) -> User | None:
        """Return the user of an e-mail address, whatever its letter case, or None."""
        ...

    def users(self) -> Sequence[User]:
        """Return all users, by e-mail address."""
        ...

    def remove_user(self, user_id: str) -> bool:
        """Remove a user; answer whether there was one."""
        ...


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
        """Render to a file in `workdir`. Units are kept under `unit_prefix`; empty keeps none.

        Raises:
            MediaError: A source cannot be read, or the film failed its verification.
            Cancelled: The run is being stopped.
        """
        ...


class ModelProvider(Protocol):
    """Answers model requests."""

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens, answer included; None when it is no bound.

        A prompt budget stays below it, and tool results are cut to it. It is part of the cache key
        of an agent with tools; what else it changes in a prompt is in the key already.
        """
        ...

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


class SandboxFiles(Protocol):
    """The files of one sandbox, by relative path with forward slashes.

    Nothing outside is ever read or written, whoever changes links and folders meanwhile. Links that
    stay inside are followed; see `SandboxFault` for what is refused, with SandboxRefused. What is
    wrong with the disk is a StoreError.
    """

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's bytes.

        Args:
            path: The file.
            size_bytes_max: Larger ones are refused; None: what an `update` may be given.

        Raises:
            SandboxRefused: The path or the file cannot be used.
        """
        ...

    def update(
        self, path: str, change: Callable[[bytes | None], bytes | None], *, create: bool = False
    ) -> None:
        """Give a file the bytes that `change` makes of its present ones, or leave it (None).

        Every other `update` and `remove` of the sandbox waits, of any process; one from within
        `change` waits in vain. The file is written whole (temporary file, fsync, rename), keeps
        its mode, and is not written when its bytes are not those any more that `change` was given
        (`stale`), or are those that it made. What `change` raises goes up; the file is untouched
        then.

        Args:
            path: The file; a link to one inside changes the one it leads to.
            change: Gets the bytes, or None where there is no file.
            create: True makes a file (and its folders) where there is none.

        Raises:
            SandboxRefused: The path or the file cannot be used; nothing was changed.
            StoreTimeout: Another writer took too long.
        """
        ...

    def remove(self, path: str, *, digest: str) -> None:
        """Remove a file that has these bytes, and the folders that this leaves empty.

        Raises:
            SandboxRefused: It is stale, or cannot be used.
        """
        ...

    def resolved(self, path: str) -> str:
        """Return the path of the file that a path leads to: one name for all links to it.

        Where there is no file, it is where one would be made. For keys alone: what is done to the
        path later may reach another file.

        Raises:
            SandboxRefused: The path cannot be used.
        """
        ...

    def list(self) -> Sequence[SandboxFile]:
        """Return the regular files, by path: all that `read` gives without following links.

        Left out is what no path can name (`node_modules`, `.git`, odd names, what lies too deep)
        and what `read` refuses but for its size.

        Raises:
            SandboxRefused: There are more than its limits allow, or one cannot be read.
        """
        ...

    def copy_to(self, target: Path) -> SandboxTree:
        """Copy the files that `list` gives into a folder, which is made; what is there stays.

        Returns:
            What was copied: its digests are those of the copied bytes, whatever changed meanwhile.

        Raises:
            SandboxRefused: As `list`; what was copied so far is there.
            StoreError: The copy cannot be written, or one of the files is there already.
        """
        ...


class Sandboxes(Protocol):
    """The sandboxes of executions: a workspace for each run and project, and its snapshots.

    Two executions never see each other's. What is wrong with the disk is a StoreError; what is
    wrong with a template is a BadInput; a sandbox beyond its limits is a SandboxRefused.
    """

    def open(self, execution: SandboxExecution) -> SandboxFiles:
        """Return an execution's files; made whole, once, where there are none yet.

        It is not removed by `sweep` until it is released, or the process ends.
        """
        ...

    def tree(self, execution: SandboxExecution) -> SandboxTree:
        """Return the files that there are, or that `open` would make; writes nothing."""
        ...

    def snapshot(
        self, execution: SandboxExecution, step: Step, moment: SandboxMoment
    ) -> SandboxTree:
        """Keep the files of an execution that was opened, as one consistent state."""
        ...

    def snapshots(self, run_id: str, project_id: str) -> Sequence[SandboxSnapshot]:
        """Return what was kept of an execution, by time; nothing where nothing is kept."""
        ...

    def kept_tree(self, digest: str) -> SandboxTree:
        """Return the files of a snapshot.

        Raises:
            ObjectMissing: It is not kept any more.
        """
        ...

    def kept_file(self, digest: str) -> bytes:
        """Return the bytes of a file of a snapshot.

        Raises:
            ObjectMissing: They are not kept any more.
        """
        ...

    def release(self, run_id: str) -> None:
        """Say that a run has ended; its sandboxes may go when they are old enough."""
        ...

    def sweep(self, *, now: datetime, running: Collection[str] = ()) -> int:
        """Remove what was last used longer ago than the retention; return how many workspaces.

        Args:
            now: The time.
            running: Ids of runs that have not ended.
        """
        ...


class CompositionRenderer(Protocol):
    """Renders a composition with a Remotion that the user installed (specification V14)."""

    def render(
        self,
        tree: Path,
        request: CompositionRequest,
        workdir: Path,
        *,
        progress: Progress,
        cancelled: Cancelled,
    ) -> RenderedComposition:
        """Render into `workdir`; `tree` is a copy of the sandbox that may be written to.

        Raises:
            BadInput: Something has to be installed, or there is no such composition; says what.
            ToolFailed: The composition does not build or render; the message holds the reason.
            Cancelled: The run is being stopped; no process is left.
        """
        ...
