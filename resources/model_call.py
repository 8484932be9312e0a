"""One call of a model's endpoint: bytes out, JSON back, in a thread that can be given up.

A deadline holds for the whole call, an idle time-out for streams; no redirect is followed (it would
carry the prompt to a host that nobody chose); errors say what to do and hold no secret.

Source: specification A4, A7; research/agents.md section 5. Tests:
tests/integration/test_provider_transport.py, against a loopback server.
"""

import contextlib
import contextvars
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from pydantic import JsonValue

from reprise.agents.json_parts import part, text
from reprise.agents.rate_headers import retry_after_seconds
from reprise.canonical import sha256_hex
from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ProviderError
from reprise.ports import Cancelled

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
"""Longest wait for a connection."""

POLL_SECONDS = 0.1
"""How often a waiting call looks whether the run is being stopped."""

ANSWER_BYTES_MAX = 64 * 2**20
"""A longer answer is given up, in bytes."""

SECRET_CHARS_MIN = 6
"""What is shorter is no secret, and taking it out would garble messages."""

ERROR_CHARS_MAX = 300
"""An endpoint's own words in an error are cut after this many characters."""

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Answers after which the same call may go through later."""

FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes that make a 429 final: waiting brings no money."""

FINAL_KINDS = frozenset(
    {
        "authentication_error",
        "billing_error",
        "invalid_request_error",
        "not_found_error",
        "permission_error",
        "request_too_large",
    }
)
"""Errors in the middle of a stream after which the same call would fail again."""

REMEDIES: Mapping[int, str] = {
    301: "; the endpoint is elsewhere, set `base_url` to its new address",
    302: "; the endpoint is elsewhere, set `base_url` to its new address",
    307: "; the endpoint is elsewhere, set `base_url` to its new address",
    308: "; the endpoint is elsewhere, set `base_url` to its new address",
    401: "; check the provider's `api_key`",
    403: "; check the rights of the provider's `api_key`",
    404: "; check `base_url` and the model's name",
}


class Sdk(NamedTuple):
    """An official SDK and a client of it."""

    module: ModuleType
    client: Any


class Ask(NamedTuple):
    """One call."""

    path: str
    """Below the base address."""
    body: bytes
    """JSON."""
    model: str
    """The model that is asked."""
    seconds: float
    """The request's own deadline; the endpoint's may be shorter."""


@dataclass(frozen=True)
class Endpoint:
    """Where a provider's calls go."""

    provider_id: str
    """The provider's id in the settings, for messages."""
    base_url: str = field(repr=False)
    """Its address; may hold a user, a password and a query, which are sent and not shown."""
    api_key: str | None = field(default=None, repr=False)
    """Its key; None for one that wants none."""
    timeout_seconds: float = 300.0
    """Total deadline of one call; a request may set a shorter one."""
    stream: bool = False
    """Answers are asked for as a stream."""
    idle_seconds: float = 60.0
    """Longest silence of a stream."""
    concurrency: int = 8
    """Most calls of one model at once."""
    requests_per_minute: int | None = None
    """Most calls of one model in any minute; None sets no bound."""

    @property
    def public_url(self) -> str:
        """The address without user, password and query."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        where = f"{host}:{parts.port}" if parts.port else host
        # A query may name a version of the interface, and may hold a key: it counts by its digest.
        query = sha256_hex(parts.query)[:16] if parts.query else ""
        return urlunsplit((parts.scheme, where, parts.path, query, ""))

    @property
    def bare_url(self) -> str:
        """The address without its query."""
        return urlunsplit(urlsplit(self.base_url)._replace(query="", fragment=""))

    @property
    def query(self) -> dict[str, str]:
        """What every call has in its query, such as the version of an interface."""
        return dict(parse_qsl(urlsplit(self.base_url).query))

    @property
    def host(self) -> str:
        """The address's host."""
        return urlsplit(self.base_url).hostname or ""

    def redacted(self, words: str) -> str:
        """Return an endpoint's words on one line, cut, without the secrets that it was given."""
        address = urlsplit(self.base_url)
        # Some services take the key as the address's user. A client may say it decoded.
        users = [word for word in (address.username, address.password) if word]
        given = (self.api_key, *users, *map(unquote, users), *self.query.values())
        for secret in given:
            if secret and len(secret) >= SECRET_CHARS_MIN:
                words = words.replace(secret, "***")
        plain = " ".join(words.split())
        return plain if len(plain) <= ERROR_CHARS_MAX else plain[:ERROR_CHARS_MAX] + "…"


