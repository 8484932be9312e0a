"""The Inference API: searches projects for whoever shows a token of their own.

    POST /api/v1/projects/{id}/files/search     {"query": …, "limit": …} → a `SearchAnswer`
    GET  /api/v1/projects/{id}/files/revision   the state that searches are answered from
    GET  /api/v1/health                         open to all

The table of users decides, and the token only narrows: its user must still be there under that
e-mail address, and is an admin when both say so. A project that is not there and one of somebody
else get the same answer. Errors are JSON: `error`, and `what_to_do`.

Source: specification O; R9.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reprise.errors import BadInput, StoreError
from reprise.model.base import Value
from reprise.model.project import Project
from reprise.model.search import HITS_MAX, SearchAnswer
from reprise.model.user import User
from reprise.ports import ProjectRegistry, ProjectSearch, UserRegistry
from resources.on_behalf_tokens import OnBehalfTokens, TokenRefused

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 64 * 1024
BODY_SECONDS_MAX = 10.0
QUERY_CHARS_MAX = 2000
LIMIT_DEFAULT = 10


class SearchRequest(Value):
    """The body of a search."""

    query: str = Field(min_length=1, max_length=QUERY_CHARS_MAX)
    """Any text; all of it is words, none of it is syntax."""
    limit: int = Field(default=LIMIT_DEFAULT, ge=1, le=HITS_MAX, strict=True)
    """Most hits."""


class Refused(Exception):
    """A request that gets no answer but an error.

    Args:
        status: The HTTP status.
        error: What is wrong.
        what_to_do: The remedy.
    """

    def __init__(self, status: int, error: str, what_to_do: str) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.what_to_do = what_to_do


@dataclass(frozen=True)
class Access:
    """Who may read what."""

    tokens: OnBehalfTokens
    users: UserRegistry
    projects: ProjectRegistry

    def user(self, authorization: str | None) -> User:
        """Return the user whom an `Authorization` header proves, with the lesser rights.

        Raises:
            Refused: 401; why is logged, and told to nobody.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            reason = "no bearer token"
            raise _unauthorized(reason)
        try:
            claims = self.tokens.verify(token.strip())
        except TokenRefused as error:
            raise _unauthorized(str(error)) from None
        user = self.users.user(claims.user_id)
        if user is None:
            reason = "there is no such user any more"
            raise _unauthorized(reason)
        if user.email.casefold() != claims.email.casefold():
            # The id may have been given to somebody else since.
            reason = "the user has another e-mail address now"
            raise _unauthorized(reason)
        return user.model_copy(update={"is_admin": user.is_admin and claims.is_admin})

    def project(self, user: User, name: str) -> Project:
        """Return a project that a user may read.

        Raises:
            Refused: 404, whether it is somebody else's or not there at all.
        """
        project = self.projects.project(name)
        if project is None or not (user.is_admin or project.owner_id == user.id):
            error = "you have no such project"
            what_to_do = "check its name; its owner or an admin can have it given to you"
            raise Refused(404, error, what_to_do)
        return project


@dataclass(frozen=True)
class InferenceApiServer:
    """The endpoints."""

    access: Access
    search: ProjectSearch

    def app(self) -> Starlette:
        """Return the ASGI application."""
        files = "/api/v1/projects/{project}/files"
        return Starlette(
            routes=[
                Route(f"{files}/search", self._guarded(self._search), methods=["POST"]),
                Route(f"{files}/revision", self._guarded(self._revision), methods=["GET"]),
                Route("/api/v1/health", _health, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _http_error},
        )

    async def _search(self, request: Request, project: Project) -> Response:
        body = await _body(request)
        try:
            asked = SearchRequest.model_validate_json(body)
        except ValidationError as error:
            raise _bad_body(error) from None
        answer = await run_in_threadpool(self._found, project.id, asked)
        return JSONResponse(answer.model_dump(mode="json"))

    def _found(self, project_id: str, asked: SearchRequest) -> SearchAnswer:
        answer = self.search.search(project_id, asked.query, limit=asked.limit)
        # After the search: what was removed meanwhile is shown to nobody.
        files = self.access.projects.files(project_id)
        return answer.within({file.name: file.content_digest for file in files})

    async def _revision(self, _request: Request, project: Project) -> Response:
        revision = await run_in_threadpool(self.search.revision, project.id)
        return JSONResponse({"revision": revision})

    def _guarded(
        self, endpoint: Callable[[Request, Project], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                # Who asks is settled before a byte of the body is read.
                project = await run_in_threadpool(self._allowed, request)
                return await endpoint(request, project)
            except Refused as error:
                return _error(error.status, error.error, error.what_to_do)
            except ClientDisconnect:
                return Response(status_code=499)
            except BadInput as error:
                # Its own words may name a file of this machine.
                logger.warning("a query was refused: %s", error)
                return _error(400, "the query cannot be searched", "change the query")
            except StoreError as error:
                logger.warning("a store failed: %s", error)
                return _error(503, "the index cannot be read now", "try again later")
            except Exception:
                # The server goes on for everybody else, and tells nobody what it holds.
                logger.exception("a request failed")
                return _error(500, "the server failed", "see the server's log")

        return guarded

    def _allowed(self, request: Request) -> Project:
        headers = request.headers.getlist("authorization")
        user = self.access.user(headers[0] if len(headers) == 1 else None)
        project = self.access.project(user, request.path_params["project"])
        logger.info("user %s asks for project %s", user.id, project.id)
        return project


async def _body(request: Request) -> bytes:
    """Return a request's body, as long as it is short and comes in time.

    Raises:
        Refused: 413 or 408.
    """
    parts: list[bytes] = []
    size_bytes = 0
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for part in request.stream():
                parts.append(part)
                size_bytes += len(part)
                if size_bytes > BODY_BYTES_MAX:
                    error = f"the body is longer than {BODY_BYTES_MAX} bytes"
                    raise Refused(413, error, "shorten the query")
    except TimeoutError:
        error = f"the body did not come within {BODY_SECONDS_MAX:g} seconds"
        raise Refused(408, error, "send it at once") from None
    return b"".join(parts)


def _bad_body(error: ValidationError) -> Refused:
    problems = "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False, include_context=False)
    )
    what_to_do = (
        '{"query": text, "limit": number}: the query has 1 to '
        f"{QUERY_CHARS_MAX} characters, the limit is 1 to {HITS_MAX}"
    )
    return Refused(400, problems, what_to_do)


def _unauthorized(why: str) -> Refused:
    logger.info("401: %s", why)
    error = "no valid token"
    return Refused(401, error, "send `Authorization: Bearer …` with a fresh token of yours")


def _error(status: int, error: str, what_to_do: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    content = {"error": error, "what_to_do": what_to_do}
    return JSONResponse(content, status_code=status, headers=headers)


async def _health(_request: Request) -> Response:
    return JSONResponse({"ok": True})


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else "error"
    return _error(status, detail, "see the documentation of the Inference API")
