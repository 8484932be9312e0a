"""The Inference API against hand-made tokens and requests, over loopback HTTP.

The token attack table of specification R9, from the outside.
"""

import base64
import hashlib
import hmac
import json
import logging
import socket
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
import pytest
from jwt.warnings import InsecureKeyLengthWarning

from apps.api_server import BODY_BYTES_MAX, QUERY_CHARS_MAX
from reprise.model.user import User
from tests.inference_api_server import KEY, Api, inference_api, now

SEARCH = "/api/v1/projects/anns/files/search"
OLGA = "olga@example.org"
ASKED = {"query": "harbour", "limit": 3}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with inference_api() as made:
        yield made


def claims(**changes: object) -> dict[str, object]:
    """Return ann's claims; a change to None takes one away."""
    moment = int(now().timestamp())
    plain: dict[str, object] = {
        "sub": "ann",
        "email": "ann@example.org",
        "isAdmin": False,
        "iat": moment,
        "exp": moment + 60,
        **changes,
    }
    return {name: value for name, value in plain.items() if value is not None}


def signed(key: str = KEY, algorithm: str = "HS256", **changes: object) -> str:
    return jwt.encode(claims(**changes), key, algorithm=algorithm)


def by_hand(header: Mapping[str, object], body: Mapping[str, object], key: str | None) -> str:
    """Return a token with this very header; signed with SHA-256 where there is a key."""

    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    head = f"{part(json.dumps(header).encode())}.{part(json.dumps(body).encode())}"
    if key is None:
        return f"{head}."
    return f"{head}.{part(hmac.new(key.encode(), head.encode(), hashlib.sha256).digest())}"


def post(api: Api, token: str | None = None, path: str = SEARCH, **options: Any) -> httpx2.Response:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with httpx2.Client(trust_env=False, timeout=30, headers=headers) as client:
        return client.post(f"{api.url}{path}", **(options or {"json": ASKED}))


def test_a_plain_sign_in_token_is_enough(api: Api) -> None:
    answer = post(api, signed())
    assert answer.status_code == 200
    assert answer.json()["hits"][0]["snippet"] == "the harbour of anns"


