"""The differential oracle: whatever is edited, a run with the cache equals one without it.

The machine and its rules: machine.py, scene_rules.py. 10,000 sequences with other seeds, and every
mutant: `python -m bench.oracle`.

Source: specification R1, C18, P12.
"""

import logging
from collections.abc import Iterator

import pytest

from tests.oracle.machine import CacheOracle, Tally, run_sequences
from tests.oracle.mutants import is_found


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Refused values are warned of as they should be; thousands of them are noise."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_a_cached_run_equals_an_uncached_one_after_any_edits() -> None:
    CacheOracle.tally = Tally()

    run_sequences(CacheOracle, 0, 300)

    tally = CacheOracle.tally
    assert tally.sequences >= 300
    # Were there no hits, faults or files on disk, the comparison would say nothing of them.
    assert tally.hits > tally.steps / 4
    assert tally.on_disk > 30
    assert tally.faults > 5


@pytest.mark.parametrize(
    "mutant",
    [
        "a key without project_file_fingerprint",
        "a key without edit_room",
        "a key without sandbox_digest",
        "a key that drifts",
        "artifacts are not asked for",
        "payloads are believed",
        "entries never expire",
        "entries cannot be removed",
        "every step is cacheable",
        "a broken store fails the step",
    ],
)
def test_the_oracle_finds_a_broken_cache(mutant: str) -> None:
    """The oracle itself is tried; `python -m bench.oracle --mutants` tries all."""
    assert is_found(mutant, sequences=600) is not None
