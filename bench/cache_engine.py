"""The engine of bench/cache.py: the real wiring, and a step with a large input that is a hit.

Source: specification P2, P3.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import yaml

from pipelines.cache_wiring import CACHE_FILE
from pipelines.definitions import Wiring
from pipelines.identify import identify_step
from pipelines.prepare import PreparedStep, prepare_step
from pipelines.records import record_of
from pipelines.run_step import run_step
from pipelines.step_run import StepRun
from reprise.cache.lookup import StepCost, StepIdentity
from reprise.model.cache import Lookup
from reprise.model.result import SeenStep, StepResult, StepStatus
from reprise.model.settings import StepCacheSettings
from reprise.ports import EntryStore
from resources.breaker import BreakerEntryStore, CircuitBreaker
from resources.deadline import DeadlineEntryStore
from resources.payload_offload import PayloadOffload
from resources.scripted_provider import ScriptedProvider
from resources.settings import Settings
from resources.sqlite_entry_store import SqliteEntryStore

PROJECT = "bench"
SOURCES = 5
"""Steps whose outputs the measured step reads: 5 × 22 KB make its input."""
OUTPUT_CHARS = 22_000


@dataclass(frozen=True)
class BenchEngine:
    """A wired engine and a step that is ready to be asked for."""

    wiring: Wiring
    run: StepRun
    prepared: PreparedStep

    @cached_property
    def bare_rows(self) -> EntryStore:
        """The SQLite store as it is, on the file of the engine's cache."""
        return SqliteEntryStore(self.wiring.home / CACHE_FILE)

    @cached_property
    def wired_rows(self) -> EntryStore:
        """The same behind deadline, breaker and offload, as `Wiring.cache` has it."""
        knobs = self.wiring.settings.step_cache
        guarded = DeadlineEntryStore(
            self.bare_rows,
            lookup_seconds=knobs.lookup_deadline_seconds,
            store_seconds=knobs.store_deadline_seconds,
        )
        return PayloadOffload(
            BreakerEntryStore(guarded, CircuitBreaker("the step cache's store")),
            self.wiring.objects,
            inline_bytes_max=knobs.inline_bytes_max,
        )

    def variant(self, number: int) -> PreparedStep:
        """Return the step with another input of the same size: another entry."""
        context = self.prepared.context
        text = f"{context.resolved_input}\nvariant {number:06d}"
        return replace(self.prepared, context=replace(context, resolved_input=text))

    def identity(self, prepared: PreparedStep) -> StepIdentity:
        """Return the step's key and the digests that explain it."""
        identity = identify_step(self.run, prepared).identity
        assert identity is not None
        return identity

    def hit(self, prepared: PreparedStep) -> Lookup:
        """Return the earlier result: key, select, expiry, digest, parse."""
        looked = self.wiring.cache.lookup(self.identity(prepared))
        assert looked.is_hit, looked
        return looked

    def store(self, prepared: PreparedStep, result: StepResult) -> None:
        """Keep a result under the step's key."""
        cost = StepCost("0" * 32, 1.0)
        assert self.wiring.cache.store(self.identity(prepared), result, cost) is None


def bench_engine(root: Path) -> BenchEngine:
    """Return an engine whose last step has been run once."""
    wiring = _wiring(root)
    services = wiring.services
    wiring.projects.add_project(PROJECT, now=services.clock())
    workflow = services.workflows["large"]
    request = SeenStep(
        order=0,
        label="request",
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=services.bodies.put(PROJECT, "cut a promo"),
    )
    history = {0: request}
    last = None
    for step in workflow.steps:
        last = StepRun(workflow, step, PROJECT, "0" * 32, dict(history))
        record = record_of(last, run_step(last, services), services)
        assert record.reference is not None
        history[step.order] = record.reference.seen
    assert last is not None
    return BenchEngine(wiring, last, prepare_step(last, services, root / "unused"))


def _wiring(root: Path) -> Wiring:
    folder = root / "workflows"
    (folder / "prompts").mkdir(parents=True)
    labels = [f"source{number}" for number in range(SOURCES)]
    script: dict[str, list[str]] = {}
    steps = []
    for order, label in enumerate([*labels, "digest"], start=1):
        (folder / "prompts" / f"{label}.md").write_text(
            f"---\nagent_type: {label}\noutput_schema_name: o\noutput_schema: {{}}\n---\nAnswer.\n"
        )
        reads = list(range(1, SOURCES + 1)) if label == "digest" else []
        steps.append(
            {
                "order": order,
                "label": label,
                "type": "Agent",
                "agent": label,
                "input_mode": "selected_prior_steps",
                "selected_prior_step_orders": reads,
            }
        )
        script[label] = [json.dumps({"rows": list(_rows(label))})]
    (folder / "large.yaml").write_text(yaml.safe_dump({"id": "large", "steps": steps}))
    # Two loaded cores must not turn a hit into a miss.
    knobs = StepCacheSettings(lookup_deadline_seconds=30.0, store_deadline_seconds=30.0)
    settings = Settings(
        home=root / "home", workflows_dir=folder, provider="scripted", step_cache=knobs
    )
    wiring = Wiring(settings)
    wiring.use_provider("scripted", ScriptedProvider(script))
    return wiring


def _rows(label: str) -> Iterator[dict[str, object]]:
    """Yield rows as a document of findings has them: numbers, ids and prose."""
    for number in range(OUTPUT_CHARS // 82):
        yield {"n": number, "id": f"{label[:16]}{number:06d}", "text": "lorem ipsum " * 3}
