"""A turn's conversion of a large history by one peer. Run as a program: `turns.py PEER MEGABYTES`.

Prints `RESULT` with a JSON object: what was done → wall and CPU milliseconds, medians.
"""

import asyncio
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Work = Callable[[], object]

CALLS = 5
"""Calls of each work, after one that is not timed."""

TEXT = ("const clip = useCurrentFrame(); // scene café → 日本 " * 900)[:40_000]
ARGUMENTS = {"path": "src/a.tsx", "edits": [{"old": "a" * 200, "new": "b" * 200}] * 4}


def pydantic_ai(turns: int) -> Mapping[str, Work]:
    """pydantic-ai's own messages, mapped by its model classes."""
    parts: Any = importlib.import_module("pydantic_ai.messages")
    parameters = importlib.import_module("pydantic_ai.models").ModelRequestParameters()
    history: list[Any] = [parts.ModelRequest(parts=[parts.UserPromptPart("go")])]
    for number in range(turns):
        call = parts.ToolCallPart("read", ARGUMENTS, f"c{number}")
        said = [parts.TextPart(f"step {number}"), call]
        result = parts.ToolReturnPart("read", f"{number}{TEXT}", f"c{number}")
        history += [parts.ModelResponse(parts=said), parts.ModelRequest(parts=[result])]
    openai: Any = importlib.import_module("pydantic_ai.models.openai")
    to_openai: Any = importlib.import_module("pydantic_ai.providers.openai")
    anthropic: Any = importlib.import_module("pydantic_ai.models.anthropic")
    to_anthropic: Any = importlib.import_module("pydantic_ai.providers.anthropic")
    provider = to_openai.OpenAIProvider(base_url="http://127.0.0.1:1/v1", api_key="x")
    models = {
        "OpenAI's form": openai.OpenAIChatModel("m", provider=provider),
        "Anthropic's form": anthropic.AnthropicModel(
            "m", provider=to_anthropic.AnthropicProvider(api_key="x")
        ),
    }
    return {name: _mapping(model, history, parameters) for name, model in models.items()}


def _mapping(model: Any, history: list[Any], parameters: Any) -> Work:
    step = getattr(model, "_map_messages", None) or model._map_message
    wanted = step.__code__.co_argcount - 1
    arguments = [history, parameters, {}][:wanted]
    return lambda: asyncio.run(step(*arguments))


def langchain(turns: int) -> Mapping[str, Work]:
    """langchain-core's messages, and its approximate count."""
    messages: Any = importlib.import_module("langchain_core.messages")
    count: Any = importlib.import_module("langchain_core.messages.utils")
    history = [messages.HumanMessage("go")]
    for number in range(turns):
        call = {"name": "read", "args": ARGUMENTS, "id": f"c{number}"}
        history.append(messages.AIMessage(f"step {number}", tool_calls=[call]))
        history.append(messages.ToolMessage(f"{number}{TEXT}", tool_call_id=f"c{number}"))
    return {
        "OpenAI's form": lambda: messages.convert_to_openai_messages(history),
        "approximate count": lambda: count.count_tokens_approximately(history),
    }


def litellm(turns: int) -> Mapping[str, Work]:
    """LiteLLM's translation for Anthropic, and its count."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    module: Any = importlib.import_module("litellm")
    factory: Any = importlib.import_module("litellm.litellm_core_utils.prompt_templates.factory")
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(turns):
        function = {"name": "read", "arguments": json.dumps(ARGUMENTS)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        history.append({"role": "assistant", "content": f"step {number}", "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number}{TEXT}"}
        history.append(result)
    model = "claude-sonnet-4-5"
    return {
        "Anthropic's form": lambda: factory.anthropic_messages_pt(
            messages=[dict(message) for message in history],
            model=model,
            llm_provider="anthropic",
        ),
        "count": lambda: module.token_counter(model="gpt-4o", messages=history),
    }


PEERS: dict[str, Callable[[int], Mapping[str, Work]]] = {
    "pydantic-ai": pydantic_ai,
    "langchain-core": langchain,
    "litellm": litellm,
}


def milliseconds(work: Work) -> tuple[float, float]:
    """Return the medians of the wall's and the process's time of a call."""
    work()
    samples = []
    for _ in range(CALLS):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        samples.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*samples, strict=True)
    return statistics.median(walls) * 1e3, statistics.median(cpus) * 1e3


def main() -> None:
    """Run a peer's works and print what they took."""
    peer, megabytes = sys.argv[1], float(sys.argv[2])
    turns = int(megabytes * 1e6 / (len(TEXT.encode()) + 2_000))
    figures: dict[str, object] = {}
    for name, work in PEERS[peer](turns).items():
        try:
            figures[name] = milliseconds(work)
        except Exception as error:  # noqa: BLE001 - A peer that fails has that in its row.
            figures[name] = f"{type(error).__name__}: {str(error)[:120]}"
    print("RESULT " + json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
