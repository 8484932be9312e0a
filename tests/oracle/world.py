"""The oracle's world: a whole engine on in-memory stores, run with the cache and without it.

The run without takes the same files and definitions, and stores of its own that begin empty. All
that the two leave behind is compared: outputs, records, artifacts, byte for byte.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.compile import merged_history
from pipelines.edges import step_reads, transitive_reduction
from pipelines.ingest import Ingest
from pipelines.plan import PlannedStep, PlanRequest, plan_run
from pipelines.prepare import step_agents
from pipelines.records import record_of
from pipelines.request import REQUEST, choose_request
from pipelines.run_step import run_step
from pipelines.services import Services
from pipelines.step_run import RunCacheMode, StepRun
from reprise.cache.lookup import StepCache
from reprise.cache.policy import cache_verdict
from reprise.cache.single_flight import Alone
from reprise.context.bodies import Bodies
from reprise.context.budget import ContextBudget
from reprise.errors import RepriseError, UnknownName
from reprise.model.agent import LoopLimits
from reprise.model.result import CacheReason, SeenStep, StepRecord, StepReference, StepStatus
from reprise.model.settings import StepCacheSettings
from reprise.ports import EntryStore, ModelProvider, ObjectStore
from resources.media_kind import media_kind
from resources.memory_entry_store import MemoryEntryStore
from resources.memory_functions import MemoryFunctions
from resources.memory_history import MemoryHistory
from resources.memory_object_store import MemoryObjectStore
from resources.memory_project_index import MemoryProjectIndex
from resources.memory_projects import MemoryProjectRegistry
from tests.oracle.compare import (
    Finding,
    RunOutcome,
    record_differences,
    state_of,
    wrong_forecasts,
)
from tests.oracle.deterministic import (
    INJECTED,
    DeterministicProvider,
    TwinAnalyzer,
    TwinRenderer,
    TwinSpeech,
)
from tests.oracle.scenes import PROVIDERS, Scene
from tests.oracle.user_code import module_texts
from tests.watched import Around, stand_in, watched

READS_ONLY = {
    "entries": {"get", "tombstone", "nearest"},
    "objects": {"head", "get_bytes", "local_path", "url"},
    "history": {"of_step", "of_run", "latest_run"},
    "projects": {"files", "project", "projects"},
}
"""The calls that a plan may make, by store."""


class Clock:
    """Answers the time; a person may set it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.latest = self.now

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        self.latest = max(self.latest, self.now)
        return self.now


