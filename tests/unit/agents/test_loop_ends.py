"""Every way in which an agent's loop ends, and what it says and counts then."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from pydantic import JsonValue

from reprise.agents.loop import AgentAnswer, AgentTask, LoopLimits, end_of, run_agent, usage_of
from reprise.errors import ProviderError, StoreError
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.conversation import AgentInputs, ModelReply, ModelRequest, ToolCall
from reprise.model.result import LoopEnd, Usage
from reprise.ports import Cancelled, ModelProvider
from reprise.tools.access import ToolAccess
from reprise.tools.toolbox import Toolbox
from resources.scripted_provider import Script, ScriptedProvider

SCHEMA: dict[str, JsonValue] = {"type": "object", "required": ["title"]}
AGENT = AgentDefinition(
    id="titler",
    agent_type="titler",
    system_prompt="Give a title.",
    output_schema_name="title",
    output_schema=SCHEMA,
    tool_groups=frozenset({ToolGroup.PROJECT_READ}),
)
ONE_CALL = Usage(input_uncached=10, output=5, calls=1, cost_micros=1000)


class HandClock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Slow(ScriptedProvider):
    """Takes its time for each call."""

    def __init__(self, script: Script, clock: HandClock, seconds: float) -> None:
        super().__init__(script)
        self.clock = clock
        self.seconds = seconds

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        self.clock.now += self.seconds
        return super().complete(request, cancelled=cancelled)


class BrokenTools(Toolbox):
    """Tools whose store does not answer."""

    def run(self, name: str, arguments: str) -> str:
        message = "the store does not answer"
        raise StoreError(message)


class Ending(NamedTuple):
    """A script, and what it leads to."""

    end: LoopEnd
    script: Script
    said: str
    calls: int
    """Calls that got a reply."""
    limits: LoopLimits = LoopLimits()
    tools: type[Toolbox] = Toolbox
    stops_after: int | None = None
    """The run is stopped once this many requests were made."""
    is_transient: bool = False
    seconds_per_call: float = 0.0
    """How long each call takes."""
    waits: float = 0.0
    """Seconds that pass in all."""


def reply(text: str = "", *, finish: str = "stop", calls: int = 0) -> ModelReply:
    wanted = tuple(
        ToolCall(id=f"c{number}", name="list_project_files", arguments="{}")
        for number in range(calls)
    )
    return ModelReply(
        text=text, finish_reason=finish, tool_calls=wanted, usage=ONE_CALL, model="m-1"
    )


def refusal(message: str, **fields: Any) -> ProviderError:
    return ProviderError(message, **fields)


LOOKING = reply(calls=1)
GOOD = reply('{"title": "Go"}')
BUSY = {"transient": True}
ENDINGS = {
    "an answer": Ending(LoopEnd.ANSWERED, [GOOD], "", 1),
    "an answer after tools": Ending(LoopEnd.ANSWERED, [LOOKING, LOOKING, GOOD], "", 3),
    "an answer after corrections": Ending(LoopEnd.ANSWERED, [reply("no"), GOOD], "", 2),
    "an answer after 429, 5xx and a time-out": Ending(
        LoopEnd.ANSWERED,
        [
            refusal("429", retry_after_seconds=7, **BUSY),
            refusal("503", **BUSY),
            refusal("time-out", **BUSY),
            GOOD,
        ],
        "",
        1,
        waits=7 + 1 + 2,
    ),
    "corrections used up": Ending(
        LoopEnd.ANSWER_INVALID, [reply("no")] * 3, "does not fit its schema 'title'", 3
    ),
    "cut": Ending(
        LoopEnd.ANSWER_CUT, [reply('{"title": "G', finish="length")], "was cut after 5 tokens", 1
    ),
    "cut in the middle of a call": Ending(
        LoopEnd.ANSWER_CUT, [reply(finish="length", calls=1)], "was cut after 5 tokens", 1
    ),
    "refused": Ending(
        LoopEnd.ANSWER_REFUSED, [reply(finish="content_filter")], "content filter refused", 1
    ),
    "turns": Ending(
        LoopEnd.TURNS, [LOOKING] * 9, "within 3 turns", 3, limits=LoopLimits(turns_max=3)
    ),
    "tokens": Ending(
        LoopEnd.TOKENS, [LOOKING] * 9, "30 tokens spent", 2, limits=LoopLimits(tokens_max=30)
    ),
    "money": Ending(
        LoopEnd.COST, [LOOKING] * 9, "$0.0030 spent", 3, limits=LoopLimits(cost_usd_max=0.0025)
    ),
    "time": Ending(
        LoopEnd.SECONDS,
        [LOOKING] * 9,
        "within 8 seconds",
        3,
        limits=LoopLimits(seconds_max=8),
        seconds_per_call=3.0,
        waits=9,
    ),
    "time, in a call that was not answered": Ending(
        LoopEnd.SECONDS,
        [LOOKING, refusal("time-out", **BUSY)],
        "within 8 seconds",
        1,
        limits=LoopLimits(seconds_max=8),
        seconds_per_call=4.0,
        waits=8,
    ),
    "no time left for a pause": Ending(
        LoopEnd.PROVIDER,
        [refusal("429", retry_after_seconds=9, **BUSY)],
        "429",
        0,
        limits=LoopLimits(seconds_max=8),
        is_transient=True,
    ),
    "attempts used up": Ending(
        LoopEnd.PROVIDER,
        [refusal("503", **BUSY)] * 9,
        "503",
        0,
        is_transient=True,
        waits=0.5 + 1 + 2 + 4,
    ),
    "a retry after too long a pause": Ending(
        LoopEnd.PROVIDER,
        [refusal("429", retry_after_seconds=3600, **BUSY)],
        "429",
        0,
    ),
    "a final refusal": Ending(LoopEnd.PROVIDER, [LOOKING, refusal("401")], "401", 1),
    "stopped between turns": Ending(
        LoopEnd.CANCELLED, [LOOKING, GOOD], "was stopped", 1, stops_after=1
    ),
    "stopped during a pause": Ending(
        LoopEnd.CANCELLED,
        [refusal("429", retry_after_seconds=50, **BUSY), GOOD],
        "was stopped",
        0,
        stops_after=1,
    ),
    "a tool whose store is down": Ending(
        LoopEnd.FAULT,
        [LOOKING, GOOD],
        "the store does not answer",
        1,
        tools=BrokenTools,
        is_transient=True,
    ),
}


def run(
    ending: Ending, provider: ModelProvider, clock: HandClock, cancelled: Callable[[], bool]
) -> AgentAnswer:
    task = AgentTask(agent=AGENT, limits=ending.limits)
    tools = ending.tools(AGENT.tool_groups, ToolAccess(AgentInputs()))
    return run_agent(task, provider, cancelled=cancelled, clock=clock, tools=tools)


@pytest.mark.parametrize("name", ENDINGS)
def test_a_loop_says_why_it_ended_and_counts_what_it_took(name: str) -> None:
    ending = ENDINGS[name]
    clock = HandClock()
    provider = Slow(ending.script, clock, ending.seconds_per_call)

    def stopped() -> bool:
        return ending.stops_after is not None and len(provider.requests) >= ending.stops_after

    spent = sum([ONE_CALL] * ending.calls, Usage())
    if ending.end is LoopEnd.ANSWERED:
        answer = run(ending, provider, clock, stopped)
        assert (answer.ended, answer.usage, answer.turns) == (ending.end, spent, ending.calls)
    else:
        with pytest.raises(Exception, match=r".") as caught:
            run(ending, provider, clock, stopped)
        assert ending.said in str(caught.value)
        assert end_of(caught.value) is ending.end
        assert usage_of(caught.value) == spent
        assert getattr(caught.value, "transient", False) is ending.is_transient
    assert clock.now == pytest.approx(ending.waits)


def test_the_table_has_every_end() -> None:
    assert {ending.end for ending in ENDINGS.values()} == set(LoopEnd)


def test_two_loops_at_once_count_for_themselves() -> None:
    answers: list[AgentAnswer] = []

    def work() -> None:
        ending = ENDINGS["an answer after tools"]
        provider = ScriptedProvider(ending.script)
        answers.append(run(ending, provider, HandClock(), lambda: False))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [answer.usage.calls for answer in answers] == [3] * 6
