"""The context budget in Dagster: whose prompts it changes, what is cached, recorded and shown.

The prompts here are written by hand: nothing of the product joins them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import JsonValue

from apps.launch import _step_json
from pipelines.plan import Forecast, PlanRequest, plan_run
from pipelines.prepare import prepare_step
from pipelines.step_run import StepRun
from reprise.context.budget import ContextBudget
from reprise.model.conversation import AgentInputs, ModelReply, ModelRequest
from reprise.model.result import Usage
from reprise.model.settings import ContextBudgetSettings
from reprise.ports import Cancelled
from tests.pipelines.engine import Engine, RuleProvider

PAGE = (Path(__file__).parents[2] / "docs/concepts/context-budget.md").read_text("utf-8")
SUCCESS = dg.DagsterRunStatus.SUCCESS

CAP = "REPRISE_CONTEXT_BUDGET__MAX_INPUT_CHARS"
ROWS = [{"row": n, "text": "words " * 20} for n in range(60)]


@dataclass
class Talker(RuleProvider):
    """Answers at length, and keeps what it was shown."""

    shown: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, AgentInputs] = field(default_factory=dict)
    says: dict[str, str] = field(default_factory=dict)
    """Agent → its answer; others answer with rows."""
    tokens: int | None = None

    @property
    def context_tokens(self) -> int | None:
        return self.tokens

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        name = request.agent.id
        self.shown[name] = request.messages[0].content
        self.inputs[name] = request.inputs
        reply = super().complete(request, cancelled=cancelled)
        said = self.says.get(name, json.dumps({"by": name, "rows": ROWS}))
        return reply.model_copy(update={"text": said})


@pytest.fixture
def talker(engine: Engine) -> Talker:
    engine.rule = Talker()
    engine.project("p")
    return engine.rule


def eleven(engine: Engine) -> None:
    """Write a workflow of eleven agents, each of which reads all before it."""
    names = [f"a{order:02}" for order in range(1, 12)]
    for name in names:
        engine.agent(name, f"You are {name}.")
    steps = [{"label": name, "type": "Agent", "agent": name} for name in names]
    engine.workflow(steps)


def raw(name: str) -> str:
    return json.dumps({"by": name, "rows": ROWS})


# ------------------------------------------------------------------------------------- prompts

QUESTION = "# Request of the user\n\nMake it short.\n\n# Task\n\nDo what your instructions say."


def golden(engine: Engine, talker: Talker) -> None:
    talker.says = {"a": "first words", "b": json.dumps({"n": list(range(40))}), "c": "last"}
    engine.agents_workflow(
        {"a": [], "b": [1], "c": [1, 2], "d": [1, 2, 3]}, default_request="Make it short."
    )


OFF = {
    "b": f"# Input\n\n## Step 1: a\nfirst words\n\n{QUESTION}",
    "d": (
        "# Input\n\n## Step 1: a\nfirst words\n\n"
        '## Step 2: b\n{"n": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,'
        " 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]}\n\n"
        f"## Step 3: c\nlast\n\n{QUESTION}"
    ),
}
ON = {
    "b": OFF["b"],
    "d": (
        "# Input\n\n## Step 1: a\nfirst words\n\n"
        '## Step 2: b\n{"n":[0,1,2,"…(+37 more items omitted by context budget)"]}\n\n'
        f"## Step 3: c\nlast\n\n{QUESTION}"
    ),
}
TIGHT = {
    CAP: "200",
    "REPRISE_CONTEXT_BUDGET__DIGEST_MAX_ARRAY_ITEMS": "3",
    "REPRISE_CONTEXT_BUDGET__RECENT_STEPS_VERBATIM": "1",
}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, OFF),
        (TIGHT, ON),
        ({**TIGHT, "REPRISE_CONTEXT_BUDGET__ENABLED": "false"}, OFF),
        ({**TIGHT, CAP: "0"}, OFF),
        (
            {
                **TIGHT,
                "REPRISE_CONTEXT_BUDGET__ENABLED": "false",
                "REPRISE_STEP_CACHE__ENABLED": "false",
            },
            OFF,
        ),
        ({**TIGHT, "REPRISE_STEP_CACHE__ENABLED": "false"}, ON),
    ],
    ids=["defaults", "tight", "off", "off by its cap", "all off", "tight without a cache"],
)
def test_prompts_are_as_written_by_hand(
    engine: Engine,
    talker: Talker,
    environment: dict[str, str],
    expected: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if "REPRISE_STEP_CACHE__ENABLED" in environment:
        engine.step_cache = engine.step_cache.model_copy(update={"enabled": False})
    golden(engine, talker)

    assert engine.run().status is SUCCESS
    assert {name: talker.shown[name] for name in expected} == expected


@pytest.mark.parametrize("off", [False, True], ids=["defaults", "all off"])
def test_records_and_events_are_as_written_by_hand(
    engine: Engine, talker: Talker, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if off:
        monkeypatch.setenv("REPRISE_CONTEXT_BUDGET__ENABLED", "false")
        engine.step_cache = engine.step_cache.model_copy(update={"enabled": False})
    golden(engine, talker)
    run = engine.run()
    records = engine.records(run).values()
    events = engine.histogram(run)

    reason = "store_off" if off else "first_time"
    spent = Usage(input_uncached=100, output=20, calls=1, cost_micros=500)
    assert [
        (r.order, r.label, r.status.value, str(r.cache_reason), r.prompt_chars, r.usage)
        for r in records
    ] == [
        (1, "a", "succeeded", reason, 0, spent),
        # "## Step 1: a", a line's end, "first words".
        (2, "b", "succeeded", reason, 12 + 1 + 11, spent),
        # The same; an empty line; the header; forty numbers with commas and blanks.
        (3, "c", "succeeded", reason, 24 + 2 + 13 + 157, spent),
        (4, "d", "succeeded", reason, 24 + 2 + 13 + 157 + 2 + 13 + 4, spent),
    ]
    assert {record.context_budget for record in records} == {None}
    assert {record.from_cache for record in records} == {False}
    # The request and four steps.
    wanted = ("STEP_START", "STEP_SUCCESS", "ASSET_MATERIALIZATION", "STEP_FAILURE")
    assert [events[name] for name in wanted] == [5, 5, 5, 0]


def test_eleven_steps_are_budgeted_hit_and_digested_once_each(
    engine: Engine, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAP, "60000")
    eleven(engine)
    cold = engine.run()
    wiring = engine.wiring
    last = engine.records(cold)["a11"]

    assert cold.status is SUCCESS
    # Steps 1 to 8 are older than the two latest of some later step whose input is too long.
    assert wiring.digests.made == 8
    assert last.context_budget is not None
    assert last.context_budget.chars_before > 80_000
    assert last.prompt_chars == last.context_budget.chars_after <= 60_000
    assert f"## Step 10: a10\n{raw('a10')}\n" in talker.shown["a11"]
    assert talker.shown["a11"].startswith('# Input\n\n## Step 1: a01\n{"by":"a01","rows":[{"row":0')

    asked = dict(talker.calls)
    warm = engine.run()
    assert dict(talker.calls) == asked
    assert engine.histogram(cold) == engine.histogram(warm)
    assert engine.records(warm)["a11"].context_budget == last.context_budget


def test_values_are_raw_whatever_the_prompt_shows(
    engine: Engine, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAP, "5000")
    monkeypatch.setenv("REPRISE_CONTEXT_BUDGET__RECENT_STEPS_VERBATIM", "0")
    folder = engine.workflows / "functions"
    folder.mkdir()
    (folder / "look.py").write_text(
        "def look(inputs):\n    return [inputs.output('a'), inputs.resolved_input]\n"
    )
    engine.agent("a", "You are a.")
    engine.agent("c", "You are c.")
    engine.workflow(
        [
            {"label": "a", "type": "Agent", "agent": "a"},
            {"label": "f", "type": "Function", "function": {"callable": "look:look"}},
            {"label": "c", "type": "Agent", "agent": "c"},
            {"label": "film", "type": "VideoCompile"},
        ]
    )
    run = engine.run()
    records = engine.records(run)
    services = engine.wiring.services
    workflow = services.workflows["w"]
    reference = records["c"].reference
    assert reference is not None
    history = {**reference.history, 3: reference.seen}

    output = services.bodies.get("p", history[2].body_digest)
    assert output == [raw("a"), f"## Step 1: a\n{raw('a')}"]
    assert raw("a") not in talker.shown["c"]
    assert [item.output for item in talker.inputs["c"].prior] == [raw("a"), output]
    film = prepare_step(
        StepRun(workflow, workflow.step(4), "p", "r", history), services, engine.root
    ).context
    assert film.budgeted is None
    assert film.prior[1].output == raw("a")
    assert film.resolved_input.startswith(f"## Step 1: a\n{raw('a')}\n\n## Step 2: f\n")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"input_mode": "previous_step_only"}, raw("b")),
        (
            {"input_mode": "custom_mapped_subset", "input_mapping": {"x": 'steps."1"'}},
            json.dumps({"x": raw("a")}, separators=(",", ":")),
        ),
    ],
)
def test_other_modes_are_never_cut(
    engine: Engine,
    talker: Talker,
    mode: dict[str, object],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CAP, "100")
    monkeypatch.setenv("REPRISE_CONTEXT_BUDGET__RECENT_STEPS_VERBATIM", "0")
    for name in "abc":
        engine.agent(name, f"You are {name}.")
    steps: list[dict[str, object]] = [
        {"label": name, "type": "Agent", "agent": name} for name in "abc"
    ]
    steps[2] |= mode
    engine.workflow(steps)
    record = engine.records(engine.run())["c"]

    assert talker.shown["c"].startswith(f"# Input\n\n{expected}\n\n# ")
    assert record.context_budget is None


# --------------------------------------------------------------------------------------- cache


def test_new_settings_run_only_the_steps_whose_prompts_they_change(
    engine: Engine, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    eleven(engine)
    monkeypatch.setenv(CAP, "40000")
    engine.run()
    engine.executed()
    monkeypatch.setenv("REPRISE_CONTEXT_BUDGET__DIGEST_MAX_ARRAY_ITEMS", "9")

    services = engine.fresh().services
    planned = plan_run(PlanRequest(services.workflows["w"], "p"), services)
    run = engine.run()

    # The first five read at most four outputs of 8,000 characters.
    changed = {f"a{order:02}" for order in range(6, 12)}
    assert {step.label for step in planned if step.forecast is Forecast.HIT} == {
        f"a{order:02}" for order in range(1, 6)
    }
    assert planned[5].detail == "changed: context_budget, resolved_input"
    assert engine.executed() == changed
    assert engine.records(run)["a06"].cache_detail == "changed: context_budget, resolved_input"


def test_a_budget_set_in_dagster_holds_for_that_run(engine: Engine, talker: Talker) -> None:
    eleven(engine)
    job = engine.job()
    config = {"max_input_chars": 30_000, "digest_strategy": "sampled"}
    run = engine.instance.create_run_for_job(
        job,
        tags={"dagster/partition": "p"},
        run_config={
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            "resources": {"context_budget": {"config": config}},
        },
    )
    report = engine.records(engine.execute(job, run))["a11"].context_budget

    assert report is not None
    assert report.settings == ContextBudgetSettings.model_validate(config)


def test_the_resource_can_be_replaced(engine: Engine, talker: Talker) -> None:
    from pipelines.definitions import build_definitions

    eleven(engine)
    mine = ContextBudget(ContextBudgetSettings(max_input_chars=20_000))
    defs = build_definitions(engine.fresh())
    resources = {
        **(defs.resources or {}),
        "context_budget": dg.ResourceDefinition.hardcoded_resource(mine),
    }
    job = dg.Definitions(
        assets=defs.assets, jobs=defs.jobs, resources=resources, executor=defs.executor
    ).resolve_job_def("w")
    records = engine.records(engine.run(job=job))

    assert records["a11"].prompt_chars < 20_000
    assert mine.memo.made > 0


# --------------------------------------------------------------------------- small models, words


def test_a_small_model_gets_a_smaller_prompt(engine: Engine, talker: Talker) -> None:
    talker.tokens = 16_384
    eleven(engine)
    record = engine.records(engine.run())["a11"]

    assert record.context_budget is not None
    assert record.context_budget.settings.max_digested_step_chars == 16_384 * 3 // 16
    assert len(talker.shown["a11"]) < 16_384 * 3 * 3 // 4


def test_a_steps_own_words_stand_in_later_prompts_and_come_back_with_a_hit(
    engine: Engine, talker: Talker
) -> None:
    (engine.workflows / "functions").mkdir()
    found = re.search(r"```python\n# workflows/(\S+)\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (engine.workflows / found[1]).write_text(found[2])
    (engine.workflows / "functions" / "see.py").write_text(
        "def see(inputs):\n    return [len(inputs.output('m')), len(inputs.resolved_input)]\n"
    )
    engine.agent("a", "You are a.")
    measure = {"callable": "measure:measure", "pure": True}
    engine.workflow(
        [
            {"label": "m", "type": "Function", "function": measure},
            {"label": "a", "type": "Agent", "agent": "a", "input_mode": "previous_step_only"},
            {
                "label": "see",
                "type": "Function",
                "function": {"callable": "see:see"},
                "input_mode": "selected_prior_steps",
                "selected_prior_step_orders": [1],
            },
        ]
    )
    words = '{"frames":2000,"mean_luma":127}'
    cold = engine.run()
    first = talker.shown.pop("a")
    engine.agent("a", "You are another a.")
    warm = engine.run()
    records = engine.records(warm)

    assert (cold.status, warm.status) == (SUCCESS, SUCCESS)
    assert first == talker.shown["a"]
    assert first.startswith(f"# Input\n\n{words}\n\n#")
    assert records["m"].from_cache
    assert records["m"].reference is not None
    assert records["m"].reference.seen.prompt_digest is not None
    assert records["see"].reference is not None
    seen: JsonValue = engine.wiring.services.bodies.get(
        "p", records["see"].reference.seen.body_digest
    )
    assert isinstance(seen, list)
    assert seen[0] == 2_000
    assert isinstance(seen[1], int)
    assert seen[1] > 40_000


# ---------------------------------------------------------------------------------- what is told


def page_of(engine: Engine, run: dg.DagsterRun, name: str) -> Mapping[str, dg.MetadataValue[Any]]:
    """Return what a step's page in the UI shows."""
    return next(
        entry.dagster_event.step_materialization_data.materialization.metadata
        for entry in engine.instance.all_logs(run.run_id)
        if entry.dagster_event is not None
        and entry.dagster_event.is_step_materialization
        and entry.dagster_event.asset_key == dg.AssetKey(["w", name])
    )


