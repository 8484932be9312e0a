"""The client of the Inference API: searches a project's files in the name of the run's initiator.

Each request gets a token of its own, made from the ambient execution and from what the table of
users says at that moment. Without an execution, an initiator or such a user it goes out without a
token, with a warning; there is no other identity to fall back on. Redirects are not followed, so
neither a token nor a query reaches another host; proxies of the environment are not used.

Source: specification O1 to O4. Tests: tests/integration/test_inference_api.py, against the real
server.
"""

import logging
import re
import weakref
from collections.abc import Callable, Generator
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import Field, ValidationError

from reprise.errors import InferenceApiError, NotAuthorized, StoreTimeout
from reprise.model.base import Value
from reprise.model.execution import Execution, current_execution
from reprise.model.search import SearchAnswer
from reprise.model.user import User
from reprise.ports import UserRegistry
from resources.guarded_stores import Guard, unguarded

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
REVISION_SECONDS = 5.0
ANSWER_BYTES_MAX = 4 * 2**20
ERROR_CHARS_MAX = 300
UNAUTHORIZED = 401
NOT_FOUND_STATUS = frozenset({403, 404})
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})

_TOKEN = re.compile(r"\beyJ[\w-]*\.[\w-]*\.?[\w-]*")
_Answer = TypeVar("_Answer", bound=Value)

Issue = Callable[[User, Execution], str]
"""Makes a token with which an execution asks in a user's name."""


class _Sent(NamedTuple):
    """What came back."""

    status: int
    data: bytes
    location: str | None


class FilesRevision(Value):
    """The state that a project's searches are answered from."""

    revision: str = Field(min_length=1)
    """As `ProjectSearch.revision` gives it."""


