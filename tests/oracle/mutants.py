"""Caches that are broken on purpose, each in one place: the oracle has to find every one of them.

To add one: a name, and what is put in place of what. Each field of the key is one more: a cache
whose key leaves it out.

Source: specification R1; the oracle itself is tried.
"""

import itertools
import logging
from collections.abc import Callable, Mapping

import pytest

from pipelines import identify
from pipelines.run_step import _Attempt  # Broken on purpose, from outside.
from reprise.cache import key as key_module
from reprise.cache import lookup as lookup_module
from reprise.cache.lookup import StepCache, StepIdentity
from reprise.cache.policy import Verdict
from reprise.model.cache import Lookup
from reprise.model.result import CacheReason
from resources.memory_entry_store import MemoryEntryStore, _Kept
from tests.oracle.machine import SEARCH, CacheOracle, Tally, run_sequences

KEY_FIELDS = (
    "agent_assigned_skills",
    "agent_inference_provider_id",
    "agent_model_parameters",
    "agent_output_schema",
    "agent_output_schema_name",
    "agent_system_prompt",
    "agent_type",
    "edit_room",
    "function_fingerprint",
    "history_digest",
    "project_file_fingerprint",
    "resolved_input",
    "sandbox_digest",
    "step_prompt",
    "tool_choice",
    "toolchain",
    "user_request",
    "variables",
    "video_analyze",
    "video_compile",
)
"""Fields that nothing else in the key says again, as the input's text says the input mode, a
prompt which agent it is, and the tool groups which tools there are in this version."""

MISS = Lookup(reason=CacheReason.FIRST_TIME)
ANYTHING = Verdict(cacheable=True, reason="everything is cacheable")


def _key_without(field: str) -> Callable[[Mapping[str, str]], str]:
    return lambda fields: key_module.cache_key(
        {name: digest for name, digest in fields.items() if name != field}
    )


def _key_that_drifts() -> Callable[[Mapping[str, str]], str]:
    count = itertools.count()
    return lambda fields: key_module.cache_key({**fields, "count": str(next(count))})


def _hit_with(**update: object) -> Callable[[_Attempt, Lookup], object]:
    hit = _Attempt._hit

    def changed(attempt: _Attempt, looked: Lookup) -> object:
        assert looked.result is not None
        result = looked.result.model_copy(update=update)
        return hit(attempt, looked.model_copy(update={"result": result}))

    return changed


def _unguarded(
    cache: StepCache,
    step: StepIdentity,
    *,
    read_only: bool = False,
    last_key: Callable[[], str | None] = lambda: None,
) -> Lookup:
    return cache._lookup(step, read_only, last_key)


Mutant = Callable[[], tuple[object, str, object]]
"""Gives: whose, which name, and what is put there."""

MUTANTS: dict[str, Mutant] = {
    **{
        f"a key without {field}": lambda field=field: (  # type: ignore[misc]  # Bound now.
            identify,
            "cache_key",
            _key_without(field),
        )
        for field in KEY_FIELDS
    },
    "a key that drifts": lambda: (identify, "cache_key", _key_that_drifts()),
    "a cache that always misses": lambda: (StepCache, "lookup", lambda *_, **__: MISS),
    "a broken store fails the step": lambda: (StepCache, "lookup", _unguarded),
    "artifacts are not asked for": lambda: (StepCache, "_check_artifacts", lambda *_: []),
    "payloads are believed": lambda: (lookup_module, "sha256_hex", lambda _text: "0" * 64),
    "entries never expire": lambda: (_Kept, "is_expired", lambda *_: False),
    "entries cannot be removed": lambda: (MemoryEntryStore, "invalidate", lambda *_, **__: 0),
    "every run writes": lambda: (_Attempt, "_may_write", True),
    "every step is cacheable": lambda: (identify, "cache_verdict", lambda *_: ANYTHING),
    "a hit loses its variables": lambda: (_Attempt, "_hit", _hit_with(variables={})),
    "a hit loses its stop": lambda: (_Attempt, "_hit", _hit_with(stop_workflow=False)),
}


def is_found(name: str, sequences: int) -> int | None:
    """Return after how many sequences the machine finds a mutant; None when it does not."""
    logging.disable(logging.ERROR)
    CacheOracle.tally = Tally()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*MUTANTS[name]())
        try:
            run_sequences(CacheOracle, 0, sequences, SEARCH)
        except AssertionError:
            return CacheOracle.tally.sequences
        finally:
            logging.disable(logging.NOTSET)
    return None
