"""What steps may use: the ports, gathered, and nothing that knows Dagster.

Source: STYLE section 1; wired in pipelines/definitions.py alone.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from pipelines.project_files import ProjectFiles
from pipelines.step_sandbox import StepSandbox
from reprise.agents.answer_schema import answer_schema
from reprise.agents.loop import LOOP_REVISION
from reprise.cache.key import KeyFacts, file_rows
from reprise.cache.lookup import StepCache
from reprise.cache.single_flight import Flights
from reprise.canonical import NotCanonical
from reprise.context.bodies import Bodies
from reprise.context.budget import ContextBudget
from reprise.errors import ObjectMissing, RepriseError
from reprise.model.agent import AgentDefinition, LoopLimits, ToolGroup
from reprise.model.budget import BudgetReport
from reprise.model.conversation import (
    AgentInputs,
    PriorOutput,
    ProjectDocument,
    ProviderIdentity,
)
from reprise.model.project import MediaKind, ProjectFile
from reprise.model.result import Artifact, StepResult
from reprise.model.search import SEARCH_REVISION, IndexRow, index_revision
from reprise.model.workflow import Step, Workflow
from reprise.ports import (
    Cancelled,
    Clock,
    CompositionRenderer,
    FilmRenderer,
    FunctionLoader,
    HistoryStore,
    ModelProvider,
    ObjectStore,
    Progress,
    ProjectIndex,
    ProjectRegistry,
    ProjectSearch,
    Sandboxes,
    SpeechRecognizer,
    VideoAnalyzer,
)
from reprise.tools.catalog import tool_facts

DEFAULT_LIMITS = LoopLimits()

DOCUMENT_BYTES_MAX = 2 * 2**20
"""Larger documents are not read by agents."""


@dataclass(frozen=True)
class SearchState:
    """What the searches of a step are answered from."""

    rows: tuple[IndexRow, ...] = ()
    """What the index knows of each file, by name."""
    elsewhere: str | None = None
    """Revision of who answers searches, when that is not the index."""
    fault: str | None = None
    """Why that cannot be told; there is no key then."""

    @property
    def digests(self) -> dict[str, str]:
        """File name → digest of what the index knows of it."""
        return {row.name: row.digest for row in self.rows}

    @property
    def revision(self) -> str:
        """The revision that an answer has to come from."""
        return index_revision(self.digests) if self.elsewhere is None else self.elsewhere

    @property
    def key_rows(self) -> tuple[tuple[str, ...], ...]:
        """What there is besides what the index holds, for the key: how it is searched, by whom."""
        return (("search", self.elsewhere or SEARCH_REVISION),)


@dataclass(frozen=True)
class Services:
    """Every door that a step may go through."""

    workflows: Mapping[str, Workflow]
    agents: Mapping[str, AgentDefinition]
    objects: ObjectStore
    bodies: Bodies
    cache: StepCache
    flights: Flights
    history: HistoryStore
    projects: ProjectRegistry
    index: ProjectIndex
    search: ProjectSearch
    """Who answers searches; the index, unless another one is asked."""
    analyzer: VideoAnalyzer
    speech: SpeechRecognizer
    renderer: FilmRenderer
    provider: Callable[[str], ModelProvider]
    """Provider id → provider; raises BadInput for an unknown one."""
    default_provider: str
    clock: Callable[[], datetime]
    functions: FunctionLoader
    sandboxes: Sandboxes
    """One for each execution whose agents have sandbox tools."""
    scratch: Callable[[], Path]
    """Folder for work in progress, made when first asked for; each step has its own in it."""
    loop_limits: LoopLimits
    """Bounds of every agent's loop, where the agent sets none of its own."""
    loop_clock: Clock
    """Time in an agent's loop."""
    budget: ContextBudget
    """What of the prior outputs goes into a prompt."""
    withheld_tools: frozenset[str] = frozenset()
    """Tools that no agent gets, whatever its groups (specification E11a)."""
    compositions: Callable[[str], CompositionRenderer] | None = None
    """Name of a template → renders compositions with what is installed there; None: nobody does."""
    initiator: Callable[[str, Mapping[str, str]], str | None] = lambda _run_id, _tags: None
    """Run id and run tags → the user in whose name the run works, or None."""

    @property
    def project_files(self) -> ProjectFiles:
        """Files of projects, with their rows and what the index knows of them."""
        return ProjectFiles(self.projects, self.objects, self.index, self.clock)

    def search_state(self, project_id: str, agents: Iterable[AgentDefinition]) -> SearchState:
        """Return what searches of these agents are answered from now; a fault is kept in it."""
        if not any(ToolGroup.PROJECT_READ in agent.tool_groups for agent in agents):
            return SearchState()
        rows: tuple[IndexRow, ...] = ()
        try:
            rows = tuple(self.index.rows(project_id))
            elsewhere = None if self.search is self.index else self.search.revision(project_id)
        except RepriseError as error:
            return SearchState(rows, fault=str(error))
        return SearchState(rows, elsewhere)