class World:
    """Stores, providers and tools; `scene` is what runs.

    Args:
        scene: What runs first.
        folder: For files on their way into projects.
        entries: The cache's entries; None takes a store in memory.
    """

    def __init__(self, scene: Scene, folder: Path, entries: EntryStore | None = None) -> None:
        self.scene = scene
        self.folder = folder
        self.clock = Clock()
        self.entries: EntryStore = entries or MemoryEntryStore()
        self.objects = MemoryObjectStore()
        self.history = MemoryHistory()
        self.projects = MemoryProjectRegistry()
        self.index = MemoryProjectIndex()
        self.providers = {
            name: DeterministicProvider(name, reads_values=name != "texts") for name in PROVIDERS
        }
        self.analyzer, self.speech, self.renderer = TwinAnalyzer(), TwinSpeech(), TwinRenderer()
        self.functions = MemoryFunctions(module_texts(0))
        self.runs = 0
        self.hits = 0
        self.steps = 0
        for project in ("p", "q"):
            self.add_file(project, "brief.md", b"a brief")
            self.add_file(project, "one.mp4", b"\0\0\0 ftypisom one")

    @property
    def ingest(self) -> Ingest:
        """Files into projects, as the command line has it."""
        return Ingest(self.projects, self.objects, self.index, media_kind, self.clock)

    def add_file(self, project: str, name: str, data: bytes) -> None:
        """Add a file, or replace it."""
        path = self.folder / name
        path.write_bytes(data)
        self.ingest.add(project, [path], lambda _name, _change: None)

    def remove_file(self, project: str, name: str) -> None:
        """Remove a file where it is."""
        if any(file.name == name for file in self.projects.files(project)):
            self.ingest.remove_files(project, [name])

    def services(self) -> Services:
        """Return the services of a run with the cache, as a new process would wire them."""
        return self._services(self.objects, self.entries, self.scene.settings, self.history)

    def cache_with(self, objects: ObjectStore | None, around: Around | None = None) -> StepCache:
        """Return the cache on another object store, or with something at each call of its rows."""
        entries = self.entries if around is None else stand_in(self.entries, around)
        asked = self.objects if objects is None else objects
        return StepCache(entries, asked.head, self.scene.settings, self.clock)

    def fresh_services(self) -> Services:
        """Return the services of a run without: the cache off, nothing there but the files."""
        objects = MemoryObjectStore()
        for project in self.projects.projects():
            for file in self.projects.files(project.id):
                objects.put_bytes(file.storage_key, self.objects.get_bytes(file.storage_key))
        off = StepCacheSettings(enabled=False)
        return self._services(objects, MemoryEntryStore(), off, MemoryHistory())

    def _services(
        self,
        objects: MemoryObjectStore,
        entries: EntryStore,
        settings: StepCacheSettings,
        history: MemoryHistory,
    ) -> Services:
        return Services(
            workflows={self.scene.workflow.id: self.scene.workflow},
            agents=self.scene.agents,
            objects=objects,
            bodies=Bodies(objects),
            cache=StepCache(entries, objects.head, settings, self.clock),
            flights=Alone(),
            history=history,
            projects=self.projects,
            index=self.index,
            search=self.index,
            analyzer=self.analyzer,
            speech=self.speech,
            renderer=self.renderer,
            provider=self.provider,
            default_provider="rule",
            clock=self.clock,
            functions=self.functions,
            scratch=lambda: self.folder / "scratch",
            loop_limits=LoopLimits(),
            budget=ContextBudget(self.scene.budget),
        )

    def provider(self, name: str) -> ModelProvider:
        """Return a provider."""
        if name not in self.providers:
            message = f"no provider {name!r}"
            raise UnknownName(message)
        return self.providers[name]

    def model_calls(self) -> int:
        """Return how often models, analyzer and renderer were asked."""
        asked = sum(sum(each.calls.values()) for each in self.providers.values())
        return asked + self.analyzer.calls + self.renderer.calls

    def fail_agents(self, names: set[str]) -> None:
        """Let agents fail until told otherwise."""
        for provider in self.providers.values():
            provider.fails = names

    # ---------------------------------------------------------------------------------- runs

    def run(self, services: Services, request: str) -> RunOutcome:
        """Walk the workflow's steps in order, as the compiled assets would."""
        self.runs += 1
        scene, outcome = self.scene, RunOutcome()
        run_id = f"run-{self.runs}"
        edges = transitive_reduction(step_reads(scene.workflow, scene.agents))
        root = _request_record(scene, services, run_id, request)
        services.history.append(root)
        references: dict[int, StepReference] = {}
        for step in scene.workflow.steps:
            parents = [references.get(order) for order in sorted(edges[step.order])]
            if None in parents:
                continue
            known = [parent for parent in parents if parent is not None] or [_reference(root)]
            run = StepRun(
                workflow=scene.workflow,
                step=step,
                project_id=scene.project,
                run_id=run_id,
                history=merged_history(known),
                cache_mode=scene.step_modes.get(step.order, scene.mode),
                provider_id=scene.provider,
            )
            try:
                record = record_of(run, run_step(run, services), services)
            except RepriseError as error:
                outcome.errors[step.order] = str(error)
                outcome.injected |= INJECTED in str(error)
                continue
            services.history.append(record)
            outcome.records[step.order] = record
            references[step.order] = _reference(record)
        return outcome

    def plan(self, services: Services) -> tuple[list[PlannedStep], list[Finding]]:
        """Plan the next run; it may only read."""
        calls: dict[str, list[str]] = {name: [] for name in READS_ONLY}
        objects = watched(services.objects, calls["objects"])
        entries = watched(self.entries, calls["entries"])
        reading = replace(
            services,
            objects=objects,
            bodies=Bodies(objects),
            cache=StepCache(entries, objects.head, self.scene.settings, self.clock),
            history=watched(services.history, calls["history"]),
            projects=watched(services.projects, calls["projects"]),
        )
        before = self.model_calls()
        planned = plan_run(self._plan_request(), reading)
        findings = [
            Finding("a plan wrote", f"{name}.{call}")
            for name, made in calls.items()
            for call in sorted(set(made) - READS_ONLY[name])
        ]
        if self.model_calls() != before:
            findings.append(Finding("a plan asked a model", ""))
        return planned, findings

    def _plan_request(self) -> PlanRequest:
        scene = self.scene
        return PlanRequest(
            workflow=scene.workflow,
            project_id=scene.project,
            request=scene.request,
            cache=scene.mode,
            steps=scene.step_modes,
            provider_id=scene.provider,
        )

    # -------------------------------------------------------------------------------- checks

    def check(self) -> list[Finding]:
        """Plan, run with the cache, run without it, and return whatever differs."""
        services = self.services()
        planned, findings = self.plan(services)
        request = choose_request(
            self.scene.workflow, self.scene.project, services, self.scene.request
        ).text
        outcome = self.run(services, request)
        findings += wrong_forecasts(planned, outcome)
        self.hits += sum(record.from_cache for record in outcome.records.values())
        self.steps += len(outcome.records)
        self.fail_agents(set())
        fresh = self.fresh_services()
        expected = self.run(fresh, request)
        return findings + self.differences(outcome, services, expected, fresh)

    def check_repetition(self) -> list[Finding]:
        """Run again with nothing changed: all that the policy allows has to be a hit."""
        if not self._should_repeat():
            return []
        services = self.services()
        first = self.run(services, "again")
        again = self.run(services, "again")
        findings = []
        for step in self.scene.workflow.steps:
            record = again.records.get(step.order)
            if record is None or record.status is not StepStatus.SUCCEEDED:
                continue
            verdict = cache_verdict(step, step_agents(step, self.scene.agents))
            if verdict.cacheable and record.cache_reason is not CacheReason.HIT:
                what = f"step {step.order}: {record.cache_reason} {record.cache_detail}"
                findings.append(Finding("an unchanged repetition ran", what))
        return findings + self.differences(again, services, first, services)

    def _should_repeat(self) -> bool:
        scene = self.scene
        plain = scene.mode is RunCacheMode.USE and not scene.step_modes
        roomy = scene.settings.enabled and scene.settings.max_entry_chars > 100_000
        return plain and roomy and self.clock.now >= self.clock.latest

    def differences(
        self, cached: RunOutcome, with_cache: Services, plain: RunOutcome, without: Services
    ) -> list[Finding]:
        """Return what a run left behind otherwise than another one."""
        findings = []
        for step in self.scene.workflow.steps:
            one, other = cached.records.get(step.order), plain.records.get(step.order)
            if one is None and cached.injected:
                continue
            if cached.errors.get(step.order) != plain.errors.get(step.order):
                what = f"{cached.errors.get(step.order)} against {plain.errors.get(step.order)}"
                findings.append(Finding("another error", f"step {step.order}: {what}"))
            if (one is None) != (other is None):
                where = f"step {step.order}: {state_of(one)} against {state_of(other)}"
                findings.append(Finding("one of two has a result", where))
            elif one is not None and other is not None:
                findings += record_differences(step, one, other, with_cache, without)
        return findings


def _request_record(scene: Scene, services: Services, run_id: str, text: str) -> StepRecord:
    seen = SeenStep(
        order=0,
        label=REQUEST,
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=services.bodies.put(scene.project, text),
    )
    reference = StepReference(
        workflow_id=scene.workflow.id, project_id=scene.project, run_id=run_id, seen=seen
    )
    now = services.clock()
    return StepRecord(
        run_id=run_id,
        workflow_id=scene.workflow.id,
        project_id=scene.project,
        order=0,
        label=REQUEST,
        name=REQUEST,
        type=None,
        status=StepStatus.SUCCEEDED,
        reference=reference,
        started_at=now,
        finished_at=now,
    )


def _reference(record: StepRecord) -> StepReference:
    assert record.reference is not None
    return record.reference
