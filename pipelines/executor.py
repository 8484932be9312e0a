"""The default executor: the steps of one run in threads of one warm process.

Steps wait on models and ffmpeg, so threads are enough, and a step costs milliseconds where a
process of its own costs a second. Built from the parts that Dagster's in-process executor uses,
which are not public: dagster is pinned, and tests/pipelines/test_executor.py is the canary
(parallel steps, retry, failure, pools, re-execution, interrupt).

Source: specification D7; dagster issue 4041 (open since 2021) asks for one.
"""

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.events import DagsterEvent, EngineEventData
from dagster._core.execution.api import ExecuteRunWithPlanIterable
from dagster._core.execution.compute_logs import create_compute_log_file_key
from dagster._core.execution.context.system import (
    PlanExecutionContext,
    PlanOrchestrationContext,
    StepExecutionContext,
)
from dagster._core.execution.context_creation_job import PlanExecutionContextManager
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.plan.execute_plan import (
    _handle_compute_log_setup_error,
    _trigger_hook,
    dagster_event_sequence_for_step,
)
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.plan.step import ExecutionStep
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.base import Executor
from dagster._utils.interrupts import pop_captured_interrupt

from pipelines.cancellation import cancellation, forget

POLL_SECONDS = 0.05
WIND_DOWN_SECONDS = 7.0
"""How long a stopped run waits for its steps; ffmpeg gets 5 s to end and is then killed."""

INTERACTIVE_TAG = "reprise/interactive"
"""Run tag of a run whose Ctrl-C is its user's own wish to stop it.

Its value is the run's id: the UI copies tags when it launches a run again, in another process.
"""


def is_interactive(run: dg.DagsterRun) -> bool:
    """Answer whether a run works in the process of the command that a person gave."""
    return run.tags.get(INTERACTIVE_TAG) == run.run_id


