"""`plan`, `explain`, `cache` and `savings` as a person types them, in this process."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from apps.cli import main
from resources.sqlite_entry_store import SqliteEntryStore
from tests.cache_entries import DAY, NOW, entry
from tests.pipelines.engine import Engine

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    answers = {name: [f"{name} {n}" for n in range(1, 9)] for name in ("a", "b", "c")}
    script = engine.root / "script.json"
    script.write_text(json.dumps(answers))
    for name, value in {
        "HOME": str(engine.root / "home"),
        "WORKFLOWS_DIR": str(engine.workflows),
        "PROVIDER": "s",
        # Two loaded cores must not turn a hit into a miss.
        "STEP_CACHE__LOOKUP_DEADLINE_SECONDS": "60",
        "STEP_CACHE__STORE_DEADLINE_SECONDS": "60",
        "STEP_CACHE__HEAD_DEADLINE_SECONDS": "60",
        "PROVIDERS__S__KIND": "scripted",
        "PROVIDERS__S__SCRIPT": str(script),
    }.items():
        monkeypatch.setenv(f"REPRISE_{name}", value)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        return code, out, err

    engine.agents_workflow({"a": [], "b": [1], "c": [2]}, default_request="go")
    engine.project("p")
    return run


def forecasts(out: str) -> list[str]:
    return [step["forecast"] for step in json.loads(out)["steps"]]


def test_a_plan_says_what_the_run_will_do_and_the_exit_code_too(cli: Cli) -> None:
    code, out, _ = cli("plan", "w", "p", "--json")
    assert (code, forecasts(out)) == (3, ["run", "unknown", "unknown"])
    assert cli("run", "w", "p")[0] == 0

    code, out, _ = cli("plan", "w", "p", "--json")

    assert (code, forecasts(out)) == (0, ["hit", "hit", "hit"])


def test_a_plan_expects_what_the_step_took_the_last_time(cli: Cli, engine: Engine) -> None:
    cli("run", "w", "p")
    engine.agent("b", "You are another b.")

    code, out, _ = cli("plan", "w", "p", "--json")

    steps = json.loads(out)["steps"]
    assert (code, forecasts(out)) == (3, ["hit", "run", "unknown"])
    assert steps[1]["reason"] == "field_changed"
    assert steps[1]["detail"] == "changed: agent_system_prompt"
    assert steps[1]["expected_tokens"] == 15
    assert steps[2]["detail"] == "until step 2 (b) has run"


def test_a_plan_says_what_is_not_known_yet(cli: Cli, engine: Engine) -> None:
    _, out, _ = cli("plan", "w", "p")
    assert out.endswith(
        "0 from the cache, 1 will run, 2 unknown until then; what they take is not known yet\n"
    )
    cli("run", "w", "p")
    engine.agent("b", "You are another b.")
    _, out, _ = cli("plan", "w", "p")
    assert re.search(r"; at most about 30 tokens and \d+\.\d s, as the last time\n$", out)
    engine.agents_workflow({"a": [], "b": [1], "c": [2], "d": [3]}, default_request="go")
    _, out, _ = cli("plan", "w", "p")
    assert out.endswith("as the last time, without 1 that never ran\n")


def test_a_plan_writes_nothing(cli: Cli, engine: Engine) -> None:
    cli("run", "w", "p")
    engine.agent("b", "You are another b.")

    def files() -> dict[Path, bytes]:
        found = (engine.root / "home").rglob("*")
        return {file: content(file) for file in found if file.is_file() and is_data(file)}

    def is_data(file: Path) -> bool:
        # What SQLite keeps beside its file is moved into it by whoever closes it.
        return not file.name.endswith(("-shm", "-wal"))

    def content(file: Path) -> bytes:
        if file.suffix != ".db":
            return file.read_bytes()
        with closing(sqlite3.connect(file)) as connection:
            return "\n".join(connection.iterdump()).encode()

    before = files()
    cli("plan", "w", "p")
    assert files() == before


@pytest.mark.parametrize(
    ("options", "executed"),
    [
        (["--step", "2=refresh"], {"b"}),
        (["--step", "b=bypass"], {"b"}),
        (["--cache", "refresh"], {"a", "b", "c"}),
        (["--cache", "readonly"], set()),
    ],
)
def test_a_run_uses_the_cache_as_told(cli: Cli, options: list[str], executed: set[str]) -> None:
    cli("run", "w", "p")
    _, planned, _ = cli("plan", "w", "p", "--json", *options)
    code, out, _ = cli("run", "w", "p", "--json", *options)

    steps = json.loads(out)["steps"]
    assert code == 0
    assert {step["label"] for step in steps if not step["from_cache"]} == executed
    for step, forecast in zip(steps, forecasts(planned), strict=True):
        assert forecast == "unknown" or (forecast == "hit") == step["from_cache"]


def test_readonly_stores_nothing(cli: Cli, engine: Engine) -> None:
    cli("run", "w", "p", "--cache", "readonly")
    assert len(engine.fresh().entries) == 0


def test_a_wrong_step_mode_is_bad_input(cli: Cli) -> None:
    code, _, err = cli("run", "w", "p", "--step", "9=refresh")
    assert (code, err) == (
        2,
        "error: '9=refresh': say ORDER=MODE or LABEL=MODE; steps are: 1 (a), 2 (b), 3 (c)\n",
    )
    code, _, err = cli("run", "w", "p", "--step", "a=sometimes")
    assert code == 2
    assert "'sometimes' is no cache mode" in err


def test_explain_shows_the_edit_of_a_prompt(cli: Cli, engine: Engine) -> None:
    cli("run", "w", "p")
    engine.agent("b", "You are another b.")
    _, out, _ = cli("run", "w", "p", "--json")
    run_id = json.loads(out)["run_id"]

    code, out, _ = cli("explain", run_id[:8], "b")

    assert code == 0
    assert f"step 2 (b) of run {run_id[:8]}: executed" in out
    assert "  agent_system_prompt: changed\n" in out
    assert "    -You are b.\n    +You are another b.\n" in out
    _, out, _ = cli("explain", run_id, "1")
    assert re.search(
        r"from the cache, an earlier result was taken\n  from run \w{8}, 0 min old", out
    )


def test_explain_names_the_file_that_changed(cli: Cli, engine: Engine) -> None:
    engine.agent("a", "You are a.", tool_groups=["ProjectRead"])
    engine.project("p", notes="one")
    cli("run", "w", "p")
    engine.project("p", notes="two", more="new")
    _, out, _ = cli("run", "w", "p", "--json")

    _, out, _ = cli("explain", json.loads(out)["run_id"], "a", "--json")

    (change,) = json.loads(out)["changes"]
    assert change["field"] == "project_file_fingerprint"
    assert change["parts"] == ["more.md, new", "notes.md"]


def test_a_change_is_told_where_another_workflow_gave_the_last_result(
    cli: Cli, engine: Engine
) -> None:
    engine.agent("a", "You are a.", tool_groups=["ProjectRead"])
    (engine.workflows / "v.yaml").write_text(
        (engine.workflows / "w.yaml").read_text().replace("id: w", "id: v")
    )
    _, out, _ = cli("run", "w", "p", "--json")
    made_by = json.loads(out)["run_id"]
    _, out, _ = cli("run", "v", "p", "--json")
    assert all(step["from_cache"] for step in json.loads(out)["steps"])
    engine.project("p", notes="new")

    _, out, _ = cli("plan", "v", "p", "--json")

    step = json.loads(out)["steps"][0]
    changed = "changed: project_file_fingerprint (notes.md, new)"
    assert step["detail"] == f"{changed}; compared with run {made_by[:8]} of 'w'"
    _, out, _ = cli("run", "v", "p", "--json")
    _, out, _ = cli("explain", json.loads(out)["run_id"], "a")
    assert "  project_file_fingerprint: changed\n    notes.md, new\n" in out
    assert f"  compared with the result of run {made_by[:8]}\n" in out


def test_unknown_runs_and_steps_are_bad_input(cli: Cli) -> None:
    _, out, _ = cli("run", "w", "p", "--json")
    run_id = json.loads(out)["run_id"]
    assert cli("explain", "zzz", "a")[0] == 2
    code, _, err = cli("explain", run_id, "nope")
    assert code == 2
    assert "its steps: 1 (a), 2 (b), 3 (c)" in err


def test_entries_are_listed_shown_and_invalidated_by_step(cli: Cli) -> None:
    cli("run", "w", "p")
    _, out, _ = cli("cache", "list", "--step", "b", "--json")
    (entry,) = json.loads(out)
    assert (entry["project_id"], entry["workflow_id"], entry["agent_id"]) == ("p", "w", "b")
    _, out, _ = cli("cache", "show", entry["cache_key"][:10], "--json")
    assert "agent_system_prompt" in json.loads(out)["fields"]

    assert cli("cache", "invalidate", "--step", "b", "--dry-run")[1] == (
        "1 entry would be invalidated\n"
    )
    assert cli("cache", "invalidate", "--step", "b")[1] == "1 entry invalidated\n"

    _, out, _ = cli("plan", "w", "p", "--json")
    assert [step["reason"] for step in json.loads(out)["steps"]][:2] == ["hit", "invalidated"]
    assert cli("cache", "invalidate", "--older-than", "1d")[1] == "0 entries invalidated\n"
    assert cli("cache", "invalidate", "--all")[1] == "2 entries invalidated\n"


def test_invalidating_needs_to_be_told_what(cli: Cli) -> None:
    code, _, err = cli("cache", "invalidate")
    assert code == 2
    assert "say which entries" in err


@pytest.mark.parametrize("action", [["list"], ["invalidate"], ["invalidate", "--dry-run"]])
def test_a_name_that_nothing_has_is_bad_input_with_a_suggestion(
    cli: Cli, engine: Engine, action: list[str]
) -> None:
    engine.project("promo")
    cli("run", "w", "p")
    for option, name, near in (
        ("--project", "prom", "promo"),
        ("--workflow", "W1", "w"),
        ("--step", "aa", "a"),
        ("--agent", "cc", "c"),
    ):
        code, out, err = cli("cache", *action, option, name)
        what = option.removeprefix("--")
        assert (code, out) == (2, "")
        assert f"error: no entry and no {what} has the name {name!r}" in err
        assert f"did you mean {near!r}?" in err
    # Known, and without entries.
    assert cli("cache", *action, "--project", "promo")[0] == 0
    assert cli("cache", *action, "--step", "a", "--older-than", "1d")[0] == 0


def test_a_name_that_only_entries_have_is_known(cli: Cli, engine: Engine) -> None:
    cli("run", "w", "p")
    (engine.workflows / "w.yaml").unlink()
    assert cli("cache", "list", "--workflow", "w", "--older-than", "1d")[:2] == (0, "no entries\n")
    assert cli("cache", "invalidate", "--workflow", "w")[1] == "3 entries invalidated\n"


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "nosuch", "p", "--json"],
        ["plan", "w", "nosuch", "--json"],
        ["plan", "w", "--json"],
        ["plan", "w", "p", "--cache", "never", "--json"],
        ["explain", "zzz", "a", "--json"],
        ["cache", "list", "--project", "zzz", "--json"],
        ["cache", "nosuch", "--json"],
    ],
)
def test_an_error_is_a_line_and_with_json_one_value(cli: Cli, words: list[str]) -> None:
    code, out, err = cli(*words)
    assert code == 2
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert json.loads(out) == {"error": line.removeprefix("error: ")}


def test_a_pinned_entry_is_shown_as_such(cli: Cli) -> None:
    cli("run", "w", "p")
    _, out, _ = cli("cache", "list", "--step", "a", "--json")
    key = json.loads(out)[0]["cache_key"]

    assert cli("cache", "pin", key)[0] == 0
    assert "pinned" in cli("cache", "list", "--step", "a")[1]
    assert json.loads(cli("cache", "stats", "--json")[1])["pinned"] == 1
    cli("cache", "pin", key, "--off")
    assert json.loads(cli("cache", "stats", "--json")[1])["pinned"] == 0
    assert cli("cache", "prune")[1] == "0 expired or surplus entries removed\n"


def test_pruning_gives_the_space_back_to_the_disk(cli: Cli, engine: Engine) -> None:
    cli("run", "w", "p")
    path = engine.root / "home" / "step-cache.db"
    store = SqliteEntryStore(path)
    for index in range(50):
        store.put(entry(f"old-{index}", created_at=NOW - 9 * DAY, payload="x" * 40_000))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert path.stat().st_size > 50 * 40_000

    assert cli("cache", "prune")[1] == "50 expired or surplus entries removed\n"

    assert path.stat().st_size < 200_000
    assert json.loads(cli("cache", "stats", "--json")[1])["rows"] == 3


def test_savings_are_shown_by_project(cli: Cli) -> None:
    assert cli("savings")[1].startswith("no runs yet")
    cli("run", "w", "p")
    cli("run", "w", "p")

    _, out, _ = cli("savings", "--by", "project", "--json")

    (row,) = json.loads(out)["rows"]
    assert (row["group"], row["steps"], row["hits"]) == ("p", 6, 3)
    assert (row["tokens_used"], row["tokens_saved"]) == (45, 45)
