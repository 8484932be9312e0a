"""The loop that turns an agent's task into an answer: calls, tools, checks, repairs, all bounded.

A turn is a call that got a reply. Tools lead to the next turn; an answer that does not fit its
schema is sent back, in place of the one before it, at most `repairs_max` times; an endpoint that
fails in passing is tried again after a pause. Usage counts every reply, and what an endpoint tells
of a failed attempt; when the loop fails, the error carries it as `usage` and the reason as `ended`.

Source: specification A1 to A4. Tests: tests/unit/agents/test_loop.py drives every exit.
"""

from collections.abc import Sequence

from pydantic import Field, JsonValue

from reprise.agents.answer_mending import mended
from reprise.agents.answer_schema import answer_schema, sent_schema
from reprise.agents.answers import ReadAnswer, problems_of, read_answer
from reprise.agents.context_room import ContextRoom
from reprise.agents.history import repaired, thinned
from reprise.agents.loop_ends import (
    add_usage,
    asks_too_long,
    because,
    end_by_kind,
    end_of,
    too_long_a_pause,
    usage_of,
)
from reprise.agents.messages import (
    AgentTask,
    repair_messages,
    system_prompt,
    tool_messages,
    user_message,
    written_calls,
)
from reprise.errors import AnswerInvalid, LimitReached, ProviderError, StepFailed
from reprise.errors import Cancelled as RunCancelled
from reprise.model.agent import LoopLimits, ToolChoice
from reprise.model.base import Value
from reprise.model.conversation import Message, ModelReply, ModelRequest
from reprise.model.result import LoopEnd, Usage
from reprise.ports import Cancelled, Clock, ModelProvider
from reprise.tools.access import ToolAccess
from reprise.tools.toolbox import Toolbox

__all__ = [
    "AgentAnswer",
    "AgentTask",
    "LoopLimits",
    "add_usage",
    "end_of",
    "run_agent",
    "usage_of",
]

LOOP_REVISION = "6"
"""Part of every agent's cache key; bump it when the frame around a prompt, the loop or the default
of one of its bounds changes."""

BACKOFF_SECONDS = 0.5
"""First pause before another attempt; it doubles from attempt to attempt."""

BACKOFF_SECONDS_MAX = 8.0
"""Longest pause that the loop takes of its own accord."""

NOTED_WAIT_SECONDS = 1.0
"""A shorter wait for a rate limit is not worth a word."""

CALLED_ANYWAY = "it calls a tool, and no tool can be called now"
"""What is wrong with an answer that should have been one."""

POLL_SECONDS = 0.1
"""How often a pause looks whether the run is being stopped."""


class AgentAnswer(Value):
    """What an agent answered."""

    output: JsonValue
    """The validated value; text for an agent without a schema."""
    usage: Usage
    """What all calls took."""
    model: str
    """The model that answered last."""
    turns: int = Field(ge=1)
    """Calls that got a reply."""
    retries: int = Field(default=0, ge=0)
    """Attempts beyond the first, over all calls."""
    ended: LoopEnd = LoopEnd.ANSWERED
    """Why the loop ended."""
    notes: tuple[str, ...] = ()
    """What a person should know."""


def run_agent(
    task: AgentTask,
    provider: ModelProvider,
    *,
    cancelled: Cancelled,
    clock: Clock,
    tools: Toolbox | None = None,
) -> AgentAnswer:
    """Return an agent's answer to its task.

    Args:
        task: What is to be done, by whom, within which bounds.
        provider: Who answers.
        cancelled: Asked before each call and during pauses.
        clock: Time for bounds and pauses.
        tools: The agent's tools; None takes those of its groups, over the task's inputs alone.

    Raises:
        AnswerInvalid: The answer was cut, refused, or does not fit its schema after the repairs.
        LimitReached: Too many turns, tokens, seconds or dollars.
        ProviderError: The endpoint failed for good.
        Cancelled: The run is being stopped.
        Each carries in `usage` what was spent, and in `ended` why it ended.
    """
    tools = tools or Toolbox(task.agent.tool_groups, ToolAccess(task.inputs))
    loop = _Loop(task, provider, cancelled, clock, tools)
    try:
        return loop.run()
    except BaseException as error:
        # Foreign errors carry it too: what is spent is spent, whoever is at fault.
        error.__dict__.update(usage=loop.usage, ended=end_of(error) or end_by_kind(error))
        raise


