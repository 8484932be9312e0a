"""What people give to the command line: projects, files, workflows, names; right and wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command_line import LOOK, READ, ROOT, User

COMMANDS = [
    [],
    ["project"],
    ["project", "add"],
    ["project", "index"],
    ["project", "list"],
    ["project", "show"],
    ["project", "remove"],
    ["workflow"],
    ["workflow", "list"],
    ["workflow", "show"],
    ["workflow", "check"],
    ["workflow", "schema"],
    ["run"],
    ["results"],
    ["ui"],
]


def test_help_of_every_command_imports_neither_dagster_nor_pydantic() -> None:
    code = f"""
import apps.cli, sys
for words in {COMMANDS!r}:
    try:
        apps.cli.main([*words, "--help"])
    except SystemExit as ended:
        assert ended.code == 0, words
heavy = {{name.partition(".")[0] for name in sys.modules}} & {{"dagster", "pydantic"}}
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: reprise") == len(COMMANDS)


def test_without_arguments_it_says_how_it_is_used(user: User) -> None:
    bare = user.call()
    version = user.call("--version")

    assert bare.code == 2
    assert bare.out.startswith("usage: reprise")
    assert (version.code, version.out) == (0, "reprise 0.1.0\n")


def test_a_project_takes_files_and_folders_and_sees_what_changed(
    user: User, tmp_path: Path
) -> None:
    folder = tmp_path / "material"
    (folder / "deep").mkdir(parents=True)
    (folder / "brief.md").write_text("one")
    (folder / "deep" / "notes.md").write_text("two")
    (folder / ".hidden").write_text("no")

    first = user.call("project", "add", "p", folder)
    again = user.call("project", "add", "p", folder)
    (folder / "brief.md").write_text("other")
    replaced = user.call("project", "add", "p", folder / "brief.md")
    removed = user.call("project", "remove", "p", "deep/notes.md")
    shown = user.call("project", "show", "p", "--json").json

    assert first.out == "added  brief.md\nadded  deep/notes.md\nproject p: 2 files\n"
    assert again.out == "unchanged  brief.md\nunchanged  deep/notes.md\nproject p: 2 files\n"
    assert replaced.out == "replaced  brief.md\nproject p: 2 files\n"
    assert removed.out == "removed  deep/notes.md\n"
    assert [(file["name"], file["size_bytes"]) for file in shown["files"]] == [("brief.md", 5)]
    assert user.call("project", "list", "--json").json == [
        {"name": "p", "files": 1, "size_bytes": 5}
    ]


def test_a_file_that_cannot_be_indexed_is_named_with_the_reason(user: User, tmp_path: Path) -> None:
    (tmp_path / "huge.txt").write_bytes(b"word\n" * 3_400_000)
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7")
    paths = [tmp_path / "huge.txt", tmp_path / "paper.pdf"]

    first = user.call("project", "add", "p", *paths)
    again = user.call("project", "add", "p", *paths)
    indexed = user.call("project", "index", "p")
    forced = user.call("project", "index", "p", "--again")
    shown = user.call("project", "show", "p")

    reasons = (
        "not indexed  huge.txt: it is larger than 16 MiB; add it in parts\n"
        "not indexed  paper.pdf: nothing here reads application/pdf; add its text as .md or .txt\n"
    )
    assert first.out == f"added  huge.txt\nadded  paper.pdf\nproject p: 2 files\n{reasons}"
    assert again.out == first.out.replace("added", "unchanged")
    assert indexed.out == "project p: 2 failed before (`reprise project show p` says why)\n"
    assert forced.out == (reasons.replace("not indexed", "failed") + "project p: 2 failed\n")
    assert shown.out.count("failed") == 2
    assert shown.out.endswith(reasons)


def test_files_may_have_any_name(user: User, tmp_path: Path) -> None:
    names = ["a b.md", 'it\'s "it".md', "fête 🎬.md", "two\nlines.md", "-dash.md"]
    folder = tmp_path / "odd"
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)

    added = user.call("project", "add", "p", "--", *(folder / name for name in names))
    shown = user.call("project", "show", "p")
    listed = user.call("project", "show", "p", "--json").json
    removed = user.call("project", "remove", "p", "--", *names)

    assert added.code == 0, added.err
    assert "added  two\\nlines.md\n" in added.out
    assert len(added.out.splitlines()) == len(names) + 1
    assert "two\\nlines.md" in shown.out
    assert {file["name"] for file in listed["files"]} == set(names)
    assert removed.code == 0, removed.err
    assert user.call("project", "show", "p", "--json").json["files"] == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("", "cannot be used"),
        ("two words", "cannot be used"),
        ("../up", "cannot be used"),
        ("a\nb", "cannot be used"),
        ("🎬", "cannot be used"),
        ("x" * 101, "cannot be used"),
    ],
)
def test_a_project_name_that_cannot_be_is_bad_input(
    user: User, brief: Path, name: str, what: str
) -> None:
    done = user.call("project", "add", name, brief)

    assert done.code == 2
    assert what in done.error
    assert user.call("project", "list", "--json").json == []


