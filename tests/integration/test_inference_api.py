"""The client of the Inference API against the real server: who is let in, and what leaks nowhere.

The token attack table of specification R9, from the engine's side. Hand-made tokens are in
test_api_server.py.
"""

import logging
import socket
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from reprise.errors import InferenceApiError, NotAuthorized, StoreError
from reprise.model.execution import executing, in_this_execution
from reprise.model.search import SearchAnswer
from reprise.model.user import User
from resources.deadline import Deadline
from resources.inference_api import ANSWER_BYTES_MAX, InferenceApi
from resources.memory_users import MemoryUserRegistry
from resources.on_behalf_tokens import OnBehalfTokens
from tests.inference_api_server import (
    KEY,
    Api,
    Call,
    execution_of,
    inference_api,
    now,
    recording,
    served,
)


@pytest.fixture
def api() -> Iterator[Api]:
    with inference_api() as made:
        yield made


@pytest.fixture
def client(api: Api) -> InferenceApi:
    return api.client()


def answers(status: int, body: str = "", **headers: str) -> Starlette:
    """Return an application that answers everything alike."""

    def answer(_request: Request) -> Response:
        return PlainTextResponse(body, status_code=status, headers=headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


def failure(client: InferenceApi, user: str = "ann", query: str = "harbour") -> InferenceApiError:
    """Return the error with which a search of the user's project ends."""
    with executing(execution_of(user)), pytest.raises(InferenceApiError) as caught:
        client.search(f"{user}s", query, limit=1)
    return caught.value


def test_the_initiator_gets_what_the_index_answers(api: Api, client: InferenceApi) -> None:
    with executing(execution_of("ann", "run-7")):
        answer = client.search("anns", "harbour", limit=3)
        revision = client.revision("anns")
    known = f"{api.url} {api.index.revision('anns')}"
    same = {"revision": known}
    assert answer == api.index.search("anns", "harbour", limit=3).model_copy(update=same)
    assert [hit.snippet for hit in answer.hits] == ["the harbour of anns"]
    assert revision == known
    claims = api.calls[0].claims
    assert claims.pop("exp") == int(str(claims.pop("iat"))) + 300
    assert claims == {
        "sub": "ann",
        "email": "ann@example.org",
        "isAdmin": False,
        "act": "workflow-engine",
        "executionId": "run-7",
    }


def test_who_asks_is_no_part_of_what_a_search_rests_on(client: InferenceApi) -> None:
    revisions = set()
    for name in ("ann", "olga"):
        with executing(execution_of(name, f"run-of-{name}")):
            revisions.add(client.revision("anns"))
    assert len(revisions) == 1


def test_each_request_has_a_token_of_its_own_made_from_the_table_as_it_is(
    api: Api, client: InferenceApi
) -> None:
    with executing(execution_of("olga")):
        client.search("bens", "harbour", limit=1)
        api.users.remove_user("olga")
        api.users.add_user(User(id="olga", email="o@example.org"))
        with pytest.raises(NotAuthorized):
            client.search("bens", "harbour", limit=1)
    assert [call.claims["isAdmin"] for call in api.calls] == [True, False]
    assert api.calls[1].claims["email"] == "o@example.org"


@pytest.mark.parametrize(
    ("initiator", "words"),
    [
        ("outside", "no run works here"),
        (None, "run run-1 works in nobody's name"),
        ("zoe", "there is no user 'zoe' any more"),
    ],
)
def test_without_a_user_the_request_goes_out_bare_and_is_answered_401(
    api: Api,
    client: InferenceApi,
    initiator: str | None,
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    execution = None if initiator == "outside" else execution_of(initiator)
    with executing(execution), pytest.raises(NotAuthorized) as caught:
        client.search("anns", "harbour", limit=3)
    assert caught.value.status == 401
    assert not caught.value.transient
    # One request, and no second try as somebody else.
    assert api.calls == [Call("/api/v1/projects/anns/files/search", None)]
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert words in warnings[0]


def test_nobody_is_told_how_to_become_somebody(client: InferenceApi) -> None:
    with executing(execution_of(None)), pytest.raises(NotAuthorized) as caught:
        client.search("anns", "harbour", limit=3)
    assert "this run works in nobody's name; set REPRISE_INFERENCE_API__USER" in str(caught.value)


@pytest.mark.parametrize("project", ["bens", "nobodys", "there-is-none"])
def test_the_project_of_another_is_as_one_that_is_not_there(
    client: InferenceApi, project: str
) -> None:
    with executing(execution_of("ann")), pytest.raises(NotAuthorized) as caught:
        client.search(project, "harbour", limit=3)
    assert caught.value.status == 404
    assert f"answered 404: user 'ann' has no project '{project}'" in str(caught.value)


def test_an_admin_searches_every_project(client: InferenceApi) -> None:
    with executing(execution_of("olga")):
        for project in ("anns", "bens", "nobodys"):
            assert client.search(project, "harbour", limit=1).total == 1


def test_a_user_who_is_removed_after_the_token_was_made_is_refused(api: Api) -> None:
    class Leaves(MemoryUserRegistry):
        """Gives a user and then loses them."""

        def user(self, user_id: str) -> User | None:
            found = super().user(user_id)
            api.users.remove_user(user_id)
            return found

    engine_users = Leaves()
    engine_users.add_user(User(id="ann", email="ann@example.org"))
    client = InferenceApi(api.url, issue=api.tokens.issue, users=engine_users)
    api.clients.append(client)
    with executing(execution_of("ann")), pytest.raises(NotAuthorized) as caught:
        client.search("anns", "harbour", limit=1)
    assert "it does not accept user 'ann'" in str(caught.value)


def test_a_401_is_tried_once_more_with_a_fresh_token_and_not_again(api: Api) -> None:
    issued = iter(["2026-01-01", "2026-01-02"])
    other = OnBehalfTokens("another key of more than 32 bytes, for sure", clock=now)

    class Counted(OnBehalfTokens):
        def issue(self, user: User, execution: object) -> str:
            return other.issue(user, execution_of("ann", next(issued)))

    client = api.client(tokens=Counted(KEY, clock=now))
    with executing(execution_of("ann")), pytest.raises(NotAuthorized):
        client.search("anns", "harbour", limit=1)
    assert [call.claims["executionId"] for call in api.calls] == ["2026-01-01", "2026-01-02"]


def test_a_token_that_expired_on_its_way_is_replaced(api: Api) -> None:
    moments = iter([now() - timedelta(hours=1), now()])
    client = api.client(tokens=OnBehalfTokens(KEY, clock=lambda: next(moments)))
    with executing(execution_of("ann")):
        assert client.search("anns", "harbour", limit=1).total == 1
    assert len(api.calls) == 2


def test_issuer_and_audience_are_in_the_token_and_wanted_by_the_server() -> None:
    strict = OnBehalfTokens(KEY, clock=now, issuer="reprise", audience="inference")
    with inference_api(Api(tokens=strict)) as api, executing(execution_of("ann")):
        assert api.client().search("anns", "harbour", limit=1).total == 1
        for other in (
            OnBehalfTokens(KEY, clock=now),
            OnBehalfTokens(KEY, clock=now, issuer="reprise", audience="films"),
            OnBehalfTokens(KEY, clock=now, issuer="somebody", audience="inference"),
        ):
            with pytest.raises(NotAuthorized):
                api.client(tokens=other).search("anns", "harbour", limit=1)


def test_tokens_of_the_key_before_are_taken_while_keys_are_exchanged() -> None:
    old = OnBehalfTokens(KEY, clock=now)
    new_key = "the new signing key of these tests, of more than 32 bytes"
    both = OnBehalfTokens(new_key, clock=now, previous_key=KEY)
    with inference_api(Api(tokens=both)) as api, executing(execution_of("ann")):
        assert api.client(tokens=old).search("anns", "harbour", limit=1).total == 1
        assert api.client().search("anns", "harbour", limit=1).total == 1


def test_threads_at_once_ask_each_in_the_name_of_its_own_execution(api: Api) -> None:
    client = api.client()
    owners = {"anns": "ann", "bens": "ben", "nobodys": "olga"}

    def ask(project: str, number: int) -> SearchAnswer:
        return client.search(project, f"harbour {number}", limit=1)

    with ThreadPoolExecutor(12) as pool:
        futures = []
        for number in range(60):
            project, owner = list(owners.items())[number % 3]
            with executing(execution_of(owner, f"{owner}-{number}")):
                futures.append(pool.submit(in_this_execution(ask), project, number))
        assert {future.result(60).total for future in futures} == {1}
        # The threads are as they were: what is not handed over is nobody's.
        bare = [pool.submit(ask, "anns", number) for number in range(12)]
        assert all(isinstance(each.exception(60), NotAuthorized) for each in bare)
    named = [call for call in api.calls if call.authorization is not None]
    assert len(named) == 60
    for call in named:
        owner = owners[call.path.split("/")[4]]
        assert call.claims["sub"] == owner
        assert str(call.claims["executionId"]).startswith(f"{owner}-")
    assert len(api.calls) == 72


def test_a_redirect_is_not_followed_and_the_other_host_hears_nothing(api: Api) -> None:
    heard: list[Call] = []
    with served(recording(answers(200, "{}"), heard)) as other:

        def away(request: Request) -> Response:
            return RedirectResponse(f"{other}{request.url.path}", status_code=307)

        redirecting = Starlette(routes=[Route("/{path:path}", away, methods=["POST"])])
        with served(redirecting) as url:
            error = failure(api.client(url))
    assert f"it redirects to {other.removeprefix('http://')}; tokens go nowhere else" in str(error)
    assert heard == []


def test_no_token_is_in_logs_errors_or_reprs(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2", "uvicorn", "uvicorn.access", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    shown: list[str] = []

    def echo(request: Request) -> Response:
        return JSONResponse({"error": dict(request.headers)}, status_code=400)

    echoing = Starlette(routes=[Route("/{path:path}", echo, methods=["POST"])])
    heard: list[Call] = []
    with served(recording(echoing, heard)) as url, executing(execution_of("ann")):
        client = api.client()
        client.search("anns", "harbour", limit=1)
        for project, where in (("bens", client), ("anns", api.client(url))):
            with pytest.raises(InferenceApiError) as caught:
                where.search(project, "harbour", limit=1)
            shown.append("".join(traceback.format_exception(caught.value)))
            shown += [repr(caught.value), repr(where), repr(vars(where)), repr(api.tokens)]
    tokens = [str(c.authorization).removeprefix("Bearer ") for c in (*api.calls, *heard)]
    assert len(tokens) == 3
    text = "\n".join([caplog.text, *shown])
    # The redactions were at work: the loggers spoke, and the echo was quoted.
    assert "HTTP Request" in text
    assert "Bearer ***" in text
    for token in tokens:
        head, body, signature = token.split(".")
        assert head not in text
        assert body not in text
        assert signature not in text
    assert KEY not in text


@pytest.mark.parametrize(
    ("status", "transient"), [(400, False), (413, False), (429, True), (500, True), (503, True)]
)
def test_a_refusal_says_what_was_said_and_whether_to_try_again(
    api: Api, status: int, transient: bool
) -> None:
    with served(answers(status, '{"error": "not so"}')) as url:
        error = failure(api.client(url))
    assert f'answered {status}: {{"error": "not so"}}' in str(error)
    assert (error.transient, error.status) == (transient, status)


def test_an_answer_of_another_form_is_an_error(api: Api) -> None:
    with served(answers(200, '{"hits": 3}')) as url:
        assert "its answer cannot be read" in str(failure(api.client(url)))


def test_an_answer_without_end_is_given_up(api: Api) -> None:
    with served(answers(200, "x" * (ANSWER_BYTES_MAX + 1))) as url:
        assert "its answer is longer than" in str(failure(api.client(url)))


def test_a_server_that_is_not_there_is_told(api: Api) -> None:
    with served(answers(200)) as url:
        pass
    error = failure(api.client(url))
    assert "cannot be reached" in str(error)
    assert error.transient


def test_a_call_has_a_total_deadline_and_asks_in_the_right_name_under_it(api: Api) -> None:
    guarded = InferenceApi(
        api.url, issue=api.tokens.issue, users=api.users, deadline=Deadline("it").of
    )
    with executing(execution_of("ben")):
        assert guarded.search("bens", "harbour", limit=1).total == 1
        assert guarded.revision("bens")


def test_a_server_that_never_answers_costs_one_deadline_and_a_revision_a_short_one(
    api: Api,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = InferenceApi(
            f"http://127.0.0.1:{silent.getsockname()[1]}",
            issue=api.tokens.issue,
            users=api.users,
            timeout_seconds=30,
            deadline=lambda seconds: Deadline("it").of(seconds / 100),
        )
        error = failure(client)
        assert "it gave no answer within 0.3 s" in str(error)
        assert error.transient
        with executing(execution_of("ann")), pytest.raises(InferenceApiError) as caught:
            client.revision("anns")
        assert "it gave no answer within 0.05 s" in str(caught.value)
        client.close()


def test_a_table_of_users_that_cannot_be_read_is_no_other_identity(api: Api) -> None:
    class Broken(MemoryUserRegistry):
        def user(self, user_id: str) -> User | None:
            raise StoreError("the disk is gone")

    client = InferenceApi(api.url, issue=api.tokens.issue, users=Broken())
    api.clients.append(client)
    with executing(execution_of("ann")), pytest.raises(StoreError, match="the disk is gone"):
        client.search("anns", "harbour", limit=1)
    assert api.calls == []


def test_a_query_that_is_no_text_is_refused_here(api: Api, client: InferenceApi) -> None:
    error = failure(client, query="harbour \ud800")
    assert "it is no valid text" in str(error)
    assert not error.transient
    assert api.calls == []
