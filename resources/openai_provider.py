"""Chat completions at any endpoint that speaks OpenAI's protocol, on the official SDK's transport.

The SDK gives connection pool, timeouts and TLS; its own retries are off, because the agent loop
retries with its own bounds. Nothing is read from the environment: no key, no organisation, no
address, so that a key that happens to be there spends nothing. Requests are bytes and replies plain
JSON; the SDK's typed layer is passed by.

Source: specification A4, A7. Tests: tests/integration/test_openai_provider.py, against a loopback
server.
"""

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit, urlunsplit

from pydantic import JsonValue

from reprise.agents.chat_completions import reply_of
from reprise.agents.chat_requests import request_bytes
from reprise.agents.prices import PriceOf, priced
from reprise.canonical import sha256_hex
from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ProviderError
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.ports import Cancelled

if TYPE_CHECKING:
    import openai

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
"""Longest wait for a connection."""

POLL_SECONDS = 0.1
"""How often a waiting call looks whether the run is being stopped."""

ERROR_CHARS_MAX = 300
"""An endpoint's own words in an error are cut after this many characters."""

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Answers after which the same call may go through later."""

FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes that make a 429 final: waiting brings no money."""


class OpenAICompatibleProvider:
    """Asks one endpoint.

    Args:
        provider_id: Its id in the settings.
        base_url: Address up to and with the version, such as `http://127.0.0.1:8080/v1`.
        api_key: Key; None for an endpoint that wants none.
        model: Model for agents that name none.
        structured_output: The endpoint takes `response_format: json_schema`.
        native_tools: The endpoint calls tools; otherwise none are offered.
        context_tokens: The model's context, where it is small.
        timeout_seconds: Total deadline of one call; a request may set a shorter one.
        price_of: Model → price.
    """

    def __init__(  # noqa: PLR0913  # One argument for each field of its settings.
        self,
        provider_id: str,
        *,
        base_url: str,
        api_key: str | None = None,
        model: str = "",
        structured_output: bool = True,
        native_tools: bool = True,
        context_tokens: int | None = None,
        timeout_seconds: float = 300.0,
        price_of: PriceOf = lambda _model: None,
    ) -> None:
        self._context_tokens = context_tokens
        self._id = provider_id
        self._base_url = base_url
        self._api_key = api_key
        self._model = model
        self._structured_output = structured_output
        self._native_tools = native_tools
        self._timeout_seconds = timeout_seconds
        self.price_of = price_of
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self._context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key; never the key."""
        flags = f"schema={self._structured_output:d},tools={self._native_tools:d}"
        return ProviderIdentity(
            id=self._id,
            kind="openai_compatible",
            endpoint=_without_credentials(self._base_url),
            model=self._model,
            revision=flags,
            reads_values=False,
        )

    def close(self) -> None:
        """Close its connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: The endpoint refused, failed, or did not answer within the deadline.
            Cancelled: The run is being stopped; the call is given up at once.
        """
        if cancelled():
            message = f"provider {self._id!r}: the run was stopped before the call"
            raise RunCancelled(message)
        seconds = min(self._timeout_seconds, request.timeout_seconds)
        # A server with one model takes any name, but wants one.
        model = request.agent.parameters.model or self._model or "default"
        body = self._body(request, model)
        answer = self._waited(lambda: self._post(body, seconds), seconds, cancelled)
        reply = reply_of(answer, model=model)
        if reply is None:
            message = f"provider {self._id!r}: its answer holds no message; check `base_url`"
            raise ProviderError(message)
        return priced(reply, self.price_of)

    def _body(self, request: ModelRequest, model: str) -> bytes:
        if request.tools and not self._native_tools:
            logger.warning(
                "provider %s calls no tools: agent %s answers without %s",
                self._id,
                request.agent.id,
                ", ".join(tool.name for tool in request.tools),
            )
        return request_bytes(
            request,
            model=model,
            limit_name=self._limit_name,
            with_tools=self._native_tools,
            with_schema=self._structured_output,
        )

    @property
    def _limit_name(self) -> str:
        # OpenAI's newer models refuse the older name; other servers know that one alone.
        host = urlsplit(self._base_url).hostname or ""
        return "max_completion_tokens" if host == "api.openai.com" else "max_tokens"

    def _post(self, body: bytes, seconds: float) -> JsonValue:
        import openai  # Lazy, as in `_connected`.

        timeout = openai.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        try:
            answer = self._connected().post(
                "/chat/completions",
                cast_to=object,
                content=body,
                options={
                    "timeout": timeout,
                    "security": {"bearer_auth": True},
                    # An endpoint that wants no key gets none, not even a made-up one.
                    "headers": {} if self._api_key else {"Authorization": openai.Omit()},
                },
            )
        except openai.APIStatusError as error:
            raise self._status_error(error) from error
        except openai.APITimeoutError as error:
            raise self._timeout_error(seconds) from error
        except openai.APIConnectionError as error:
            reason = self._redacted(str(error.__cause__ or error))
            message = (
                f"provider {self._id!r}: no connection to {_without_credentials(self._base_url)} "
                f"({reason}); check that the endpoint runs and `base_url`"
            )
            raise ProviderError(message, transient=True) from error
        except (openai.APIError, ValueError) as error:
            reason = self._redacted(str(error))
            message = f"provider {self._id!r}: the endpoint's answer cannot be read: {reason}"
            raise ProviderError(message, transient=True) from error
        return cast("JsonValue", answer)

    def _connected(self) -> "openai.OpenAI":
        # Performance: importing the SDK takes 1.7 s, which a run without it does not pay.
        import openai

        with self._lock:
            if self._client is None:
                client = openai.OpenAI(
                    api_key=self._api_key or "none", base_url=self._base_url, max_retries=0
                )
                # The SDK fills these from the environment when they are not given.
                client.organization = None
                client.project = None
                client.admin_api_key = None
                self._client = client
            return self._client

    def _waited(
        self, call: Callable[[], JsonValue], seconds: float, cancelled: Cancelled
    ) -> JsonValue:
        """Return what a call gives; give it up when the run is stopped or the deadline is over.

        The SDK's timeouts are for each read, so that a server that drips bytes would never run into
        them; the deadline here is total. A call that is given up ends in its own thread.
        """
        results: list[JsonValue] = []
        errors: list[Exception] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.append(call())
            except Exception as error:  # noqa: BLE001  # Raised again below, in the caller's thread.
                errors.append(error)
            finally:
                done.set()

        context = contextvars.copy_context()
        name = f"provider-{self._id}"
        threading.Thread(target=context.run, args=(work,), name=name, daemon=True).start()
        end = time.monotonic() + seconds
        while not done.wait(POLL_SECONDS):
            if cancelled():
                message = f"provider {self._id!r}: the run was stopped during the call"
                raise RunCancelled(message)
            if time.monotonic() >= end:
                raise self._timeout_error(seconds)
        if errors:
            raise errors[0]
        return results[0]

    def _status_error(self, error: "openai.APIStatusError") -> ProviderError:
        status = error.status_code
        final = error.code in FINAL_CODES
        body = error.body if isinstance(error.body, dict) else {}
        said = self._redacted(str(body.get("message") or error.message))
        remedy = {
            401: "; check the provider's `api_key`",
            403: "; check the rights of the provider's `api_key`",
            404: "; check `base_url` (with its `/v1`) and the model's name",
        }.get(status, "")
        message = f"provider {self._id!r} answered {status}: {said}{remedy}"
        return ProviderError(
            message,
            transient=status in TRANSIENT_STATUS and not final,
            retry_after_seconds=_retry_after(error.response.headers),
        )

    def _timeout_error(self, seconds: float) -> ProviderError:
        message = (
            f"provider {self._id!r}: no answer from {_without_credentials(self._base_url)} within "
            f"{seconds:g} s; raise `timeout_seconds`, or choose a faster model"
        )
        return ProviderError(message, transient=True)

    def _redacted(self, text: str) -> str:
        secrets = [self._api_key, urlsplit(self._base_url).password]
        for secret in secrets:
            if secret:
                text = text.replace(secret, "***")
        plain = " ".join(text.split())
        return plain if len(plain) <= ERROR_CHARS_MAX else plain[:ERROR_CHARS_MAX] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the endpoint's own word on when to try again, in seconds."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        said = headers.get("retry-after")
        if not said:
            return None
        if said.strip().replace(".", "", 1).isdigit():
            return float(said)
        return max(0.0, (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    where = f"{host}:{parts.port}" if parts.port else host
    # A query may name a version of the interface, and may hold a key: it counts by its digest.
    query = sha256_hex(parts.query)[:16] if parts.query else ""
    return urlunsplit((parts.scheme, where, parts.path, query, ""))
