"""P9: one turn of the tool loop at a large history.

The engine's side is a turn as the loop makes it: all messages but the last two were there before.
Beside it stand the same turn made afresh (each message copied, scrubbed, checked, converted and
counted), the official SDKs' typed calls up to the transport, and what other libraries take for the
conversion alone.

Source: specification P9, M1 to M6.
"""

import copy
import json
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anthropic
import httpx2
import openai

from bench.agent_peers.turns import ARGUMENTS, PEERS, TEXT
from bench.cache_peers.environment import PeerEnvironment, run_program
from bench.interleaved import Cost, costs_in_turns, is_crowded
from reprise.agents import anthropic_requests, chat_requests
from reprise.agents.cache_marks import CacheMarks
from reprise.agents.token_estimate import estimated_tokens, history_tokens
from reprise.model.agent import AgentDefinition
from reprise.model.conversation import Message, ModelRequest, ToolCall

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "agent_peers" / "requirements.txt"
PEER_ROUNDS = 3

CONVERSION_GOAL = 200.0
REQUEST_GOAL = 20.0

AFRESH = "copy, scrub, check, convert, count: all messages"
PLAIN = "convert and count: all messages, no copy"
MEMO = "convert and count: what is new"
CHAT_BYTES = "request bytes, OpenAI"
ANTHROPIC_BYTES = "request bytes, Anthropic, marks placed"
CHAT_SENT = "the same through the OpenAI SDK's transport"
ANTHROPIC_SENT = "the same through the Anthropic SDK's transport"
CHAT_TYPED = "OpenAI SDK, typed call"
ANTHROPIC_TYPED = "Anthropic SDK, typed call"

LONE = re.compile("[\ud800-\udfff]")

Body = dict[str, object]


@dataclass(frozen=True)
class Gain:
    """How many times less one work takes than another, and the goal."""

    what: str
    times: float
    goal: float

    @property
    def reached(self) -> bool:
        """True when the goal is reached."""
        return self.times >= self.goal

    def __str__(self) -> str:
        verdict = "reached" if self.reached else "NOT REACHED"
        clock = "CPU time: others keep this machine busy" if is_crowded() else "wall time"
        return f"P9 {self.what}: {self.times:.0f} x less, goal {self.goal:g}: {verdict} ({clock})"


def measure_turns(megabytes: float, *, repetitions: int) -> list[Gain]:
    """Print what one turn takes at a history of a size; return the figures that have a goal."""
    history = long_history(megabytes)
    costs = costs_in_turns(_works(history), repetitions=repetitions)
    size = sum(len(message.content.encode()) for message in history) / 1e6
    print(f"\nOne turn at {len(history)} messages, {size:.1f} MB of text\n")
    print("| | wall ms | CPU ms |\n| --- | ---: | ---: |")
    for name, cost in costs.items():
        print(f"| {name} | {cost.wall_seconds * 1e3:.2f} | {cost.cpu_seconds * 1e3:.2f} |")
    for name, typed, sent in (
        ("OpenAI", CHAT_TYPED, CHAT_SENT),
        ("Anthropic", ANTHROPIC_TYPED, ANTHROPIC_SENT),
    ):
        print(
            f"\nwith the SDK's transport on both sides, {name}: {_times(costs, typed, sent):.0f} x"
        )
    return [
        Gain(
            "conversion and counting against afresh", _times(costs, AFRESH, MEMO), CONVERSION_GOAL
        ),
        Gain(
            "request build against the typed call, OpenAI",
            _times(costs, CHAT_TYPED, CHAT_BYTES),
            REQUEST_GOAL,
        ),
        Gain(
            "request build against the typed call, Anthropic",
            _times(costs, ANTHROPIC_TYPED, ANTHROPIC_BYTES),
            REQUEST_GOAL,
        ),
    ]


