"""What the agents that work on a sandbox are told of its tools, with targeted edits on and off."""

import re
from pathlib import Path

import pytest

from reprise.agents.messages import system_prompt
from reprise.model.agent import EFFECT_GROUPS
from reprise.model.feature_blocks import FEATURES
from reprise.tools.catalog import withheld_tools
from resources.definition_files import load_definitions

WORKFLOWS = Path(__file__).parents[3] / "workflows"
NAMES = (
    "motion-graphics-planner",
    "motion-graphics-director",
    "remotion-component-translator",
    "author",
)
WITHHELD = withheld_tools(())


def prompt(name: str, features: frozenset[str] = FEATURES) -> str:
    return " ".join(system_prompt(load_definitions(WORKFLOWS, features).agent(name)).split())


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_directs_to_outline_ranged_read_and_targeted_edit(name: str) -> None:
    """Specification E7."""
    text = prompt(name)
    assert all(re.search(rf"\b{tool}\b", text) for tool in WITHHELD)
    assert "Prefer it to writing the file again" in text
    assert "Locate before you read, and read before you edit" in text
    assert "`WriteSandboxFile` is for files that do not exist yet" in text


@pytest.mark.parametrize("name", NAMES)
def test_with_the_edit_tools_off_the_prompt_names_none_of_them(name: str) -> None:
    """Specification E11a."""
    text = prompt(name, frozenset())
    assert [tool for tool in WITHHELD if tool in text] == []
    assert "write it whole with `WriteSandboxFile`" in text
    assert "<!--" not in text


@pytest.mark.parametrize("name", NAMES)
def test_the_agent_has_effects_so_that_the_policy_never_answers_it_from_the_cache(
    name: str,
) -> None:
    """Specification C5."""
    assert load_definitions(WORKFLOWS).agent(name).tool_groups & EFFECT_GROUPS
