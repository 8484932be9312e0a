import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.edges import step_reads, transitive_reduction
from reprise.model.result import StepRecord
from tests.pipelines.engine import Engine

SUCCESS = dg.DagsterRunStatus.SUCCESS
DIAMOND = {"a": [], "b": [1], "c": [1], "d": [1, 2, 3]}


def test_edges_are_the_transitive_reduction_of_the_reads(engine: Engine) -> None:
    engine.agents_workflow(
        {
            "extract": [],
            "analyze": [],
            "brand": [1, 2],
            "audience": [1, 2],
            "hooks": [1, 2],
            "music": [2],
            "script": [1, 2, 3, 4, 5, 6],
            "edit": [1, 2, 3, 4, 5, 6, 7],
            "author": [8],
            "compile": [6, 8],
            "notes": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        }
    )
    definitions = engine.fresh().definitions
    reads = step_reads(definitions.workflows["w"], definitions.agents)

    edges = transitive_reduction(reads)

    assert sum(len(parents) for parents in reads.values()) == 33
    assert edges == {
        1: frozenset(),
        2: frozenset(),
        3: frozenset({1, 2}),
        4: frozenset({1, 2}),
        5: frozenset({1, 2}),
        6: frozenset({2}),
        7: frozenset({3, 4, 5, 6}),
        8: frozenset({7}),
        9: frozenset({8}),
        10: frozenset({8}),
        11: frozenset({9, 10}),
    }


def test_steps_with_side_effects_keep_their_order(engine: Engine) -> None:
    engine.agent("a", "x", tool_groups=["ProjectWrite"])
    engine.agent("c", "x", tool_groups=["ProjectWrite"])
    engine.agents_workflow({"a": [], "b": [], "c": []})
    definitions = engine.fresh().definitions

    reads = step_reads(definitions.workflows["w"], definitions.agents)

    assert reads == {1: frozenset(), 2: frozenset(), 3: frozenset({1})}


def test_the_assets_are_keyed_grouped_and_partitioned_as_the_ui_shows_them(engine: Engine) -> None:
    engine.agents_workflow(DIAMOND)
    graph = build_definitions(engine.fresh()).resolve_asset_graph()

    assert sorted(key.to_user_string() for key in graph.get_all_asset_keys()) == [
        "reprise/savings",
        "w/request",
        "w/s01_a",
        "w/s02_b",
        "w/s03_c",
        "w/s04_d",
    ]
    node = graph.get(dg.AssetKey(["w", "s04_d"]))
    assert node.group_name == "w"
    assert sorted(key.path[1] for key in node.parent_keys) == ["s02_b", "s03_c"]
    assert isinstance(node.partitions_def, dg.DynamicPartitionsDefinition)
    assert node.partitions_def.name == "projects"


def test_a_warm_run_asks_no_agent_and_leaves_the_same_events(engine: Engine) -> None:
    engine.agents_workflow(DIAMOND)
    engine.project("p")

    cold = engine.run()
    assert engine.executed() == {"a", "b", "c", "d"}
    warm = engine.run()

    assert engine.executed() == set()
    assert (cold.status, warm.status) == (SUCCESS, SUCCESS)
    assert engine.histogram(cold) == engine.histogram(warm)


