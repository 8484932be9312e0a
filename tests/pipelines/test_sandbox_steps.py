"""Agents with a sandbox, from the files to the second run (specification E10, C2, C5)."""

import json
import os
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.api import create_execution_plan
from dagster._core.execution.plan.state import KnownExecutionState

from pipelines.plan import PlanRequest, plan_run
from reprise.errors import Cancelled, ProviderError
from reprise.model.conversation import ModelReply, ToolCall
from reprise.model.result import CacheReason, StepRecord, StepStatus, Usage
from reprise.model.sandbox import SandboxMoment
from resources.scripted_provider import ScriptedProvider, ScriptItem
from tests.pipelines.engine import Engine

USAGE = Usage(input_uncached=10, output=5, calls=1)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
LOOK: tuple[str, dict[str, object]] = ("ReadSandboxFile", {"path": "src/a.txt"})


def uses(*calls: tuple[str, dict[str, object]]) -> ModelReply:
    return ModelReply(
        text="",
        tool_calls=tuple(
            ToolCall(id=f"call_{at}", name=name, arguments=json.dumps(arguments))
            for at, (name, arguments) in enumerate(calls)
        ),
        finish_reason="tool_calls",
        usage=USAGE,
        model="scripted-1",
    )


def writes(text: str, path: str = "src/a.txt") -> list[ScriptItem]:
    return [uses(("WriteSandboxFile", {"path": path, "content": text})), "written"]


def reads(answer: str = "read") -> list[ScriptItem]:
    return [uses(LOOK), answer]


@pytest.fixture
def studio(engine: Engine) -> Engine:
    """An author, who browses too, then somebody who browses, then somebody who reads that."""
    engine.agent("author", "You author.", tool_groups=["SandboxBrowse", "SandboxAuthoring"])
    engine.agent("browser", "You browse.", tool_groups=["SandboxBrowse"])
    engine.agent("reader", "You read.")
    template(engine, {"src/a.txt": "one\n", "package.json": "{}\n"})
    workflow(engine, "author", "browser", "reader")
    engine.project("p")
    return engine


def template(engine: Engine, files: dict[str, str], name: str = "plain") -> None:
    for path, text in files.items():
        target = engine.workflows / "templates" / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def workflow(engine: Engine, *agents: str, **sandbox: str) -> None:
    """Each agent's step reads what the one before it said."""
    steps = [
        {
            "label": name,
            "type": "Agent",
            "agent": name,
            "input_mode": "selected_prior_steps",
            "selected_prior_step_orders": [order - 1] if order > 1 else [],
        }
        for order, name in enumerate(agents, start=1)
    ]
    engine.workflow(steps, sandbox={"template": "plain", **sandbox})


def play(engine: Engine, **scripts: Sequence[ScriptItem]) -> tuple[str, dict[str, StepRecord]]:
    engine.scripted = ScriptedProvider(scripts)
    run = engine.run("p")
    assert run.is_success, engine.failures
    return run.run_id, engine.records(run)


def run_alone(engine: Engine, name: str, **tags: str) -> dg.DagsterRun:
    """Run one step, as a person does who materializes it in the UI."""
    key = dg.AssetKey(["w", name])
    run = engine.instance.create_run_for_job(
        engine.job().get_subset(asset_selection={key}),
        tags={"dagster/partition": "p", **tags},
        asset_selection=frozenset({key}),
        run_config=QUIET,
    )
    return engine.execute(engine.job(), run)


def re_executed(engine: Engine, failed: dg.DagsterRun) -> dg.DagsterRun:
    """Run from the failed step, as a person does who re-executes a run from failure."""
    steps, known = KnownExecutionState.build_resume_retry_reexecution(engine.instance, failed)
    job = engine.job()
    plan = create_execution_plan(
        job, run_config=failed.run_config, step_keys_to_execute=steps, known_state=known
    )
    again = engine.instance.create_run_for_job(
        job,
        execution_plan=plan,
        run_config=failed.run_config,
        tags=failed.tags,
        parent_run_id=failed.run_id,
        root_run_id=failed.run_id,
    )
    return engine.execute(job, again)