class ThreadedExecutor(Executor):
    """Runs up to `max_concurrent` steps of a run at once, each in a thread."""

    def __init__(self, max_concurrent: int) -> None:
        self._max_concurrent = max_concurrent

    @property
    def retries(self) -> RetryMode:
        """Steps are retried by their own policies."""
        return RetryMode.ENABLED

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        """Yield the run's events as its steps give them."""
        yield DagsterEvent.engine_event(
            plan_context,
            f"Executing steps in up to {self._max_concurrent} threads (pid: {os.getpid()})",
            event_specific_data=EngineEventData.in_process(
                os.getpid(), execution_plan.step_keys_to_execute
            ),
        )
        yield from iter(
            ExecuteRunWithPlanIterable(
                execution_plan=plan_context.execution_plan,
                iterator=self._run,
                execution_context_manager=PlanExecutionContextManager(
                    job=plan_context.job,
                    retry_mode=plan_context.retry_mode,
                    execution_plan=plan_context.execution_plan,
                    run_config=plan_context.run_config,
                    dagster_run=plan_context.dagster_run,
                    instance=plan_context.instance,
                    raise_on_error=plan_context.raise_on_error,
                    output_capture=plan_context.output_capture,
                ),
            )
        )

    def _run(
        self, job_context: PlanExecutionContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        # Dagster passes both by these names.
        context, plan = job_context, execution_plan
        with ExitStack() as stack:
            limits = stack.enter_context(
                InstanceConcurrencyContext(context.instance, context.dagster_run)
            )
            active = stack.enter_context(
                plan.start(
                    retry_mode=context.retry_mode,
                    instance_concurrency_context=limits,
                    step_dependency_config=context.step_dependency_config,
                )
            )
            stack.callback(forget, context.run_id)
            if not is_interactive(context.dagster_run):
                # Dagster captures with files in place of the terminal and `tail` processes that
                # copy them back: those die of the same Ctrl-C with tracebacks, and lose the last
                # lines. What steps log is in the run all the same.
                yield from _capture_logs(context, plan, stack)
            yield from _Steps(context, active, self._max_concurrent).events()


def _capture_logs(
    context: PlanExecutionContext, plan: ExecutionPlan, stack: ExitStack
) -> Iterator[DagsterEvent]:
    manager = context.instance.compute_log_manager
    keys = [step.key for step in plan.get_steps_to_execute_in_topo_order()]
    log_key = manager.build_log_key_for_run(context.run_id, create_compute_log_file_key())  # type: ignore[no-untyped-call]  # Dagster's own.
    try:
        logs = stack.enter_context(manager.capture_logs(log_key))
    except Exception:  # noqa: BLE001 - A run does not fail for want of its console log.
        yield from _handle_compute_log_setup_error(context, sys.exc_info())
    else:
        yield DagsterEvent.capture_logs(context, keys, log_key, logs)


class _Steps:
    """The steps of one run at work, their events in one queue."""

    def __init__(
        self, context: PlanExecutionContext, active: ActiveExecution, max_concurrent: int
    ) -> None:
        self._context = context
        self._active = active
        self._max_concurrent = max_concurrent
        self._queue: queue.Queue[tuple[str, DagsterEvent | None, BaseException | None]] = (
            queue.Queue()
        )
        self._running: dict[str, tuple[StepExecutionContext, list[DagsterEvent]]] = {}
        self._stop = cancellation(context.run_id)

    def events(self) -> Iterator[DagsterEvent]:
        """Start steps as they become ready and yield their events until all have ended."""
        try:
            while not self._active.is_complete or self._running:
                self._check_interrupt()
                self._start_ready()
                yield from self._active.concurrency_event_iterator(self._context)
                if not self._running:
                    yield from self._active.plan_events_iterator(self._context)
                    if not self._active.is_complete:
                        self._active.sleep_til_ready()
                    continue
                try:
                    item = self._queue.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                yield from self._take(*item)
        except BaseException:
            self._stop.set()
            self._wind_down()
            raise

    def _check_interrupt(self) -> None:
        if not (pop_captured_interrupt() or self._stop.is_set()):
            return
        run = self._context.dagster_run
        if is_interactive(run):
            self._context.instance.report_run_canceling(run)
        raise DagsterExecutionInterruptedError

    def _start_ready(self) -> None:
        room = self._max_concurrent - len(self._running)
        if room <= 0:
            return
        for step in self._active.get_steps_to_execute(limit=room):
            context = self._context.for_step(step, self._active.get_known_state())
            self._running[step.key] = (context, [])
            # Daemon threads: a step that hangs in foreign code must not keep a stopped process
            # alive.
            threading.Thread(
                target=self._work, args=(step, context), name=step.key, daemon=True
            ).start()

    def _work(self, step: ExecutionStep, context: StepExecutionContext) -> None:
        try:
            for event in dagster_event_sequence_for_step(context):
                self._queue.put((step.key, event, None))
        except BaseException as error:  # noqa: BLE001 - It is raised again in the run's own thread.
            self._queue.put((step.key, None, error))
        else:
            self._queue.put((step.key, None, None))

    def _take(
        self, key: str, event: DagsterEvent | None, error: BaseException | None
    ) -> Iterator[DagsterEvent]:
        context, events = self._running[key]
        if event is not None:
            events.append(event)
            yield event
            self._active.handle_event(event)
            return
        del self._running[key]
        if error is not None:
            raise error
        self._active.verify_complete(self._context, key)
        for skipped in self._active.plan_events_iterator(self._context):
            events.append(skipped)
            yield skipped
        yield from _trigger_hook(context, events)

    def _wind_down(self) -> None:
        """Wait for the steps at work to notice the stop; their last events are not reported."""
        deadline = time.monotonic() + WIND_DOWN_SECONDS
        while self._running and time.monotonic() < deadline:
            try:
                key, event, _ = self._queue.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if event is None:
                self._running.pop(key, None)


def _threaded(context: dg.InitExecutorContext) -> ThreadedExecutor:
    return ThreadedExecutor(int(str(context.executor_config["max_concurrent"])))


def threaded_executor(max_concurrent: int) -> dg.ExecutorDefinition:
    """Return the threaded executor with this default width."""
    make: Callable[[dg.InitExecutorContext], ThreadedExecutor] = _threaded
    return dg.executor(
        name="threaded",
        config_schema={
            "max_concurrent": dg.Field(
                int, default_value=max_concurrent, description="Steps that may run at once."
            )
        },
    )(make)
