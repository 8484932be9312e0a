"""Users, `reprise api` and a run whose agent searches there, all by the command line.

Source: specification O; R9.
"""

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.command_line import User, wait_until
from tests.acceptance.warm_start import Command

KEY = "a signing key for the acceptance tests, of more than 32 bytes"
KEY_NAME = "REPRISE_INFERENCE_API__SIGNING_KEY"


@contextmanager
def reprise_api(user: User) -> Iterator[tuple[Command, str]]:
    """Serve the Inference API of a user's home; give the command and the address."""
    command = user.start("api", "--port", "0", **{KEY_NAME: KEY})
    try:
        wait_until(lambda: "Ctrl-C stops it" in command.out, command, "serving")
        found = re.match(r"http://127\.0\.0\.1:\d+", command.out)
        assert found is not None, command.out
        yield command, found[0]
    finally:
        if command.look() is None:
            os.kill(command.pid, signal.SIGTERM)
            while command.look() is None:
                pass


def asks(user: User, url: str) -> dict[str, str]:
    """Return the environment of an engine whose agent searches there, then answers."""
    script = user.home.parent / "script.json"
    arguments = json.dumps({"query": "harbour"})
    call = {"id": "c1", "name": "search_project_files", "arguments": arguments}
    first = {"text": "", "tool_calls": [call], "finish_reason": "tool_calls"}
    script.write_text(json.dumps({"seeker": [first, "the harbour it is"]}))
    return {
        "REPRISE_PROVIDER": "s",
        "REPRISE_PROVIDERS__S__KIND": "scripted",
        "REPRISE_PROVIDERS__S__SCRIPT": str(script),
        "REPRISE_INFERENCE_API__URL": url,
        KEY_NAME: KEY,
    }


@pytest.fixture
def office(user: User, tmp_path: Path) -> User:
    """Ann and Ben, a project of Ann's, and a workflow whose agent may read projects."""
    for name in ("ann", "ben"):
        done = user.call("user", "add", f"{name}@example.org", "--id", name)
        assert done.code == 0, done.err
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nThe harbour at dawn is the first picture.\n")
    done = user.call("project", "add", "anns", notes, REPRISE_INFERENCE_API__USER="ann")
    assert done.code == 0, done.err
    (user.workflows / "prompts" / "seeker.md").write_text(
        "---\nagent_type: seeker\ntool_groups: [ProjectRead]\n---\nSearch, then answer.\n"
    )
    user.workflow("seek", [{"label": "seek", "type": "Agent", "agent": "seeker"}])
    return user


def test_an_agent_searches_in_the_name_of_the_command_lines_user(office: User) -> None:
    with reprise_api(office) as (command, url):
        environment = asks(office, url)
        done = office.call(
            "run", "seek", "anns", "--json", REPRISE_INFERENCE_API__USER="ann", **environment
        )
        assert done.code == 0, done.err
        wait_until(lambda: "user ann asks for project anns" in command.err, command, "the search")
        again = office.call(
            "run", "seek", "anns", "--json", REPRISE_INFERENCE_API__USER="ann", **environment
        )
    assert not done.json["steps"][0]["from_cache"]
    assert again.json["steps"][0]["from_cache"]
    tags = {run.run_id: run.tags for run in office.runs()}[done.json["run_id"]]
    assert tags["reprise/initiator"] == "ann"
    assert (tags["reprise/project"], tags["reprise/workflow"]) == ("anns", "seek")
    for text in (command.out, command.err, done.out, done.err):
        assert KEY not in text
        assert "eyJ" not in text


def test_nobody_and_somebody_else_are_told_why_and_leave_nothing_in_the_cache(
    office: User,
) -> None:
    with reprise_api(office) as (_, url):
        environment = asks(office, url)
        nobody = office.call("run", "seek", "anns", **environment)
        assert nobody.code == 1
        assert "answered 401: this run works in nobody's name" in nobody.error
        assert "set REPRISE_INFERENCE_API__USER for the command line" in nobody.error

        ben = {"REPRISE_INFERENCE_API__USER": "BEN@example.org", **environment}
        refused = office.call("run", "seek", "anns", **ben)
        assert refused.code == 1
        assert "answered 404: user 'ben' has no project 'anns'" in refused.error

        given = office.call("project", "own", "anns", "ben")
        assert given.out == "project anns: owned by ben@example.org\n"
        allowed = office.call("run", "seek", "anns", "--json", **ben)
        assert allowed.code == 0, allowed.err
        assert not allowed.json["steps"][0]["from_cache"]


def test_what_is_missing_is_told_before_anything_runs(office: User) -> None:
    url = {"REPRISE_INFERENCE_API__URL": "http://127.0.0.1:9"}
    for command in (("api",), ("run", "seek", "anns")):
        done = office.call(*command, **(url if command[0] == "run" else {}))
        assert done.code == 2
        assert done.error.startswith(f"{KEY_NAME}: is required")
    short = office.call("api", **{KEY_NAME: "x" * 31})
    assert short.code == 2
    assert short.error.startswith(f"{KEY_NAME}: is shorter than 32 bytes")
    assert "xxx" not in short.err
    unknown = office.call("run", "seek", "anns", REPRISE_INFERENCE_API__USER="zoe")
    assert unknown.code == 2
    assert "there is no user 'zoe'" in unknown.error
    assert office.runs() == []


def test_users_are_listed_and_removed(office: User) -> None:
    assert office.call("user", "list", "--json").json == [
        {"id": "ann", "email": "ann@example.org", "is_admin": False},
        {"id": "ben", "email": "ben@example.org", "is_admin": False},
    ]
    made = office.call("user", "add", "olga@example.org", "--admin")
    assert re.fullmatch(r"user [0-9a-f]{12}: olga@example\.org, admin\n", made.out)
    assert office.call("user", "remove", "Olga@example.org").code == 0
    twice = office.call("user", "add", "ANN@example.org")
    assert (twice.code, "there is user 'ann'" in twice.error) == (2, True)
    assert office.call("user", "remove", "olga@example.org").code == 2
    assert office.call("user", "add", "no-address").code == 2
    assert office.call("project", "show", "anns", "--json").json["owner"] == "ann"


def test_the_server_ends_at_a_word_and_frees_its_port(office: User) -> None:
    with reprise_api(office) as (command, url):
        with urllib.request.urlopen(f"{url}/api/v1/health", timeout=60) as answer:
            assert json.load(answer) == {"ok": True}
        os.kill(command.pid, signal.SIGTERM)
        while command.look() is None:
            pass
        assert command.look() == 130
        assert command.err.endswith("stopped\n")
        assert "Traceback" not in command.err
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/api/v1/health", timeout=60)


def test_a_port_that_is_taken_is_told(office: User) -> None:
    with reprise_api(office) as (_, url):
        port = url.rpartition(":")[2]
        done = office.call("api", "--port", port, **{KEY_NAME: KEY})
    assert done.code == 2
    assert done.error.startswith(f"--host 127.0.0.1 --port {port}: ")
