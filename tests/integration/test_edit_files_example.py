"""The page docs/concepts/sandbox-edit-tools.md shows what runs and names what there is."""

import re
import subprocess
import sys
from pathlib import Path

from reprise.model.sandbox import SandboxFault
from reprise.tools import sandbox_authoring, sandbox_change, sandbox_tool
from reprise.tools.catalog import withheld_tools
from reprise.tools.edit_nearest import Difference
from reprise.tools.syntax_tree import SyntaxFaultCode
from reprise.tools.text_edit import EditFault

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/concepts/sandbox-edit-tools.md").read_text("utf-8")
EXAMPLE = ROOT / "examples/edit_files.py"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(PAGE) if name == language]


def named(field: str) -> set[str]:
    """Return the words that the page lists for a field of a refusal."""
    row = re.search(rf"^\| `{field}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    return set(re.findall(r"`(\w+)`", row[1]))


def test_the_example_answers_the_calls_of_the_page_as_it_says(tmp_path: Path) -> None:
    source, (calls, answers) = blocks("tsx")[0], blocks("jsonl")
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "Title.tsx").write_text(source)
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path / "ws")],
        input=calls,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        timeout=60,
        check=True,
    )
    assert done.stdout == answers
    changed = (tmp_path / "ws" / "src" / "Title.tsx").read_text()
    assert changed == source.replace("“Hello”", '"Hello, you"')


def test_the_python_of_the_page_is_the_examples() -> None:
    assert blocks("python")[0] in EXAMPLE.read_text("utf-8")


def test_the_page_names_every_code_and_every_class_of_difference() -> None:
    own = {
        sandbox_change.NOTHING_TO_UNDO,
        sandbox_tool.BAD_ARGUMENTS,
        sandbox_tool.LONE_SURROGATE,
        sandbox_tool.NO_SANDBOX,
    }
    assert named("code") == {*own, *EditFault, *SandboxFault, *SyntaxFaultCode}
    assert named("difference") == {*Difference, sandbox_authoring.CUT_MARK_COPIED}


def test_the_page_names_what_the_switch_withholds() -> None:
    section = PAGE.partition("## The switch")[2]
    assert withheld_tools(()) <= set(re.findall(r"`(\w+)`", section))
