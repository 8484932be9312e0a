"""Every exit of the agent loop, driven by the scripted provider."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from reprise import ports
from reprise.agents.loop import AgentTask, LoopLimits, end_of, usage_of
from reprise.errors import AnswerInvalid, Cancelled, LimitReached, ProviderError
from reprise.model.agent import AgentDefinition, ToolChoice, ToolGroup
from reprise.model.conversation import (
    AgentInputs,
    ModelReply,
    ModelRequest,
    PriorOutput,
    ProjectDocument,
    ToolCall,
)
from reprise.model.result import LoopEnd, Usage
from resources.scripted_provider import ScriptedProvider
from resources.tool_modes import LenientProvider
from tests.agent_loop import run_agent
from tests.analyses import talk

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["title"],
    "properties": {"title": {"type": "string", "maxLength": 10}},
}
ONE_CALL = Usage(input_uncached=10, output=5, calls=1)


class FakeClock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def agent(**changes: Any) -> AgentDefinition:
    values: dict[str, Any] = {
        "id": "titler",
        "agent_type": "titler",
        "system_prompt": "Give a title.",
        "output_schema_name": "title",
        "output_schema": SCHEMA,
    }
    return AgentDefinition.model_validate({**values, **changes})


def task(**changes: Any) -> AgentTask:
    return AgentTask(**{"agent": agent(), **changes})


def reply(text: str = "", **changes: Any) -> ModelReply:
    values: dict[str, Any] = {
        "text": text,
        "finish_reason": "stop",
        "usage": ONE_CALL,
        "model": "scripted-1",
    }
    return ModelReply(**{**values, **changes})


def call(name: str, arguments: str = "{}", number: int = 1) -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments=arguments)


def never() -> bool:
    return False


def test_an_answer_that_fits_is_returned_with_its_usage() -> None:
    answer = run_agent(task(), ScriptedProvider(['{"title": "Go"}']), cancelled=never)
    assert answer.output == {"title": "Go"}
    assert answer.usage == ONE_CALL
    assert (answer.model, answer.turns, answer.retries, answer.notes) == ("scripted-1", 1, 0, ())
    assert answer.ended is LoopEnd.ANSWERED


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"title": "Go"}\n```',
        'Here you are:\n\n{"title": "Go"}\n\nDo you like it?',
        '<think>{"title": 3}</think>{"title": "Go"}',
        '\ufeff{"title": "Go"}',
        'Not {this} but [that]: {"title": "Go"}',
    ],
)
def test_prose_fences_and_thoughts_around_the_answer_are_taken_off(text: str) -> None:
    assert run_agent(task(), ScriptedProvider([text]), cancelled=never).output == {"title": "Go"}


def test_an_agent_without_a_schema_answers_in_text() -> None:
    free = agent(output_schema=None, output_schema_name=None)
    answer = run_agent(task(agent=free), ScriptedProvider(["Just so."]), cancelled=never)
    assert answer.output == "Just so."


def test_the_prompt_holds_skills_schema_input_request_figures_and_task_in_this_order() -> None:
    provider = ScriptedProvider(['{"title": "Go"}'])
    skilled = agent(assigned_skills=("Be short.", "Be kind."))
    inputs = AgentInputs(user_request="A film about trees", parameters={"target_seconds": 20})
    run_agent(
        task(
            agent=skilled, resolved_input="## Step 1: analyze\n{}", task="Name it.", inputs=inputs
        ),
        provider,
        cancelled=never,
    )
    request = provider.requests[0]
    assert request.system_prompt == (
        "Give a title.\n\nBe short.\n\nBe kind.\n\n## Form of the answer\n\n"
        "Answer with one JSON value and nothing before or after it. It must fit this JSON Schema:"
        "\n\n" + json.dumps(SCHEMA) + "\n"
    )
    assert [message.content for message in request.messages] == [
        "# Input\n\n## Step 1: analyze\n{}\n\n# Request of the user\n\nA film about trees\n\n"
        '# Figures\n\n{"target_seconds": 20}\n\n# Task\n\nName it.'
    ]


def test_a_violation_is_sent_back_and_the_repair_replaces_the_bad_turn() -> None:
    provider = ScriptedProvider(['{"title": 1}', '{"title": "far too long"}', '{"title": "Go"}'])
    answer = run_agent(task(), provider, cancelled=never)
    assert answer.output == {"title": "Go"}
    assert answer.usage == Usage(input_uncached=30, output=15, calls=3)
    assert answer.notes == ("the answer fitted its schema after 2 corrections",)
    last = provider.requests[2].messages
    assert [message.role for message in last] == ["user", "assistant", "user"]
    assert last[1].content == '{"title": "far too long"}'
    assert "$.title: 'far too long' is too long" in last[2].content


def test_an_answer_that_stays_wrong_fails_with_what_was_spent() -> None:
    provider = ScriptedProvider(["no", "no", "no", '{"title": "Go"}'])
    with pytest.raises(AnswerInvalid, match="after 2 corrections: it holds no complete JSON") as e:
        run_agent(task(), provider, cancelled=never)
    assert usage_of(e.value) == Usage(input_uncached=30, output=15, calls=3)
    assert end_of(e.value) is LoopEnd.ANSWER_INVALID
    assert len(provider.requests) == 3


NAMED: dict[str, JsonValue] = {
    "type": "object",
    "required": ["sentence"],
    "properties": {"sentence": {"type": "string", "maxLength": 16, "format": "sentence-id"}},
}


def naming_task(**changes: Any) -> AgentTask:
    """A task whose answer names a sentence of footage that has two."""
    output = talk(lines=[("Hi.", 1.0), ("Bye.", 1.0)]).model_dump(mode="json")
    prior = PriorOutput(order=1, label="look", type="VideoAnalyze", output=output)
    return task(agent=agent(output_schema=NAMED), inputs=AgentInputs(prior=(prior,)), **changes)


def test_an_id_that_does_not_exist_is_sent_back_with_those_that_do() -> None:
    provider = ScriptedProvider(['{"sentence": "v7.t001"}', '{"sentence": "v1.t002"}'])
    answer = run_agent(naming_task(), provider, cancelled=never)
    assert answer.output == {"sentence": "v1.t002"}
    assert "'v7.t001' is not one of ['v1.t001', 'v1.t002']" in (
        provider.requests[1].messages[-1].content
    )


def test_an_endpoint_that_decodes_by_the_schema_gets_the_ids_that_exist() -> None:
    provider = ScriptedProvider(['{"sentence": "v1.t002"}'])
    run_agent(naming_task(), provider, cancelled=never)
    (request,) = provider.requests
    assert request.output_schema is not None
    assert json.loads(json.dumps(request.output_schema))["properties"]["sentence"] == {
        "type": "string",
        "enum": ["v1.t001", "v1.t002"],
    }
    # The prompt is the same for all footage, so that prefix caches know it.
    assert '"format": "sentence-id"' in request.system_prompt
    assert "v1.t002" not in request.system_prompt


CUTS: dict[str, JsonValue] = {
    "type": "object",
    "required": ["cuts"],
    "additionalProperties": False,
    "properties": {
        "cuts": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {"type": "string", "format": "sentence-id"},
        },
        "score": {"type": "number", "minimum": 0, "maximum": 10},
    },
}


def cutting_task() -> AgentTask:
    """A task whose answer names sentences of footage that has two."""
    return naming_task().model_copy(update={"agent": agent(output_schema=CUTS)})


def test_an_answer_that_stays_beyond_its_bounds_or_names_nothing_fails() -> None:
    for wrong in ('{"cuts": ["v1.t001"], "score": 99}', '{"cuts": ["v7.t001"]}'):
        with pytest.raises(AnswerInvalid, match="after 2 corrections") as caught:
            run_agent(cutting_task(), ScriptedProvider([wrong] * 3), cancelled=never)
        assert end_of(caught.value) is LoopEnd.ANSWER_INVALID


def test_where_it_is_asked_for_a_wrong_answer_is_mended_and_the_note_says_how() -> None:
    wrong = '{"cuts": ["zz", "v1.t002", "ww"], "score": 99, "junk": 1}'
    inner = ScriptedProvider([wrong] * 3)
    answer = run_agent(cutting_task(), LenientProvider(inner), cancelled=never)
    assert answer.output == {"cuts": ["v1.t002"], "score": 10}
    assert answer.turns == 3
    (note,) = answer.notes
    assert note.startswith("the answer broke its schema after 2 corrections and was mended")
    for change in ('"ww", which there is not', '"zz"', "99 became its bound 10", '"junk"'):
        assert change in note


@pytest.mark.parametrize("wrong", ['{"cuts": ["zz", "yy"]}', '{"cuts": 7}', "none"])
def test_what_cannot_be_mended_fails_in_any_case(wrong: str) -> None:
    provider = LenientProvider(ScriptedProvider([wrong] * 3))
    with pytest.raises(AnswerInvalid, match="after 2 corrections"):
        run_agent(cutting_task(), provider, cancelled=never)


def test_a_cut_answer_is_an_error_even_when_it_parses() -> None:
    provider = ScriptedProvider([reply('{"title": "Go"}', finish_reason="length")])
    with pytest.raises(AnswerInvalid, match="raise `max_output_tokens`") as caught:
        run_agent(task(), provider, cancelled=never)
    assert usage_of(caught.value) == ONE_CALL
    assert end_of(caught.value) is LoopEnd.ANSWER_CUT


def test_a_refused_answer_is_an_error() -> None:
    provider = ScriptedProvider([reply("", finish_reason="content_filter")])
    with pytest.raises(AnswerInvalid, match="content filter") as caught:
        run_agent(task(), provider, cancelled=never)
    assert end_of(caught.value) is LoopEnd.ANSWER_REFUSED


def test_an_unknown_finish_reason_is_noted() -> None:
    provider = ScriptedProvider([reply('{"title": "Go"}', finish_reason="other")])
    answer = run_agent(task(), provider, cancelled=never)
    assert answer.notes == ("the endpoint did not say why the answer ended",)


def test_tools_of_the_agents_groups_are_offered_and_run() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    inputs = AgentInputs(documents=(ProjectDocument(name="brief.md", text="Title: Go"),))
    provider = ScriptedProvider(
        [
            reply(tool_calls=(call("read_project_file", '{"name": "brief.md"}'),)),
            '{"title": "Go"}',
        ]
    )
    answer = run_agent(task(agent=reader, inputs=inputs), provider, cancelled=never)
    assert answer.turns == 2
    offered = [tool.name for tool in provider.requests[0].tools]
    assert offered == [
        "list_project_files",
        "read_project_file",
        "read_project_transcript",
        "search_project_files",
    ]
    result = provider.requests[1].messages[-1]
    assert result.tool_call_id == "call_1"
    assert json.loads(result.content)["text"] == "Title: Go"


def test_a_tool_outside_the_groups_is_neither_offered_nor_run() -> None:
    inputs = AgentInputs(documents=(ProjectDocument(name="brief.md", text="secret"),))
    provider = ScriptedProvider(
        [
            reply(tool_calls=(call("read_project_file", '{"name": "brief.md"}'),)),
            '{"title": "Go"}',
        ]
    )
    run_agent(task(inputs=inputs), provider, cancelled=never)
    assert provider.requests[0].tools == ()
    result = json.loads(provider.requests[1].messages[-1].content)
    assert result == {
        "ok": False,
        "error": "there is no tool 'read_project_file' for you; your tools are: none; "
        "answer without tools",
    }


def test_a_broken_tool_call_is_answered_and_not_raised() -> None:
    reader = agent(tool_groups=[ToolGroup.PROJECT_READ])
    provider = ScriptedProvider(
        [reply(tool_calls=(call("read_project_file", "{broken"),)), '{"title": "Go"}']
    )
    assert run_agent(task(agent=reader), provider, cancelled=never).output == {"title": "Go"}
    assert json.loads(provider.requests[1].messages[-1].content)["ok"] is False


def test_too_many_calls_at_once_are_answered_with_an_error() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    calls = tuple(call("list_project_files", number=number) for number in range(1, 4))
    provider = ScriptedProvider([reply(tool_calls=calls), '{"title": "Go"}'])
    run_agent(task(agent=reader, limits=LoopLimits(tool_calls_max=2)), provider, cancelled=never)
    results = [json.loads(m.content)["ok"] for m in provider.requests[1].messages[-3:]]
    assert results == [True, True, False]


def test_the_loop_ends_after_its_turns() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    provider = ScriptedProvider([reply(tool_calls=(call("list_project_files"),))] * 20)
    with pytest.raises(LimitReached, match=r"no answer within 12 turns \(turns_max\)") as caught:
        run_agent(task(agent=reader), provider, cancelled=never)
    assert len(provider.requests) == 12
    assert usage_of(caught.value).calls == 12
    assert end_of(caught.value) is LoopEnd.TURNS


def test_the_last_turn_is_for_the_answer() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    calls = [reply(tool_calls=(call("list_project_files"),))] * 2
    provider = ScriptedProvider([*calls, '{"title": "Go"}'])
    answer = run_agent(
        task(agent=reader, limits=LoopLimits(turns_max=3)), provider, cancelled=never
    )
    assert answer.output == {"title": "Go"}
    assert [request.tool_choice for request in provider.requests] == [None, None, ToolChoice.NONE]


def test_the_loop_ends_once_its_tokens_are_spent() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    provider = ScriptedProvider([reply(tool_calls=(call("list_project_files"),))] * 20)
    with pytest.raises(LimitReached, match=r"45 tokens spent without an answer.*40") as caught:
        run_agent(task(agent=reader, limits=LoopLimits(tokens_max=40)), provider, cancelled=never)
    assert end_of(caught.value) is LoopEnd.TOKENS
    assert len(provider.requests) == 3


def test_the_loop_ends_after_its_seconds() -> None:
    clock = FakeClock()

    class Slow(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            clock.now += 6
            return super().complete(*args, **kwargs)

    provider = Slow(["no", "no", "no"])
    with pytest.raises(LimitReached, match="no answer within 10 seconds") as caught:
        run_agent(task(limits=LoopLimits(seconds_max=10)), provider, cancelled=never, clock=clock)
    assert end_of(caught.value) is LoopEnd.SECONDS
    assert [request.timeout_seconds for request in provider.requests] == [10.0, 4.0]


def test_a_call_that_runs_into_the_loops_last_second_is_the_loops_end() -> None:
    clock = FakeClock()

    class Silent(ScriptedProvider):
        def complete(self, request: ModelRequest, *, cancelled: ports.Cancelled) -> ModelReply:
            clock.now += request.timeout_seconds
            message = "no answer in time"
            raise ProviderError(message, transient=True)

    bounds = LoopLimits(seconds_max=10, call_seconds_max=6)
    with pytest.raises(LimitReached, match="no answer within 10 seconds") as caught:
        run_agent(task(limits=bounds), Silent([]), cancelled=never, clock=clock)
    assert end_of(caught.value) is LoopEnd.SECONDS


def costing(micros: int | None) -> ModelReply:
    usage = ONE_CALL.model_copy(update={"cost_micros": micros})
    return reply(tool_calls=(call("list_project_files"),), usage=usage)


def test_the_loop_ends_once_its_money_is_spent() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    provider = ScriptedProvider([costing(40_000)] * 5)
    bounds = LoopLimits(cost_usd_max=0.1)
    with pytest.raises(LimitReached, match=r"\$0.1200 spent .* the bound is \$0.1 ") as caught:
        run_agent(task(agent=reader, limits=bounds), provider, cancelled=never)
    assert end_of(caught.value) is LoopEnd.COST
    assert usage_of(caught.value).cost_micros == 120_000
    assert len(provider.requests) == 3


def test_a_bound_on_money_needs_a_price() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    bounds = LoopLimits(cost_usd_max=0.1)
    with pytest.raises(LimitReached, match="what the calls cost is unknown") as caught:
        run_agent(
            task(agent=reader, limits=bounds),
            ScriptedProvider([costing(None)] * 2),
            cancelled=never,
        )
    assert end_of(caught.value) is LoopEnd.COST


def test_without_a_bound_an_unknown_price_ends_nothing() -> None:
    reader = agent(tool_groups=["ProjectRead"])
    provider = ScriptedProvider([costing(None), '{"title": "Go"}'])
    answer = run_agent(task(agent=reader), provider, cancelled=never)
    assert answer.usage.cost_micros is None


def test_what_a_failed_attempt_took_counts() -> None:
    broken = ProviderError("the stream broke", transient=True)
    broken.usage = Usage(input_uncached=7, output=3)
    answer = run_agent(
        task(), ScriptedProvider([broken, '{"title": "Go"}']), cancelled=never, clock=FakeClock()
    )
    assert answer.usage == Usage(input_uncached=17, output=8, calls=1)


def test_a_foreign_error_carries_what_was_spent_before_it() -> None:
    class Faulty(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            given = super().complete(*args, **kwargs)
            if len(self.requests) == 2:
                message = "a fault in an adapter"
                raise ValueError(message)
            return given

    with pytest.raises(ValueError, match="a fault") as caught:
        run_agent(task(), Faulty(["no", "no"]), cancelled=never)
    assert usage_of(caught.value) == ONE_CALL
    assert end_of(caught.value) is LoopEnd.FAULT


def test_an_agents_own_bounds_go_before_the_settings() -> None:
    own = agent(limits={"turns_max": 3, "cost_usd_max": 0.5}).limits
    given = LoopLimits(turns_max=9, tokens_max=1000)
    assert own.over(given) == LoopLimits(turns_max=3, tokens_max=1000, cost_usd_max=0.5)


def test_a_passing_failure_is_tried_again_with_growing_pauses() -> None:
    clock = FakeClock()
    busy = ProviderError("busy", transient=True)
    provider = ScriptedProvider([busy, busy, busy, '{"title": "Go"}'])
    answer = run_agent(task(), provider, cancelled=never, clock=clock)
    assert (answer.retries, answer.turns) == (3, 1)
    assert clock.now == pytest.approx(0.5 + 1.0 + 2.0)


def test_retry_after_is_honoured_to_the_second() -> None:
    clock = FakeClock()
    provider = ScriptedProvider(
        [ProviderError("slow down", transient=True, retry_after_seconds=7), '{"title": "Go"}']
    )
    run_agent(task(), provider, cancelled=never, clock=clock)
    assert clock.now == pytest.approx(7.0)


def test_a_retry_after_that_is_too_long_ends_the_loop() -> None:
    clock = FakeClock()
    late = ProviderError("come back tomorrow", transient=True, retry_after_seconds=3600)
    with pytest.raises(ProviderError, match="come back tomorrow; it asks to wait 3600 s") as caught:
        run_agent(task(), ScriptedProvider([late, "x"]), cancelled=never, clock=clock)
    assert clock.now == 0
    assert not caught.value.transient


def test_attempts_are_bounded() -> None:
    provider = ScriptedProvider([ProviderError("busy", transient=True)] * 9)
    with pytest.raises(ProviderError, match="busy"):
        run_agent(task(), provider, cancelled=never, clock=FakeClock())
    assert len(provider.requests) == 5


def test_a_final_failure_is_not_tried_again() -> None:
    provider = ScriptedProvider([ProviderError("wrong key"), '{"title": "Go"}'])
    with pytest.raises(ProviderError, match="wrong key") as caught:
        run_agent(task(), provider, cancelled=never, clock=FakeClock())
    assert end_of(caught.value) is LoopEnd.PROVIDER
    assert len(provider.requests) == 1


def test_a_stopped_run_ends_before_the_next_call() -> None:
    provider = ScriptedProvider(["no", '{"title": "Go"}'])
    with pytest.raises(Cancelled) as caught:
        run_agent(task(), provider, cancelled=lambda: len(provider.requests) == 1)
    assert usage_of(caught.value) == ONE_CALL
    assert end_of(caught.value) is LoopEnd.CANCELLED


def test_a_pause_ends_when_the_run_is_stopped() -> None:
    clock = FakeClock()
    provider = ScriptedProvider(
        [ProviderError("slow down", transient=True, retry_after_seconds=50), '{"title": "Go"}']
    )
    with pytest.raises(Cancelled):
        run_agent(task(), provider, cancelled=lambda: clock.now > 1, clock=clock)
    assert clock.now < 1.3


def test_usage_of_an_error_that_carries_none_is_nothing() -> None:
    assert usage_of(ValueError("x")) == Usage()


def choices(choice: ToolChoice | None, groups: list[str]) -> list[ToolChoice | None]:
    provider = ScriptedProvider(
        [reply(tool_calls=(call("list_project_files"),)), "no", '{"title": "Go"}']
    )
    chooser = agent(tool_groups=groups, tool_choice=choice)
    run_agent(task(agent=chooser), provider, cancelled=never)
    return [request.tool_choice for request in provider.requests]


def test_a_required_tool_is_required_until_one_was_called() -> None:
    required, auto = ToolChoice.REQUIRED, ToolChoice.AUTO
    assert choices(required, ["ProjectRead"]) == [required, auto, auto]
    assert choices(ToolChoice.NONE, ["ProjectRead"]) == [ToolChoice.NONE] * 3
    assert choices(None, ["ProjectRead"]) == [None] * 3
    assert choices(auto, []) == [None] * 3
