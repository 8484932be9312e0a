"""Rules that use tools: what such a rule is, and how one is played against a conversation.

A rule is a generator. It yields the calls of a turn, gets their answers, and returns its own
answer in the end:

    def greeter(desk: Desk) -> Dialogue:
        (listed,) = yield [Ask("ListSandboxFiles")]
        return {"count": len(rows(listed, "files"))}

A provider keeps nothing between two calls, so the rule is played from its beginning each time: what
was asked before is answered from the conversation, and the first turn without answers is the next
one. Rules are deterministic, so the calls of a turn always have the same ids.

A call of a tool that is not offered, and any call when none can be made any more, is answered right
here with `"ok": false`; a rule goes on to its answer and says there what it could not do.

Source: specification A3, A5.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from reprise.errors import ProviderError
from reprise.model.agent import ToolChoice
from reprise.model.conversation import AgentInputs, ModelRequest, ToolCall

TURNS_MAX = 24
"""No rule needs more turns; one that takes more does not end."""


@dataclass(frozen=True)
class Ask:
    """A call of a tool."""

    tool: str
    """The tool."""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    """Its arguments."""


@dataclass(frozen=True)
class Desk:
    """What a rule has before it."""

    inputs: AgentInputs
    """The inputs as values."""
    tools: frozenset[str]
    """The tools that are offered."""


@dataclass(frozen=True)
class Move:
    """What a rule does next."""

    calls: tuple[ToolCall, ...] = ()
    """Tools to be used."""
    answer: JsonValue = None
    """The answer, where no tool is to be used."""


Answer = Mapping[str, JsonValue]
"""What a tool answered."""

Dialogue = Generator[Sequence[Ask], Sequence[Answer], JsonValue]
"""A rule at work."""

ToolRule = Callable[[Desk], Dialogue]
"""A rule that uses tools."""


def next_move(rule: ToolRule, request: ModelRequest) -> Move:
    """Return what a rule does, the conversation being what it is.

    Raises:
        ProviderError: The rule does not end.
        InputUnresolved: The inputs lack what the rule reads.
    """
    desk = Desk(request.inputs, frozenset(schema.name for schema in request.tools))
    results = {
        message.tool_call_id: message.content
        for message in request.messages
        if message.role == "tool" and message.tool_call_id is not None
    }
    may_call = request.tool_choice is not ToolChoice.NONE
    dialogue = rule(desk)
    answers: Sequence[Answer] | None = None
    for turn in range(TURNS_MAX):
        try:
            asks = next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration as end:
            return Move(answer=end.value)
        names = [f"rule-{turn}-{place}" for place in range(len(asks))]
        calls = tuple(
            ToolCall(id=name, name=ask.tool, arguments=_json(ask.arguments))
            for name, ask in zip(names, asks, strict=True)
            if ask.tool in desk.tools and name not in results
        )
        if calls and may_call:
            return Move(calls=calls)
        answers = [
            _answer(results[name]) if name in results else _refusal(ask, desk)
            for name, ask in zip(names, asks, strict=True)
        ]
    message = f"the rule took more than {TURNS_MAX} turns"
    raise ProviderError(message)


def _json(value: Mapping[str, JsonValue]) -> str:
    return json.dumps(dict(value), ensure_ascii=False)


def _answer(text: str) -> Answer:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"ok": False, "error": "the result is no JSON"}


def _refusal(ask: Ask, desk: Desk) -> Answer:
    if ask.tool not in desk.tools:
        return {"ok": False, "code": "not_offered", "error": f"{ask.tool} is not offered here"}
    return {"ok": False, "code": "no_more_calls", "error": "no tool can be called any more"}
