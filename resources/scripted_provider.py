"""A model provider that answers from a script: the twin of the real ones, for tests and trials.

It is product code: the agent loop, the edit room and whole workflows are driven through it, with no
mock. A script's item is a reply, a text (a reply that stops there), or an error to raise.
"""

import threading
from collections.abc import Sequence

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ProviderError
from reprise.model.result import Usage
from reprise.ports import Cancelled, ModelReply, ModelRequest, ProviderIdentity

ScriptItem = ModelReply | str | ProviderError


class ScriptedProvider:
    """Gives the items of a script, one a call, and keeps the requests.

    Args:
        script: What to answer, in order.
        model: The model's name in replies that are given as text.
        usage: What such a reply takes.
    """

    def __init__(
        self,
        script: Sequence[ScriptItem],
        *,
        model: str = "scripted-1",
        usage: Usage | None = None,
    ) -> None:
        self._script = tuple(script)
        self._model = model
        self._usage = usage or Usage(input_uncached=10, output=5, calls=1)
        self._requests: list[ModelRequest] = []
        self._lock = threading.Lock()

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """The requests so far."""
        return tuple(self._requests)

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        return ProviderIdentity(id="scripted", kind="scripted", model=self._model)

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Give the script's next item.

        Raises:
            ProviderError: The item is one, or the script is at its end.
            Cancelled: The run is being stopped.
        """
        if cancelled():
            message = "the run was stopped before the call"
            raise RunCancelled(message)
        with self._lock:
            at = len(self._requests)
            self._requests.append(request)
        if at >= len(self._script):
            message = f"the script has {len(self._script)} items and was asked for one more"
            raise ProviderError(message)
        item = self._script[at]
        if isinstance(item, ProviderError):
            raise item
        if isinstance(item, str):
            return ModelReply(text=item, finish_reason="stop", usage=self._usage, model=self._model)
        return item