def test_what_is_not_there_is_bad_input_and_says_what_is(user: User, brief: Path) -> None:
    user.add("harbour", brief)
    cases = {
        ("project", "add", "p", "/nowhere/at/all"): "/nowhere/at/all is not there",
        ("project", "show", "harbor"): "projects: harbour",
        ("project", "remove", "harbor"): "projects: harbour",
        ("project", "remove", "harbour", "x.mp4"): "its files: brief.md",
        ("workflow", "show", "lok"): "did you mean 'look'",
        ("workflow", "check", "/nowhere.yaml"): "no file '/nowhere.yaml'",
        ("run", "quick-win-prmo", "harbour"): "did you mean 'quick-win-promo'",
        ("run", "look", "harbor"): "projects: harbour",
        ("run", "read", "harbour", "--provider", "nobody"): "no provider 'nobody'",
        ("results", "look", "harbour"): "run it with `reprise run look harbour`",
        ("results", "look", "harbor"): "projects: harbour",
    }
    for words, what in cases.items():
        done = user.call(*words)
        assert done.code == 2, words
        assert done.out == "", words
        assert what in done.error, (words, done.error)


def test_bad_input_of_a_run_is_an_object_too(user: User, brief: Path) -> None:
    user.add("p", brief)

    done = user.call("run", "nothing", "p", "--json")
    set_wrong = user.call("run", "read", "p", "--json", REPRISE_PROVIDER="nobody")

    assert done.code == 2
    assert done.json["run_id"] is None
    assert done.json["status"] == "failed"
    assert "nothing" in done.json["error"]
    assert done.json["steps"] == []
    assert set_wrong.code == 2
    assert "no provider 'nobody'" in set_wrong.error


def test_a_wrong_setting_is_named(user: User) -> None:
    done = user.call("project", "list", REPRISE_RUN_THREADS="many")

    assert done.code == 2
    assert done.error.startswith("REPRISE_RUN_THREADS: ")


def test_workflows_are_listed_shown_and_checked(user: User) -> None:
    listed = user.call("workflow", "list", "--json").json
    shown = user.call("workflow", "show", "quick-win-promo")
    checked = user.call("workflow", "check")
    schema = user.call("workflow", "schema").json

    assert {"id": "quick-win-promo", "name": "Quick-win promo", "steps": 8} in listed
    assert "video_compile" in shown.out
    assert checked.code == 0, checked.err
    assert checked.out.endswith("no problems\n")
    stored = json.loads((ROOT / "workflows/workflow.schema.json").read_text())
    assert schema == stored


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("id: broken\nsteps: [\n", 3, "YAML"),
        ("id: broken\nsteps:\n  - {order: 1, label: a, type: Agent, agent: absent}\n", 3, "absent"),
        (
            "id: broken\nsteps:\n"
            "  - {order: 1, label: a, type: VideoAnalyze}\n"
            "  - order: 2\n    label: b\n    type: Agent\n    agent: content\n"
            "    input_mode: selected_prior_steps\n    selected_prior_step_orders: [3]\n"
            "  - {order: 3, label: c, type: VideoAnalyze}\n",
            9,
            "step 2 (b)",
        ),
        (
            "id: broken\nsteps:\n"
            "  - {order: 1, label: a, type: VideoAnalyze}\n"
            "  - {order: 1, label: b, type: VideoAnalyze}\n",
            4,
            "order 1",
        ),
    ],
    ids=["no-yaml", "missing-prompt", "later-step", "duplicate-order"],
)
def test_a_broken_workflow_is_told_with_file_and_line(
    user: User, brief: Path, text: str, line: int, what: str
) -> None:
    path = user.workflows / "broken.yaml"
    path.write_text(text)
    user.add("p", brief)

    checked = user.call("workflow", "check", path)
    run = user.call("run", "broken", "p")

    for done in (checked, run):
        assert done.code == 2
        assert f"{path}:{line}" in done.err, done.err
        assert what in done.err, done.err
        assert "Traceback" not in done.err
    assert "not loaded" in user.call("workflow", "list").out
    assert user.call("workflow", "check").code == 2


def test_a_project_made_again_is_a_new_one(user: User, footage: Path, brief: Path) -> None:
    user.workflow("read", READ)
    user.add("p", footage, brief)
    assert user.call("run", "read", "p", "--request", "for sailors").code == 0
    user.call("project", "remove", "p")
    assert user.objects("artifacts") == []

    user.add("p", footage, brief)
    nothing_yet = user.call("results", "read", "p")
    run = user.call("run", "read", "p")

    assert nothing_yet.code == 2
    assert "no results" in nothing_yet.error
    assert run.code == 0, run.err
    assert user.call("results", "read", "p").code == 0


def test_output_that_nobody_reads_is_no_fault(user: User) -> None:
    user.workflow("other", LOOK)
    reader = subprocess.run(
        f"{sys.executable} -m apps.cli workflow schema | head -c 10",
        shell=True, cwd=ROOT, env=user.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    full = subprocess.run(
        f"{sys.executable} -m apps.cli workflow schema > /dev/full",
        shell=True, cwd=ROOT, env=user.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (reader.returncode, reader.stderr) == (0, "")
    assert full.returncode == 1
    assert full.stderr == "error: No space left on device\n"
