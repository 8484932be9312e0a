"""A model provider that answers from a script: the twin of the real ones, for tests and trials.

It is product code: the agent loop, the edit room and whole workflows are driven through it, with no
mock. A script is a list, for whoever asks next, or a list for each agent id, for agents that work
side by side. In a JSON file an item is a text (a reply that stops there), an object with the fields
of a reply (`text`, `tool_calls`, `finish_reason`, `usage`, `model`), or an object
`{"error": …, "transient": …, "retry_after_seconds": …}`. A value under `"answer"` is given as its
JSON text.
"""

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import JsonValue, ValidationError

from reprise.canonical import sha256_hex
from reprise.errors import BadInput, ProviderError
from reprise.errors import Cancelled as RunCancelled
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.model.result import Usage
from reprise.ports import Cancelled

ScriptItem = ModelReply | str | ProviderError
Script = Sequence[ScriptItem] | Mapping[str, Sequence[ScriptItem]]

DEFAULT_USAGE = Usage(input_uncached=10, output=5, calls=1)
"""What a reply takes that is given as a text."""


class ScriptedProvider:
    """Gives the items of a script, one a call, and keeps the requests.

    Args:
        script: What to answer, in order; or that for each agent id.
        provider_id: Its id in the settings.
        model: The model's name in replies that do not name one.
        revision: What tells this script from another in a cache key.
        context_tokens: The context that it claims to have.
    """

    def __init__(
        self,
        script: Script,
        *,
        provider_id: str = "scripted",
        model: str = "scripted-1",
        revision: str = "",
        context_tokens: int | None = None,
    ) -> None:
        self._script = script
        self._id = provider_id
        self._model = model
        self._revision = revision
        self._context_tokens = context_tokens
        self._requests: list[ModelRequest] = []
        self._given: Counter[str] = Counter()
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, provider_id: str, path: Path, *, context_tokens: int | None = None) -> Self:
        """Return a provider with the script of a JSON file.

        Raises:
            BadInput: The file cannot be read or is no script.
        """
        try:
            text = path.read_text(encoding="utf-8")
            data: JsonValue = json.loads(text)
        except (OSError, ValueError) as error:
            message = f"provider {provider_id!r}: the script {str(path)!r} cannot be read: {error}"
            raise BadInput(message) from error
        where = f"provider {provider_id!r}, script {str(path)!r}"
        script = _script(data, where)
        if script is not None:
            # Another script is another provider to the cache.
            return cls(
                script,
                provider_id=provider_id,
                revision=sha256_hex(text)[:16],
                context_tokens=context_tokens,
            )
        message = f"{where}: expected a list of replies, or a list for each agent id"
        raise BadInput(message)

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """The requests so far."""
        return tuple(self._requests)

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self._context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        return ProviderIdentity(
            id=self._id, kind="scripted", model=self._model, revision=self._revision
        )

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Give the script's next item.

        Raises:
            ProviderError: The item is one, or the script is at its end.
            Cancelled: The run is being stopped.
        """
        if cancelled():
            message = "the run was stopped before the call"
            raise RunCancelled(message)
        item = self._next(request)
        if isinstance(item, ProviderError):
            raise item
        if isinstance(item, str):
            return ModelReply(
                text=item, finish_reason="stop", usage=DEFAULT_USAGE, model=self._model
            )
        return item

    def _next(self, request: ModelRequest) -> ScriptItem:
        name = request.agent.id if isinstance(self._script, Mapping) else ""
        items = self._script.get(name, ()) if isinstance(self._script, Mapping) else self._script
        with self._lock:
            self._requests.append(request)
            at = self._given[name]
            self._given[name] += 1
        if at >= len(items):
            message = (
                f"the script has {len(items)} items for agent {request.agent.id!r} "
                "and was asked for one more"
            )
            raise ProviderError(message)
        return items[at]


def _script(data: JsonValue, where: str) -> Script | None:
    if isinstance(data, list):
        return [_item(each, where) for each in data]
    if not isinstance(data, dict):
        return None
    script = {
        agent: [_item(each, f"{where}, agent {agent!r}") for each in items]
        for agent, items in data.items()
        if isinstance(items, list)
    }
    return script if len(script) == len(data) else None


def _item(value: JsonValue, where: str) -> ScriptItem:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "error" in value:
        after = value.get("retry_after_seconds")
        return ProviderError(
            str(value["error"]),
            transient=value.get("transient") is True,
            retry_after_seconds=float(after) if isinstance(after, int | float) else None,
        )
    if isinstance(value, dict) and "answer" in value:
        return json.dumps(value["answer"], ensure_ascii=False)
    defaults: dict[str, JsonValue] = {
        "text": "",
        "finish_reason": "stop",
        "usage": DEFAULT_USAGE.model_dump(mode="json"),
        "model": "scripted-1",
    }
    try:
        return ModelReply.model_validate(
            {**defaults, **value} if isinstance(value, dict) else value
        )
    except ValidationError as error:
        message = f"{where}: an item is no reply: {error.errors()[0]['msg']}"
        raise BadInput(message) from error
