"""`reprise sandbox` as a person types it, in this process."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.cli import main
from tests.pipelines.engine import Engine

Cli = Callable[..., tuple[int, str, str]]

AUTHOR = [
    {
        "tool_calls": [
            {
                "id": "c1",
                "name": "WriteSandboxFile",
                "arguments": json.dumps({"path": "src/a.txt", "content": "one\ntwo"}),
            },
            {
                "id": "c2",
                "name": "WriteSandboxFile",
                "arguments": json.dumps({"path": "b.txt", "content": "new\n"}),
            },
        ],
        "finish_reason": "tool_calls",
    },
    "written",
]


@pytest.fixture
def cli(engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    script = engine.root / "script.json"
    script.write_text(json.dumps({"author": AUTHOR, "browser": ["seen"], "plain": ["said"]}))
    for name, value in {
        "HOME": str(engine.root / "home"),
        "WORKFLOWS_DIR": str(engine.workflows),
        "PROVIDER": "s",
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

    source = engine.workflows / "templates" / "plain" / "src"
    source.mkdir(parents=True)
    (source / "a.txt").write_text("one\n")
    (source / "icon.bin").write_bytes(b"\xff\xfe")
    engine.agent("author", "You author.", tool_groups=["SandboxAuthoring"])
    engine.agent("browser", "You browse.", tool_groups=["SandboxBrowse"])
    engine.agent("plain", "You speak.")
    steps = [{"label": name, "type": "Agent", "agent": name} for name in ("author", "plain")]
    engine.workflow(steps, sandbox={"template": "plain"}, default_request="go")
    engine.project("p")
    return run


@pytest.fixture
def run_id(cli: Cli) -> str:
    code, out, err = cli("run", "w", "p", "--json")
    assert code == 0, err
    return str(json.loads(out)["run_id"])


def test_show_lists_the_files_after_a_step_and_what_it_did(cli: Cli, run_id: str) -> None:
    code, out, _ = cli("sandbox", "show", run_id[:8], "author")
    assert code == 0
    head, *rows = out.splitlines()
    assert head.startswith(f"step 1 (author) of run {run_id[:8]}, after: 3 files, 13 B, ")
    assert [row.split() for row in rows[2:]] == [
        ["b.txt", "4", "B", "new"],
        ["src/a.txt", "7", "B", "changed"],
        ["src/icon.bin", "2", "B"],
    ]


def test_show_gives_the_files_before_a_step_as_json(cli: Cli, run_id: str) -> None:
    _, out, _ = cli("sandbox", "show", run_id, "1", "--before", "--json")
    shown = json.loads(out)
    assert (shown["order"], shown["moment"]) == (1, "before")
    assert [(file["path"], file["size_bytes"]) for file in shown["files"]] == [
        ("src/a.txt", 4),
        ("src/icon.bin", 2),
    ]


def test_show_prints_one_file_as_it_is(cli: Cli, run_id: str) -> None:
    assert cli("sandbox", "show", run_id, "1", "src/a.txt")[1] == "one\ntwo"
    assert cli("sandbox", "show", run_id, "1", "src/a.txt", "--before")[1] == "one\n"
    _, out, _ = cli("sandbox", "show", run_id, "1", "src/a.txt", "--json")
    assert json.loads(out)["text"] == "one\ntwo"


def test_diff_is_a_unified_difference(cli: Cli, run_id: str) -> None:
    _, out, _ = cli("sandbox", "diff", run_id, "author")
    assert out == (
        "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n"
        "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1,2 @@\n one\n+two\n"
        "\\ No newline at end of file\n"
    )
    _, one, _ = cli("sandbox", "diff", run_id, "author", "b.txt")
    assert one == "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n"
    assert cli("sandbox", "diff", run_id, "1", "src/icon.bin")[1] == (
        f"step 1 (author) of run {run_id[:8]} changed nothing\n"
    )


def test_export_copies_the_files_to_an_empty_folder_alone(
    cli: Cli, run_id: str, tmp_path: Path
) -> None:
    target = tmp_path / "looked-at"
    target.mkdir()
    assert cli("sandbox", "export", run_id, "1", str(target))[0] == 0
    assert {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*.*")} == {
        "b.txt": b"new\n",
        "src/a.txt": b"one\ntwo",
        "src/icon.bin": b"\xff\xfe",
    }

    code, _, err = cli("sandbox", "export", run_id, "1", str(target), "--before")

    assert code == 2
    assert "is not empty; name a new or an empty folder" in err
    assert list(tmp_path.glob(".looked-at-*")) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "ffffffff", "1"), "no run 'ffffffff'"),
        (("show", "{run}", "third"), "has no step 'third'; its steps: 1 (author), 2 (plain)"),
        (("show", "{run}", "plain"), "used no sandbox; those that did: 1 (author)"),
        (("diff", "{run}", "1", "c.txt"), "has no file 'c.txt'; `reprise sandbox show` lists"),
        (("show", "{run}", "1", "src/icon.bin"), "is not text; `reprise sandbox export` copies it"),
    ],
)
def test_what_is_not_there_is_told_with_what_to_do(
    cli: Cli, run_id: str, words: tuple[str, ...], told: str
) -> None:
    code, _, err = cli("sandbox", *(word.format(run=run_id) for word in words))
    assert code == 2
    assert told in err


def test_a_run_whose_agents_have_no_sandbox_tools_says_so(cli: Cli, engine: Engine) -> None:
    engine.workflow([{"label": "plain", "type": "Agent", "agent": "plain"}])
    _, out, _ = cli("run", "w", "p", "--json", "--request", "go")
    run_id = json.loads(out)["run_id"]
    _, _, err = cli("sandbox", "show", run_id, "1")
    assert f"no step of run {run_id[:8]} used a sandbox: its agents have no tools for one" in err


def test_a_step_from_the_cache_names_the_run_that_executed_it(cli: Cli, engine: Engine) -> None:
    engine.workflow([{"label": "browser", "type": "Agent", "agent": "browser"}])
    first, second = (
        json.loads(cli("run", "w", "p", "--json", "--request", "go")[1])["run_id"] for _ in range(2)
    )
    code, _, err = cli("sandbox", "show", second, "browser")
    assert code == 2
    assert f"came from the cache and used no sandbox; `reprise sandbox show {first[:8]} 1`" in err


def test_what_retention_removed_is_told_so(cli: Cli, engine: Engine, run_id: str) -> None:
    later = datetime.now(UTC) + timedelta(days=15)
    wiring = engine.fresh()
    assert wiring.sandboxes.sweep(now=later) == 1
    (record, *_) = wiring.history.of_run(run_id)
    old = record.model_copy(
        update={"run_id": "old-run", "finished_at": record.finished_at - timedelta(days=20)}
    )
    wiring.history.append(old)
    wiring.history.append(old.model_copy(update={"order": 1, "label": "author", "name": "s01_a"}))
    _, _, err = cli("sandbox", "show", "old-run", "author")
    assert (
        "nothing is kept of the sandbox of run old-run: it goes 14 days after its last use "
        "(REPRISE_SANDBOX__RETENTION_DAYS)" in err
    )
