"""Tools for an endpoint that does not call any: the model writes a call as JSON, as its answer.

Instead of tools, such an endpoint gets a schema: the answer is either a call, `{"tool": …,
"arguments": …}` with that tool's own arguments, or what the agent has to answer. An endpoint that
takes schemas cannot write anything else; another one is told the same in the system prompt. What
was called before becomes plain text: the call as the model wrote it, its result as a message.

A call is nothing but a call: JSON inside other text is quoted, from a document perhaps, and is not
run.

Source: research/agents.md section 6. Tests: tests/unit/agents/test_json_tools.py.
"""

import json
from typing import NamedTuple

from pydantic import JsonValue

from reprise.agents.answers import problems_of, whole_value
from reprise.agents.memo import FrameMemo, Memo
from reprise.model.agent import ToolChoice
from reprise.model.conversation import Message, ModelReply, ModelRequest, ToolCall, ToolSchema

REVISION = "2"
"""Part of a provider's identity; bump it when what the model is told, or its reading, changes."""

UNREAD_FINISHES = frozenset({"length", "content_filter"})
"""A reply that ended so is not read: it may be half a call."""


def json_request(request: ModelRequest) -> ModelRequest:
    """Return a request without tools that asks for the same."""
    frame = _FRAMES(request, request.tool_choice)
    return request.model_copy(
        update={
            "system_prompt": frame.system_prompt,
            "tools": (),
            "tool_choice": None,
            "output_schema": frame.output_schema,
            "messages": tuple(
                _PLAIN(message) if message.role == "tool" or message.tool_calls else message
                for message in request.messages
            ),
        }
    )


def json_reply(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """Return a reply with the call that its text is, if it is one.

    A call is one whether or not the model may call now: what is to be done about it is the loop's
    business. An answer that fits its schema is none, whatever it looks like.

    Args:
        reply: What the endpoint said.
        request: What was asked, with its tools.
    """
    if not request.tools or reply.finish_reason in UNREAD_FINISHES:
        return reply
    value = whole_value(reply.text)
    if not isinstance(value, dict):
        return reply
    schema = request.output_schema
    if schema is not None and not problems_of(value, schema):
        return reply
    if schema is None and value.keys() == {"answer"} and isinstance(value["answer"], str):
        return reply.model_copy(update={"text": value["answer"]})
    name = value.get("tool")
    if not isinstance(name, str) or value.keys() - {"tool", "arguments"}:
        return reply
    # Without a schema an answer is in its frame, so that this is a call even if there is no such
    # tool; the toolbox says so.
    if schema is not None and name not in {tool.name for tool in request.tools}:
        return reply
    arguments = value.get("arguments", {})
    call = ToolCall(
        # Unlike any other in the conversation, which grows from turn to turn.
        id=f"call_{len(request.messages)}",
        name=name,
        arguments=arguments if isinstance(arguments, str) else _json(arguments),
    )
    changes = {"text": "", "tool_calls": (call,), "finish_reason": "tool_calls"}
    return reply.model_copy(update=changes)


class _Frame(NamedTuple):
    """A request's prompt and schema in this form."""

    system_prompt: str
    output_schema: dict[str, JsonValue] | None


def _frame(request: ModelRequest, choice: ToolChoice | None) -> _Frame:
    if not request.tools:
        return _Frame(request.system_prompt, request.output_schema)
    section = _no_tools(request) if choice is ToolChoice.NONE else _section(request, choice)
    return _Frame(
        f"{request.system_prompt.rstrip()}\n\n{section}\n",
        _schema(request, choice),
    )


def _no_tools(request: ModelRequest) -> str:
    form = (
        "in its own form"
        if request.output_schema is not None
        else 'as this JSON and nothing else: {"answer": "your text"}'
    )
    return f"## Tools\n\nNo tool can be called now. Give your answer {form}."


def _section(request: ModelRequest, choice: ToolChoice | None) -> str:
    tools = "\n".join(
        f"- `{tool.name}`: {tool.description} Arguments: {_json(tool.parameters)}"
        for tool in request.tools
    )
    final = (
        "Once you need no tool, give your answer in its own form instead."
        if request.output_schema is not None
        else 'Once you need no tool, answer with {"answer": "your text"} instead.'
    )
    first = "Call a tool first. " if choice is ToolChoice.REQUIRED else ""
    return (
        "## Tools\n\n"
        f"{first}To call a tool, answer with this JSON and nothing else: "
        '{"tool": "its name", "arguments": {…}}. You are then told its result, and go on. '
        f"One call at a time. {final}\n\n{tools}"
    )


def _schema(request: ModelRequest, choice: ToolChoice | None) -> dict[str, JsonValue] | None:
    """Return what the model may write: a call of one of the tools, or the answer."""
    answer = request.output_schema
    if choice is ToolChoice.NONE:
        return _TEXT if answer is None else answer
    shared: dict[str, JsonValue] = {}
    forms: list[JsonValue] = [_call_schema(tool, shared) for tool in request.tools]
    if choice is not ToolChoice.REQUIRED:
        forms.append(_TEXT if answer is None else _hoisted(answer, "", shared))
    return {"anyOf": forms, **({"$defs": shared} if shared else {})}


def _call_schema(tool: ToolSchema, shared: dict[str, JsonValue]) -> JsonValue:
    arguments = _hoisted(tool.parameters, f"{tool.name}.", shared)
    return _object({"tool": {"const": tool.name}, "arguments": arguments})


def _object(properties: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = _object({"answer": {"type": "string"}})
"""The frame around the answer of an agent without a schema."""


def _hoisted(
    schema: dict[str, JsonValue], prefix: str, shared: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return a schema for a place inside another one: its definitions move to the common ones."""
    own = schema.get("$defs")
    if isinstance(own, dict):
        shared |= {f"{prefix}{name}": _renamed(each, prefix) for name, each in own.items()}
    rest = {name: value for name, value in schema.items() if name not in ("$defs", "$schema")}
    renamed = _renamed(rest, prefix)
    assert isinstance(renamed, dict)
    return renamed


def _renamed(value: JsonValue, prefix: str) -> JsonValue:
    """Return a schema whose references to definitions name the common ones."""
    start = "#/$defs/"
    if isinstance(value, list):
        return [_renamed(item, prefix) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _renamed(item, prefix) for name, item in value.items()}
    reference = changed.get("$ref")
    if isinstance(reference, str) and reference.startswith(start):
        changed["$ref"] = f"{start}{prefix}{reference.removeprefix(start)}"
    return changed


def _plain(message: Message) -> Message:
    """Return a call or a result as plain text."""
    if message.role == "tool":
        content = f"Result of your call:\n{message.content}"
        return message.model_copy(update={"role": "user", "content": content, "tool_call_id": None})
    # A call written by another mode may be one of several; the result of each follows.
    calls = "\n".join(_written(call) for call in message.tool_calls)
    content = f"{message.content}\n{calls}" if message.content.strip() else calls
    return message.model_copy(update={"content": content, "tool_calls": ()})


def _written(call: ToolCall) -> str:
    try:
        arguments: JsonValue = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    return _json({"tool": call.name, "arguments": arguments})


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


_PLAIN: Memo[Message, Message] = Memo(_plain)
_FRAMES: FrameMemo[ToolChoice | None, _Frame] = FrameMemo(_frame)
