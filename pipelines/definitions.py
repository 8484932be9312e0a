"""Everything wired together: settings, adapters, services, Dagster definitions.

This is the one place that chooses adapters. Importing it does nothing; `defs` reads settings and
workflow files when Dagster (or the command line) asks for it, and each adapter is made on first
use.

Source: specification D1, D7, D19, W9.
"""

import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import dagster as dg

from io_managers.step_cache import StepCacheIOManager
from pipelines.behalf_wiring import BehalfWiring
from pipelines.cache_wiring import CacheWiring, now
from pipelines.compile import IO_MANAGER_KEY, SERVICES_KEY, check_served, compile_workflow
from pipelines.executor import threaded_executor
from pipelines.index_job import index_job, index_sensor
from pipelines.indexing import ProjectIndexing
from pipelines.ingest import Ingest
from pipelines.project_files import ProjectFiles
from pipelines.provider_wiring import configured_provider
from pipelines.sandbox_wiring import SandboxWiring
from pipelines.savings import savings_asset
from pipelines.schedules import daily_schedule
from pipelines.sensors import project_partitions_sensor
from pipelines.services import Services
from pipelines.sweep import sweep_job, sweep_schedule
from reprise.cache.lookup import StepCache
from reprise.canonical import NotCanonical
from reprise.context.bodies import Bodies
from reprise.context.budget import ContextBudget, DigestMemo
from reprise.errors import RepriseError, UnknownName
from reprise.ports import (
    FilmRenderer,
    FunctionLoader,
    HistoryStore,
    ModelProvider,
    ObjectStore,
    ProjectIndex,
    ProjectRegistry,
    ProjectSearch,
    Sandboxes,
    SpeechRecognizer,
    VideoAnalyzer,
)
from reprise.tools.catalog import withheld_tools
from resources.context_budget import context_budget_resource
from resources.definition_files import Definitions, load_definitions
from resources.faster_whisper_speech import FasterWhisperSpeech
from resources.ffmpeg import FfmpegLocator
from resources.ffmpeg_runner import FfmpegRunner, RunnerLimits
from resources.film_renderer import FfmpegFilmRenderer
from resources.heuristic_provider import HeuristicProvider
from resources.local_object_store import LocalObjectStore
from resources.machine_clock import MachineClock
from resources.media_kind import media_kind
from resources.payload_offload import PayloadOffload
from resources.python_functions import PythonFunctions, function_folders
from resources.s3_object_store import S3ObjectStore
from resources.scratch_folder import ScratchFolder
from resources.settings import Settings, load_settings, workflows_path
from resources.speech_model import SpeechModelLocator
from resources.sqlite_history import SqliteHistory
from resources.sqlite_project_index import SqliteProjectIndex
from resources.sqlite_projects import SqliteProjectRegistry
from resources.user_entry_store import UserEntryStore
from resources.video_analyzer import FfmpegVideoAnalyzer

logger = logging.getLogger(__name__)

BUDGET_KEY = "context_budget"


