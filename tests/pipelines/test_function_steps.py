"""Function steps in Dagster: what is cached, what runs again, what stops, what is said."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.edges import step_reads
from reprise.model.result import CacheReason, StepStatus
from tests.pipelines.engine import Engine

SUCCESS = dg.DagsterRunStatus.SUCCESS

PICK = """
    from pathlib import Path
    from helpers import score

    def pick(inputs):
        '''Score what was read.'''
        log = Path(__file__).parent / "calls.txt"
        with log.open("a") as stream:
            stream.write("pick\\n")
        return {"score": score(inputs.resolved_input)}
"""
HELPERS = """
    def score(text):
        # Longer is better.
        return len(text)
"""


def write(engine: Engine, **modules: str) -> None:
    folder = engine.workflows / "functions"
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))


def calls(engine: Engine) -> int:
    """Return how often functions were called since the last time."""
    log = engine.workflows / "functions" / "calls.txt"
    count = len(log.read_text().splitlines()) if log.exists() else 0
    log.unlink(missing_ok=True)
    return count


def function_step(**config: object) -> dict[str, object]:
    return {"label": "f", "type": "Function", "function": {"callable": "promo:pick", **config}}


def agent_step(
    engine: Engine, label: str, reads: Sequence[int] = (), **more: object
) -> dict[str, object]:
    engine.agent(label, f"You are {label}.")
    return {
        "label": label,
        "type": "Agent",
        "agent": label,
        "input_mode": "selected_prior_steps",
        "selected_prior_step_orders": list(reads),
        **more,
    }


@pytest.fixture
def pure(engine: Engine) -> Engine:
    """An engine with one pure function that counts its calls."""
    write(engine, promo=PICK, helpers=HELPERS)
    engine.workflow([function_step(pure=True)])
    engine.project("p")
    return engine


def output(engine: Engine, run: dg.DagsterRun, label: str = "f") -> object:
    record = engine.records(run)[label]
    assert record.reference is not None
    return engine.wiring.services.bodies.get("p", record.reference.seen.body_digest)


def test_a_pure_function_is_called_once(pure: Engine) -> None:
    cold = pure.run()
    warm = pure.run()

    assert (cold.status, warm.status) == (SUCCESS, SUCCESS)
    assert calls(pure) == 1
    assert output(pure, cold) == output(pure, warm) == {"score": 0}
    assert pure.records(warm)["f"].from_cache


def test_a_function_that_is_not_declared_pure_is_called_each_time(engine: Engine) -> None:
    write(engine, promo=PICK, helpers=HELPERS)
    engine.workflow([function_step()])
    engine.project("p")
    engine.run()
    run = engine.run()

    assert calls(engine) == 2
    assert engine.records(run)["f"].cache_reason is CacheReason.POLICY


def test_an_edited_helper_runs_the_function_again_and_is_named(pure: Engine) -> None:
    pure.run()
    calls(pure)
    write(pure, helpers=HELPERS.replace("len(text)", "len(text) + 7"))

    run = pure.run()

    assert calls(pure) == 1
    assert output(pure, run) == {"score": 7}
    assert pure.records(run)["f"].cache_detail == "changed: function_fingerprint"


def test_a_helper_edited_in_a_long_lived_process_is_loaded_anew(pure: Engine) -> None:
    job = pure.job()
    pure.run(job=job)
    write(pure, helpers=HELPERS.replace("len(text)", "len(text) + 7"))

    assert output(pure, pure.run(job=job)) == {"score": 7}


def test_an_edit_of_comments_and_docstrings_hits(pure: Engine) -> None:
    pure.run()
    calls(pure)
    write(pure, helpers=HELPERS.replace("Longer", "Much longer"))
    write(pure, promo="# A note.\n" + textwrap.dedent(PICK.replace("Score what", "Count what")))

    run = pure.run()

    assert calls(pure) == 0
    assert pure.records(run)["f"].from_cache


def test_a_new_request_runs_a_pure_function_again(pure: Engine) -> None:
    pure.run()
    calls(pure)

    pure.run(config={"user_request": "shorter"})

    assert calls(pure) == 1


def test_a_changed_workflow_variable_runs_a_pure_function_again(pure: Engine) -> None:
    pure.run()
    calls(pure)
    pure.workflow([function_step(pure=True)], variables={"tone": "warm"})

    run = pure.run()

    assert calls(pure) == 1
    assert pure.records(run)["f"].cache_detail.startswith("changed: variables")


@pytest.mark.parametrize(("files", "expected"), [(None, 1), ([], 0), (["brief.md"], 0)])
def test_a_new_file_runs_a_pure_function_that_may_see_it(
    pure: Engine, files: list[str] | None, expected: int
) -> None:
    pure.workflow([function_step(pure=True, **({} if files is None else {"files": files}))])
    pure.run()
    calls(pure)
    pure.project("p", more="another file")

    pure.run()

    assert calls(pure) == expected


def test_outputs_that_read_alike_and_are_not_the_same_are_told_apart(engine: Engine) -> None:
    write(
        engine,
        promo="def pick(inputs):\n    return type(inputs.output(1)).__name__\n",
        first="def one(inputs):\n    return 1\n",
    )
    steps: list[dict[str, object]] = [
        {"label": "a", "type": "Function", "function": {"callable": "first:one", "pure": True}},
        function_step(pure=True),
    ]
    engine.workflow(steps)
    engine.project("p")
    assert output(engine, engine.run()) == "int"
    write(engine, first="def one(inputs):\n    return '1'\n")

    assert output(engine, engine.run()) == "str"


def test_a_function_gets_outputs_variables_files_and_request(engine: Engine) -> None:
    write(
        engine,
        promo="""
            from reprise.model.function import FunctionInputs, FunctionResult

            def pick(inputs: FunctionInputs) -> FunctionResult:
                assert isinstance(inputs, FunctionInputs)
                note = inputs.workdir / "note.txt"
                note.write_text(inputs.read_text("brief.md"))
                inputs.progress("half way", 0.5)
                return FunctionResult(
                    {
                        "by_label": inputs.output("a")[:2],
                        "mapped": inputs.mapped["answer"][:2],
                        "variables": sorted(inputs.variables),
                        "request": inputs.user_request,
                        "files": [(f.name, f.kind, f.size_bytes) for f in inputs.files][0][0],
                        "bytes": inputs.read_bytes("brief.md").decode(),
                        "cancelled": inputs.cancelled(),
                    },
                    artifacts={"note.txt": note},
                )
        """,
    )
    mapped = {"input_mode": "custom_mapped_subset", "input_mapping": {"answer": 'steps."1"'}}
    engine.workflow(
        [agent_step(engine, "a"), {**function_step(pure=True), **mapped}],
        variables={"tone": "warm"},
        default_request="make it",
    )
    engine.project("p")

    run = engine.run()

    assert output(engine, run) == {
        "by_label": "a:",
        "mapped": "a:",
        "variables": ["a_output", "tone"],
        "request": "make it",
        "files": "brief.md",
        "bytes": "a brief",
        "cancelled": False,
    }
    [artifact] = engine.records(run)["f"].artifacts
    assert (artifact.name, artifact.media_type) == ("note.txt", "text/plain")
    assert engine.wiring.objects.get_bytes(artifact.storage_key) == b"a brief"


VARIABLES = """
    from reprise.model.function import FunctionResult

    def pick(inputs):
        return FunctionResult("done", variables={"count": 3})
