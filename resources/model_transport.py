"""The way to a model's endpoint and back, whichever protocol it speaks.

An official SDK gives connection pool, TLS, authentication and the reading of streams; bytes of the
engine's own go out and plain JSON comes back, past the SDK's typed layer. Its retries are off: the
agent loop retries with its own bounds. Calls wait their turn (resources/rate_limiter.py) and have
their price (reprise/agents/prices.py).

Source: specification A4, A7; research/agents.md section 5. Tests:
tests/integration/test_provider_transport.py, against a loopback server.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from reprise.agents.prices import PriceOf, priced
from reprise.agents.rate_headers import exhausted_seconds, retry_after_seconds
from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ProviderError
from reprise.model.conversation import ModelReply
from reprise.model.result import Usage
from reprise.ports import Cancelled
from resources.model_call import Ask, Call, Endpoint, Exchange, Sdk, keep_secrets_out_of_log
from resources.rate_limiter import RateLimits

SOME_USAGE = Usage(input_uncached=10**6, output=10**6)
"""What costs something at every price but none."""

MOMENT_SECONDS = 0.001
"""What a call is left at least that waited for its turn until its deadline."""


class Replies(NamedTuple):
    """How a protocol's answers are read."""

    reply_of: "ReplyOf"
    assembled: Callable[[Iterable[JsonValue]], tuple[JsonValue, bool]]
    """Events of a stream → the answer that they make, and whether it is whole."""


class ReplyOf(Protocol):
    """Reads an answer's JSON."""

    def __call__(self, answer: JsonValue, *, model: str) -> ModelReply | None:
        """Return the reply in it, or None when it holds no message."""
        ...


class ModelTransport:
    """Asks one endpoint.

    Args:
        endpoint: Where.
        connect: Makes the SDK's client, at the first call.
        replies: How its answers are read.
        price_of: Model → price.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connect: Callable[[], Sdk],
        *,
        replies: Replies,
        price_of: PriceOf,
    ) -> None:
        self.endpoint = endpoint
        self._connect = connect
        self._replies = replies
        self._price_of = price_of
        self._limits = RateLimits(
            endpoint.provider_id,
            concurrency=endpoint.concurrency,
            requests_per_minute=endpoint.requests_per_minute,
        )
        self._sdk: Sdk | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close its connections."""
        with self._lock:
            if self._sdk is not None:
                self._sdk.client.close()
                self._sdk = None

    def answer(self, ask: Ask, cancelled: Cancelled) -> ModelReply:
        """Return the reply to one call, with what it cost.

        Raises:
            ProviderError: The endpoint refused, failed, or did not answer within the deadline;
                carries in `usage` what a broken stream told of it.
            Cancelled: The run is being stopped; the call is given up at once.
        """
        if cancelled():
            message = f"provider {self.endpoint.provider_id!r}: the run was stopped before the call"
            raise RunCancelled(message)
        got = Exchange()
        limiter = self._limits.of(ask.model)
        try:
            with limiter.place(seconds=ask.seconds, cancelled=cancelled) as waited:
                try:
                    rest = ask._replace(seconds=max(MOMENT_SECONDS, round(ask.seconds - waited, 3)))
                    Call(self.endpoint, rest, got).wait(self._connected, cancelled)
                finally:
                    # For all that ask this model, not for this call alone.
                    if pause := _pause(got.headers):
                        limiter.pause(pause)
            reply = priced(self._reply(got, ask.model), self._price_of)
            return reply.model_copy(update={"waited_seconds": round(waited, 3)})
        except ProviderError as error:
            if got.streamed:
                partial = self._replies.reply_of(self._assembled(got)[0], model=ask.model)
                if partial is not None and partial.usage.tokens:
                    error.usage = priced(partial, self._price_of).usage
                    raise
            if got.may_cost:
                error.usage = self._untold(ask.model)
            raise

    def _untold(self, model: str) -> Usage:
        """Return the usage of a call of which the endpoint told none: its cost is not nothing."""
        price = self._price_of(model)
        is_free = price is not None and price.cost_micros(SOME_USAGE) == 0
        return Usage(calls=1, cost_micros=0 if is_free else None)

    def _reply(self, got: Exchange, model: str) -> ModelReply:
        answer, whole = self._assembled(got) if got.streamed else (got.documents[0], True)
        reply = self._replies.reply_of(answer, model=model)
        who = f"provider {self.endpoint.provider_id!r}"
        if not whole:
            message = f"{who}: its stream ended before the answer did"
            raise ProviderError(message, transient=True)
        if reply is None:
            message = f"{who}: its answer holds no message; check `base_url`"
            raise ProviderError(message)
        return reply

    def _assembled(self, got: Exchange) -> tuple[JsonValue, bool]:
        return self._replies.assembled(got.documents)

    def _connected(self) -> Sdk:
        with self._lock:
            if self._sdk is None:
                self._sdk = self._connect()
                keep_secrets_out_of_log()
            return self._sdk


def _pause(headers: Mapping[str, str]) -> float:
    now = datetime.now(UTC)
    return max(retry_after_seconds(headers, now) or 0.0, exhausted_seconds(headers, now))
