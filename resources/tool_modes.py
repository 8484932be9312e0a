"""A provider of which less can be asked: its endpoint calls no tools, or its model is weak.

`JsonToolProvider` lets the model write its calls as JSON (`reprise.agents.json_tools`);
`NoToolProvider` leaves the tools out; `LenientProvider` lets its last answers be mended
(`reprise.agents.answer_mending`). Each stands before another provider.

Source: specification A4; research/agents.md section 6.
"""

import logging

from reprise.agents.json_tools import REVISION, json_reply, json_request
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.ports import Cancelled, ModelProvider

logger = logging.getLogger(__name__)


class JsonToolProvider:
    """Lets a model call tools in its text.

    Args:
        inner: Who answers.
    """

    def __init__(self, inner: ModelProvider) -> None:
        self.inner = inner

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self.inner.context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        return _with_mode(self.inner.identity(), f"tools=json:{REVISION}")

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: As the provider behind it.
            Cancelled: The run is being stopped.
        """
        reply = self.inner.complete(json_request(request), cancelled=cancelled)
        return json_reply(reply, request)


class NoToolProvider:
    """Offers a model no tools, and says so in the log.

    Args:
        inner: Who answers.
    """

    def __init__(self, inner: ModelProvider) -> None:
        self.inner = inner

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self.inner.context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        return _with_mode(self.inner.identity(), "tools=none")

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: As the provider behind it.
            Cancelled: The run is being stopped.
        """
        if request.tools:
            logger.warning(
                "provider %s calls no tools: agent %s answers without %s",
                self.inner.identity().id,
                request.agent.id,
                ", ".join(tool.name for tool in request.tools),
            )
            request = request.model_copy(update={"tools": (), "tool_choice": None})
        return self.inner.complete(request, cancelled=cancelled)


class LenientProvider:
    """Lets the loop mend an answer that breaks its schema to the last.

    Args:
        inner: Who answers.
    """

    def __init__(self, inner: ModelProvider) -> None:
        self.inner = inner

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self.inner.context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        return self.inner.identity().model_copy(update={"lenient": True})

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: As the provider behind it.
            Cancelled: The run is being stopped.
        """
        return self.inner.complete(request, cancelled=cancelled)


def _with_mode(identity: ProviderIdentity, mode: str) -> ProviderIdentity:
    revision = f"{identity.revision},{mode}" if identity.revision else mode
    return identity.model_copy(update={"revision": revision})