@dataclass(frozen=True)
class StepContext:
    """One step about to run: its definition, variables replaced, and all that it may read."""

    step: Step
    project_id: str
    resolved_input: str
    """Its input text; for agents within the context budget, for code the raw outputs."""
    budgeted: BudgetReport | None
    """What the budget did to it; None when it changed nothing."""
    user_request: str
    prior: Mapping[int, PriorOutput]
    """Outputs of the earlier steps that it reads, by order."""
    prior_digests: Mapping[int, str]
    """Digests of these outputs, by order."""
    variables: Mapping[str, JsonValue]
    """The variables that it sees, the request apart."""
    agents: tuple[AgentDefinition, ...]
    """The agents that work in it, in speaking order."""
    files: tuple[ProjectFile, ...]
    """The project's files, by name."""
    searched: SearchState
    """What its agents' searches are answered from; nothing when none may search."""
    sandbox: StepSandbox | None
    """The execution's sandbox; None when none of its agents has sandbox tools."""
    provider: ModelProvider
    services: Services
    workdir: Path
    """A folder of its own, removed when it ends."""
    progress: Progress
    cancelled: Cancelled
    keep: bool
    """False when nothing may be left for later runs besides the result, render units included."""
    reuse: bool
    """False when nothing from earlier runs may be taken, render units included."""

    @property
    def where(self) -> str:
        """The step as messages name it."""
        return f"step {self.step.order} ({self.step.label})"

    def local_file(self, storage_key: str, name: str) -> Path:
        """Return a local path of an object, for reading only.

        Raises:
            ObjectMissing: The object is gone.
        """
        path = self.services.objects.local_path(storage_key)
        if path is not None:
            return path
        target = self.workdir / "inputs" / name
        if not target.exists():
            self.services.objects.fetch(storage_key, target)
        return target

    def keep_file(self, path: Path, name: str, media_type: str) -> Artifact:
        """Put a file that the step made into the object store, under its digest."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        key = f"projects/{self.project_id}/artifacts/{digest[:2]}/{digest[:32]}/{name}"
        info = self.services.objects.head(key)
        if info is None or info.size_bytes != path.stat().st_size or not self._holds(key, digest):
            info = self.services.objects.put_file(key, path, media_type=media_type)
        return Artifact(
            name=name,
            storage_key=key,
            size_bytes=info.size_bytes,
            etag=info.etag,
            media_type=media_type,
        )

    def _holds(self, key: str, digest: str) -> bool:
        """Answer whether an object still has these bytes: whoever wrote over it kept the name."""
        path = self.services.objects.local_path(key)
        try:
            if path is None:
                path = self.workdir / "kept" / digest
                self.services.objects.fetch(key, path)
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == digest
        except (ObjectMissing, FileNotFoundError):
            return False

    def provider_of(self, agent: AgentDefinition) -> ModelProvider:
        """Return the provider that answers for an agent: its own, else the run's.

        Raises:
            BadInput: It names a provider that is not configured.
        """
        if agent.inference_provider_id is None:
            return self.provider
        return self.services.provider(agent.inference_provider_id)

    def limits_of(self, agent: AgentDefinition) -> LoopLimits:
        """Return the bounds of an agent's loop."""
        return agent.limits.over(self.services.loop_limits)

    def prior_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return what tells the prior outputs apart as values, by order (specification C2).

        The input text does not: it may hold a part of them alone, a text and an object may print
        alike, and it is silent on who gave them.
        """
        return tuple(
            (
                str(order),
                item.label,
                self.prior_digests[order],
                item.type,
                *(() if item.agent_type is None else (item.agent_type,)),
            )
            for order, item in sorted(self.prior.items())
        )

    def agent_facts(self) -> KeyFacts:
        """Return what the answers of the step's agents depend on (specification C2)."""
        reads_project = any(ToolGroup.PROJECT_READ in agent.tool_groups for agent in self.agents)
        providers = [self.provider_of(agent).identity() for agent in self.agents]
        groups = frozenset[ToolGroup]().union(*(agent.tool_groups for agent in self.agents))
        reads_history = ToolGroup.WORKFLOW_READ in groups or any(
            identity.reads_values for identity in providers
        )
        return KeyFacts(
            agents=tuple(self._as_asked(agent) for agent in self.agents),
            providers=tuple(
                # What its tools give is cut to the context.
                _provider_facts(
                    identity,
                    self.provider_of(agent).context_tokens if agent.tool_groups else None,
                    _shaping_bounds(agent, self.limits_of(agent)),
                )
                for agent, identity in zip(self.agents, providers, strict=True)
            ),
            tools=tool_facts(groups, self.services.withheld_tools) if groups else (),
            files=self._seen_files() if reads_project else None,
            sandbox=None if self.sandbox is None else self.sandbox.seen(),
            history=self.prior_rows() if reads_history else None,
            context_budget=None
            if self.budgeted is None
            else self.budgeted.settings.model_dump(mode="json"),
        )

    def as_of_now(self) -> "StepContext":
        """Return the same step with project, index and sandbox as they are now."""
        return replace(
            self,
            files=tuple(self.services.projects.files(self.project_id)),
            searched=self.services.search_state(self.project_id, self.agents),
            sandbox=None if self.sandbox is None else self.sandbox.as_of_now(),
        )

    def _seen_files(self) -> tuple[tuple[str, ...], ...]:
        """Return what tells the project apart for an agent that lists, searches and reads it.

        Raises:
            NotCanonical: What searches are answered from cannot be told.
        """
        if self.searched.fault is not None:
            message = f"the search index cannot be told: {self.searched.fault}"
            raise NotCanonical(message)
        return file_rows(self.files, self.searched.digests) + self.searched.key_rows

    def _as_asked(self, agent: AgentDefinition) -> AgentDefinition:
        """Return an agent with the schema that its answer has to fit in this step."""
        schema = answer_schema(agent.output_schema, tuple(self.prior.values()))
        if schema is agent.output_schema:
            return agent
        return agent.model_copy(update={"output_schema": schema})

    def agent_inputs(
        self,
        agent: AgentDefinition,
        said: Sequence[PriorOutput] = (),
        parameters: Mapping[str, JsonValue] | None = None,
    ) -> AgentInputs:
        """Return the step's inputs as values; project files only for who may read them."""
        may_read = ToolGroup.PROJECT_READ in agent.tool_groups
        reads_values = self.provider_of(agent).identity().reads_values
        return AgentInputs(
            user_request=self.user_request,
            prior=(*(self.prior[order] for order in sorted(self.prior)), *said),
            # A model has its tools to read them.
            documents=self._documents() if may_read and reads_values else (),
            files=self.files if may_read else (),
            parameters=dict(parameters or {}),
        )

    def _documents(self) -> tuple[ProjectDocument, ...]:
        documents = []
        for file in self.files:
            if file.media_kind is not MediaKind.DOCUMENT or file.size_bytes > DOCUMENT_BYTES_MAX:
                continue
            data = self.services.objects.get_bytes(file.storage_key)
            text = data.decode("utf-8-sig", errors="replace")
            documents.append(ProjectDocument(name=file.name, text=text))
        return tuple(documents)