class Wiring:
    """The adapters that the settings choose, each made on first use.

    Args:
        settings: All knobs.
        store: A store of one's own for the step cache, whatever the settings say of it.

    Raises:
        TypeError: The store lacks `get` or `set`.
    """

    def __init__(self, settings: Settings, *, store: object | None = None) -> None:
        if store is not None:
            # Checked now, not in the middle of a run.
            UserEntryStore(store)
        self.settings = settings
        self._store = store
        self._providers: dict[str, ModelProvider] = {}
        self._providers_lock = threading.RLock()
        self._closer: Callable[[], object] | None = None

    @property
    def home(self) -> Path:
        """Folder of the embedded databases and the local object store."""
        return self.settings.home_path

    @cached_property
    def definitions(self) -> Definitions:
        """Workflows and agents as their files give them, with the problems of broken ones."""
        return load_definitions(workflows_path(self.settings), self.settings.features)

    @cached_property
    def objects(self) -> ObjectStore:
        """The object store."""
        chosen = self.settings.object_store
        if chosen.kind == "local":
            return LocalObjectStore(chosen.root or self.home / "objects")
        secret = chosen.secret_access_key
        return S3ObjectStore(
            chosen.bucket or "reprise",
            prefix=chosen.prefix,
            endpoint_url=chosen.endpoint_url,
            region=chosen.region,
            access_key_id=chosen.access_key_id,
            secret_access_key=secret.get_secret_value() if secret is not None else None,
        )

    @cached_property
    def history(self) -> HistoryStore:
        """What every run did."""
        return SqliteHistory(self.home / "history.db")

    @cached_property
    def projects(self) -> ProjectRegistry:
        """Projects and their files."""
        return SqliteProjectRegistry(self.home / "projects.db")

    @cached_property
    def behalf(self) -> BehalfWiring:
        """What is done in a user's name."""
        return BehalfWiring(self.settings)

    @cached_property
    def index(self) -> ProjectIndex:
        """What searches in projects are answered from."""
        return SqliteProjectIndex(self.home / "search.db")

    @property
    def search(self) -> ProjectSearch:
        """Answers the searches of agents: the Inference API where its URL is set."""
        return self.behalf.search or self.index

    @cached_property
    def ingest(self) -> Ingest:
        """Files into projects and out of them."""
        return Ingest(self.projects, self.objects, self.index, media_kind, now)

    @cached_property
    def indexing(self) -> ProjectIndexing:
        """Takes projects into the search index."""
        return ProjectIndexing(
            files=ProjectFiles(self.projects, self.objects, self.index, now),
            history=self.history,
            bodies=Bodies(self.objects),
            workflows=lambda: self.definitions.workflows,
            provider=lambda: self.provider(self.settings.provider),
            limits=self.settings.agents,
            loop_clock=MachineClock(),
        )

    @cached_property
    def cache_wiring(self) -> CacheWiring:
        """The step-result cache's own adapters."""
        return CacheWiring(self.settings, self.objects, store=self._store)

    @cached_property
    def sandbox_wiring(self) -> SandboxWiring:
        """The sandboxes' own adapters."""
        return SandboxWiring(self.settings, self.ffmpeg, self.limits)

    @property
    def sandboxes(self) -> Sandboxes:
        """The sandboxes of executions."""
        return self.sandbox_wiring.sandboxes

    @property
    def entries(self) -> PayloadOffload:
        """The cache's entries, for people's commands: without deadlines."""
        return self.cache_wiring.entries

    @property
    def cache(self) -> StepCache:
        """The step-result cache."""
        return self.cache_wiring.cache

    @cached_property
    def ffmpeg(self) -> FfmpegLocator:
        """The ffmpeg program."""
        chosen = self.settings.media.ffmpeg or self.settings.ffmpeg
        return FfmpegLocator(chosen, self.home / "toolchain.json")

    @property
    def limits(self) -> RunnerLimits:
        """Bounds of each ffmpeg process."""
        media = self.settings.media
        return RunnerLimits(
            wall_seconds=media.wall_seconds, max_pixels=media.max_pixels, threads=media.threads
        )

    @cached_property
    def analyzer(self) -> VideoAnalyzer:
        """Measures footage."""
        return FfmpegVideoAnalyzer(self.ffmpeg, self.limits)

    @cached_property
    def speech(self) -> SpeechRecognizer:
        """Recognises speech."""
        speech = self.settings.speech
        locator = SpeechModelLocator(speech.model, self.home / "models")
        return FasterWhisperSpeech(locator, threads=speech.cpu_threads)

    @cached_property
    def renderer(self) -> FilmRenderer:
        """Renders films."""
        runner = FfmpegRunner(self.ffmpeg.binary(), self.limits)
        return FfmpegFilmRenderer(runner, self.objects, threads=self.limits.threads)

    @cached_property
    def functions(self) -> FunctionLoader:
        """Loads the callables of Function steps."""
        return PythonFunctions(function_folders(workflows_path(self.settings)))

    def function_fingerprint(self, reference: str) -> str | None:
        """Return the fingerprint of a Function step's code; None when it has none."""
        try:
            return self.functions.load(reference).fingerprint()
        except (RepriseError, NotCanonical) as error:
            # Its step says so when it runs; the others are shown and run.
            logger.debug("no fingerprint of %s: %s", reference, error)
            return None

    @cached_property
    def services(self) -> Services:
        """Everything that steps may use."""
        return Services(
            workflows=self.definitions.workflows,
            agents=self.definitions.agents,
            objects=self.objects,
            bodies=Bodies(self.objects),
            cache=self.cache,
            flights=self.cache_wiring.flights,
            history=self.history,
            projects=self.projects,
            index=self.index,
            search=self.search,
            analyzer=self.analyzer,
            speech=self.speech,
            renderer=self.renderer,
            provider=self.provider,
            default_provider=self.settings.provider,
            clock=now,
            functions=self.functions,
            sandboxes=self.sandboxes,
            loop_limits=self.settings.agents,
            loop_clock=MachineClock(),
            budget=ContextBudget(self.settings.context_budget, self.digests),
            scratch=lambda: self.scratch.path,
            withheld_tools=withheld_tools(self.settings.features),
            compositions=self.sandbox_wiring.compositions,
            initiator=self.behalf.initiator,
        )

    @cached_property
    def digests(self) -> DigestMemo:
        """Digests of prior outputs that this process made."""
        return DigestMemo()

    @cached_property
    def scratch(self) -> ScratchFolder:
        """This process's folder for work in progress; made anew, leftovers of dead ones removed."""
        folder = ScratchFolder(self.home / "scratch")
        self._closer = weakref.finalize(self, folder.close)
        return folder

    def close(self) -> None:
        """Remove this process's work in progress; the end of the process does it too."""
        if self._closer is not None:
            self._closer()

    def provider(self, provider_id: str) -> ModelProvider:
        """Return a provider by id.

        Raises:
            UnknownName: It is not configured; says how to.
        """
        with self._providers_lock:
            # One for all threads: its limits are theirs together.
            if provider_id not in self._providers:
                self._providers[provider_id] = self._make_provider(provider_id)
            return self._providers[provider_id]

    def use_provider(self, provider_id: str, provider: ModelProvider) -> None:
        """Answer with this provider under an id, whatever the settings say of it."""
        self._providers[provider_id] = provider

    def _recorded(self, provider_id: str) -> ModelProvider:
        """Return a provider that another one records."""
        chosen = self.settings.providers.get(provider_id)
        if chosen is not None and chosen.kind == "replay":
            message = f"provider {provider_id!r} is a replay itself; name the one that it records"
            raise UnknownName(message)
        return self.provider(provider_id)

    def _make_provider(self, provider_id: str) -> ModelProvider:
        if provider_id == "heuristic":
            return HeuristicProvider()
        chosen = self.settings.providers.get(provider_id)
        if chosen is None:
            known = ", ".join(["heuristic", *self.settings.providers])
            message = (
                f"no provider {provider_id!r}; configured are: {known}. Configure one with"
                f" REPRISE_PROVIDERS__{provider_id.upper()}__BASE_URL and …__MODEL"
            )
            raise UnknownName(message)
        return configured_provider(provider_id, chosen, self._recorded)


