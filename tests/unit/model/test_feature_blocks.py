"""Blocks of a prompt that stand there only while a feature is on."""

import pytest

from reprise.errors import DefinitionInvalid
from reprise.model.feature_blocks import FEATURES, SANDBOX_EDIT_TOOLS, kept_text
from reprise.model.loading import parse_agent

TEXT = "One.\n<!-- with sandbox_edit_tools -->\nTwo.\n\n<!-- end -->\nThree."
FRONT = "---\nagent_type: writer\n---\n"


def problems_of(text: str) -> tuple[tuple[int, str], ...]:
    return kept_text(text).problems


def test_a_block_stays_without_its_marks_while_its_feature_is_on() -> None:
    assert kept_text(TEXT, [SANDBOX_EDIT_TOOLS]).text == "One.\nTwo.\n\nThree."


def test_a_block_goes_with_its_marks_while_its_feature_is_off() -> None:
    assert kept_text(TEXT, ()).text == "One.\nThree."


def test_what_stands_in_its_place_is_kept_while_the_feature_is_off() -> None:
    text = "One.\n<!-- without sandbox_edit_tools -->\nTwo.\n<!-- end -->"
    assert kept_text(text, ()).text == "One.\nTwo."
    assert kept_text(text, [SANDBOX_EDIT_TOOLS]).text == "One."


def test_marks_may_be_indented_and_stand_more_than_once() -> None:
    text = "a\n  <!-- with sandbox_edit_tools -->\nb\n  <!-- end -->\n" + TEXT
    assert kept_text(text, ()).text == "a\nOne.\nThree."
    assert kept_text(text).problems == ()


@pytest.mark.parametrize(
    "text", ["", "x\n\n", "<!-- a remark -->\n", "<!-- endless -->", "a <b> c"]
)
def test_a_text_without_marks_is_the_very_same(text: str) -> None:
    assert kept_text(text, ()).text is text


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a\n<!-- with sandbox_edit_tools -->\nb", 1, "this block has no `<!-- end -->`; add it"),
        ("a\n<!-- end -->", 1, "`<!-- end -->` ends no block; remove it"),
        (
            "<!-- with sandbox_edit_tool -->\n",
            0,
            "there is no feature 'sandbox_edit_tool'; did you mean 'sandbox_edit_tools'?",
        ),
        ("<!-- with zzz -->\n", 0, "there is no feature 'zzz'; there is sandbox_edit_tools"),
        (
            "<!-- with sandbox_edit_tools -->\n<!-- with sandbox_edit_tools -->\n<!-- end -->",
            1,
            "a block stands in another one; put `<!-- end -->` before it",
        ),
    ],
)
def test_a_mark_that_does_not_belong_is_told_by_line(text: str, line: int, what: str) -> None:
    assert problems_of(text) == ((line, what),)


@pytest.mark.parametrize(
    "line",
    [
        "a <!-- with sandbox_edit_tools -->",
        "<!--with sandbox_edit_tools-->",
        "<!-- with sandbox edit tools -->",
        "<!-- end of it -->",
        "<!-- end",
    ],
)
def test_what_only_looks_like_a_mark_is_told_and_not_kept(line: str) -> None:
    ((at, what),) = problems_of(f"a\n{line}")
    assert at == 1
    assert "is no mark of a block; write `<!-- with sandbox_edit_tools -->`" in what


def test_an_agent_has_the_blocks_of_what_is_on() -> None:
    on = parse_agent(FRONT + TEXT, "a.md")
    off = parse_agent(FRONT + TEXT, "a.md", features=FEATURES - {SANDBOX_EDIT_TOOLS})
    assert (on.system_prompt, off.system_prompt) == ("One.\nTwo.\n\nThree.\n", "One.\nThree.\n")


def test_a_problem_of_a_block_is_one_of_its_agents_file() -> None:
    with pytest.raises(DefinitionInvalid, match=r"^a\.md:5: `<!-- end -->` ends no block"):
        parse_agent(FRONT + "One.\n<!-- end -->\n", "a.md")


def test_a_prompt_that_is_nothing_but_a_block_is_no_prompt_while_it_is_off() -> None:
    text = FRONT + "<!-- with sandbox_edit_tools -->\nTwo.\n<!-- end -->\n"
    with pytest.raises(DefinitionInvalid, match="there is no prompt after the front matter"):
        parse_agent(text, "a.md", features=())
