"""The reference pages say what the code says: settings, files, commands.

The settings and file tables are made: `bin/test --update-golden tests/unit/docs`, then read the
difference. The page of the command line is written by hand; add what the message names.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from apps.cli import build_parser
from reprise.cache.key import CONFIG_BLOBS, KeyFacts, key_fields
from reprise.model.agent import AgentDefinition
from reprise.model.sandbox import SandboxTree
from reprise.model.workflow import Step, StepType, Workflow
from reprise.tools.catalog import TOOL_GROUPS
from tests.reference_pages import (
    PAGES,
    settings_tables,
    tools_tables,
    with_made_part,
    workflow_tables,
)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("settings.md", settings_tables),
        ("tools.md", tools_tables),
        ("workflow-yaml.md", workflow_tables),
    ],
)
def test_a_made_page_is_up_to_date(
    name: str, made: Callable[[], str], *, update_golden: bool
) -> None:
    path = PAGES / name
    wanted = with_made_part(path.read_text("utf-8"), made())
    if update_golden:
        path.write_text(wanted, encoding="utf-8")
    assert path.read_text("utf-8") == wanted


def test_the_page_of_tools_says_what_each_group_that_has_tools_means() -> None:
    page = (PAGES / "tools.md").read_text("utf-8")
    for group in set(TOOL_GROUPS.values()):
        assert f"\n| `{group.value}` | " in page


def test_a_setting_is_named_with_its_default_and_its_meaning() -> None:
    row = (
        "| `REPRISE_STEP_CACHE__TTL_HOURS` | `168` | Lifetime of an entry, in hours, counted from"
        " when it is stored. (above 0) |"
    )
    assert row in settings_tables().splitlines()


def test_a_setting_of_a_provider_is_named_by_an_id() -> None:
    assert "| `REPRISE_PROVIDERS__<ID>__BASE_URL` | none |" in settings_tables()


def test_every_field_of_a_step_is_described() -> None:
    rows = [line for line in workflow_tables().splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == []
    assert {f"`{name}`" for name in (*Step.model_fields, *Workflow.model_fields)} - {
        row.split(" | ")[0].removeprefix("| ") for row in rows
    } == {"`source_path`"}


def test_the_page_of_files_says_which_step_types_run() -> None:
    from pipelines.steps import EXECUTORS

    page = (PAGES / "workflow-yaml.md").read_text("utf-8")
    sentence = re.search(r"This version runs the types ([^.]+)\.", page)
    assert sentence is not None
    named = set(re.split(r", | and ", sentence.group(1)))
    assert named == {StepType(kind).value for kind in EXECUTORS}


def test_the_concepts_name_every_field_of_the_key() -> None:
    agent = AgentDefinition(id="a", agent_type="t", system_prompt="p")
    facts = KeyFacts(agents=(agent,), toolchain={}, files=(), history=(), function_fingerprint="f")
    facts = replace(facts, context_budget={}, sandbox=SandboxTree())
    step = Step(order=1, label="s", type=StepType.EDIT_ROOM)
    fields = key_fields(
        step, facts, project_id="p", resolved_input="", user_request="", variables={}
    )
    page = (PAGES.parent / "concepts" / "step-cache.md").read_text("utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| "))
    assert {*fields, *CONFIG_BLOBS} - set(re.findall(r"`(\w+)`", table)) == set()


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.Action]]:
    """Yield each command with each of its arguments; one without arguments is left out."""
    for action in parser._actions:  # argparse tells what it takes in no other way.
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from _commands(child, f"{name} {word}")
        elif not isinstance(action, argparse._HelpAction):
            yield name, action


def _names(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from _names(child, f"{name} {word}")
            return
    yield name


def _sections() -> dict[str, str]:
    """Return command → its part of the page; `reprise` is what stands before the first one."""
    page = (PAGES / "cli.md").read_text("utf-8")
    parts = re.split(r"^### (?=reprise)(.+)$", page, flags=re.MULTILINE)
    return {"reprise": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def test_the_page_has_a_section_for_every_command_and_no_other() -> None:
    assert set(_sections()) - {"reprise"} == set(_names(build_parser(), "reprise"))


def test_each_section_names_every_option_and_argument_of_its_command() -> None:
    sections = _sections()
    missing = []
    for name, action in _commands(build_parser(), "reprise"):
        wanted = [*action.option_strings] or [str(action.metavar)]
        wanted += [str(choice) for choice in action.choices or ()]
        rows = "\n".join(re.findall(r"^\| .*$|^`.*$", sections.get(name, ""), re.MULTILINE))
        missing += [f"{name}: {word}" for word in wanted if not re.search(rf"`{word}\b", rows)]
    assert missing == []


def test_each_section_names_no_option_that_its_command_does_not_take() -> None:
    known: dict[str, set[str]] = {}
    for name, action in _commands(build_parser(), "reprise"):
        known.setdefault(name, set()).update(action.option_strings)
    wrong = [
        f"{name}: {option}"
        for name, text in _sections().items()
        for option in re.findall(r"^\| `(--[\w-]+)", text, re.MULTILINE)
        if option not in known.get(name, set())
    ]
    assert wrong == []