class InferenceApi:
    """A `ProjectSearch` that asks the Inference API.

    Args:
        url: Where it answers, without the path.
        issue: Makes a token.
        users: The table of users.
        timeout_seconds: Total deadline of a search; a revision, which each step of an agent that
            may search asks for, has `REVISION_SECONDS` at most.
        deadline: Gives the guard that runs a call under so long a deadline; without one, the
            deadline holds for each part of an answer.
    """

    def __init__(
        self,
        url: str,
        *,
        issue: Issue,
        users: UserRegistry,
        timeout_seconds: float = 30.0,
        deadline: Callable[[float], Guard] = lambda _seconds: unguarded,
    ) -> None:
        self._url = url
        self._search_guard = deadline(timeout_seconds)
        self._revision_guard = deadline(min(REVISION_SECONDS, timeout_seconds))
        self._client = httpx2.Client(
            auth=_OnBehalf(issue, users),
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            follow_redirects=False,
            trust_env=False,
        )
        self._closer = weakref.finalize(self, self._client.close)

    def search(self, project_id: str, query: str, *, limit: int) -> SearchAnswer:
        """Return the passages that hold words of a query; see `ProjectSearch`.

        Raises:
            NotAuthorized: It knows no such user, or no such project of theirs.
            InferenceApiError: It refused, failed or did not answer; `transient` tells which.
        """
        body: dict[str, str | int] = {"query": query, "limit": limit}
        url = self._url_of(project_id, "search")
        answer = self._asked(
            project_id,
            SearchAnswer,
            lambda: self._search_guard(lambda: self._sent("POST", url, body)),
        )
        return answer.model_copy(update={"revision": self._revision_of(answer.revision)})

    def revision(self, project_id: str) -> str:
        """Return what searches are answered from, and by whom; see `ProjectSearch`.

        It goes into cache keys: of the endpoint its address, and nothing of who asks.

        Raises:
            NotAuthorized, InferenceApiError: As `search` does.
        """
        url = self._url_of(project_id, "revision")
        found = self._asked(
            project_id, FilesRevision, lambda: self._revision_guard(lambda: self._sent("GET", url))
        )
        return self._revision_of(found.revision)

    def close(self) -> None:
        """Close its connections."""
        self._closer()

    def _revision_of(self, revision: str) -> str:
        return f"{self._url} {revision}"

    def _url_of(self, project_id: str, what: str) -> str:
        return f"{self._url}/api/v1/projects/{quote(project_id, safe='')}/files/{what}"

    def _asked(self, project_id: str, kind: type[_Answer], send: Callable[[], _Sent]) -> _Answer:
        try:
            status, data, location = send()
        except StoreTimeout as error:
            message = f"{self._name}: {error}"
            raise InferenceApiError(message, transient=True) from error
        except httpx2.TimeoutException as error:
            message = f"{self._name} gave no answer in time; see whether it is up"
            raise InferenceApiError(message, transient=True) from error
        except httpx2.TransportError as error:
            message = (
                f"{self._name} cannot be reached ({error}); see whether `reprise api` runs and "
                "REPRISE_INFERENCE_API__URL"
            )
            raise InferenceApiError(message, transient=True) from error
        except UnicodeError as error:
            message = f"{self._name}: the query cannot be sent: it is no valid text"
            raise InferenceApiError(message) from error
        if status != httpx2.codes.OK:
            raise self._refused(status, data, location, project_id)
        try:
            return kind.model_validate_json(data)
        except ValidationError as error:
            message = f"{self._name}: its answer cannot be read; compare the versions"
            raise InferenceApiError(message) from error

    def _sent(self, method: str, url: str, body: dict[str, str | int] | None = None) -> _Sent:
        with self._client.stream(method, url, json=body) as response:
            parts: list[bytes] = []
            size_bytes = 0
            for part in response.iter_bytes():
                parts.append(part)
                size_bytes += len(part)
                if size_bytes > ANSWER_BYTES_MAX:
                    message = f"{self._name}: its answer is longer than {ANSWER_BYTES_MAX} bytes"
                    raise InferenceApiError(message)
            location = response.headers.get("location")
            return _Sent(response.status_code, b"".join(parts), location)

    def _refused(
        self, status: int, data: bytes, location: str | None, project_id: str
    ) -> InferenceApiError:
        execution = current_execution()
        who = execution.initiator_id if execution is not None else None
        if status == UNAUTHORIZED and who is None:
            message = (
                f"{self._name} answered 401: this run works in nobody's name; set "
                "REPRISE_INFERENCE_API__USER for the command line, "
                "REPRISE_INFERENCE_API__SCHEDULED_USER for schedules, or "
                "REPRISE_INFERENCE_API__PROXY_HEADER for the UI"
            )
            return NotAuthorized(message, status=status)
        if status == UNAUTHORIZED:
            message = (
                f"{self._name} answered 401: it does not accept user {who!r}; see that both sides "
                "have the same signing key and the same users (`reprise user list`)"
            )
            return NotAuthorized(message, status=status)
        if status in NOT_FOUND_STATUS:
            message = (
                f"{self._name} answered {status}: user {who!r} has no project {project_id!r}; "
                "its owner or an admin may search it (`reprise project own`)"
            )
            return NotAuthorized(message, status=status)
        if location is not None:
            host = urlsplit(location).netloc or "another path"
            message = (
                f"{self._name} answered {status}: it redirects to {_shown(host)}; tokens go "
                "nowhere else, so set REPRISE_INFERENCE_API__URL to the final address"
            )
            return InferenceApiError(message, status=status)
        message = f"{self._name} answered {status}: {_shown(data.decode(errors='replace'))}"
        return InferenceApiError(message, transient=status in TRANSIENT_STATUS, status=status)

    @property
    def _name(self) -> str:
        return f"the Inference API at {self._url}"


class _OnBehalf(httpx2.Auth):
    """Puts a token of the execution's initiator on a request."""

    def __init__(self, issue: Issue, users: UserRegistry) -> None:
        self._issue = issue
        self._users = users

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Send a request with a token; once more with a fresh one when it is answered 401."""
        token = self._token()
        if token is None:
            yield request
            return
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == UNAUTHORIZED:
            # It may have expired on its way; what it says may have changed meanwhile.
            token = self._token()
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
                yield request

    def _token(self) -> str | None:
        execution = current_execution()
        if execution is None:
            logger.warning("the Inference API is asked without a token: no run works here")
            return None
        if execution.initiator_id is None:
            logger.warning(
                "the Inference API is asked without a token: run %s works in nobody's name",
                execution.run_id,
            )
            return None
        user = self._users.user(execution.initiator_id)
        if user is None:
            logger.warning(
                "the Inference API is asked without a token: there is no user %r any more, in whose"
                " name run %s works",
                execution.initiator_id,
                execution.run_id,
            )
            return None
        return self._issue(user, execution)


def _shown(text: str) -> str:
    """Return another's words on one line, cut, and without a token that they may repeat."""
    plain = " ".join(_TOKEN.sub("***", text).split())
    return plain if len(plain) <= ERROR_CHARS_MAX else plain[:ERROR_CHARS_MAX] + "…"
