"""Which outputs a prompt holds whole, digested, or not at all.

The prompts here are written by hand: nothing of the product joins them.
"""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from reprise.canonical import sha256_hex
from reprise.context.budget import ContextBudget, DigestMemo, ModelRoom, PriorText
from reprise.model.budget import BudgetReport, Treatment
from reprise.model.settings import ContextBudgetSettings


def knobs(**fields: object) -> ContextBudgetSettings:
    return ContextBudgetSettings.model_validate(fields)


def prior(*texts: str) -> list[PriorText]:
    return [
        PriorText(order, f"step{order}", text, sha256_hex(text.encode(errors="replace")))
        for order, text in enumerate(texts, start=1)
    ]


def compose(entries: list[PriorText], **fields: object) -> str:
    knob = knobs(**fields)
    return ContextBudget(knob).compose(entries, knob).text


def report_of(entries: list[PriorText], **fields: object) -> BudgetReport:
    knob = knobs(**fields)
    report = ContextBudget(knob).compose(entries, knob).report
    assert report is not None
    return report


LONG = json.dumps({"id": "a1", "rows": list(range(1_000)), "late": "x" * 700})
DIGEST = (
    '{"id":"a1","rows":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,'
    '"…(+975 more items omitted by context budget)"],"late":"' + "x" * 600 + '…(+100 chars)"}'
)


# ------------------------------------------------------------------------------------------ B1


def test_what_fits_is_joined_and_nothing_else() -> None:
    first, second = '{ "a":  1 }', "  some\ntext \ud83d"
    wanted = f"## Step 1: step1\n{first}\n\n## Step 2: step2\n{second}"

    assert compose(prior(first, second), max_input_chars=len(wanted)) == wanted
    assert compose(prior(first, second), max_input_chars=len(wanted) - 1, recent_steps_verbatim=0)
    assert compose([]) == ""


@pytest.mark.parametrize(
    "off",
    [{"enabled": False, "max_input_chars": 10}, {"max_input_chars": 0}, {"max_input_chars": -5}],
)
def test_a_budget_that_is_off_changes_nothing(off: dict[str, object]) -> None:
    wanted = f"## Step 1: step1\n{LONG}\n\n## Step 2: step2\n{LONG}\n\n## Step 3: step3\n{LONG}"
    assert compose(prior(LONG, LONG, LONG), **off) == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=5))
def test_any_outputs_that_fit_are_joined_by_hand_alike(texts: list[str]) -> None:
    wanted = ""
    for order, text in enumerate(texts, start=1):
        wanted += ("\n\n" if wanted else "") + f"## Step {order}: step{order}\n" + text
    assert compose(prior(*texts), max_input_chars=len(wanted) + 1) == wanted


# ------------------------------------------------------------------------------------ B2 to B5


def test_older_outputs_are_digested_and_the_latest_stay() -> None:
    made = compose(prior(LONG, "short", LONG, LONG), max_input_chars=13_000)
    assert made == (
        f"## Step 1: step1\n{DIGEST}\n\n## Step 2: step2\nshort\n\n"
        f"## Step 3: step3\n{LONG}\n\n## Step 4: step4\n{LONG}"
    )


def test_the_oldest_are_dropped_when_digests_do_not_fit_either() -> None:
    entries = prior(*(["word " * 500] * 6))
    made = compose(
        entries, max_input_chars=3_000, max_digested_step_chars=700, recent_steps_verbatim=1
    )
    parts = made.split("\n\n")

    assert parts[:5] == [
        f"## Step {order}: step{order}\n…(+2500 chars omitted by context budget)"
        for order in (1, 2, 3, 4, 5)
    ]
    assert parts[5] == "## Step 6: step6\n" + "word " * 500


def test_no_more_are_dropped_than_whole_batches_of_an_eighth() -> None:
    entries = prior(*(["word " * 500] * 8))
    report = report_of(
        entries, max_input_chars=5_800, max_digested_step_chars=600, recent_steps_verbatim=1
    )
    assert [entry.treatment.value for entry in report.entries] == [
        *["dropped"] * 2,
        *["digested"] * 5,
        "kept",
    ]
    assert report.chars_after <= 5_800


def test_protected_outputs_are_whole_even_when_they_alone_are_too_long() -> None:
    made = compose(prior("old " * 50, LONG, LONG), max_input_chars=100)
    assert made == (
        "## Step 1: step1\n…(+200 chars omitted by context budget)\n\n"
        f"## Step 2: step2\n{LONG}\n\n## Step 3: step3\n{LONG}"
    )
    assert report_of(prior("old " * 50, LONG, LONG), max_input_chars=100).is_over


def test_an_output_shorter_than_its_marker_stays() -> None:
    made = compose(prior("tiny", LONG), max_input_chars=100, recent_steps_verbatim=1)
    assert made.startswith("## Step 1: step1\ntiny\n\n## Step 2")


# ----------------------------------------------------------------------------------------- B11


