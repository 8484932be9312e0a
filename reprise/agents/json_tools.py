"""Tools for an endpoint that does not call any: the model writes a call as JSON, as its answer.

Instead of tools, such an endpoint gets a schema: the answer is either a call, `{"tool": …,
"arguments": …}` with that tool's own arguments, or what the agent has to answer. An endpoint that
takes schemas cannot write anything else; another one is told the same in the system prompt. What
was called before becomes plain text: the call as the model wrote it, its result as a message.

Source: research/agents.md section 6. Tests: tests/unit/agents/test_json_tools.py.
"""

import json
from typing import NamedTuple

from pydantic import JsonValue

from reprise.agents.answers import json_values, problems_of
from reprise.agents.memo import FrameMemo, Memo
from reprise.model.agent import ToolChoice
from reprise.model.conversation import Message, ModelReply, ModelRequest, ToolCall, ToolSchema

REVISION = "1"
"""Part of a provider's identity; bump it when what the model is told changes."""

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

    Args:
        reply: What the endpoint said.
        request: What was asked, with its tools.
    """
    if not _may_call(request) or reply.finish_reason in UNREAD_FINISHES:
        return reply
    value = next(json_values(reply.text), None)
    if not isinstance(value, dict):
        return reply
    schema = request.output_schema
    if schema is None and value.keys() == {"answer"} and isinstance(value["answer"], str):
        return reply.model_copy(update={"text": value["answer"]})
    name = value.get("tool")
    if not isinstance(name, str) or value.keys() - {"tool", "arguments"}:
        return reply
    if schema is not None and not problems_of(value, schema):
        # An answer that happens to look like a call.
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


def _may_call(request: ModelRequest) -> bool:
    return bool(request.tools) and request.tool_choice is not ToolChoice.NONE


def _frame(request: ModelRequest, choice: ToolChoice | None) -> _Frame:
    if not _may_call(request):
        return _Frame(request.system_prompt, request.output_schema)
    section = _section(request, must_call=choice is ToolChoice.REQUIRED)
    return _Frame(
        f"{request.system_prompt.rstrip()}\n\n{section}\n",
        _schema(request, must_call=choice is ToolChoice.REQUIRED),
    )


def _section(request: ModelRequest, *, must_call: bool) -> str:
    tools = "\n".join(
        f"- `{tool.name}`: {tool.description} Arguments: {_json(tool.parameters)}"
        for tool in request.tools
    )
    final = (
        "Once you need no tool, give your answer in its own form instead."
        if request.output_schema is not None
        else 'Once you need no tool, answer with {"answer": "your text"} instead.'
    )
    first = "Call a tool first. " if must_call else ""
    return (
        "## Tools\n\n"
        f"{first}To call a tool, answer with this JSON and nothing else: "
        '{"tool": "its name", "arguments": {…}}. You are then told its result, and go on. '
        f"One call at a time. {final}\n\n{tools}"
    )


def _schema(request: ModelRequest, *, must_call: bool) -> dict[str, JsonValue]:
    """Return what the model may write: a call of one of the tools, or the answer."""
    shared: dict[str, JsonValue] = {}
    forms: list[JsonValue] = [_call_schema(tool, shared) for tool in request.tools]
    if not must_call and request.output_schema is not None:
        forms.append(_hoisted(request.output_schema, "", shared))
    elif not must_call:
        forms.append(_object({"answer": {"type": "string"}}))
    return {"anyOf": forms, **({"$defs": shared} if shared else {})}


def _call_schema(tool: ToolSchema, shared: dict[str, JsonValue]) -> JsonValue:
    arguments = _hoisted(tool.parameters, f"{tool.name}.", shared)
    return _object({"tool": {"const": tool.name}, "arguments": arguments})


def _object(properties: dict[str, JsonValue]) -> JsonValue:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


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
