"""The shipped workflow `motion-titles` in Dagster: what runs again, and what its sandbox holds."""

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from reprise.context.bodies import Bodies
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.model.result import CacheReason, StepRecord
from reprise.ports import Cancelled
from resources.heuristic_provider import HeuristicProvider
from tests.media_files import clip
from tests.pipelines.engine import Engine

WORKFLOWS = Path(__file__).parents[2] / "workflows"
BEFORE = {"video_analyze", "content", "brand", "hook"}
ON_THE_SANDBOX = {"plan", "review", "components", "graphics"}
BRIEF = "# The harbour\n\nAudience: sailors\n"


@dataclass
class Counted:
    """The heuristic provider, with its calls counted by agent."""

    calls: Counter[str] = field(default_factory=Counter)
    context_tokens: int | None = None

    def identity(self) -> ProviderIdentity:
        return HeuristicProvider().identity()

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        self.calls[request.agent.id] += 1
        return HeuristicProvider().complete(request, cancelled=cancelled)


@pytest.fixture
def counted(engine: Engine) -> Counted:
    """Put the shipped workflow, as `w`, and a project with two seconds of film into the engine."""
    for name in ("prompts", "skills", "templates"):
        ignored = shutil.ignore_patterns("node_modules")
        shutil.copytree(
            WORKFLOWS / name, engine.workflows / name, ignore=ignored, dirs_exist_ok=True
        )
    text = (WORKFLOWS / "motion-titles.yaml").read_text("utf-8")
    text = text.replace("id: motion-titles\n", "id: w\n").replace("speech: true", "speech: false")
    (engine.workflows / "w.yaml").write_text(text)
    material = engine.root / "material" / "p"
    material.mkdir(parents=True)
    clip(material / "harbour.mp4")
    engine.project("p", brief=BRIEF)
    made = Counted()
    engine.before = lambda _provider: made
    return made


def records(engine: Engine, run: dg.DagsterRun) -> dict[str, StepRecord]:
    assert run.status is dg.DagsterRunStatus.SUCCESS, engine.failures
    return engine.records(run)


def output(engine: Engine, record: StepRecord) -> Any:
    assert record.reference is not None
    return Bodies(engine.wiring.objects).get("p", record.reference.seen.body_digest)


def in_sandbox(engine: Engine, run: dg.DagsterRun, path: str) -> str:
    """Return a file as the run's last snapshot holds it."""
    sandboxes = engine.wiring.sandboxes
    last = sandboxes.snapshots(run.run_id, "p")[-1]
    return sandboxes.kept_file(sandboxes.kept_tree(last.digest).by_path[path].digest).decode()


def test_a_second_run_executes_the_four_agents_again_and_nothing_else(
    engine: Engine, counted: Counted
) -> None:
    first = engine.run()
    assert {r.cache_reason for r in records(engine, first).values()} == {
        CacheReason.FIRST_TIME,
        CacheReason.POLICY,
    }
    counted.calls.clear()
    second = engine.run()
    reasons = {label: r.cache_reason for label, r in records(engine, second).items()}
    assert reasons == {
        **dict.fromkeys(BEFORE, CacheReason.HIT),
        **dict.fromkeys(ON_THE_SANDBOX, CacheReason.POLICY),
    }
    assert set(counted.calls) == {
        "motion-graphics-planner",
        "motion-graphics-director",
        "remotion-component-translator",
        "author",
    }
    for run in (first, second):
        assert 'title: "The harbour",' in in_sandbox(engine, run, "src/cards.ts")
    digests = [engine.wiring.sandboxes.snapshots(r.run_id, "p")[-1].digest for r in (first, second)]
    assert digests[0] == digests[1]


def test_another_brief_gives_other_edits_in_a_sandbox_of_its_own(
    engine: Engine, counted: Counted
) -> None:
    first = engine.run()
    engine.project("p", brief="# Night at sea\n\nAudience: sailors\n")
    second = engine.run()
    changed = records(engine, second)
    assert changed["video_analyze"].cache_reason is CacheReason.HIT
    assert changed["brand"].cache_reason is CacheReason.FIELD_CHANGED
    assert 'title: "Night at sea",' in in_sandbox(engine, second, "src/cards.ts")
    assert 'title: "The harbour",' in in_sandbox(engine, first, "src/cards.ts")
    assert counted.calls["author"] > 0


def test_without_an_installed_remotion_the_run_succeeds_and_says_what_is_missing(
    engine: Engine, counted: Counted
) -> None:
    record = records(engine, engine.run())["graphics"]
    (film,) = output(engine, record)["compositions"]
    assert film["composition_id"] == "TitleCard"
    assert film["rendered"] is False
    assert "npm ci" in film["note"]
    assert counted.calls["author"] > 1