@dataclass
class Exchange:
    """What came back, filled while it comes; after a failure it holds what came before."""

    documents: list[JsonValue] = field(default_factory=list)
    """The answer, or a stream's events."""
    streamed: bool = False
    """The answer came as a stream."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The response's headers."""
    may_cost: bool = False
    """The endpoint took the call, and may charge for it though no answer came of it."""


class _TooLong(Exception):
    """An answer is longer than `ANSWER_BYTES_MAX`."""


class Call:
    """One call, in a thread of its own, so that it can be given up."""

    def __init__(self, endpoint: Endpoint, ask: Ask, into: Exchange) -> None:
        self._endpoint = endpoint
        self._ask = ask
        self._into = into
        self._seconds = min(endpoint.timeout_seconds, ask.seconds)
        self._response: httpx2.Response | None = None
        self._given_up = False
        self._error: Exception | None = None
        self._done = threading.Event()

    def wait(self, connected: Callable[[], Sdk], cancelled: Cancelled) -> None:
        """Return when the answer is there.

        The time-outs of HTTP clients are for each read, so that a server that drips bytes would
        never run into them; the deadline here is total.
        """
        context = contextvars.copy_context()
        name = f"provider-{self._endpoint.provider_id}"
        run = (self._run, connected)
        threading.Thread(target=context.run, args=run, name=name, daemon=True).start()
        end = time.monotonic() + self._seconds
        while not self._done.wait(POLL_SECONDS):
            if cancelled():
                self._give_up()
                who = f"provider {self._endpoint.provider_id!r}"
                message = f"{who}: the run was stopped during the call"
                raise RunCancelled(message)
            if time.monotonic() >= end:
                self._give_up()
                raise self._too_slow()
        # Raised here, outside any handler: the SDK's own error, which may quote the key, is not
        # chained to it.
        if self._error is not None:
            raise self._error

    def _run(self, connected: Callable[[], Sdk]) -> None:
        try:
            sdk = connected()
            try:
                self._exchange(sdk)
            except Exception as error:  # noqa: BLE001  # Told to the caller's thread.
                self._error = self._translated(error, sdk.module)
        except Exception as error:  # noqa: BLE001  # As above: a client that cannot be made.
            self._error = error
        finally:
            self._done.set()

    def _exchange(self, sdk: Sdk) -> None:
        endpoint, module = self._endpoint, sdk.module
        # An answer that comes in one piece is silent until it is complete.
        silence = min(endpoint.idle_seconds if endpoint.stream else self._seconds, self._seconds)
        connect = min(CONNECT_SECONDS, self._seconds)
        headers = {"Content-Type": "application/json"}
        if endpoint.api_key is None:
            # An endpoint that wants no key gets none, not even a made-up one.
            headers["Authorization"] = module.Omit()
        self._into.may_cost = True
        stream = sdk.client.post(
            self._ask.path,
            cast_to=object,
            content=self._ask.body,
            stream=True,
            stream_cls=module.Stream[object],
            options={
                "timeout": module.Timeout(silence, connect=connect),
                "follow_redirects": False,
                "headers": headers,
            },
        )
        self._response = response = stream.response
        self._into.headers = _lower(response.headers)
        with contextlib.closing(response):
            if "event-stream" not in self._into.headers.get("content-type", ""):
                self._into.documents.append(self._read_whole(response))
                return
            self._into.streamed = True
            for document in stream:
                self._into.documents.append(document)
                if self._given_up:
                    return
                if response.num_bytes_downloaded > ANSWER_BYTES_MAX:
                    raise _TooLong

    def _read_whole(self, response: "httpx2.Response") -> JsonValue:
        import json  # The SDK's own choice for bodies; a bad one raises ValueError.

        pieces: list[bytes] = []
        for piece in response.iter_bytes():
            if response.num_bytes_downloaded > ANSWER_BYTES_MAX:
                raise _TooLong
            if self._given_up:
                break
            pieces.append(piece)
        document: JsonValue = json.loads(b"".join(pieces))
        return document

    def _give_up(self) -> None:
        """Let the call's thread end: wake it where it waits for the network."""
        self._given_up = True
        response = self._response
        if response is None:
            return
        with contextlib.suppress(Exception):  # Whatever is wrong with the socket, it is no use.
            stream = response.extensions["network_stream"]
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _translated(self, error: Exception, sdk: Any) -> ProviderError:
        import httpx2  # Lazy, as the SDKs: half a second.

        match error:
            case sdk.APIStatusError() if not self._into.streamed:
                self._into.headers = _lower(error.response.headers)
                return self._refusal(error)
            case sdk.APITimeoutError() | httpx2.TimeoutException():
                if isinstance(error.__cause__ or error, httpx2.ConnectTimeout):
                    return self._no_connection(error)
                return self._too_slow(idle=self._endpoint.stream)
            case sdk.APIConnectionError() | httpx2.TransportError() | httpx2.StreamError():
                return self._no_connection(error)
            case _TooLong():
                message = f"the endpoint's answer is longer than {ANSWER_BYTES_MAX} bytes"
                return self._error_of(message)
            case sdk.APIError() if self._into.streamed:
                return self._broken_off(error)
            case _:
                reason = self._endpoint.redacted(str(error))
                message = f"the endpoint's answer cannot be read: {reason}"
                return self._error_of(message, transient=True)

    def _refusal(self, error: Any) -> ProviderError:
        self._into.may_cost = False
        status: int = error.status_code
        inner = part(error.body, "error") or error.body
        final = text(part(inner, "code")) in FINAL_CODES
        said = self._endpoint.redacted(text(part(inner, "message")) or str(error))
        return self._error_of(
            f"answered {status}: {said}{REMEDIES.get(status, '')}",
            transient=status in TRANSIENT_STATUS and not final,
            retry_after_seconds=retry_after_seconds(self._into.headers, datetime.now(UTC)),
        )

    def _broken_off(self, error: Any) -> ProviderError:
        """Return the error that an endpoint told in the middle of its stream."""
        inner = part(error.body, "error") or error.body
        kind = text(part(inner, "type")) or "an error"
        said = self._endpoint.redacted(text(part(inner, "message")) or str(error))
        message = f"the answer broke off with {kind}: {said}"
        return self._error_of(message, transient=kind not in FINAL_KINDS)

    def _no_connection(self, error: Exception) -> ProviderError:
        reason = self._endpoint.redacted(str(error.__cause__ or error))
        if self._into.documents:
            return self._error_of(f"the answer broke off in the middle ({reason})", transient=True)
        self._into.may_cost = self._response is not None
        message = (
            f"no connection to {self._endpoint.public_url} ({reason}); check that the endpoint "
            "runs and `base_url`"
        )
        return self._error_of(message, transient=True)

    def _too_slow(self, *, idle: bool = False) -> ProviderError:
        endpoint = self._endpoint
        if idle and endpoint.idle_seconds < self._seconds:
            message = (
                f"the answer from {endpoint.public_url} stopped coming: nothing for "
                f"{endpoint.idle_seconds:g} s (`idle_seconds`)"
            )
        else:
            message = (
                f"no answer from {endpoint.public_url} within {self._seconds:g} s; raise "
                "`timeout_seconds`, or choose a faster model"
            )
        return self._error_of(message, transient=True)

    def _error_of(self, message: str, **fields: Any) -> ProviderError:
        space = " " if message.startswith("answered") else ": "
        return ProviderError(f"provider {self._endpoint.provider_id!r}{space}{message}", **fields)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _PlainAddresses(logging.Filter):
    """Takes user, password and query off the addresses that the HTTP client logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        import httpx2

        if isinstance(record.args, tuple):
            record.args = tuple(
                f"{item.scheme}://{item.host}{item.path}" if isinstance(item, httpx2.URL) else item
                for item in record.args
            )
        return True


_PLAIN_ADDRESSES = _PlainAddresses()


def keep_secrets_out_of_log() -> None:
    """Have the HTTP client and the SDKs log addresses without user, password and query."""
    # One filter for all: adding the same one again changes nothing.
    for name in ("httpx2", "openai._base_client", "anthropic._base_client"):
        logging.getLogger(name).addFilter(_PLAIN_ADDRESSES)
