"""The differential oracle: whatever is edited, a run with the cache equals one without it.

Each sequence begins with a workflow and edits it; after each edit the next run is planned, run with
the cache, run without, and all that they leave behind is compared. 10,000 sequences:
`python -m bench.oracle --sequences 10000`.

Source: specification R1, C18, P12.
"""

import logging
from collections.abc import Iterator, Mapping

import pytest

from pipelines import identify
from reprise.cache import key as key_module
from tests.oracle.sequences import EDITS, EditSequence, Tally, findings_of, sequence_of, shortened

SEQUENCES = 300
PARTS = 10


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Refused values are warned of as they should be; thousands of them are noise."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def check(sequence: EditSequence, tally: Tally | None = None) -> None:
    findings = findings_of(sequence, tally)
    if findings:
        short = shortened(sequence, lambda fewer: bool(findings_of(fewer)))
        pytest.fail(f"{short}\n" + "\n".join(map(str, findings_of(short))))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_cached_run_equals_an_uncached_one_after_any_edits(part: int) -> None:
    tally = Tally()
    for seed in range(part, SEQUENCES, PARTS):
        check(sequence_of(seed), tally)

    assert tally.sequences == SEQUENCES // PARTS
    # Were there no hits, the comparison would say nothing.
    assert tally.hits > tally.steps / 4


def test_every_kind_of_edit_is_made() -> None:
    made = {edit for seed in range(SEQUENCES) for edit, _ in sequence_of(seed).edits}

    assert made == set(EDITS)


@pytest.mark.parametrize(
    "field",
    [
        "agent_model_parameters",
        "agent_output_schema",
        "edit_room",
        "project_file_fingerprint",
        "user_request",
        "variables",
    ],
)
def test_the_oracle_sees_a_field_that_is_left_out_of_the_key(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle itself is tried: a key without one of its fields has to be found out."""
    digest = key_module.cache_key

    def without(fields: Mapping[str, str]) -> str:
        return digest({name: value for name, value in fields.items() if name != field})

    monkeypatch.setattr(identify, "cache_key", without)

    found = next((seed for seed in range(200) if findings_of(sequence_of(seed))), None)

    assert found is not None
