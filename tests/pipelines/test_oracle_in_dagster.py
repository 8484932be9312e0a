"""A dozen sequences of the differential oracle, through files, assets, executor and IO manager.

Each next run is planned, run with the cache, and run again with `bypass`; what they leave behind
is compared. The other thousands run without Dagster: tests/oracle.

Source: specification R1, C18.
"""

from pathlib import Path
from random import Random

import pytest
import yaml

from pipelines.definitions import Wiring
from pipelines.plan import PlanRequest, plan_run
from pipelines.step_run import RunCacheMode
from reprise.model.result import StepRecord
from resources.memory_functions import MemoryFunctions
from tests.oracle.compare import RunOutcome, comparable, wrong_forecasts
from tests.oracle.deterministic import (
    DeterministicProvider,
    TwinAnalyzer,
    TwinRenderer,
    TwinSpeech,
)
from tests.oracle.scene_edits import SCENE_EDITS, edit_settings
from tests.oracle.scenes import PROVIDERS, Scene, first_scene
from tests.oracle.user_code import any_version, module_texts
from tests.pipelines.engine import Engine

EDITS_IN_DAGSTER = tuple(edit for edit in SCENE_EDITS if edit is not edit_settings)
FILES = {
    "brief.md": ("a brief", "b brief"),
    "one.mp4": ("\0\0\0 ftypisom one", "\0\0\0 ftypisom two"),
}


class SceneEngine(Engine):
    """An engine whose files are written from a scene."""

    def __init__(self, root: Path) -> None:
        self.providers = {
            name: DeterministicProvider(name, reads_values=name != "texts") for name in PROVIDERS
        }
        self.functions = MemoryFunctions(module_texts(0))
        super().__init__(root)

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
            if agent.output_schema is not None:
                # A file has to name its schema; a name alone means no more there than none.
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

    def put(self, project: str, name: str, text: str) -> None:
        """Add a file to a project, or replace it."""
        path = self.root / name
        path.write_text(text)
        self.ingest.add(project, [path], lambda _name, _change: None)

    def run_scene(self, scene: Scene, mode: RunCacheMode | None = None) -> dict[int, StepRecord]:
        """Run a scene as it stands; return the records by order."""
        steps = {} if mode is not None else scene.step_modes
        tags = {
            "reprise/cache": (mode or scene.mode).value,
            "reprise/provider": scene.provider,
            "reprise/cache_steps": ",".join(f"{o}={m.value}" for o, m in steps.items()),
        }
        config = {} if scene.request is None else {"user_request": scene.request}
        done = self.run(scene.project, tags=tags, config=config)
        return {record.order: record for record in self.records(done).values()}


@pytest.fixture
def engine(tmp_path: Path) -> SceneEngine:
    made = SceneEngine(tmp_path)
    made.project("p")
    made.project("q")
    for project in ("p", "q"):
        made.put(project, "one.mp4", FILES["one.mp4"][0])
    return made


@pytest.mark.parametrize("seed", range(12))
def test_a_cached_run_equals_a_bypassing_one_in_dagster(engine: SceneEngine, seed: int) -> None:
    rng = Random(seed)
    scene = first_scene(rng)
    engine.write(scene)
    engine.run_scene(scene)
    for _ in range(2):
        edited = rng.choice(EDITS_IN_DAGSTER)(scene, rng)
        scene = edited if edited.is_valid() else scene
        if rng.random() < 0.3:
            name = rng.choice(list(FILES))
            engine.put(scene.project, name, rng.choice(FILES[name]))
        if rng.random() < 0.3:
            engine.functions.texts = any_version(rng)
        engine.write(scene)
        check(engine, scene)
    engine.instance.dispose()


def check(engine: SceneEngine, scene: Scene) -> None:
    services = engine.fresh().services
    planned = plan_run(
        PlanRequest(
            workflow=services.workflows["w"],
            project_id=scene.project,
            request=scene.request,
            cache=scene.mode,
            steps=scene.step_modes,
            provider_id=scene.provider,
        ),
        services,
    )
    cached = engine.run_scene(scene)
    plain = engine.run_scene(scene, RunCacheMode.BYPASS)

    assert wrong_forecasts(planned, RunOutcome(records=cached)) == []
    assert sorted(cached) == sorted(plain)
    for order, record in cached.items():
        assert without_run(record) == without_run(plain[order])


def without_run(record: StepRecord) -> dict[str, object]:
    return {
        name: str(value).replace(record.run_id, "") for name, value in comparable(record).items()
    }
