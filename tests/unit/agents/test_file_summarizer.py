"""The agent that summarises a project's file."""

import pytest

from reprise.agents.file_summarizer import SUMMARY_CHARS_MAX, TEXT_CHARS_MAX, summary_task
from reprise.model.agent import LoopLimits
from resources.heuristic_provider import HeuristicProvider
from tests.agent_loop import run_agent


def extract(text: str) -> str:
    task = summary_task("a.md", text, LoopLimits())
    answer = run_agent(task, HeuristicProvider(), cancelled=lambda: False)
    assert isinstance(answer.output, dict)
    return str(answer.output["summary"])


def test_a_long_text_is_shown_by_its_beginning_and_its_end() -> None:
    shown = summary_task("a.md", "a" * 10_000 + "z" * 10_000, LoopLimits()).resolved_input
    assert "…(8000 characters left out)" in shown
    assert shown.endswith("z" * (TEXT_CHARS_MAX // 2))


def test_the_bounds_of_all_agents_hold() -> None:
    limits = summary_task("a.md", "x", LoopLimits(turns_max=2, cost_usd_max=0.01)).limits
    assert (limits.turns_max, limits.cost_usd_max, limits.seconds_max) == (2, 0.01, 120.0)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", "It holds no sentences."),
        ("***\n---", "It holds no sentences."),
        (
            "# Brand notes\n\n- Say **free**.\n- Never say cheap.",
            "Brand notes Say free. Never say cheap.",
        ),
        ("один два три. Четыре.", "один два три. Четыре."),
    ],
)
def test_without_a_model_it_is_an_extract(text: str, summary: str) -> None:
    assert extract(text) == summary


def test_an_extract_is_bounded_and_follows_the_text() -> None:
    texts = [
        f"Sentence {at} is about butterflies and {word}." for at, word in enumerate("abcdefgh" * 40)
    ]
    one, other = extract(" ".join(texts)), extract(" ".join(reversed(texts)))
    assert len(one) <= 300 <= SUMMARY_CHARS_MAX
    assert one != other
