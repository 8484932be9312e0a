"""What a run would do, before it is launched: which steps would hit, which would run, and why.

It asks the cache the same question as the run (`pipelines.identify`), on the outputs that the hits
would give; it executes nothing, calls no model and writes nothing. A step that reads one that will
run is unknown until then: its input is not there yet, and may come out as it was.

Source: specification C18.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue

from pipelines.edges import step_reads
from pipelines.identify import identify_step, last_key
from pipelines.prepare import prepare_step, step_agents
from pipelines.request import choose_request
from pipelines.services import Services
from pipelines.step_run import RunCacheMode, StepRun
from reprise.cache.policy import cache_verdict
from reprise.canonical import canonical_json, sha256_hex
from reprise.context.bodies import Bodies
from reprise.errors import RepriseError
from reprise.model.cache import Lookup
from reprise.model.result import CacheReason, SeenStep, StepResult, StepStatus
from reprise.model.workflow import Step, Workflow

NOT_USED = Path("not-used-by-a-plan")


class Forecast(StrEnum):
    """What would become of a step."""

    HIT = "hit"
    RUN = "run"
    UNKNOWN = "unknown"
    """It waits for a step that will run, or asks what one asks."""
    SKIP = "skip"
    """An earlier step's result stops the workflow."""


@dataclass(frozen=True)
class Expected:
    """What executing a step took the last time."""

    tokens: int
    cost_micros: int | None
    """None when its price is unknown."""
    seconds: float


@dataclass(frozen=True)
class PlannedStep:
    """One step of a plan."""

    order: int
    label: str
    type: str
    forecast: Forecast
    reason: CacheReason | None
    detail: str
    expected: Expected | None
    """None when it never ran on this project."""


@dataclass
class _State:
    """What is known while the plan goes down the steps."""

    history: dict[int, SeenStep]
    values: dict[str, JsonValue]
    waits: Mapping[int, frozenset[int]]
    """Order → the earlier steps that it waits for; it is not reached when one of them fails."""
    open: set[int] = field(default_factory=set)
    """Orders whose outputs are not known yet."""
    asked: dict[str, int] = field(default_factory=dict)
    """Cache key → order of the step that will execute it."""


class _PlannedBodies(Bodies):
    """Bodies with those that hits would give; keeps none."""

    def __init__(self, inner: Bodies, values: Mapping[str, JsonValue]) -> None:
        self._inner = inner
        self._values = values

    def get(self, project_id: str, digest: str) -> JsonValue:
        """Return a value that a hit would give, else a kept one."""
        if digest in self._values:
            return self._values[digest]
        return self._inner.get(project_id, digest)


@dataclass(frozen=True)
class PlanRequest:
    """What is to be planned."""

    workflow: Workflow
    project_id: str
    request: str | None = None
    cache: RunCacheMode = RunCacheMode.USE
    steps: Mapping[int, RunCacheMode] = field(default_factory=dict)
    """Order → cache mode of a single step."""
    provider_id: str | None = None


def plan_run(asked: PlanRequest, services: Services) -> list[PlannedStep]:
    """Return what each step of a run would do, by order."""
    text = choose_request(asked.workflow, asked.project_id, services, asked.request).text
    digest = sha256_hex(canonical_json(text))
    request = SeenStep(
        order=0,
        label="request",
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=digest,
    )
    waits = step_reads(asked.workflow, services.agents)
    state = _State({0: request}, {digest: text}, waits)
    services = replace(services, bodies=_PlannedBodies(services.bodies, state.values))
    return [_plan_step(asked, step, services, state) for step in asked.workflow.steps]


def _plan_step(asked: PlanRequest, step: Step, services: Services, state: _State) -> PlannedStep:
    stopped = next((seen for seen in state.history.values() if seen.stop_workflow), None)
    waits = sorted(state.waits[step.order] & state.open)
    if stopped is not None and waits:
        # One of them may fail, and then this step does not even come to be skipped; nor does one
        # that waits for it.
        state.open.add(step.order)
        return _planned(asked, step, services, *_until(_ask(asked, step, state), waits))
    if stopped is not None:
        detail = f"step {stopped.order} ({stopped.label}) stops the workflow"
        return _planned(
            asked, step, services, Forecast.SKIP, Lookup(reason=CacheReason.SKIPPED, detail=detail)
        )
    forecast, looked = _forecast(_ask(asked, step, state), services, state)
    if forecast is Forecast.HIT and looked.result is not None:
        _remember(step, looked.result, state)
    else:
        state.open.add(step.order)
    return _planned(asked, step, services, forecast, looked)


