"""A dozen sequences of the differential oracle, through files, assets, executor and IO manager.

Each next run is planned and run by an engine with the cache, then by one without, which has a home
of its own; all that they leave behind is compared. The other thousands run without Dagster:
tests/oracle.

Source: specification R1, C18.
"""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from pipelines.definitions import Wiring
from pipelines.ingest import Ingest
from pipelines.plan import PlanRequest, plan_run
from reprise.model.result import StepRecord
from reprise.model.settings import StepCacheSettings
from resources.media_kind import media_kind
from resources.memory_functions import MemoryFunctions
from tests.oracle.compare import RunOutcome, record_differences, wrong_forecasts
from tests.oracle.deterministic import (
    DeterministicProvider,
    TwinAnalyzer,
    TwinRenderer,
    TwinSpeech,
)
from tests.oracle.machine import MEMORY, SEARCH, content_of, run_sequences
from tests.oracle.scene_rules import SceneRules
from tests.oracle.scenes import PROVIDERS, Scene, first_scenes
from tests.oracle.user_code import VERSIONS, module_texts
from tests.pipelines.engine import Engine

SEQUENCES = 12
RUNS_PER_SEQUENCE = 6
PATIENT = StepCacheSettings(
    lookup_deadline_seconds=60, store_deadline_seconds=60, head_deadline_seconds=60
)
"""Two loaded cores must not turn hits into misses."""


class SceneEngine(Engine):
    """An engine whose files are written from a scene."""

    def __init__(self, root: Path, knobs: StepCacheSettings) -> None:
        self.providers = {
            name: DeterministicProvider(name, reads_values=name != "texts") for name in PROVIDERS
        }
        self.functions = MemoryFunctions(module_texts(0))
        self._moment = datetime(2026, 1, 1, tzinfo=UTC)
        super().__init__(root)
        self.step_cache = knobs

    def fresh(self) -> Wiring:
        wiring = super().fresh()
        for name, provider in self.providers.items():
            wiring.use_provider(name, provider)
        wiring.analyzer, wiring.speech = TwinAnalyzer(), TwinSpeech()
        wiring.renderer, wiring.functions = TwinRenderer(), self.functions
        return wiring

    def write(self, scene: Scene) -> None:
        """Write a scene's files."""
        skills = self.workflows / "skills"
        skills.mkdir(exist_ok=True)
        for agent in scene.agents.values():
            names = [f"{agent.id}-{place}" for place in range(len(agent.assigned_skills))]
            for name, text in zip(names, agent.assigned_skills, strict=True):
                (skills / f"{name}.md").write_text(text)
            front = agent.model_dump(
                mode="json",
                exclude={"id", "agent_type", "system_prompt", "assigned_skills", "source_path"},
                exclude_defaults=True,
            )
            # A file has to name its schema, and a name alone means no more there than none.
            front.pop("output_schema_name", None)
            if agent.output_schema is not None:
                front["output_schema_name"] = agent.output_schema_name or "answer"
            self.agent(agent.id, agent.system_prompt, **{**front, "skills": names})
            if agent.agent_type != agent.id:
                path = self.workflows / "prompts" / f"{agent.id}.md"
                path.write_text(
                    path.read_text().replace(
                        f"agent_type: {agent.id}", f"agent_type: {agent.agent_type}"
                    )
                )
        data = scene.workflow.model_dump(
            mode="json", exclude={"source_path"}, exclude_defaults=True
        )
        (self.workflows / "w.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        plain = self.workflows / "templates" / "plain"
        shutil.rmtree(plain, ignore_errors=True)
        plain.mkdir(parents=True)
        for name, text in scene.template.items():
            (plain / name).parent.mkdir(exist_ok=True)
            (plain / name).write_text(text)

    @property
    def ingest(self) -> Ingest:
        """Files into projects, at the same moments whatever the engine: agents see them."""
        self._moment += timedelta(minutes=1)
        wiring = self.wiring
        return Ingest(
            wiring.projects, wiring.objects, wiring.index, media_kind, lambda: self._moment
        )

    def put(self, project: str, name: str, version: int) -> None:
        """Add a file to a project, or replace it."""
        path = self.root / name
        path.write_bytes(content_of(name, version))
        self.ingest.add(project, [path], lambda _name, _change: None)

    def run_scene(self, scene: Scene) -> dict[int, StepRecord]:
        """Run a scene as it stands; return the records by order."""
        modes = ",".join(f"{order}={mode.value}" for order, mode in scene.step_modes.items())
        tags = {
            "reprise/cache": scene.mode.value,
            "reprise/provider": scene.provider,
            "reprise/cache_steps": modes,
        }
        config = {} if scene.request is None else {"user_request": scene.request}
        done = self.run(scene.project, tags=tags, config=config)
        return {record.order: record for record in self.records(done).values()}


class DagsterOracle(SceneRules):
    """Two engines under the same edits."""

    hits = 0

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory(dir=MEMORY)
        root = Path(self._folder.name)
        self.cached = SceneEngine(root / "cached", PATIENT)
        self.plain = SceneEngine(root / "plain", StepCacheSettings(enabled=False))
        self.engines = (self.cached, self.plain)
        for engine in self.engines:
            for project in ("p", "q"):
                engine.project(project)
                engine.put(project, "one.mp4", 0)

    @initialize(scene=first_scenes)
    def begin(self, scene: Scene) -> None:
        self.scene = scene

    @rule(name=st.sampled_from(["brief.md", "one.mp4"]), version=st.integers(0, 2))
    def put_file(self, name: str, version: int) -> None:
        for engine in self.engines:
            engine.put(self.scene.project, name, version)

    @rule(version=st.integers(0, len(VERSIONS) - 1))
    def edit_code(self, version: int) -> None:
        for engine in self.engines:
            engine.functions.texts = module_texts(version)

    @invariant()
    def a_cached_run_equals_an_uncached_one(self) -> None:
        scene = self.scene
        for engine in self.engines:
            engine.write(scene)
        services = self.cached.fresh().services
        asked = PlanRequest(
            workflow=services.workflows["w"],
            project_id=scene.project,
            request=scene.request,
            cache=scene.mode,
            steps=scene.step_modes,
            provider_id=scene.provider,
        )
        planned = plan_run(asked, services)
        cached, plain = (engine.run_scene(scene) for engine in self.engines)
        assert wrong_forecasts(planned, RunOutcome(records=cached)) == []
        assert sorted(cached) == sorted(plain)
        with_cache, without = (engine.wiring.services for engine in self.engines)
        for order, record in cached.items():
            step = scene.workflow.step(order)
            found = record_differences(step, record, plain[order], with_cache, without)
            assert not found, "\n".join(map(str, found))
            DagsterOracle.hits += record.from_cache

    def teardown(self) -> None:
        for engine in self.engines:
            engine.instance.dispose()
        self._folder.cleanup()


@pytest.mark.slow
def test_a_cached_run_equals_an_uncached_one_in_dagster() -> None:
    chosen = settings(SEARCH, stateful_step_count=RUNS_PER_SEQUENCE)

    run_sequences(DagsterOracle, 0, SEQUENCES, chosen)

    assert DagsterOracle.hits > SEQUENCES * RUNS_PER_SEQUENCE / 2