def test_a_prompt_that_cannot_fit_says_so(
    engine: Engine, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAP, "5000")
    engine.agents_workflow({"a": [], "b": [1]})
    run = engine.run()

    assert "context_budget_exceeded" not in page_of(engine, run, "s01_a")
    note = page_of(engine, run, "s02_b")["context_budget_exceeded"].value
    assert str(note).startswith("the latest outputs, which are never cut, alone are longer than 5,")
    assert raw("a") in talker.shown["b"]


def test_the_page_and_the_command_line_tell_what_the_budget_did(
    engine: Engine, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAP, "26000")
    eleven(engine)
    run = engine.run()
    record = engine.records(run)["a05"]
    shown = page_of(engine, run, "s05_a05")
    told = _step_json(record)["context_budget"]

    assert record.context_budget is not None
    before, after = record.context_budget.chars_before, record.prompt_chars
    assert before == 4 * len(raw("a01")) + 4 * len("## Step 1: a01\n") + 6
    assert shown["prompt_chars_before_budget"].value == before
    assert shown["prompt_chars"].value == after < 26_000
    assert shown["prompt_tokens_before_budget_estimated"].value == -(-before // 3)
    assert shown["prompt_tokens_estimated"].value == -(-after // 3)
    table = shown["context_budget"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [(row.data["step"], row.data["in the prompt"]) for row in table.records] == [
        ("1 (a01)", "digested"),
        ("2 (a02)", "digested"),
        ("3 (a03)", "kept"),
        ("4 (a04)", "kept"),
    ]
    assert (told["chars_before"], told["chars_after"]) == (before, after)
    assert [entry["treatment"] for entry in told["entries"]] == [
        *["digested"] * 2,
        *["kept"] * 2,
    ]
