"""The ambient execution: where it is, where it is not, and that it never stays behind."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from reprise.model.execution import Execution, current_execution, executing, in_this_execution
from resources.deadline import Deadline

ANN = Execution(execution_id="e1", run_id="r1", initiator_id="ann")
BEN = Execution(execution_id="e2", run_id="r2", initiator_id="ben")


def in_a_thread(work: Callable[[], object]) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_there_is_none_outside_and_after_one() -> None:
    assert current_execution() is None
    with executing(ANN):
        assert current_execution() == ANN
        with executing(BEN):
            assert current_execution() == BEN
        assert current_execution() == ANN
    assert current_execution() is None


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(KeyboardInterrupt), executing(ANN):
        raise KeyboardInterrupt
    assert current_execution() is None


def test_a_thread_has_none_unless_it_is_handed_over() -> None:
    with executing(ANN):
        assert in_a_thread(current_execution) is None
        carried = in_this_execution(current_execution)
    assert in_a_thread(carried) == ANN
    assert current_execution() is None


def test_a_pool_that_many_executions_share_mixes_none_up() -> None:
    everybody = threading.Barrier(4, timeout=20)

    def meet() -> Execution | None:
        everybody.wait()
        return current_execution()

    with ThreadPoolExecutor(4) as pool:
        for turn in range(20):
            ids = [f"{turn}-{place}" for place in range(4)]
            futures = []
            for name in ids:
                with executing(Execution(execution_id=name, run_id=name, initiator_id=name)):
                    futures.append(pool.submit(in_this_execution(meet)))
            found = [future.result(20) for future in futures]
            assert [each.initiator_id for each in found if each is not None] == ids
        everybody.reset()
        assert list(pool.map(lambda _: current_execution(), range(4))) == [None] * 4


def test_a_call_under_a_deadline_belongs_to_the_caller_and_leaves_nothing_to_the_next() -> None:
    deadline = Deadline("the store")
    threads: list[object] = []

    def look() -> Execution | None:
        threads.append(threading.current_thread())
        return current_execution()

    with executing(ANN):
        assert deadline.call(look, 20) == ANN
    assert deadline.call(look, 20) is None
    with executing(BEN):
        assert deadline.call(look, 20) == BEN
    assert len(set(threads)) == 1


def test_tasks_and_their_threads_keep_the_execution_of_who_made_them() -> None:
    async def of(execution: Execution) -> list[Execution | None]:
        with executing(execution):
            task = asyncio.create_task(look())
            return [await task, await asyncio.to_thread(current_execution)]

    async def look() -> Execution | None:
        await asyncio.sleep(0)
        return current_execution()

    async def both() -> list[list[Execution | None]]:
        return list(await asyncio.gather(of(ANN), of(BEN)))

    assert asyncio.run(both()) == [[ANN, ANN], [BEN, BEN]]