def build_definitions(wiring: Wiring) -> dg.Definitions:
    """Return the Dagster definitions of every valid workflow; a broken one is logged."""
    assets: list[dg.AssetsDefinition] = [savings_asset(lambda: wiring.history)]
    jobs = []
    schedules = []
    for problem in wiring.definitions.all_problems:
        logger.warning("not loaded: %s", problem)
    for workflow in wiring.definitions.workflows.values():
        try:
            check_served(workflow)
            with quiet_beta_notices():
                its_assets, job = compile_workflow(
                    workflow, wiring.definitions.agents, wiring.function_fingerprint
                )
        except RepriseError as error:
            logger.warning("workflow %s is not loaded: %s", workflow.id, error)
            continue
        assets += its_assets
        jobs.append(job)
        schedules.append(daily_schedule(workflow, job))
    sweep = sweep_job(
        wiring.cache_wiring.sweep,
        lambda running: wiring.sandboxes.sweep(now=now(), running=running),
    )
    schedules.append(sweep_schedule(sweep))
    index = index_job(lambda: wiring.indexing)
    jobs += [sweep, index]
    io_manager = StepCacheIOManager(lambda: wiring.cache, lambda: wiring.history)
    return dg.Definitions(
        assets=assets,
        jobs=jobs,
        schedules=schedules,
        sensors=[
            project_partitions_sensor(lambda: wiring.projects),
            index_sensor(index, lambda: wiring.projects, lambda: wiring.index),
        ],
        resources={
            IO_MANAGER_KEY: dg.IOManagerDefinition.hardcoded_io_manager(io_manager),
            BUDGET_KEY: context_budget_resource(wiring.settings.context_budget, wiring.digests),
            SERVICES_KEY: dg.ResourceDefinition(
                lambda context: _of_run(wiring, context),
                required_resource_keys={BUDGET_KEY},
            ),
        },
        executor=threaded_executor(wiring.settings.run_threads),
    )


def _of_run(wiring: Wiring, context: dg.InitResourceContext) -> Iterator[Services]:
    """Give the services to a run; at its end the cache writes down what was used."""
    try:
        yield replace(wiring.services, budget=getattr(context.resources, BUDGET_KEY))
    finally:
        wiring.cache_wiring.flush()
        if context.run is not None:
            wiring.sandboxes.release(context.run.run_id)


@contextmanager
def quiet_beta_notices() -> Iterator[None]:
    """Keep Dagster's notices about its own beta parameters off the console."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        yield


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions that Dagster loads."""
    return build_definitions(Wiring(load_settings()))