def test_the_report_names_every_output() -> None:
    report = report_of(prior("w" * 20_000, LONG, "short", LONG), max_input_chars=13_000)

    assert report.chars_before == 20_000 + 2 * len(LONG) + 5 + 4 * len("## Step 1: step1\n") + 6
    assert [(entry.order, entry.treatment, entry.chars_before) for entry in report.entries] == [
        (1, Treatment.DROPPED, 20_000),
        (2, Treatment.DIGESTED, len(LONG)),
        (3, Treatment.KEPT, 5),
        (4, Treatment.KEPT, len(LONG)),
    ]
    assert report.entries[1].chars_after == len(DIGEST)
    assert (report.tokens_before, report.tokens_after) == (
        -(-report.chars_before // 3),
        -(-report.chars_after // 3),
    )


# ----------------------------------------------------------------------------------- B10, B13


def test_eleven_steps_digest_each_output_once() -> None:
    budget = ContextBudget(knobs(max_input_chars=2_000, recent_steps_verbatim=0))
    outputs = prior(*(json.dumps({"step": n, "rows": ["row"] * 900}) for n in range(11)))
    for step in range(1, 12):
        budget.compose(outputs[:step], budget.settings)

    assert budget.memo.made == 11


def test_equal_outputs_are_digested_once_and_other_settings_anew() -> None:
    memo = DigestMemo()
    entries = prior(LONG, LONG, LONG)
    ContextBudget(knobs(), memo).compose(entries, knobs(max_input_chars=99))
    ContextBudget(knobs(), memo).compose(entries, knobs(max_input_chars=500))
    assert memo.made == 1

    ContextBudget(knobs(), memo).compose(entries, knobs(max_input_chars=99, digest_max_depth=3))
    assert memo.made == 2


def test_the_memo_is_bounded() -> None:
    memo = DigestMemo(chars_max=3_000)
    entries = prior(*(str(n) + "x" * 1_200 for n in range(5)))
    for entry in [*entries, entries[4], entries[0]]:
        memo.digest_of(entry, knobs())
    assert memo.made == 6


@st.composite
def outputs_of_steps(draw: st.DrawFn) -> list[str]:
    rows = st.builds(
        lambda rows, chars: json.dumps([{"n": n, "t": "t" * chars} for n in range(rows)]),
        st.integers(0, 60),
        st.integers(0, 60),
    )
    return draw(st.lists(rows | st.builds("p".__mul__, st.integers(0, 3_000)), max_size=11))


@settings(max_examples=80, deadline=None)
@given(outputs_of_steps(), st.integers(1, 9_000), st.integers(0, 3))
def test_a_prompt_fits_or_only_what_is_never_cut_is_left(
    texts: list[str], cap: int, recent: int
) -> None:
    entries = prior(*texts)
    knob = knobs(max_input_chars=cap, max_digested_step_chars=800, recent_steps_verbatim=recent)
    composed = ContextBudget(knob).compose(entries, knob)
    report = composed.report
    if report is None:
        assert len(composed.text) <= cap
        return

    older = report.entries[: max(0, len(texts) - recent)]
    assert all(entry.treatment is Treatment.KEPT for entry in report.entries[len(older) :])
    assert len(composed.text) == report.chars_after <= report.chars_before
    assert all(f"## Step {entry.order}: {entry.label}\n" in composed.text for entry in entries)
    if report.is_over:
        assert all(
            entry.treatment is Treatment.DROPPED or entry.chars_after <= 45 for entry in older
        )
    dropped = [entry.treatment is Treatment.DROPPED for entry in older if entry.chars_before > 45]
    assert dropped == sorted(dropped, reverse=True)


def test_the_head_of_a_prompt_stays_from_step_to_step() -> None:
    # Forty outputs: each digested to 600, of which 4,000 hold six; then batches are dropped.
    knob = knobs(max_input_chars=4_000, max_digested_step_chars=600, recent_steps_verbatim=1)
    budget = ContextBudget(knob)
    outputs = prior(*(f"{n} " + "word " * 300 for n in range(40)))
    prompts = [budget.compose(outputs[: n + 1], knob).text for n in range(40)]
    drops = [text.count("omitted by context budget") for text in prompts]

    assert drops == sorted(drops)
    moved = sum(before != after for before, after in pairwise(drops))
    assert moved <= len(set(drops))
    for (before, after), (old, new) in zip(pairwise(prompts), pairwise(drops), strict=True):
        if old == new and "\n…(+" in before:
            # All but the output that was verbatim last time.
            assert after.startswith(before.rsplit("\n\n", 1)[0])


# --------------------------------------------------------------------------------- small models


def test_a_small_context_caps_the_budget_and_its_digests() -> None:
    budget = ContextBudget(knobs())
    small = budget.settings_for(ModelRoom(context_tokens=8_192, other_chars=2_000))

    # 8,192 × 3 characters, less a quarter for the answer, less what else is there.
    assert small.max_input_chars == 24_576 - 6_144 - 2_000
    assert small.max_digested_step_chars == 24_576 // 16
    assert budget.settings_for(ModelRoom(1_000_000, 2_000)) == knobs()
    assert budget.settings_for(None) is budget.settings


def test_a_context_without_room_is_not_a_budget_that_is_off() -> None:
    small = ContextBudget(knobs()).settings_for(ModelRoom(context_tokens=500, other_chars=9_000))
    assert small.max_input_chars == 1


@pytest.mark.parametrize("off", [{"enabled": False}, {"max_input_chars": 0}])
def test_a_budget_that_is_off_stays_off_for_a_small_model(off: dict[str, object]) -> None:
    budget = ContextBudget(knobs(**off))
    assert budget.settings_for(ModelRoom(100, 100)) is budget.settings


# ------------------------------------------------------------------------------------ settings


def test_the_defaults_are_the_specified_ones() -> None:
    assert knobs().model_dump(mode="json") == {
        "enabled": True,
        "max_input_chars": 160_000,
        "max_digested_step_chars": 12_000,
        "recent_steps_verbatim": 2,
        "digest_max_string_chars": 600,
        "digest_max_array_items": 25,
        "digest_max_depth": 12,
        "digest_strategy": "plain",
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"digest_max_depth": 200},
        {"digest_max_depth": 0},
        {"recent_steps_verbatim": -1},
        {"max_digested_step_chars": 99},
        {"digest_max_string_chars": 0},
        {"digest_max_array_items": 0},
        {"digest_strategy": "clever"},
    ],
)
def test_a_knob_that_cannot_work_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(bad))):
        knobs(**bad)
