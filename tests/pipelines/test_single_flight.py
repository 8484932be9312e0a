"""Identical steps at once, through the engine: one executes, the other takes its result."""

import threading

from pipelines.definitions import Wiring
from pipelines.run_step import run_step
from pipelines.step_run import StepOutcome, StepRun
from reprise.model.conversation import ModelReply, ModelRequest
from reprise.model.result import CacheReason, SeenStep, StepStatus
from reprise.ports import Cancelled
from tests.pipelines.engine import Engine, RuleProvider

DEADLINE_SECONDS = 30.0


class SlowProvider(RuleProvider):
    """Answers once told to, and says that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.go = threading.Event()

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        self.asked.set()
        assert self.go.wait(DEADLINE_SECONDS)
        return super().complete(request, cancelled=cancelled)


def test_two_processes_pay_once_for_one_step(engine: Engine) -> None:
    engine.rule = slow = SlowProvider()
    engine.agents_workflow({"a": []})
    engine.project("p")
    outcomes: dict[str, StepOutcome] = {}

    def execute(name: str, wiring: Wiring) -> None:
        outcomes[name] = run_step(run_of(wiring, name), wiring.services)

    wirings = {name: engine.fresh() for name in ("first", "second")}
    threads = {
        name: threading.Thread(target=execute, args=(name, wiring))
        for name, wiring in wirings.items()
    }
    threads["first"].start()
    assert slow.asked.wait(DEADLINE_SECONDS)
    threads["second"].start()
    threads["second"].join(1.0)
    assert threads["second"].is_alive()
    slow.go.set()
    for thread in threads.values():
        thread.join(DEADLINE_SECONDS)

    assert slow.calls == {"a": 1}
    assert outcomes["first"].lookup.reason is CacheReason.FIRST_TIME
    assert outcomes["second"].lookup.reason is CacheReason.HIT
    assert outcomes["first"].result.output == outcomes["second"].result.output


def run_of(wiring: Wiring, run_id: str) -> StepRun:
    workflow = wiring.definitions.workflows["w"]
    request = SeenStep(
        order=0,
        label="request",
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=wiring.services.bodies.put("p", "go"),
    )
    return StepRun(
        workflow=workflow,
        step=workflow.steps[0],
        project_id="p",
        run_id=run_id,
        history={0: request},
    )


def test_the_sweep_is_a_job_that_runs(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p")
    engine.run()

    result = engine.job_named("reprise_cache_sweep").execute_in_process(instance=engine.instance)

    assert result.success
    assert len(engine.wiring.entries) == 1
