"""A recording of model calls as lines of JSON: what was asked, by parts, and what was answered.

Each part (the system prompt, each message, …) stands once in a line of its own, under its digest; a
call's line names its parts. So a conversation takes the room of its messages once, and a request
that is not in a recording can be compared with the nearest that is. What a request does not show
the model, its values and deadlines, is no part of it.

Source: specification A4. Tests: tests/unit/agents/test_recordings.py.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import Field, JsonValue

from reprise.agents.surrogates import scrubbed_value
from reprise.canonical import canonical_json, sha256_hex
from reprise.errors import BadInput
from reprise.model.base import Value
from reprise.model.conversation import ModelReply, ModelRequest

SHOWN_CHARS = 40
"""So much of a text is shown from where two begin to differ."""

BEGINNINGS = (b'{"part":', b'{"request":')
"""How a line begins, also one that was torn."""

DIFFERENCES_MAX = 6
"""Most differences that are told."""


class PartLine(Value):
    """A part of requests."""

    part: str
    """Its digest."""
    value: JsonValue
    """What it is."""


class CallLine(Value):
    """A call that was answered."""

    request: str
    """Digest of its parts."""
    agent: str
    """Who asked."""
    parts: dict[str, str]
    """Name → digest of a part."""
    messages: tuple[str, ...]
    """Digests of the messages."""
    reply: ModelReply
    """The answer."""


class Asked(NamedTuple):
    """A request by its parts."""

    digest: str
    """What tells it from others."""
    agent: str
    """Who asks."""
    parts: dict[str, str]
    """Name → digest of a part."""
    messages: tuple[str, ...]
    """Digests of the messages."""
    values: dict[str, JsonValue]
    """Digest → value."""


class Recording(Value):
    """What a file of lines holds."""

    parts: dict[str, JsonValue] = Field(default_factory=dict)
    """Digest → value."""
    calls: tuple[CallLine, ...] = ()
    """The calls, in the order in which they were answered."""


def asked(request: ModelRequest) -> Asked:
    """Return a request by its parts."""
    parameters = request.agent.parameters.model_dump(mode="json")
    shown: dict[str, JsonValue] = {
        "model": parameters.pop("model"),
        "parameters": parameters,
        "system_prompt": request.system_prompt,
        "tools": [tool.model_dump(mode="json") for tool in request.tools],
        "tool_choice": request.tool_choice,
        "output_schema": request.output_schema,
    }
    values: dict[str, JsonValue] = {}

    def digest_of(value: JsonValue) -> str:
        value = scrubbed_value(value)
        digest = sha256_hex(canonical_json(value, sort_keys=False))
        values[digest] = value
        return digest

    parts = {name: digest_of(value) for name, value in shown.items()}
    messages = tuple(
        digest_of(message.model_dump(mode="json", exclude_defaults=True))
        for message in request.messages
    )
    agent = request.agent.id
    whole = canonical_json([agent, dict[str, JsonValue](parts), list(messages)])
    return Asked(sha256_hex(whole), agent, parts, messages, values)


def lines_of(call: Asked, reply: ModelReply, known: Iterable[str]) -> bytes:
    """Return the lines that record a call.

    Args:
        call: What was asked.
        reply: What was answered.
        known: Digests of the parts that the file has already.
    """
    old = frozenset(known)
    new = [
        PartLine(part=digest, value=value)
        for digest, value in call.values.items()
        if digest not in old
    ]
    line = CallLine(
        request=call.digest,
        agent=call.agent,
        parts=call.parts,
        messages=call.messages,
        reply=reply,
    )
    lines = [*(part.model_dump(mode="json") for part in new), line.model_dump(mode="json")]
    return "".join(f"{canonical_json(item, sort_keys=False)}\n" for item in lines).encode()


def read_recording(data: bytes, source: str) -> Recording:
    """Return what a recording holds; a torn last line is left out.

    Raises:
        BadInput: A line cannot be read; names file and line.
    """
    parts: dict[str, JsonValue] = {}
    calls: list[CallLine] = []
    whole, _, torn = data.rpartition(b"\n")
    if torn and not any(torn[: len(begin)] == begin[: len(torn)] for begin in BEGINNINGS):
        message = f"{source}: its last line is none of a recording"
        raise BadInput(message)
    for number, line in enumerate(whole.split(b"\n") if whole else [], start=1):
        try:
            item = json.loads(line)
            if "part" in item:
                read = PartLine.model_validate(item)
                parts[read.part] = read.value
            else:
                calls.append(CallLine.model_validate(item))
        except (ValueError, TypeError) as error:
            message = f"{source}:{number}: no line of a recording: {str(error).splitlines()[0]}"
            raise BadInput(message) from error
    return Recording(parts=parts, calls=tuple(calls))


def differences(wanted: Asked, recording: Recording) -> tuple[str, ...]:
    """Return what tells a request from the nearest one in a recording, in words.

    Args:
        wanted: A request that is not in it.
        recording: Where it is looked for.
    """
    of_agent = [call for call in recording.calls if call.agent == wanted.agent]
    if not of_agent:
        agents = ", ".join(sorted({call.agent for call in recording.calls})) or "nobody"
        return (f"it holds no call of agent {wanted.agent!r}; it holds calls of {agents}",)
    nearest = min(of_agent, key=lambda call: _distance(wanted, call))
    told = tuple(_told(wanted, nearest, recording.parts))
    more = len(told) - DIFFERENCES_MAX
    return (*told[:DIFFERENCES_MAX], f"and {more} more") if more > 0 else told


def _distance(wanted: Asked, call: CallLine) -> tuple[int, int]:
    parts = sum(call.parts.get(name) != digest for name, digest in wanted.parts.items())
    pairs = zip(wanted.messages, call.messages, strict=False)
    messages = sum(mine != other for mine, other in pairs)
    return messages + abs(len(wanted.messages) - len(call.messages)), parts


def _told(wanted: Asked, call: CallLine, parts: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, digest in wanted.parts.items():
        if call.parts.get(name) != digest:
            before = parts.get(call.parts.get(name, ""))
            yield f"`{name}` {_difference(before, wanted.values[digest])}"
    pairs = enumerate(zip(wanted.messages, call.messages, strict=False), start=1)
    for number, (digest, other) in pairs:
        if digest != other:
            yield f"message {number} {_difference(parts.get(other), wanted.values[digest])}"
    if len(wanted.messages) != len(call.messages):
        yield f"there are {len(wanted.messages)} messages, recorded are {len(call.messages)}"


def _difference(before: JsonValue, now: JsonValue) -> str:
    """Return where two values begin to differ; in the one field that does, if it is one."""
    place = ""
    while isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():
        changed = [name for name in now if before[name] != now[name]]
        if len(changed) != 1:
            break
        place += f"`{changed[0]}` "
        before, now = before[changed[0]], now[changed[0]]
    old, new = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in (before, now)
    )
    same = next(
        (at for at, (one, two) in enumerate(zip(old, new, strict=False)) if one != two),
        min(len(old), len(new)),
    )
    start = max(0, same - SHOWN_CHARS // 4)
    was, is_ = old[start : start + SHOWN_CHARS], new[start : start + SHOWN_CHARS]
    return f"{place}differs from character {same + 1} on: recorded {was!r}, asked {is_!r}"
