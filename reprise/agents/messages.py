"""What an agent is told: system prompt, the user message, and the word on an answer that failed.

The order inside the user message is input, request, figures, task: what changes least comes first,
so that a provider's prefix cache keeps working (specification B13).
"""

import json
from collections.abc import Sequence

from reprise.model.agent import AgentDefinition, LoopLimits
from reprise.model.base import Value
from reprise.model.conversation import AgentInputs, Message, ModelReply

BAD_ANSWER_CHARS_MAX = 8_000
"""A failed answer is shown back up to this many characters."""


class AgentTask(Value):
    """What an agent is to do."""

    agent: AgentDefinition
    """Who, its prompt's variables replaced."""
    history: tuple[Message, ...] = ()
    """An earlier conversation that the task goes on with."""
    resolved_input: str = ""
    """The prior outputs that it reads, as text."""
    task: str = ""
    """The step's own prompt, its variables replaced."""
    inputs: AgentInputs = AgentInputs()
    """The same as values, the user's request, and what tools read."""
    limits: LoopLimits = LoopLimits()
    """Bounds of its loop."""


def system_prompt(agent: AgentDefinition) -> str:
    """Return the whole system prompt: the agent's, its skills, and the form of the answer."""
    parts = [agent.system_prompt, *agent.assigned_skills]
    if agent.output_schema is not None:
        schema = json.dumps(agent.output_schema, ensure_ascii=False)
        parts.append(
            "## Form of the answer\n\n"
            "Answer with one JSON value and nothing before or after it. It must fit this JSON "
            f"Schema:\n\n{schema}"
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def user_message(task: AgentTask) -> Message:
    """Return the message that holds input, request, figures and task; empty parts are left out."""
    figures = json.dumps(task.inputs.parameters, sort_keys=True, ensure_ascii=False)
    parts = [
        ("Input", task.resolved_input),
        ("Request of the user", task.inputs.user_request),
        ("Figures", figures if task.inputs.parameters else ""),
        ("Task", task.task or "Do what your instructions say."),
    ]
    text = "\n\n".join(f"# {title}\n\n{body.strip()}" for title, body in parts if body.strip())
    return Message(role="user", content=text)


def repair_messages(
    text: str, problems: Sequence[str], *, has_schema: bool
) -> tuple[Message, Message]:
    """Return the failed answer and what was wrong with it; they replace an earlier such pair."""
    shown = text if len(text) <= BAD_ANSWER_CHARS_MAX else text[:BAD_ANSWER_CHARS_MAX] + "…"
    listed = "\n".join(f"- {problem}" for problem in problems)
    form = ": one JSON value that fits the schema, and nothing around it" if has_schema else ""
    word = f"This answer cannot be used:\n{listed}\n\nSend the whole answer again, corrected{form}."
    return Message(role="assistant", content=shown), Message(role="user", content=word)


def written_calls(reply: ModelReply) -> str:
    """Return a turn's text and calls as text, for a turn that is shown back and not run."""
    calls = [f"{call.name} {call.arguments}" for call in reply.tool_calls]
    return "\n".join(part for part in (reply.text.strip(), *calls) if part)


def tool_messages(reply: ModelReply, results: Sequence[str]) -> tuple[Message, ...]:
    """Return the assistant's turn with its calls, and the results in the order of the calls."""
    turn = Message(role="assistant", content=reply.text, tool_calls=reply.tool_calls)
    answers = (
        Message(role="tool", content=result, tool_call_id=call.id)
        for call, result in zip(reply.tool_calls, results, strict=True)
    )
    return (turn, *answers)
