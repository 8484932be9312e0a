"""Anthropic's Messages protocol, on the official SDK's transport.

Nothing is read from the environment: no key, token, address, profile or header, so that a key that
happens to be there spends nothing.

Source: specification A4, A7. Tests: tests/integration/test_anthropic_provider.py and
tests/integration/test_provider_transport.py, against loopback servers.
"""

from reprise.agents.anthropic_messages import assembled, reply_of
from reprise.agents.anthropic_requests import request_bytes
from reprise.agents.cache_marks import NO_MARKS, CacheMarks
from reprise.agents.prices import PriceOf
from reprise.agents.requests_revision import REQUESTS_REVISION
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.ports import Cancelled
from resources.model_call import Ask, Endpoint, Sdk
from resources.model_transport import ModelTransport, Replies

BASE_URL = "https://api.anthropic.com"
"""Where the vendor itself serves."""


class AnthropicProvider:
    """Asks one endpoint.

    Args:
        endpoint: Where; its address ends before `/v1`.
        model: Model for agents that name none.
        structured_output: The endpoint takes a schema as the format of the answer.
        context_tokens: The model's context, where it is small.
        prefix_cache: Ask for prompts to be kept in the vendor's prefix cache.
        price_of: Model → price.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        model: str,
        structured_output: bool = True,
        context_tokens: int | None = None,
        prefix_cache: bool = True,
        price_of: PriceOf = lambda _model: None,
    ) -> None:
        self.price_of = price_of
        self._endpoint = endpoint
        self._model = model
        self._structured_output = structured_output
        self._context_tokens = context_tokens
        self._marks = CacheMarks() if prefix_cache else NO_MARKS
        self._transport = ModelTransport(
            endpoint, self._connect, replies=Replies(reply_of, assembled), price_of=price_of
        )

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self._context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key; never the key."""
        return ProviderIdentity(
            id=self._endpoint.provider_id,
            kind="anthropic",
            endpoint=self._endpoint.public_url,
            model=self._model,
            # Cache marks change the price of an answer and nothing in it.
            revision=f"schema={self._structured_output:d},requests={REQUESTS_REVISION}",
            reads_values=False,
        )

    def close(self) -> None:
        """Close its connections."""
        self._transport.close()

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: The endpoint refused, failed, or did not answer within the deadline.
            Cancelled: The run is being stopped; the call is given up at once.
        """
        model = request.agent.parameters.model or self._model
        body = request_bytes(
            request,
            model=model,
            with_schema=self._structured_output,
            marks=self._marks,
            streamed=self._endpoint.stream,
        )
        ask = Ask("/v1/messages", body, model, request.timeout_seconds)
        return self._transport.answer(ask, cancelled)

    def _connect(self) -> Sdk:
        # Performance: importing the SDK takes a second, which a run without it does not pay.
        import anthropic

        endpoint = self._endpoint
        client = anthropic.Anthropic(
            # Any key keeps the SDK from looking for one in the environment and in files.
            api_key=endpoint.api_key or "none",
            base_url=endpoint.bare_url,
            default_query=endpoint.query,
            max_retries=0,
            open_telemetry=False,
        )
        # The SDK fills these from the environment whatever it is given.
        client.webhook_key = None
        client._custom_headers = {}
        return Sdk(anthropic, client)