def results(engine: Engine, agent: str) -> list[Any]:
    """Return what the tools of an agent answered in the last run."""
    assert engine.scripted is not None
    asked = [request for request in engine.scripted.requests if request.agent.id == agent]
    return [json.loads(each.content) for each in asked[-1].messages if each.role == "tool"]


def reasons(records: dict[str, StepRecord]) -> list[CacheReason | None]:
    return [record.cache_reason for record in records.values()]


def texts(engine: Engine, run_id: str, project: str = "p") -> list[tuple[int, str, dict[str, str]]]:
    """Return order, moment and files of each snapshot of a run."""
    sandboxes = engine.wiring.sandboxes
    return [
        (
            line.order,
            line.moment.value,
            {
                file.path: sandboxes.kept_file(file.digest).decode()
                for file in sandboxes.kept_tree(line.digest).files
            },
        )
        for line in sandboxes.snapshots(run_id, project)
    ]


def test_on_a_warm_run_the_author_runs_again_and_who_browses_sees_this_runs_files(
    studio: Engine,
) -> None:
    play(studio, author=writes("two\n"), browser=reads("two"), reader=["told"])
    assert results(studio, "browser")[0]["text"] == "two\n"

    _, records = play(studio, author=writes("three\n"), browser=reads("three"), reader=["told"])

    assert results(studio, "browser")[0]["text"] == "three\n"
    assert reasons(records) == [
        CacheReason.POLICY,
        CacheReason.FIELD_CHANGED,
        CacheReason.FIELD_CHANGED,
    ]
    assert records["browser"].cache_detail == "changed: sandbox_digest (src/a.txt)"


def test_the_same_files_in_another_runs_sandbox_are_a_hit(studio: Engine) -> None:
    play(studio, author=writes("two\n"), browser=reads(), reader=["told"])

    run_id, records = play(studio, author=writes("two\n"))

    assert reasons(records) == [CacheReason.POLICY, CacheReason.HIT, CacheReason.HIT]
    assert [order for order, _, _ in texts(studio, run_id)] == [1, 1]


def test_each_run_begins_with_the_template_and_keeps_what_it_was_before_and_after(
    studio: Engine,
) -> None:
    workflow(studio, "author", "browser")
    for text in ("two\n", "three\n"):
        run_id, _ = play(studio, author=writes(text), browser=reads())
        start = {"package.json": "{}\n", "src/a.txt": "one\n"}
        end = {**start, "src/a.txt": text}
        assert texts(studio, run_id) == [
            (1, "before", start),
            (1, "after", end),
            (2, "before", end),
            (2, "after", end),
        ]


def test_the_step_shows_digests_and_changed_files(studio: Engine) -> None:
    run_id, _ = play(studio, author=writes("two\n"), browser=reads(), reader=["told"])
    lines = studio.wiring.sandboxes.snapshots(run_id, "p")
    shown = _metadata(studio, run_id, "s01_author")
    assert shown["sandbox_before"].value == lines[0].digest[:16]
    assert shown["sandbox_after"].value == lines[1].digest[:16]
    assert shown["sandbox_files_changed"].value == "src/a.txt"
    assert _metadata(studio, run_id, "s02_browser")["sandbox_files_changed"].value == "none"
    assert "sandbox_before" not in _metadata(studio, run_id, "s03_reader")


def _metadata(engine: Engine, run_id: str, step: str) -> Any:
    for entry in engine.instance.all_logs(
        run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    ):
        materialization = entry.asset_materialization
        if materialization is not None and materialization.asset_key.path[-1] == step:
            return materialization.metadata
    raise AssertionError(step)


def test_without_a_sandbox_block_it_is_an_empty_folder(studio: Engine) -> None:
    studio.agents_workflow({"author": [], "browser": [1]})
    run_id, _ = play(studio, author=writes("two\n", "b.txt"), browser=["nothing"])
    assert [files for _, _, files in texts(studio, run_id)][:2] == [{}, {"b.txt": "two\n"}]