"""


def test_variables_of_a_function_reach_the_steps_that_name_them_fresh_and_replayed(
    engine: Engine,
) -> None:
    write(engine, promo=VARIABLES)
    engine.workflow(
        [
            function_step(pure=True, sets=["count"]),
            agent_step(engine, "b", prompt="Write {{count}} lines."),
        ]
    )
    engine.project("p")
    engine.run()
    assert engine.executed() == {"b"}

    warm = engine.run()

    assert engine.executed() == set()
    write(engine, promo=VARIABLES.replace("3", "4"))
    changed = engine.run()
    assert engine.executed() == {"b"}
    assert engine.records(warm)["f"].from_cache
    assert engine.records(changed)["b"].cache_detail.startswith("changed: ")
    reads = step_reads(engine.wiring.definitions.workflows["w"], engine.wiring.definitions.agents)
    assert reads == {1: frozenset(), 2: frozenset({1})}


def test_a_variable_that_is_not_declared_fails_the_step(engine: Engine) -> None:
    write(engine, promo=VARIABLES)
    engine.workflow([function_step()])
    engine.project("p")

    run = engine.run()

    assert engine.records(run)["f"].error == (
        "step 1 (f) of w: promo:pick set the variable 'count', which the step does not declare"
        " (declared: none); add it to `function.sets`"
    )


STOP = """
    from pathlib import Path
    from reprise.model.function import FunctionResult

    def pick(inputs):
        with (Path(__file__).parent / "calls.txt").open("a") as stream:
            stream.write("pick\\n")
        return FunctionResult("enough", stop_workflow=True, sets_output_variable=False)
