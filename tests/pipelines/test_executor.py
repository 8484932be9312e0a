"""The canary of the threaded executor against Dagster's internals."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import create_execution_plan, execute_run_iterator
from dagster._core.execution.plan.state import KnownExecutionState

from pipelines.cancellation import cancellation
from pipelines.executor import INTERACTIVE_TAG, threaded_executor

DEADLINE_SECONDS = 20.0


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


def run(
    instance: dg.DagsterInstance, job: dg.JobDefinition, *, interactive: bool = False
) -> dg.DagsterRun:
    run_id = str(uuid.uuid4())
    tags = {INTERACTIVE_TAG: run_id} if interactive else {}
    created = instance.create_run_for_job(job, run_id=run_id, tags=tags)
    list(execute_run_iterator(InMemoryJob(job), created, instance))
    done = instance.get_run_by_id(created.run_id)
    assert done is not None
    return done


def step_events(instance: dg.DagsterInstance, run_id: str, kind: str) -> list[str]:
    entries = instance.all_logs(run_id)
    return [
        entry.dagster_event.step_key or ""
        for entry in entries
        if entry.dagster_event is not None and entry.dagster_event.event_type_value == kind
    ]


def test_independent_steps_run_at_the_same_time(instance: dg.DagsterInstance) -> None:
    meeting = threading.Barrier(3, timeout=DEADLINE_SECONDS)

    @dg.op(out={"out": dg.Out(dg.Nothing)})
    def meet() -> None:
        meeting.wait()

    @dg.job(executor_def=threaded_executor(8))
    def job() -> None:
        meet.alias("a")()
        meet.alias("b")()
        meet.alias("c")()

    assert run(instance, job).status is dg.DagsterRunStatus.SUCCESS


def test_no_more_steps_run_at_once_than_the_width(instance: dg.DagsterInstance) -> None:
    lock = threading.Lock()
    now = 0
    most = 0

    @dg.op(out={"out": dg.Out(dg.Nothing)})
    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1

    @dg.job(executor_def=threaded_executor(2))
    def job() -> None:
        for name in "abcdef":
            count.alias(name)()

    assert run(instance, job).status is dg.DagsterRunStatus.SUCCESS
    assert most == 2


def test_a_failed_step_stops_what_follows_it_and_nothing_else(
    instance: dg.DagsterInstance,
) -> None:
    @dg.op
    def fails() -> int:
        raise dg.Failure("broken", allow_retries=False)

    @dg.op
    def works() -> int:
        return 1

    @dg.op
    def follows(value: int) -> int:
        return value

    @dg.job(executor_def=threaded_executor(4))
    def job() -> None:
        follows.alias("after_failure")(fails())
        follows.alias("after_work")(works())

    done = run(instance, job)

    assert done.status is dg.DagsterRunStatus.FAILURE
    assert step_events(instance, done.run_id, "STEP_FAILURE") == ["fails"]
    assert sorted(step_events(instance, done.run_id, "STEP_SUCCESS")) == ["after_work", "works"]
    assert "after_failure" not in step_events(instance, done.run_id, "STEP_START")


def test_a_step_is_retried_as_its_policy_says(instance: dg.DagsterInstance) -> None:
    attempts: list[int] = []

    @dg.op(retry_policy=dg.RetryPolicy(max_retries=2, delay=0.01))
    def flaky() -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise dg.Failure("not yet")
        return 1

    @dg.job(executor_def=threaded_executor(4))
    def job() -> None:
        flaky()

    assert run(instance, job).status is dg.DagsterRunStatus.SUCCESS
    assert len(attempts) == 3


def test_a_pool_limits_the_steps_in_it(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("ffmpeg", 1)
    lock = threading.Lock()
    now = 0
    most = 0

    @dg.op(pool="ffmpeg", out={"out": dg.Out(dg.Nothing)})
    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1

    @dg.job(executor_def=threaded_executor(4))
    def job() -> None:
        for name in "abc":
            count.alias(name)()

    assert run(instance, job).status is dg.DagsterRunStatus.SUCCESS
    assert most == 1


def test_a_cancelled_run_ends_its_steps_and_is_recorded_as_cancelled(
    instance: dg.DagsterInstance,
) -> None:
    started = threading.Event()
    ended = threading.Event()

    @dg.op
    def waits(context: dg.OpExecutionContext) -> int:
        started.set()
        assert cancellation(context.run_id).wait(DEADLINE_SECONDS)
        ended.set()
        raise dg.Failure("stopped", allow_retries=False)

    @dg.job(executor_def=threaded_executor(4))
    def job() -> None:
        waits()

    def interrupt() -> None:
        assert started.wait(DEADLINE_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    done = run(instance, job, interactive=True)

    assert done.status is dg.DagsterRunStatus.CANCELED
    assert ended.is_set()


def test_re_execution_from_failure_runs_only_what_is_missing(
    instance: dg.DagsterInstance,
) -> None:
    broken = [True]

    @dg.op
    def first() -> int:
        return 1

    @dg.op
    def second(value: int) -> int:
        if broken[0]:
            raise dg.Failure("broken", allow_retries=False)
        return value

    @dg.job(executor_def=threaded_executor(4))
    def job() -> None:
        second(first())

    failed = run(instance, job)
    broken[0] = False
    steps, known_state = KnownExecutionState.build_resume_retry_reexecution(instance, failed)
    plan = create_execution_plan(job, step_keys_to_execute=steps, known_state=known_state)
    again = instance.create_run_for_job(
        job, execution_plan=plan, parent_run_id=failed.run_id, root_run_id=failed.run_id
    )
    list(execute_run_iterator(InMemoryJob(job), again, instance))

    done = instance.get_run_by_id(again.run_id)
    assert done is not None
    assert done.status is dg.DagsterRunStatus.SUCCESS
    assert step_events(instance, again.run_id, "STEP_START") == ["second"]