def _shaping_bounds(agent: AgentDefinition, limits: LoopLimits) -> tuple[tuple[str, int], ...]:
    """Return the bounds of a loop that decide not only whether there is an answer, but which.

    The last turn is for the answer, calls beyond the most at once are refused, and after the last
    correction an answer is mended. Defaults are left out: they are part of `LOOP_REVISION`.
    """
    names = ["turns_max", "tool_calls_max"] if agent.tool_groups else []
    names += ["repairs_max"] if agent.output_schema is not None else []
    bounds = ((name, getattr(limits, name)) for name in names)
    return tuple(bound for bound in bounds if bound[1] != getattr(DEFAULT_LIMITS, bound[0]))


@lru_cache(maxsize=64)
def _provider_facts(
    identity: ProviderIdentity, context_tokens: int | None, bounds: tuple[tuple[str, int], ...]
) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {
        **identity.model_dump(mode="json"),
        "loop": LOOP_REVISION,
        **dict(bounds),
    }
    return facts if context_tokens is None else {**facts, "context_tokens": context_tokens}


class StepExecutor(Protocol):
    """Gives the results of one step type; to add one, see pipelines/steps."""

    def key_facts(self, context: StepContext) -> KeyFacts:
        """Return what the answer depends on besides definition and input; runs no program."""
        ...

    def execute(self, context: StepContext) -> StepResult:
        """Do the step's work.

        Raises:
            RepriseError: It cannot be done; the message says what, where, what to do.
        """
        ...