def test_a_hit_reports_what_it_saved_and_that_it_spent_nothing(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")
    cold = engine.records(engine.run())["a"]
    warm = engine.records(engine.run())["a"]

    assert (cold.from_cache, cold.usage.tokens, cold.cached_tokens_saved) == (False, 120, 0)
    assert (warm.from_cache, warm.usage.tokens, warm.cached_tokens_saved) == (True, 0, 120)
    assert warm.cached_cost_micros_saved == 500
    assert warm.cached_seconds_saved > 0
    assert warm.reference is not None
    assert cold.reference is not None
    assert warm.reference.seen == cold.reference.seen


def test_editing_a_prompt_runs_that_agent_and_what_reads_it(engine: Engine) -> None:
    engine.agents_workflow({"a": [], "b": [1], "c": [1], "d": [2]})
    engine.project("p")
    engine.run()
    engine.executed()
    engine.agent("b", "You are another b.")

    run = engine.run()

    assert engine.executed() == {"b", "d"}
    assert engine.records(run)["b"].cache_detail == "changed: agent_system_prompt"
    assert engine.records(run)["d"].cache_detail == "changed: resolved_input (step 2 (b))"


def test_an_edit_that_changes_no_output_stops_there(engine: Engine) -> None:
    engine.rule.constant = {"b"}
    engine.agents_workflow({"a": [], "b": [1], "d": [2]})
    engine.project("p")
    engine.run()
    engine.executed()
    engine.agent("b", "You are another b.")

    engine.run()

    assert engine.executed() == {"b"}


def test_uploading_a_file_runs_only_agents_that_can_read_it(engine: Engine) -> None:
    engine.agent("a", "x", tool_groups=["ProjectRead"])
    engine.agents_workflow({"a": [], "b": []})
    engine.project("p")
    engine.run()
    engine.executed()
    engine.project("p", more="another file")

    engine.run()

    assert engine.executed() == {"a"}


def test_a_new_request_reaches_every_agent(engine: Engine) -> None:
    engine.agents_workflow({"a": [], "b": [1]}, default_request="default")
    engine.project("p")
    engine.run()
    engine.executed()

    engine.run(config={"user_request": "something else"})

    assert engine.executed() == {"a", "b"}


def test_without_a_request_the_projects_last_one_is_taken(engine: Engine) -> None:
    engine.agents_workflow({"a": []}, default_request="default")
    engine.project("p")
    engine.project("q")
    engine.run("p", config={"user_request": "mine"})
    engine.executed()

    engine.run("p")
    assert engine.executed() == set()
    run = engine.run("q")
    assert engine.executed() == {"a"}
    request = next(r for r in engine.wiring.history.of_run(run.run_id) if r.order == 0)
    assert request.reference is not None
    bodies = engine.wiring.services.bodies
    assert bodies.get("q", request.reference.seen.body_digest) == "default"


def test_projects_do_not_share_results(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.project("q")
    engine.run("p")
    engine.executed()

    engine.run("q")

    assert engine.executed() == {"a"}


@pytest.mark.parametrize("how", ["tag", "config"])
def test_refresh_executes_and_overwrites(engine: Engine, how: str) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.run()
    engine.executed()

    if how == "tag":
        run = engine.run(tags={"reprise/cache": "refresh"})
    else:
        run = engine.run(config={"cache": "REFRESH"})

    assert engine.executed() == {"a"}
    assert engine.records(run)["a"].cache_reason == "refresh"
    engine.run()
    assert engine.executed() == set()


def test_bypass_neither_reads_nor_writes(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")

    engine.run(tags={"reprise/cache": "bypass"})
    assert len(engine.wiring.entries) == 0
    engine.run()
    engine.executed()
    engine.run(tags={"reprise/cache": "bypass"})

    assert engine.executed() == {"a"}


def test_a_failed_step_keeps_what_came_before_it(engine: Engine) -> None:
    engine.agents_workflow({"a": [], "b": [1], "c": [2]})
    engine.project("p")
    engine.rule.fails = {"b"}

    failed = engine.run()

    assert failed.status is dg.DagsterRunStatus.FAILURE
    record = engine.records(failed)["b"]
    assert record.error == "step 2 (b) of w: b is out of order"
    assert "c" not in engine.records(failed)
    engine.executed()
    engine.rule.fails = set()
    assert engine.run().status is SUCCESS
    assert engine.executed() == {"b", "c"}


def test_a_step_alone_sees_what_its_parents_saw(engine: Engine) -> None:
    engine.agents_workflow({"a": [], "b": [1], "c": [1, 2]})
    engine.project("p")
    engine.run()
    engine.executed()
    job = engine.job().get_subset(asset_selection={dg.AssetKey(["w", "s03_c"])})
    run = engine.instance.create_run_for_job(
        job,
        tags={"dagster/partition": "p"},
        asset_selection=frozenset({dg.AssetKey(["w", "s03_c"])}),
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )

    done = engine.execute(engine.job(), run)

    assert done.status is SUCCESS
    assert engine.executed() == set()
    assert set(engine.records(done)) == {"c"}


def test_two_runs_of_one_project_do_not_read_each_others_results(engine: Engine) -> None:
    engine.agents_workflow({"a": [], "b": [1]})
    engine.project("p")
    one = engine.records(engine.run(config={"user_request": "one"}))
    two = engine.records(engine.run(config={"user_request": "two"}))
    again = engine.records(engine.run(config={"user_request": "one"}))

    def digest(records: dict[str, StepRecord], label: str) -> str:
        reference = records[label].reference
        assert reference is not None
        return reference.seen.body_digest

    assert digest(again, "b") == digest(one, "b") != digest(two, "b")
    assert again["b"].from_cache


def test_the_data_version_is_the_digest_of_the_output(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")
    record = engine.records(engine.run())["a"]
    event = engine.instance.get_latest_materialization_event(dg.AssetKey(["w", "s01_a"]))

    assert event is not None
    assert event.asset_materialization is not None
    assert record.reference is not None
    tags = event.asset_materialization.tags or {}
    assert tags["dagster/data_version"] == record.reference.seen.body_digest


def test_a_broken_workflow_does_not_hide_the_others(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.agents_workflow({"a": []})
    (engine.workflows / "broken.yaml").write_text("id: broken\nsteps: 3\n")

    definitions = build_definitions(engine.fresh())

    assert definitions.resolve_job_def("w").name == "w"
    assert "broken.yaml" in caplog.text