def compare_turns(megabytes: float, peers_dir: Path) -> None:
    """Print what the peers take for the same, a process each, in turns."""
    peers = PeerEnvironment(peers_dir, REQUIREMENTS)
    peers.install()
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    failed: dict[tuple[str, str], str] = {}
    for _ in range(PEER_ROUNDS):
        for peer in PEERS:
            why = peers.why_missing(peer)
            if why is not None:
                failed[peer, ""] = why
                continue
            program = HERE / "agent_peers" / "turns.py"
            out, error = run_program([peers.python, program, peer, str(megabytes)], peers_dir)
            lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
            if not lines:
                failed[peer, ""] = error or "it said nothing"
                continue
            for what, figure in json.loads(lines[-1].removeprefix("RESULT ")).items():
                if isinstance(figure, str):
                    failed[peer, what] = figure
                else:
                    found.setdefault((peer, what), []).append(tuple(figure))
    print(f"\nThe peers at {megabytes:g} MB, all messages, medians of {PEER_ROUNDS} processes\n")
    print("| peer | what | wall ms | CPU ms |\n| --- | --- | ---: | ---: |")
    for (peer, what), figures in found.items():
        wall, cpu = (statistics.median(values) for values in zip(*figures, strict=True))
        print(f"| {peer} | {what} | {wall:.1f} | {cpu:.1f} |")
    for (peer, what), why in failed.items():
        print(f"| {peer} | {what} | could not be run: {why} | |")


def long_history(megabytes: float) -> tuple[Message, ...]:
    """Return a history: a task, then calls of a tool that reads files, each with its result."""
    messages = [Message(role="user", content="Author the composition.")]
    arguments = json.dumps(ARGUMENTS)
    size_bytes, number = 0, 0
    while size_bytes < megabytes * 1e6:
        call = ToolCall(id=f"c{number}", name="read", arguments=arguments)
        messages.append(Message(role="assistant", content=f"step {number}", tool_calls=(call,)))
        text = f"{number}{TEXT}"
        messages.append(Message(role="tool", content=text, tool_call_id=call.id))
        size_bytes += len(text.encode())
        number += 1
    return tuple(messages)


def _works(history: tuple[Message, ...]) -> dict[str, Callable[[], object]]:
    agent = AgentDefinition(id="bench", agent_type="bench", system_prompt="You author.")
    opening = ModelRequest(agent=agent, system_prompt="You author.", messages=())

    def request() -> ModelRequest:
        new = tuple(message.model_copy() for message in history[-2:])
        return opening.model_copy(update={"messages": (*history[:-2], *new)})

    def memo() -> object:
        messages = request().messages
        return chat_requests.FORMS.each(messages), history_tokens(messages)

    def chat_bytes() -> bytes:
        return chat_requests.request_bytes(
            request(), model="m", limit_name="max_tokens", with_schema=True, streamed=False
        )

    def anthropic_bytes() -> bytes:
        return anthropic_requests.request_bytes(
            request(), model="m", with_schema=True, marks=CacheMarks(), streamed=False
        )

    chat = openai.OpenAI(api_key="x", base_url="http://bench/v1", http_client=_silent(CHAT_REPLY))
    messages = anthropic.Anthropic(
        api_key="x", base_url="http://bench", http_client=_silent(ANTHROPIC_REPLY)
    )
    chat_body, anthropic_body = json.loads(chat_bytes()), json.loads(anthropic_bytes())
    return {
        AFRESH: lambda: _afresh(history),
        PLAIN: lambda: ([_plain(one) for one in history], sum(map(estimated_tokens, history))),
        MEMO: memo,
        CHAT_BYTES: chat_bytes,
        ANTHROPIC_BYTES: anthropic_bytes,
        CHAT_SENT: lambda: chat.post("/chat/completions", cast_to=object, content=chat_bytes()),
        ANTHROPIC_SENT: lambda: messages.post(
            "/v1/messages", cast_to=object, content=anthropic_bytes()
        ),
        CHAT_TYPED: lambda: chat.chat.completions.create(**chat_body),
        ANTHROPIC_TYPED: lambda: messages.messages.create(**anthropic_body),
    }


def _afresh(history: tuple[Message, ...]) -> object:
    """Do what a loop without a memo does: clone, scrub, validate, convert and count all."""
    copies = [_scrubbed(copy.deepcopy(message.model_dump())) for message in history]
    checked = [Message.model_validate(json.loads(json.dumps(one))) for one in copies]
    return [_plain(one) for one in checked], sum(map(estimated_tokens, checked))


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return LONE.sub("\ufffd", value)
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items()}
    return value


def _plain(message: Message) -> Body:
    body: Body = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _silent(reply: Body) -> httpx2.Client:
    """Return a client whose transport answers at once."""
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=reply)))


def _times(costs: dict[str, Cost], slow: str, fast: str) -> float:
    return costs[slow].ratio(costs[fast])


CHAT_REPLY: Body = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    ],
}
ANTHROPIC_REPLY: Body = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
