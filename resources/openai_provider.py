"""Chat completions at any endpoint that speaks OpenAI's protocol, on the official SDK's transport.

Nothing is read from the environment: no key, no organisation, no address, so that a key that
happens to be there spends nothing.

Source: specification A4, A7. Tests: tests/integration/test_openai_provider.py and
tests/integration/test_provider_transport.py, against loopback servers.
"""

from reprise.agents.chat_completions import assembled, reply_of
from reprise.agents.chat_requests import request_bytes
from reprise.agents.prices import PriceOf
from reprise.agents.requests_revision import REQUESTS_REVISION
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.ports import Cancelled
from resources.model_call import Ask, Endpoint, Sdk
from resources.model_transport import ModelTransport, Replies


class OpenAICompatibleProvider:
    """Asks one endpoint.

    Args:
        endpoint: Where; its address goes up to and with the version.
        model: Model for agents that name none.
        structured_output: The endpoint takes `response_format: json_schema`.
        context_tokens: The model's context, where it is small.
        price_of: Model → price.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        model: str = "",
        structured_output: bool = True,
        context_tokens: int | None = None,
        price_of: PriceOf = lambda _model: None,
    ) -> None:
        self.price_of = price_of
        self._endpoint = endpoint
        self._model = model
        self._structured_output = structured_output
        self._context_tokens = context_tokens
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
            kind="openai_compatible",
            endpoint=self._endpoint.public_url,
            model=self._model,
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
        # A server with one model takes any name, but wants one.
        model = request.agent.parameters.model or self._model or "default"
        ask = Ask("/chat/completions", self._body(request, model), model, request.timeout_seconds)
        return self._transport.answer(ask, cancelled)

    def _body(self, request: ModelRequest, model: str) -> bytes:
        return request_bytes(
            request,
            model=model,
            limit_name=self._limit_name,
            with_schema=self._structured_output,
            streamed=self._endpoint.stream,
        )

    @property
    def _limit_name(self) -> str:
        # OpenAI's newer models refuse the older name; other servers know that one alone.
        is_openai = self._endpoint.host == "api.openai.com"
        return "max_completion_tokens" if is_openai else "max_tokens"

    def _connect(self) -> Sdk:
        # Performance: importing the SDK takes 1.7 s, which a run without it does not pay.
        import openai

        endpoint = self._endpoint
        client = openai.OpenAI(
            api_key=endpoint.api_key or "none",
            base_url=endpoint.bare_url,
            default_query=endpoint.query,
            max_retries=0,
        )
        # The SDK fills these from the environment when they are not given.
        client.organization = None
        client.project = None
        client.admin_api_key = None
        client._custom_headers = {}
        return Sdk(openai, client)
