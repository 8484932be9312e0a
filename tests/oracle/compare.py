"""What two runs left behind, compared; and a plan with the run after it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from pipelines.plan import Forecast, PlannedStep
from pipelines.services import Services
from reprise.errors import RepriseError
from reprise.model.result import StepRecord, StepStatus
from reprise.model.workflow import Step
from reprise.ports import ObjectStore

SPENT = {
    "run_id",
    "from_cache",
    "cache_reason",
    "cache_detail",
    "cache_changes",
    "cache_run_id",
    "usage",
    "seconds",
    "cached_tokens_saved",
    "cached_seconds_saved",
    "cached_cost_micros_saved",
    "started_at",
    "finished_at",
}
"""What a record says of this run alone; all else has to be the same with the cache and without."""


@dataclass
class RunOutcome:
    """What a run left behind, by order."""

    run_id: str = ""
    records: dict[int, StepRecord] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    injected: bool = False
    """True when a failure that the test put in was met."""


@dataclass
class Finding:
    """Something that must not be."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what}: {self.where}"


def state_of(record: StepRecord | None) -> str:
    """Return how a step ended, for people."""
    return "none" if record is None else f"{record.status} ({record.cache_reason})"


def wrong_forecasts(planned: list[PlannedStep], outcome: RunOutcome) -> list[Finding]:
    """Return where a plan said what did not happen."""
    findings = []
    for step in planned:
        record = outcome.records.get(step.order)
        was_hit = record is not None and record.from_cache
        skipped = record is not None and record.status is StepStatus.SKIPPED
        wrong = {
            Forecast.HIT: not was_hit,
            Forecast.RUN: was_hit or skipped,
            Forecast.SKIP: not skipped,
            Forecast.UNKNOWN: False,
        }[step.forecast]
        if wrong:
            what = f"step {step.order}: {step.forecast} ({step.detail}), was {state_of(record)}"
            findings.append(Finding("a wrong forecast", what))
    return findings


def record_differences(
    step: Step, one: StepRecord, other: StepRecord, with_cache: Services, without: Services
) -> list[Finding]:
    """Return where two records of a step say different things of it."""
    where = f"step {step.order} ({step.label}, {one.cache_reason}: {one.cache_detail})"
    plain, expected = comparable(one), comparable(other)
    findings = [
        Finding("a record differs", f"{where}: {name}: {plain[name]!r} for {expected[name]!r}")
        for name in plain
        if plain[name] != expected[name]
    ]
    if one.from_cache and (one.usage.tokens or one.usage.calls):
        findings.append(Finding("a hit says that it spent something", where))
    assert one.reference is not None
    digest = one.reference.seen.body_digest
    try:
        with_cache.bodies.get(one.project_id, digest)
    except RepriseError as error:
        findings.append(Finding("a body is not there", f"{where}: {error}"))
    for artifact in one.artifacts:
        if _bytes(with_cache.objects, artifact.storage_key) != _bytes(
            without.objects, artifact.storage_key
        ):
            findings.append(Finding("an artifact differs", f"{where}: {artifact.name}"))
    return findings


def _bytes(objects: ObjectStore, key: str) -> bytes | None:
    return objects.get_bytes(key) if objects.head(key) is not None else None


def comparable(record: StepRecord) -> Mapping[str, JsonValue]:
    """Return what of a record has to be the same with the cache and without."""
    data: dict[str, JsonValue] = record.model_dump(mode="json", exclude=SPENT)
    if record.reference is not None:
        data["reference"] = record.reference.model_dump(mode="json", exclude={"run_id"})
    # The tag is the store's own; the bytes are compared.
    data["artifacts"] = [
        item.model_dump(mode="json", exclude={"etag"}) for item in record.artifacts
    ]
    return {name: str(value).replace(record.run_id, "run") for name, value in data.items()}