def test_a_changed_template_is_named_by_who_browses(studio: Engine) -> None:
    workflow(studio, "browser")
    play(studio, browser=reads())
    template(studio, {"b.txt": "new"})
    _, records = play(studio, browser=reads())
    assert records["browser"].cache_detail == "changed: sandbox_digest (b.txt, new)"


def test_the_previous_runs_files_are_what_the_next_begins_with(studio: Engine) -> None:
    workflow(studio, "author", seed="previous")
    play(studio, author=writes("two\n"))
    run_id, _ = play(studio, author=writes("new\n", "b.txt"))
    assert texts(studio, run_id)[0][2] == {"package.json": "{}\n", "src/a.txt": "two\n"}
    studio.project("q")
    studio.scripted = ScriptedProvider({"author": writes("x")})
    other = studio.run("q")
    assert texts(studio, other.run_id, "q")[0][2]["src/a.txt"] == "one\n"


def test_a_failed_step_leaves_a_snapshot_and_its_re_execution_goes_on_from_it(
    studio: Engine,
) -> None:
    workflow(studio, "author", "browser")
    failure = ProviderError("out of order")
    studio.scripted = ScriptedProvider(
        {"author": [*writes("two\n")], "browser": [uses(LOOK), failure]}
    )
    job = studio.job()
    failed = studio.run("p", job=job)
    assert not failed.is_success
    assert [(order, moment) for order, moment, _ in texts(studio, failed.run_id)] == [
        (1, SandboxMoment.BEFORE),
        (1, SandboxMoment.AFTER),
        (2, SandboxMoment.BEFORE),
        (2, SandboxMoment.AFTER),
    ]

    studio.scripted = ScriptedProvider({"browser": reads()})
    again = re_executed(studio, failed)

    assert again.is_success, studio.failures
    assert results(studio, "browser")[0]["text"] == "two\n"


def test_a_step_that_is_run_alone_sees_the_files_that_its_inputs_left(studio: Engine) -> None:
    agents = ("author", "browser", "second")
    studio.agent("second", "You too.", tool_groups=["SandboxAuthoring"])
    workflow(studio, *agents)
    play(studio, author=writes("two\n"), browser=reads(), second=writes("three\n"))

    studio.scripted = ScriptedProvider({"browser": reads()})
    alone = run_alone(studio, "s02_browser", **{"reprise/cache": "refresh"})

    assert alone.is_success, studio.failures
    assert results(studio, "browser")[0]["text"] == "two\n"


def test_a_broken_template_fails_the_step_with_what_to_do(studio: Engine) -> None:
    (studio.workflows / "templates" / "plain" / "out.txt").symlink_to("/etc/hosts")
    workflow(studio, "browser")
    run = studio.run("p")
    assert not run.is_success
    assert (
        "template 'plain', 'out.txt': it is a link that leads out of the template; "
        "put the file itself there" in studio.failures[0]
    )


def test_another_template_makes_the_steps_that_work_on_it_stale(studio: Engine) -> None:
    def versions() -> list[str | None]:
        layer = studio.job().asset_layer
        names = ("s01_author", "s02_browser", "s03_reader")
        return [layer.get(dg.AssetKey(["w", name])).code_version for name in names]

    before = versions()
    template(studio, {"a.txt": "x"}, "other")
    workflow(studio, "author", "browser", "reader", template="other")
    after = versions()
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False, True]


def test_an_author_is_not_cached_by_force(studio: Engine) -> None:
    step = {"label": "a", "type": "Agent", "agent": "author", "cache_mode": "always"}
    studio.workflow([step])
    (problem,) = studio.fresh().definitions.all_problems
    assert "cache_mode: always would skip what agent 'author' does with SandboxAuthoring" in problem


def test_an_author_whose_effects_may_be_skipped_hits_by_the_files_it_began_with(
    studio: Engine,
) -> None:
    step = {"label": "a", "type": "Agent", "agent": "author", "cache_mode": "always"}
    studio.workflow([{**step, "allow_skipping_effects": True}], sandbox={"template": "plain"})
    play(studio, author=writes("two\n"))
    _, records = play(studio)
    assert reasons(records) == [CacheReason.HIT]