def _ask(asked: PlanRequest, step: Step, state: _State) -> StepRun:
    return StepRun(
        workflow=asked.workflow,
        step=step,
        project_id=asked.project_id,
        run_id="plan",
        history=state.history,
        cache_mode=asked.steps.get(step.order, asked.cache),
        provider_id=asked.provider_id,
    )


def _forecast(run: StepRun, services: Services, state: _State) -> tuple[Forecast, Lookup]:
    gates = [order for order in _gates(run) if order in state.open]
    if gates:
        return _until(run, gates)
    agents = step_agents(run.step, services.agents)
    verdict = cache_verdict(run.step, agents)
    if not verdict.cacheable:
        return Forecast.RUN, Lookup(reason=CacheReason.POLICY, detail=verdict.reason)
    waits = sorted(state.waits[run.step.order] & state.open)
    if waits:
        told = _told(run)
        return _until(run, waits) if told is None else (Forecast.RUN, told)
    try:
        identified = identify_step(run, prepare_step(run, services, NOT_USED))
    except RepriseError as error:
        return Forecast.RUN, Lookup(
            reason=CacheReason.NOT_HASHABLE, detail=f"it will fail: {error}"
        )
    if identified.identity is None:
        refusal = identified.refusal or Lookup(reason=CacheReason.POLICY)
        return Forecast.RUN, refusal
    key = identified.identity.cache_key
    twin = state.asked.get(key)
    if run.cache_mode in (RunCacheMode.USE, RunCacheMode.READONLY) and twin is not None:
        return _until(run, [twin])
    looked = _told(run) or services.cache.lookup(
        identified.identity, read_only=True, last_key=lambda: last_key(run, services)
    )
    if looked.is_hit:
        return Forecast.HIT, looked
    if run.cache_mode in (RunCacheMode.USE, RunCacheMode.REFRESH):
        state.asked.setdefault(key, run.step.order)
    return Forecast.RUN, looked


def _gates(run: StepRun) -> list[int]:
    """Return the earlier steps that may stop the workflow."""
    return [
        other.order
        for other in run.workflow.steps
        if other.order < run.step.order and other.function is not None and other.function.stops
    ]


def _until(run: StepRun, orders: Sequence[int]) -> tuple[Forecast, Lookup]:
    names = ", ".join(f"{order} ({run.workflow.step(order).label})" for order in orders)
    detail = f"until step {names} has run"
    return Forecast.UNKNOWN, Lookup(reason=CacheReason.FIELD_CHANGED, detail=detail)


def _told(run: StepRun) -> Lookup | None:
    """Return the answer when the run does not look up."""
    if run.cache_mode not in (RunCacheMode.REFRESH, RunCacheMode.BYPASS):
        return None
    reason = CacheReason(run.cache_mode.value)
    return Lookup(reason=reason, detail=f"asked for: {run.cache_mode}")


def _remember(step: Step, result: StepResult, state: _State) -> None:
    def keep(value: JsonValue) -> str:
        digest = sha256_hex(canonical_json(value))
        state.values[digest] = value
        return digest

    body = keep(result.output)
    variables = {name: keep(value) for name, value in result.variables.items()}
    if result.sets_output_variable:
        variables[step.variable] = body
    state.history[step.order] = SeenStep(
        order=step.order,
        label=step.label,
        type=step.type,
        status=result.status,
        body_digest=body,
        prompt_digest=None if result.prompt_output is None else keep(result.prompt_output),
        variables=variables,
        stop_workflow=result.stop_workflow,
    )


def _planned(
    asked: PlanRequest, step: Step, services: Services, forecast: Forecast, looked: Lookup
) -> PlannedStep:
    return PlannedStep(
        order=step.order,
        label=step.label,
        type=step.type.value,
        forecast=forecast,
        reason=None if forecast is Forecast.UNKNOWN else looked.reason,
        detail=looked.detail,
        expected=_expected(asked, step, services, looked),
    )


def _expected(
    asked: PlanRequest, step: Step, services: Services, looked: Lookup
) -> Expected | None:
    if looked.entry is not None:
        usage = looked.entry.usage
        return Expected(usage.tokens, usage.cost_micros, looked.entry.seconds)
    last = services.history.of_step(asked.workflow.id, asked.project_id, step.name, run_id=None)
    if last is None:
        return None
    if last.from_cache:
        return Expected(
            last.cached_tokens_saved, last.cached_cost_micros_saved, last.cached_seconds_saved
        )
    return Expected(last.usage.tokens, last.usage.cost_micros, last.seconds)