MOMENT = int(now().timestamp())
ATTACKS: dict[str, str | None] = {
    "no-token": None,
    "no-jwt": "letmein",
    "expired": signed(iat=MOMENT - 600, exp=MOMENT - 300),
    "expired-beyond-the-leeway": signed(iat=MOMENT - 600, exp=MOMENT - 31),
    "issued-in-the-future": signed(iat=MOMENT + 3600, exp=MOMENT + 7200),
    "wrong-key": signed("another key of these tests, of more than 32 bytes"),
    "none": jwt.encode(claims(), "", algorithm="none"),
    "none-with-our-signature": by_hand({"alg": "none", "typ": "JWT"}, claims(), KEY),
    "none-in-other-letters": by_hand({"alg": "nOnE", "typ": "JWT"}, claims(), None),
    "signature-cut-off": by_hand({"alg": "HS256", "typ": "JWT"}, claims(), None),
    "HS384-with-our-key": signed(algorithm="HS384"),
    "HS512-with-our-key": signed(algorithm="HS512"),
    "RS256-header-with-our-key": by_hand({"alg": "RS256", "typ": "JWT"}, claims(), KEY),
    "ES256-header-with-our-key": by_hand({"alg": "ES256", "typ": "JWT"}, claims(), KEY),
    "no-algorithm": by_hand({"typ": "JWT"}, claims(), KEY),
    "key-in-the-header": by_hand(
        {"alg": "HS256", "jwk": {"kty": "oct", "k": "eHh4eA"}, "kid": "../../dev/null"},
        claims(),
        "xxxx",
    ),
    "critical-header": by_hand({"alg": "HS256", "crit": ["x"], "x": 1}, claims(), KEY),
    "no-sub": signed(sub=None),
    "no-email": signed(email=None),
    "no-isAdmin": signed(isAdmin=None),
    "no-iat": signed(iat=None),
    "no-exp": signed(exp=None),
    "empty-sub": signed(sub=""),
    "sub-a-number": by_hand({"alg": "HS256"}, claims(sub=7), KEY),
    "sub-a-list": by_hand({"alg": "HS256"}, claims(sub=["ann"]), KEY),
    "email-a-list": signed(email=["ann@example.org"]),
    "isAdmin-a-text": signed(isAdmin="true"),
    "isAdmin-a-number": signed(isAdmin=1),
    "exp-a-text": signed(exp="tomorrow"),
    "exp-infinite": by_hand({"alg": "HS256"}, claims(exp=float("inf")), KEY),
    "an-audience-that-nobody-set": signed(aud="films"),
    "another-actor": signed(act="somebody", executionId="e1"),
    "an-actor-object": signed(act={"sub": "workflow-engine"}, executionId="e1"),
    "actor-without-execution": signed(act="workflow-engine"),
    "execution-without-actor": signed(executionId="e1"),
    "unknown-user": signed(sub="zoe", email="zoe@example.org"),
    "id-in-other-letters": signed(sub="Ann"),
    "e-mail-of-another": signed(email="ben@example.org"),
    "too-long": signed(note="x" * 5000),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_token_that_is_not_right_is_refused_without_a_reason(api: Api, name: str) -> None:
    answer = post(api, ATTACKS[name])
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {
        "error": "no valid token",
        "what_to_do": "send `Authorization: Bearer …` with a fresh token of yours",
    }


def test_an_empty_key_signs_nothing(api: Api) -> None:
    with pytest.warns(InsecureKeyLengthWarning):
        token = jwt.encode(claims(), "x", algorithm="HS256")
    assert post(api, token).status_code == 401
    assert post(api, by_hand({"alg": "HS256"}, claims(), "")).status_code == 401


@pytest.mark.parametrize("header", ["Basic YW5uOmFubg==", "Bearer", "Token x", "é", "Bearer a b c"])
def test_a_header_of_another_form_is_refused(api: Api, header: str) -> None:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        headers = [(b"Authorization", header.encode())]
        assert client.post(api.url + SEARCH, json=ASKED, headers=headers).status_code == 401


def test_two_tokens_in_one_request_are_refused(api: Api) -> None:
    headers = [("Authorization", f"Bearer {signed()}"), ("Authorization", "Bearer x")]
    with httpx2.Client(trust_env=False, timeout=30) as client:
        assert client.post(api.url + SEARCH, json=ASKED, headers=headers).status_code == 401


def test_why_a_token_was_refused_is_in_the_log_and_the_token_is_not(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = signed(iat=MOMENT - 600, exp=MOMENT - 300)
    post(api, token)
    post(api, signed(sub="zoe"))
    assert "401: expired" in caplog.text
    assert "401: there is no such user any more" in caplog.text
    assert all(part not in caplog.text for part in token.split("."))


@pytest.mark.parametrize("project", ["bens", "nobodys", "there-is-none", "..%2Fbens", "bens%00"])
def test_nobody_learns_whether_the_project_of_another_is_there(api: Api, project: str) -> None:
    for answer in (
        post(api, signed(), f"/api/v1/projects/{project}/files/search"),
        post(api, signed(), f"/api/v1/projects/{project}/files/search", content=b"no json"),
    ):
        assert answer.status_code == 404
        if "%2F" not in project:  # That one matches no route.
            assert answer.json()["error"] == "you have no such project"


def test_without_a_token_all_projects_look_alike(api: Api) -> None:
    answers = [
        post(api, None, f"/api/v1/projects/{project}/files/search")
        for project in ("anns", "there-is-none")
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert answers[0].content == answers[1].content


def test_a_file_that_was_replaced_or_removed_is_not_found_any_more(api: Api) -> None:
    path = "/api/v1/projects/anns/files/search"
    [row] = api.projects.files("anns")
    assert post(api, signed(), path).json()["total"] == 1
    api.projects.put_file(row.model_copy(update={"content_digest": "b" * 64}))
    assert post(api, signed(), path).json()["total"] == 0
    api.projects.put_file(row)
    assert post(api, signed(), path).json()["total"] == 1
    api.projects.remove_file("anns", "notes.md")
    answer = post(api, signed(), path).json()
    assert (answer["hits"], answer["total"]) == ([], 0)


def test_an_admin_by_claim_alone_is_none(api: Api) -> None:
    answer = post(api, signed(isAdmin=True), "/api/v1/projects/bens/files/search")
    assert answer.status_code == 404


def test_an_admin_whose_token_says_otherwise_is_none(api: Api) -> None:
    path = "/api/v1/projects/bens/files/search"
    assert post(api, signed(sub="olga", email=OLGA, isAdmin=True), path).status_code == 200
    assert post(api, signed(sub="olga", email=OLGA, isAdmin=False), path).status_code == 404


def test_rights_that_were_taken_count_at_once() -> None:
    with inference_api() as api:
        token = signed(sub="olga", email=OLGA, isAdmin=True)
        path = "/api/v1/projects/bens/files/search"
        assert post(api, token, path).status_code == 200
        api.users.remove_user("olga")
        assert post(api, token, path).status_code == 401
        api.users.add_user(User(id="olga", email="olga@example.org"))
        assert post(api, token, path).status_code == 404
        api.projects.set_owner("bens", "olga")
        assert post(api, token, path).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"query": ""}',
        b'{"query": 7}',
        b'{"query": ["harbour"]}',
        b'{"query": "a", "limit": 0}',
        b'{"query": "a", "limit": 51}',
        b'{"query": "a", "limit": "3"}',
        b'{"query": "a", "limit": true}',
        b'{"query": "a", "project": "bens"}',
        b'{"query": "\\ud800"}',
        b'{"query": "\xff"}',
        json.dumps({"query": "x" * (QUERY_CHARS_MAX + 1)}).encode(),
        b"[" * 20_000,
    ],
    ids=lambda body: body[:30].decode(errors="replace"),
)
def test_a_body_of_another_form_is_told_so(api: Api, body: bytes) -> None:
    answer = post(api, signed(), content=body)
    assert answer.status_code == 400
    assert answer.json()["what_to_do"].startswith('{"query": text, "limit": number}')