def test_files_that_change_while_they_are_browsed_give_nothing_to_later_runs(
    studio: Engine,
) -> None:
    workflow(studio, "browser")

    class Meddler(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            (path,) = (studio.root / "home" / "sandboxes" / "runs").glob("*/files/src/a.txt")
            path.write_text("moved\n")
            return super().complete(*args, **kwargs)

    studio.scripted = Meddler({"browser": reads()})
    run = studio.run("p")
    assert studio.records(run)["browser"].cache_detail.endswith("not stored: inputs_moved")


def forecasts(engine: Engine) -> list[tuple[str, str]]:
    wiring = engine.fresh()
    asked = PlanRequest(workflow=wiring.definitions.workflow("w"), project_id="p")
    return [(each.forecast.value, each.detail) for each in plan_run(asked, wiring.services)]


def test_a_plan_knows_the_files_that_a_run_would_begin_with_and_writes_none(
    studio: Engine,
) -> None:
    workflow(studio, "browser")
    assert forecasts(studio) == [("run", "this step has not run before")]
    assert not (studio.root / "home" / "sandboxes").exists()
    play(studio, browser=reads())
    assert [forecast for forecast, _ in forecasts(studio)] == ["hit"]
    template(studio, {"b.txt": "new"})
    assert forecasts(studio) == [("run", "changed: sandbox_digest (b.txt, new)")]


def test_a_plan_does_not_know_what_an_author_will_leave(studio: Engine) -> None:
    workflow(studio, "author", "browser")
    play(studio, author=writes("two\n"), browser=reads())
    (author, _), (browser, detail) = forecasts(studio)
    assert (author, browser, detail) == ("run", "unknown", "until step 1 (author) has run")


def test_a_sandbox_that_cannot_be_read_is_neither_looked_up_nor_stored(studio: Engine) -> None:
    workflow(studio, "browser")
    play(studio, browser=reads())
    # As a program that ran there may leave it: more than a sandbox holds.
    studio.scripted = _Filler(studio, {"browser": reads()})
    run = studio.run("p", tags={"reprise/cache": "refresh"})
    assert not run.is_success
    assert "the sandbox has more than 5,000 files" in studio.failures[-1]
    broken = studio.workflows / "templates" / "plain" / "bad"
    broken.symlink_to("nowhere")
    assert forecasts(studio) == [
        (
            "run",
            "the sandbox cannot be read: template 'plain', 'bad': it is a link that leads "
            "nowhere; remove it",
        )
    ]
    broken.unlink()
    assert [forecast for forecast, _ in forecasts(studio)] == ["hit"]


class _Filler(ScriptedProvider):
    """Fills the sandbox before it answers."""

    def __init__(self, engine: Engine, script: dict[str, list[ScriptItem]]) -> None:
        super().__init__(script)
        self._runs = engine.root / "home" / "sandboxes" / "runs"

    def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
        newest = max(self._runs.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for at in range(5_001):
            (newest / "files" / f"{at}.txt").touch()
        return super().complete(*args, **kwargs)


def test_a_stopped_run_leaves_a_snapshot_of_what_its_step_did(studio: Engine) -> None:
    workflow(studio, "author")

    class Stopper(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            if len(self.requests) == 1:
                message = "the run was stopped"
                raise Cancelled(message)
            return super().complete(*args, **kwargs)

    studio.scripted = Stopper({"author": writes("half\n")})
    run = studio.run("p")
    assert studio.records(run)["author"].status is StepStatus.CANCELLED
    assert [files["src/a.txt"] for _, _, files in texts(studio, run.run_id)] == ["one\n", "half\n"]


def test_the_nightly_sweep_removes_old_sandboxes(studio: Engine) -> None:
    workflow(studio, "author")
    run_id, _ = play(studio, author=writes("two\n"))
    (used,) = (studio.root / "home" / "sandboxes" / "runs").glob("*/in-use")
    long_ago = used.stat().st_mtime - 15 * 86400
    os.utime(used, (long_ago, long_ago))

    assert studio.job_named("reprise_cache_sweep").execute_in_process().success

    assert texts(studio, run_id) == []