class _Loop:
    """One run of the loop."""

    def __init__(
        self,
        task: AgentTask,
        provider: ModelProvider,
        cancelled: Cancelled,
        clock: Clock,
        tools: Toolbox,
    ) -> None:
        self.usage = Usage()
        self._task = task
        self._limits = task.limits
        self._provider = provider
        self._lenient = provider.identity().lenient
        self._cancelled = cancelled
        self._clock = clock
        self._began = clock.monotonic()
        self._tools = tools
        self._schema = answer_schema(task.agent.output_schema, task.inputs.prior)
        self._opening = ModelRequest(
            agent=task.agent,
            system_prompt=system_prompt(task.agent),
            messages=(*repaired(task.history), user_message(task)),
            tools=tools.schemas,
            output_schema=sent_schema(self._schema),
            inputs=task.inputs,
        )
        self._room = ContextRoom(provider.context_tokens, self._opening)
        self._turns = 0
        self._retries = 0
        self._repairs = 0
        self._waited_seconds = 0.0
        self._notes: list[str] = []
        self._tools_were_used = False

    def run(self) -> AgentAnswer:
        messages = self._opening.messages
        repair: tuple[Message, ...] = ()
        while True:
            may_call = self._tool_choice is not ToolChoice.NONE
            reply = self._turn(messages + repair)
            if reply.tool_calls and not may_call:
                repair = self._repair(written_calls(reply), (CALLED_ANYWAY,))
                continue
            if reply.tool_calls:
                messages += repair
                turn = tool_messages(reply, self._tool_results(reply))
                messages += self._room.fitted(messages, turn)
                repair = ()
                continue
            if reply.finish_reason == "other":
                self._note("the endpoint did not say why the answer ended")
            if self._schema is None:
                return self._answer(reply, reply.text)
            read = self._read(reply.text, self._schema)
            if not read.problems:
                return self._answer(reply, read.value)
            repair = self._repair(reply.text, read.problems)

    def _read(self, text: str, schema: dict[str, JsonValue]) -> ReadAnswer:
        """Return the answer; after the last correction, a mended one where the settings ask so."""
        read = read_answer(text, schema)
        if not read.problems:
            if self._repairs:
                self._note(f"the answer fitted its schema after {self._repairs} corrections")
            return read
        if not self._lenient or self._repairs < self._limits.repairs_max:
            return read
        changed = mended(read.value, schema)
        if changed is None or problems_of(changed.value, schema):
            return read
        self._note(
            f"the answer broke its schema after {self._repairs} corrections and was mended "
            f"(lenient): {changed.told()}"
        )
        return ReadAnswer(changed.value)

    def _answer(self, reply: ModelReply, output: JsonValue) -> AgentAnswer:
        if self._repairs and self._schema is None:
            self._note(f"the answer could be used after {self._repairs} corrections")
        if self._waited_seconds >= NOTED_WAIT_SECONDS:
            self._note(f"calls waited {self._waited_seconds:.0f} s for the provider's rate limit")
        return AgentAnswer(
            output=output,
            usage=self.usage,
            model=reply.model,
            turns=self._turns,
            retries=self._retries,
            notes=tuple(self._notes),
        )

    def _turn(self, messages: tuple[Message, ...]) -> ModelReply:
        self._check_limits()
        reply = self._call(messages)
        self._turns += 1
        self.usage += reply.usage
        self._waited_seconds += reply.waited_seconds
        self._room.learn(messages, reply.usage.tokens - reply.usage.output)
        # Before anything is parsed: a cut answer may well be valid JSON up to where it was cut.
        if reply.finish_reason == "length":
            limit = self._task.agent.parameters.max_output_tokens
            message = (
                f"{self._who}: the answer was cut after {reply.usage.output} tokens; raise "
                f"`max_output_tokens` (now {limit}) in the agent's parameters"
            )
            raise because(LoopEnd.ANSWER_CUT, AnswerInvalid(message))
        if reply.finish_reason == "content_filter":
            message = (
                f"{self._who}: the endpoint's content filter refused the answer; look at the "
                "request and the material, or choose another model"
            )
            raise because(LoopEnd.ANSWER_REFUSED, AnswerInvalid(message))
        return reply

    def _call(self, messages: tuple[Message, ...]) -> ModelReply:
        attempt = 1
        while True:
            try:
                return self._provider.complete(self._request(messages), cancelled=self._cancelled)
            except ProviderError as error:
                self.usage += usage_of(error)
                if error.transient:
                    self._check_limits()
                pause = self._pause(error, attempt)
                if pause is None and asks_too_long(error):
                    raise too_long_a_pause(error) from error
                if pause is None:
                    raise
                attempt += 1
                self._retries += 1
                self._wait(pause)
                self._check_limits()

    def _request(self, messages: tuple[Message, ...]) -> ModelRequest:
        # A copy, not a new one: system prompt, tools and schema stay the same objects, so that they
        # too are converted once.
        seconds = max(0.001, min(self._limits.call_seconds_max, self._seconds_left()))
        changes = {
            "messages": thinned(messages),
            "timeout_seconds": seconds,
            "tool_choice": self._tool_choice,
        }
        return self._opening.model_copy(update=changes)

    def _pause(self, error: ProviderError, attempt: int) -> float | None:
        """Return how long to wait before the next attempt; None when there is to be none."""
        is_last = attempt >= self._limits.attempts_max
        if not error.transient or is_last or asks_too_long(error):
            return None
        if error.retry_after_seconds is not None:
            pause = max(0.0, error.retry_after_seconds)
        else:
            pause = min(BACKOFF_SECONDS * 2 ** (attempt - 1), BACKOFF_SECONDS_MAX)
        return pause if pause < self._seconds_left() else None

    def _wait(self, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            self._check_cancelled()
            self._clock.sleep(min(left, POLL_SECONDS))

    def _tool_results(self, reply: ModelReply) -> Sequence[str]:
        results = []
        for at, call in enumerate(reply.tool_calls):
            self._check_cancelled()
            if at >= self._limits.tool_calls_max:
                error = f"more than {self._limits.tool_calls_max} calls at once; call it again"
                results.append(f'{{"ok": false, "error": "{error}"}}')
                continue
            results.append(self._tools.run(call.name, call.arguments))
        self._tools_were_used = True
        return results

    @property
    def _tool_choice(self) -> ToolChoice | None:
        """What the model is told of its tools; `required` is met by the first calls.

        The last turn is for the answer: a model that would go on calling has to give one.
        """
        choice = self._task.agent.tool_choice
        if not self._opening.tools:
            return None
        if self._tools_were_used and self._turns + 1 == self._limits.turns_max:
            return ToolChoice.NONE
        if choice is None:
            return None
        met = choice is ToolChoice.REQUIRED and self._tools_were_used
        return ToolChoice.AUTO if met else choice

    def _repair(self, text: str, problems: Sequence[str]) -> tuple[Message, ...]:
        """Return what the model is told of an answer that cannot be used, while it may correct it.

        Raises:
            AnswerInvalid: It was told often enough.
        """
        has_schema = self._schema is not None
        if self._repairs >= self._limits.repairs_max:
            name = self._task.agent.output_schema_name
            what = f"does not fit its schema {name!r}" if has_schema else "cannot be used"
            message = (
                f"{self._who}: the answer {what} after {self._repairs} corrections: "
                f"{'; '.join(problems)}. Try another model, or look at the agent's prompt"
                f"{' and schema' if has_schema else ''}"
            )
            raise because(LoopEnd.ANSWER_INVALID, AnswerInvalid(message))
        self._repairs += 1
        return repair_messages(text, problems, has_schema=has_schema)

    def _check_limits(self) -> None:
        self._check_cancelled()
        limits = self._limits
        if self._turns >= limits.turns_max:
            message = f"no answer within {limits.turns_max} turns (turns_max)"
            raise self._limit(LoopEnd.TURNS, message)
        if self.usage.tokens >= limits.tokens_max:
            message = (
                f"{self.usage.tokens} tokens spent without an answer, the bound is "
                f"{limits.tokens_max} (tokens_max)"
            )
            raise self._limit(LoopEnd.TOKENS, message)
        if limits.cost_usd_max is not None:
            self._check_cost(limits.cost_usd_max)
        if self._seconds_left() <= 0:
            message = f"no answer within {limits.seconds_max:g} seconds (seconds_max)"
            raise self._limit(LoopEnd.SECONDS, message)

    def _check_cost(self, usd_max: float) -> None:
        spent = self.usage.cost_micros
        if spent is None:
            message = (
                f"a bound of ${usd_max:g} is set (cost_usd_max), and what the calls cost is "
                "unknown; set the provider's `price_input` and `price_output`, or take the bound "
                "away"
            )
            raise self._limit(LoopEnd.COST, message)
        if spent >= usd_max * 1_000_000:
            message = (
                f"${spent / 1_000_000:.4f} spent without an answer, the bound is ${usd_max:g} "
                "(cost_usd_max)"
            )
            raise self._limit(LoopEnd.COST, message)

    def _limit(self, end: LoopEnd, message: str) -> StepFailed:
        return because(end, LimitReached(f"{self._who}: {message}"))

    def _check_cancelled(self) -> None:
        if self._cancelled():
            message = f"{self._who}: the run was stopped"
            raise RunCancelled(message)

    def _seconds_left(self) -> float:
        return self._limits.seconds_max - (self._clock.monotonic() - self._began)

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    @property
    def _who(self) -> str:
        return f"Agent {self._task.agent.id!r}"