def test_a_long_body_is_refused(api: Api) -> None:
    answer = post(api, signed(), content=b"x" * (BODY_BYTES_MAX + 1))
    assert answer.status_code == 413
    assert answer.json()["what_to_do"] == "shorten the query"


def test_a_stranger_cannot_make_it_read_a_body(api: Api) -> None:
    """The refusal comes while the body that was announced has not even begun."""
    where = urlsplit(api.url)
    with socket.create_connection((str(where.hostname), int(where.port or 0)), 30) as connection:
        connection.sendall(
            f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n".encode()
        )
        assert connection.recv(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", SEARCH, 405),
        ("DELETE", SEARCH, 405),
        ("POST", "/", 404),
        ("POST", "/api/v1/projects//files/search", 404),
        ("POST", "/api/v1/projects/anns/files", 404),
    ],
)
def test_what_there_is_not_is_answered_in_json(
    api: Api, method: str, path: str, status: int
) -> None:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        headers = {"Authorization": f"Bearer {signed()}"}
        answer = client.request(method, api.url + path, headers=headers)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "what_to_do"}


def test_the_revision_is_told_to_whom_the_project_is(api: Api) -> None:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        url = f"{api.url}/api/v1/projects/anns/files/revision"
        assert client.get(url).status_code == 401
        answer = client.get(url, headers={"Authorization": f"Bearer {signed()}"})
    assert answer.json() == {"revision": api.index.revision("anns")}


def test_health_is_open_to_all_and_says_nothing(api: Api) -> None:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        assert client.get(f"{api.url}/api/v1/health").json() == {"ok": True}