"""


def test_a_stop_skips_every_later_step_fresh_and_replayed(engine: Engine) -> None:
    write(engine, promo=STOP)
    engine.workflow(
        [
            agent_step(engine, "a"),
            function_step(pure=True, stops=True),
            agent_step(engine, "b", [2]),
            agent_step(engine, "c"),
        ]
    )
    engine.project("p")
    for _ in range(2):
        run = engine.run()
        records = engine.records(run)

        assert run.status is SUCCESS
        assert {label: record.status for label, record in records.items()} == {
            "a": StepStatus.SUCCEEDED,
            "f": StepStatus.SUCCEEDED,
            "b": StepStatus.SKIPPED,
            "c": StepStatus.SKIPPED,
        }
        assert records["b"].cache_detail == "step 2 (f) stopped the workflow"
        assert records["f"].reference is not None
        assert records["f"].reference.seen.variables == {}
        said = [entry.user_message for entry in engine.instance.all_logs(run.run_id)]
        assert "step 2 (f) of w stops the workflow: the steps after it are skipped" in said
    assert records["f"].from_cache
    assert calls(engine) == 1


def test_a_stop_that_is_not_declared_fails_the_step(engine: Engine) -> None:
    write(engine, promo=STOP)
    engine.workflow([function_step()])
    engine.project("p")

    run = engine.run()

    assert "add `stops: true` to `function`" in str(engine.records(run)["f"].error)


def test_an_error_names_the_users_file_and_line_in_one_line(engine: Engine) -> None:
    write(
        engine,
        promo="import helpers\n\ndef pick(inputs):\n    return helpers.score('x')\n",
        helpers="import json\n\n\ndef score(text):\n    return json.loads('[1,\\n' + text)\n",
    )
    engine.workflow([function_step()])
    engine.project("p")

    run = engine.run()

    place = engine.workflows / "functions" / "helpers.py"
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert engine.records(run)["f"].error == (
        f"step 1 (f) of w: promo:pick failed at {place}:5: JSONDecodeError:"
        " Expecting value: line 2 column 1 (char 4)"
    )


@pytest.mark.parametrize(
    ("gives", "passed_on"),
    [
        ("(1, 2)", [1, 2]),
        ("{1: 'a', None: 'b'}", {"1": "a", "null": "b"}),
        ("[{'a': ({'b': (1,)},)}]", [{"a": [{"b": [1]}]}]),
    ],
)
def test_what_json_holds_in_another_shape_is_passed_on_and_not_stored(
    engine: Engine, gives: str, passed_on: object
) -> None:
    write(engine, promo=f"def pick(inputs):\n    return {gives}\n")
    engine.workflow([function_step(pure=True)])
    engine.project("p")
    engine.run()

    run = engine.run()

    assert run.status is SUCCESS
    assert output(engine, run) == passed_on
    record = engine.records(run)["f"]
    assert not record.from_cache
    assert record.cache_detail.endswith("not stored: not_hashable")
    assert "not stored for later runs: in the output of promo:pick, $" in record.notes[0]


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        ("float('nan')", "$ is nan, which JSON cannot hold"),
        ("{'a': [{1}]}", "$.a[0] is of type set, which JSON cannot hold"),
        ("{1: 'a', '1': 'b'}", "$ has two keys that JSON writes as '1'"),
        ("b'x'", "$ is of type bytes, which JSON cannot hold"),
        ("object()", "$ is of type object, which JSON cannot hold"),
    ],
)
def test_what_json_cannot_hold_fails_the_step(engine: Engine, gives: str, said: str) -> None:
    write(engine, promo=f"def pick(inputs):\n    return {gives}\n")
    engine.workflow([function_step(pure=True)])
    engine.project("p")

    error = str(engine.records(engine.run())["f"].error)

    assert f"promo:pick gave no JSON value: in its output, {said}; return" in error


def test_a_function_edited_while_it_runs_is_not_stored(engine: Engine) -> None:
    """Case C9: it serves this run and no other."""
    write(
        engine,
        promo="from pathlib import Path\nVALUE = 1\ndef pick(inputs):\n"
        "    text = Path(__file__).read_text()\n"
        "    Path(__file__).write_text(text.replace('VALUE = 1', 'VALUE = 2'))\n"
        "    return VALUE\n",
    )
    engine.workflow([function_step(pure=True)])
    engine.project("p")

    run = engine.run()

    assert output(engine, run) == 1
    assert engine.records(run)["f"].cache_detail.endswith("not stored: inputs_moved")
    assert output(engine, engine.run()) == 2


def test_a_function_broken_while_it_runs_still_gives_its_result(engine: Engine) -> None:
    write(
        engine,
        promo="from pathlib import Path\ndef pick(inputs):\n"
        "    Path(__file__).write_text('def broken(:\\n')\n    return 1\n",
    )
    engine.workflow([function_step(pure=True)])
    engine.project("p")

    run = engine.run()

    assert run.status is SUCCESS
    assert engine.records(run)["f"].cache_detail.endswith("not stored: inputs_moved")


def test_functions_with_side_effects_keep_their_order(engine: Engine) -> None:
    write(engine, promo=PICK, helpers=HELPERS)
    alone: dict[str, object] = {"input_mode": "selected_prior_steps"}
    engine.workflow(
        [
            {**function_step(), "label": "a", **alone},
            {**function_step(pure=True), "label": "b", **alone},
            {**function_step(), "label": "c", **alone},
        ]
    )
    definitions = engine.fresh().definitions

    assert step_reads(definitions.workflows["w"], definitions.agents) == {
        1: frozenset(),
        2: frozenset(),
        3: frozenset({1}),
    }


def test_a_missing_callable_is_said_with_what_may_be_meant(engine: Engine) -> None:
    write(engine, promo="def pik(inputs):\n    return 1\n")
    engine.workflow([function_step()])
    engine.project("p")

    error = str(engine.records(engine.run())["f"].error)

    path = Path("functions") / "promo.py"
    assert error.endswith(f"{path}; did you mean 'pik'?")


def test_an_edited_helper_gives_the_asset_another_code_version(engine: Engine) -> None:
    """So that the UI shows it as stale."""
    engine.workflow([function_step(pure=True)])

    def version() -> str | None:
        graph = build_definitions(engine.fresh()).resolve_asset_graph()
        (node,) = [node for node in graph.asset_nodes if node.key.path[-1] == "s01_f"]
        return node.code_version

    write(engine, promo=PICK, helpers=HELPERS)
    first = version()
    write(engine, helpers=HELPERS.replace("# Longer is better.", "# The longer, the better."))
    assert version() == first
    write(engine, helpers=HELPERS.replace("len(text)", "len(text) + 1"))
    assert version() not in (first, None)
    # Without its file the workflow is there all the same; the step says what is missing.
    (engine.workflows / "functions" / "promo.py").unlink()
    assert version() not in (first, None)
