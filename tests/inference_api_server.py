"""The real Inference API on loopback, in a thread, over twins of its stores.

    with inference_api() as api:
        api.client().search("anns", "harbour", limit=3)

Three users: `ann` owns the project `anns`, `ben` owns `bens`, `olga` is an admin; `nobodys` has no
owner. Each project's one file says whose it is.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import jwt
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from apps.api_server import Access, InferenceApiServer
from reprise.model.execution import Execution
from reprise.model.project import MediaKind, ProjectFile
from reprise.model.search import IndexedFile, Passage
from reprise.model.user import User
from reprise.ports import ProjectIndex
from resources.inference_api import InferenceApi
from resources.memory_project_index import MemoryProjectIndex
from resources.memory_projects import MemoryProjectRegistry
from resources.memory_users import MemoryUserRegistry
from resources.on_behalf_tokens import OnBehalfTokens

KEY = "the signing key of these tests, long enough for any of the HMACs: 64 bytes"
START_SECONDS_MAX = 30.0


def now() -> datetime:
    return datetime.now(UTC)


def execution_of(user_id: str | None, name: str = "run-1") -> Execution:
    """Return an execution in a user's name."""
    return Execution(execution_id=name, run_id=name, initiator_id=user_id)


@dataclass(frozen=True)
class Call:
    """What the server was sent."""

    path: str
    authorization: str | None

    @property
    def claims(self) -> dict[str, object]:
        """The token's claims, unverified; empty without a token."""
        if self.authorization is None:
            return {}
        token = self.authorization.removeprefix("Bearer ")
        found: dict[str, object] = jwt.decode(token, options={"verify_signature": False})
        return found


@dataclass
class Api:
    """The server, its stores, and what it was sent."""

    url: str = ""
    users: MemoryUserRegistry = field(default_factory=MemoryUserRegistry)
    projects: MemoryProjectRegistry = field(default_factory=MemoryProjectRegistry)
    index: ProjectIndex = field(default_factory=MemoryProjectIndex)
    tokens: OnBehalfTokens = field(default_factory=lambda: OnBehalfTokens(KEY, clock=now))
    calls: list[Call] = field(default_factory=list)
    clients: list[InferenceApi] = field(default_factory=list)

    def client(self, url: str | None = None, tokens: OnBehalfTokens | None = None) -> InferenceApi:
        """Return a client; it has the server's own users and tokens."""
        issue = (tokens or self.tokens).issue
        made = InferenceApi(url or self.url, issue=issue, users=self.users, timeout_seconds=20)
        self.clients.append(made)
        return made

    def fill(self) -> None:
        """Add the three users and four projects."""
        for name in ("ann", "ben", "olga"):
            user = User(id=name, email=f"{name}@example.org", is_admin=name == "olga")
            self.users.add_user(user)
        for project, owner in {"anns": "ann", "bens": "ben", "nobodys": None}.items():
            self.projects.add_project(project, now=now(), owner_id=owner)
            passage = Passage(text=f"the harbour of {project}", start_line=1, end_line=1)
            file = IndexedFile(name="notes.md", content_digest="a" * 64, passages=(passage,))
            self.index.put(project, file)
            self.projects.put_file(
                ProjectFile(
                    id="notes",
                    project_id=project,
                    name="notes.md",
                    storage_key="k",
                    size_bytes=9,
                    content_digest="a" * 64,
                    media_kind=MediaKind.DOCUMENT,
                    uploaded_at=now(),
                )
            )


@contextlib.contextmanager
def inference_api(api: Api | None = None) -> Iterator[Api]:
    """Serve the Inference API until the block ends."""
    api = api or Api()
    api.fill()
    app = InferenceApiServer(Access(api.tokens, api.users, api.projects), api.index).app()
    with served(recording(app, api.calls)) as api.url:
        yield api
        for client in api.clients:
            client.close()


def recording(app: ASGIApp, calls: list[Call]) -> ASGIApp:
    """Return the application, with what it is sent noted in a list."""

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        given = headers.get(b"authorization")
        calls.append(Call(scope["path"], None if given is None else given.decode()))
        await app(scope, receive, send)

    return noted


@contextlib.contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an application on loopback; give its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=True)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + START_SECONDS_MAX
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            assert time.monotonic() < end
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS_MAX)
        listener.close()
        logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)
