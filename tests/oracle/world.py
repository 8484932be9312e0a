"""The oracle's world: a whole engine without Dagster, run with the cache and without it.

The run without takes the same files and definitions, and stores of its own that begin empty. All
that the two leave behind is compared: outputs, records, artifacts, byte for byte.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.compile import merged_history
from pipelines.edges import step_reads, transitive_reduction
from pipelines.ingest import Ingest
from pipelines.plan import PlannedStep, PlanRequest, plan_run
from pipelines.records import record_of
from pipelines.request import REQUEST, choose_request
from pipelines.run_step import run_step
from pipelines.services import Services
from pipelines.step_run import StepRun
from reprise.cache.lookup import StepCache
from reprise.cache.single_flight import Alone
from reprise.context.bodies import Bodies
from reprise.context.budget import ContextBudget
from reprise.errors import RepriseError, UnknownName
from reprise.model.agent import LoopLimits
from reprise.model.result import SeenStep, StepRecord, StepReference, StepStatus
from reprise.model.sandbox import SandboxExecution
from reprise.model.settings import StepCacheSettings
from reprise.ports import (
    EntryStore,
    ModelProvider,
    ObjectStore,
    ProjectRegistry,
    Sandboxes,
)
from resources.breaker import BreakerEntryStore, BreakerObjectStore, CircuitBreaker
from resources.deadline import DeadlineEntryStore, DeadlineObjectStore
from resources.machine_clock import MachineClock
from resources.media_kind import media_kind
from resources.memory_functions import MemoryFunctions
from resources.memory_sandbox import MemorySandbox
from resources.sandbox.memory_workspaces import MemorySandboxes
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
from tests.oracle.stores import Stores, in_memory
from tests.oracle.user_code import module_texts
from tests.watched import Around, Fault, Faults, stand_in, watched

READS_ONLY = {
    "entries": {"get", "tombstone", "nearest", "of_key"},
    "objects": {"head", "get_bytes", "local_path", "url"},
    "history": {"of_step", "of_run", "latest_run"},
    "projects": {"files", "project", "projects"},
    "sandboxes": {"tree", "snapshots", "kept_tree", "kept_file"},
}
"""The calls that a plan may make, by store."""


Judge = Callable[[RunOutcome], list[Finding]]


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
        folder: For files on their way into projects, and for stores on disk.
        open_stores: Opens the stores, at first and for every new process.
    """

    def __init__(
        self, scene: Scene, folder: Path, open_stores: Callable[[Path], Stores] = in_memory
    ) -> None:
        self.scene = scene
        self.folder = folder
        self.clock = Clock()
        self._open_stores = open_stores
        self.stores = open_stores(folder)
        self.providers = {
            name: DeterministicProvider(name, reads_values=name != "texts") for name in PROVIDERS
        }
        self.analyzer, self.speech, self.renderer = TwinAnalyzer(), TwinSpeech(), TwinRenderer()
        self.functions = MemoryFunctions(module_texts(0))
        self.sandboxes = self._new_sandboxes()
        self.runs = 0
        for project in ("p", "q"):
            self.add_file(project, "brief.md", b"a brief")
            self.add_file(project, "one.mp4", b"\0\0\0 ftypisom one")

    @property
    def entries(self) -> EntryStore:
        """The cache's entries."""
        return self.stores.entries

    @property
    def objects(self) -> ObjectStore:
        """The object store."""
        return self.stores.objects

    @property
    def projects(self) -> ProjectRegistry:
        """The projects."""
        return self.stores.projects

    @property
    def is_on_disk(self) -> bool:
        """True when its stores outlive a process by themselves."""
        return self._open_stores is not in_memory

    def restart(self) -> None:
        """Go on in a new process, which knows what is on disk; memory stays what it is."""
        if self.is_on_disk:
            self.stores = self._open_stores(self.folder)

    @property
    def ingest(self) -> Ingest:
        """Files into projects, as the command line has it."""
        return Ingest(self.projects, self.objects, self.stores.index, media_kind, self.clock)

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
        return self._services(self.stores, self.scene.settings)

    def cache_with(self, objects: ObjectStore | None, around: Around | None = None) -> StepCache:
        """Return the cache on another object store, or with something at each call of its rows."""
        entries = self.entries if around is None else stand_in(self.entries, around)
        asked = self.objects if objects is None else objects
        return StepCache(entries, asked.head, self.scene.settings, self.clock)

    def services_at_fault(self, target: str, faults: Faults, hang_seconds: float) -> Services:
        """Return the services of a run whose cache has one store at fault.

        Args:
            target: `entries` or `objects`.
            faults: What happens there.
            hang_seconds: The deadline of calls; long for faults that do not hang.
        """
        seconds = hang_seconds if faults.fault is Fault.HANGS else 300.0
        rows = stand_in(self.entries, faults.around) if target == "entries" else self.entries
        objects = stand_in(self.objects, faults.around) if target == "objects" else self.objects
        deadline = DeadlineEntryStore(rows, lookup_seconds=seconds, store_seconds=seconds)
        entries = BreakerEntryStore(deadline, CircuitBreaker("the rows"))
        asked = BreakerObjectStore(
            DeadlineObjectStore(objects, head_seconds=seconds, transfer_seconds=seconds),
            CircuitBreaker("the objects"),
        )
        cache = StepCache(entries, asked.head, self.scene.settings, self.clock)
        return replace(self.services(), cache=cache)

    def before_calls(self, hook: Callable[[str], None]) -> None:
        """Let something happen before each call of a model."""
        for provider in self.providers.values():
            provider.before_call = hook

    def fresh_services(self) -> Services:
        """Return the services of a run without: the cache off, nothing there but the files."""
        stores = replace(in_memory(), projects=self.projects, index=self.stores.index)
        sandboxes = self._new_sandboxes()
        for project in self.projects.projects():
            for file in self.projects.files(project.id):
                data = self.objects.get_bytes(file.storage_key)
                stores.objects.put_bytes(file.storage_key, data)
        without = self._services(stores, StepCacheSettings(enabled=False))
        return replace(without, sandboxes=sandboxes)

    def _new_sandboxes(self) -> Sandboxes:
        def template(name: str) -> Mapping[str, bytes] | None:
            files = {path: text.encode() for path, text in self.scene.template.items()}
            return files if name == "plain" else None

        return MemorySandboxes(
            template, new_files=MemorySandbox, clock=self.clock, retention_days=14
        )

    def _services(self, stores: Stores, settings: StepCacheSettings) -> Services:
        return Services(
            workflows={self.scene.workflow.id: self.scene.workflow},
            agents=self.scene.agents,
            objects=stores.objects,
            bodies=Bodies(stores.objects),
            cache=StepCache(stores.entries, stores.objects.head, settings, self.clock),
            flights=Alone(),
            history=stores.history,
            projects=stores.projects,
            index=stores.index,
            search=stores.index,
            analyzer=self.analyzer,
            speech=self.speech,
            renderer=self.renderer,
            provider=self.provider,
            default_provider="rule",
            clock=self.clock,
            functions=self.functions,
            sandboxes=self.sandboxes,
            scratch=lambda: self.folder / "scratch",
            loop_limits=LoopLimits(),
            loop_clock=MachineClock(),
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
        run_id = f"run-{self.runs}"
        scene, outcome = self.scene, RunOutcome(run_id=run_id)
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
            sandboxes=watched(services.sandboxes, calls["sandboxes"]),
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

    def check(self, judge: Judge = lambda _outcome: []) -> list[Finding]:
        """Plan, run with the cache, run without it, and return whatever differs.

        Args:
            judge: Finds more in what the run with the cache left behind.
        """
        services = self.services()
        planned, findings = self.plan(services)
        return findings + self.check_run(
            services, lambda outcome: wrong_forecasts(planned, outcome) + judge(outcome)
        )

    def check_run(self, services: Services, judge: Judge) -> list[Finding]:
        """Run with these services, run without the cache, and return whatever differs."""
        request = self.request(services)
        outcome = self.run(services, request)
        self.fail_agents(set())
        findings = judge(outcome)
        fresh = self.fresh_services()
        expected = self.run(fresh, request)
        return findings + self.differences(outcome, services, expected, fresh)

    def request(self, services: Services) -> str:
        """Return the request that a run takes."""
        scene = self.scene
        return choose_request(scene.workflow, scene.project, services, scene.request).text

    def differences(
        self, cached: RunOutcome, with_cache: Services, plain: RunOutcome, without: Services
    ) -> list[Finding]:
        """Return what a run left behind otherwise than another one."""
        findings = []
        if not cached.injected and not cached.errors:
            trees = self._left(cached, with_cache), self._left(plain, without)
            if trees[0] != trees[1]:
                findings.append(Finding("a sandbox differs", f"{trees[0]} against {trees[1]}"))
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

    def _left(self, outcome: RunOutcome, services: Services) -> Mapping[str, str]:
        """Return what a run left in its sandbox: path → digest."""
        execution = SandboxExecution(
            run_id=outcome.run_id,
            project_id=self.scene.project,
            workflow_id=self.scene.workflow.id,
            template=self.scene.workflow.sandbox.template,
        )
        return {file.path: file.digest for file in services.sandboxes.tree(execution).files}


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
