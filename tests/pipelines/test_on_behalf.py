"""Runs of many people at once in one process: each asks the Inference API in its own name.

The engine, the client and the server are the real ones; the server notes who asked for what.
"""

import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.api import execute_run
from pydantic import SecretStr

from apps.api_server import Access, InferenceApiServer
from reprise.model.conversation import ModelReply, ModelRequest, ToolCall
from reprise.model.execution import current_execution
from reprise.model.result import CacheReason, Usage
from reprise.model.search import SearchAnswer
from reprise.model.user import User
from reprise.ports import Cancelled
from resources.scripted_provider import ScriptedProvider
from resources.settings import InferenceApiSettings
from tests.inference_api_server import KEY, Call, recording, served
from tests.pipelines.engine import Engine, RuleProvider
from tests.pipelines.multiprocess_job import multiprocess_job

PEOPLE = ("ann", "ben", "zoe")
AGENTS = ("first", "second", "third")
MEETING_SECONDS = 120.0


NO_CAPTURE = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}

WHO = f"""
import os

from reprise.model.execution import current_execution


def who(inputs):
    execution = current_execution()
    return {{
        "initiator": execution.initiator_id,
        "run": execution.run_id,
        "own_process": os.getpid() != {os.getpid()},
    }}
"""


SEARCHES = ModelReply(
    text="",
    tool_calls=(ToolCall(id="c1", name="search_project_files", arguments='{"query": "brief"}'),),
    finish_reason="tool_calls",
    usage=Usage(calls=1),
    model="scripted-1",
)


class SearchingProvider(RuleProvider):
    """Answers like its base, after it searched the project that its document names."""

    def __init__(self, engine: Engine, meeting: threading.Barrier | None = None) -> None:
        super().__init__()
        self.engine = engine
        self.meeting = meeting
        self.found: list[SearchAnswer] = []

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        project = request.inputs.user_request
        if self.meeting is not None:
            self.meeting.wait()
        self.found.append(self.engine.wiring.search.search(project, "harbour", limit=1))
        return super().complete(request, cancelled=cancelled)


class Office:
    """An engine with people, a project of each of theirs, and the Inference API before it."""

    def __init__(self, root: Path) -> None:
        self.engine = Engine(root)
        self.calls: list[Call] = []
        self.engine.agents_workflow({name: [] for name in AGENTS})
        wiring = self.engine.wiring
        for person in PEOPLE:
            wiring.behalf.users.add_user(User(id=person, email=f"{person}@example.org"))

    def open(self, url: str) -> None:
        """Let the engine ask there."""
        self.engine.inference_api = InferenceApiSettings(url=url, signing_key=SecretStr(KEY))

    def app(self) -> InferenceApiServer:
        """Return the server over the engine's own stores."""
        self.engine.inference_api = InferenceApiSettings(signing_key=SecretStr(KEY))
        wiring = self.engine.fresh()
        access = Access(wiring.behalf.tokens, wiring.behalf.users, wiring.projects)
        return InferenceApiServer(access, wiring.index)

    def projects(self, each: int) -> dict[str, str]:
        """Make so many projects for each person; return project → owner."""
        owners = {}
        for person in PEOPLE:
            for number in range(each):
                name = f"{person}s-{number}"
                self.engine.project(name)
                self.engine.wiring.projects.set_owner(name, person)
                owners[name] = person
        return owners

    def run(
        self, job: dg.JobDefinition, project: str, person: str | None, cache: str = "use"
    ) -> dg.DagsterRun:
        """Run the workflow on a project in a person's name; its request is the project's name."""
        behalf = self.engine.wiring.behalf
        user = None if person is None else behalf.users.user(person)
        run_id = str(uuid.uuid4())
        run = self.engine.instance.create_run_for_job(
            job,
            run_id=run_id,
            tags={
                "dagster/partition": project,
                "reprise/cache": cache,
                **behalf.initiator_tags(user, run_id),
            },
            run_config={
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                "ops": {"w__request": {"config": {"user_request": project}}},
            },
        )
        return self.engine.execute(job, run)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path / "engine")
    made.engine.instance.dispose()
    with (
        # Runs of one process share its output: capturing it for six at once is a race of Dagster's.
        dg.DagsterInstance.local_temp(str(tmp_path), overrides=NO_CAPTURE) as instance,
        served(recording(made.app().app(), made.calls)) as url,
    ):
        made.engine.instance = instance
        made.open(url)
        yield made


def test_runs_at_once_ask_each_in_the_name_of_its_own_initiator(office: Office) -> None:
    owners = office.projects(each=2)
    engine = office.engine
    engine.rule = SearchingProvider(engine, threading.Barrier(6, timeout=MEETING_SECONDS))
    job = engine.job()
    with ThreadPoolExecutor(len(owners)) as pool:
        futures = {name: pool.submit(office.run, job, name, who) for name, who in owners.items()}
        runs = {name: future.result() for name, future in futures.items()}
    assert {run.status for run in runs.values()} == {dg.DagsterRunStatus.SUCCESS}, engine.failures
    assert len(office.calls) == len(owners) * len(AGENTS)
    for call in office.calls:
        project = call.path.split("/")[4]
        assert call.claims["sub"] == owners[project]
        assert call.claims["email"] == f"{owners[project]}@example.org"
        assert call.claims["executionId"] == runs[project].run_id
    assert current_execution() is None


def test_the_initiator_is_known_in_the_in_process_executor(office: Office) -> None:
    office.projects(each=1)
    engine = office.engine
    engine.rule = SearchingProvider(engine)
    job = engine.job()
    ann = engine.wiring.behalf.users.user("ann")
    run_id = str(uuid.uuid4())
    done = job.execute_in_process(
        instance=engine.instance,
        partition_key="anns-0",
        run_id=run_id,
        tags=engine.wiring.behalf.initiator_tags(ann, run_id),
        run_config={"ops": {"w__request": {"config": {"user_request": "anns-0"}}}},
    )
    assert done.success
    assert {call.claims["sub"] for call in office.calls} == {"ann"}
    assert {call.claims["executionId"] for call in office.calls} == {run_id}
    assert current_execution() is None


def test_the_initiator_is_known_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path / "engine")
    engine.instance.dispose()
    (engine.workflows / "people.py").write_text(WHO)
    function = {"callable": "people:who"}
    engine.workflow([{"label": "who", "type": "Function", "function": function}])
    engine.wiring.behalf.users.add_user(User(id="ann", email="ann@example.org"))
    monkeypatch.setenv("REPRISE_HOME", str(engine.root / "home"))
    monkeypatch.setenv("REPRISE_WORKFLOWS_DIR", str(engine.workflows))
    monkeypatch.setenv("REPRISE_INFERENCE_API__SIGNING_KEY", KEY)
    engine.inference_api = InferenceApiSettings(signing_key=SecretStr(KEY))
    wiring = engine.fresh()
    ann = wiring.behalf.users.user("ann")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        engine.instance = instance
        engine.project("p")
        run_id = str(uuid.uuid4())
        run = instance.create_run_for_job(
            multiprocess_job(),
            run_id=run_id,
            tags={"dagster/partition": "p", **wiring.behalf.initiator_tags(ann, run_id)},
        )
        done = execute_run(dg.reconstructable(multiprocess_job), run, instance)
    assert done.success
    reference = wiring.history.of_run(run_id)[-1].reference
    assert reference is not None
    body = wiring.services.bodies.get("p", reference.seen.body_digest)
    assert body == {"initiator": "ann", "run": run_id, "own_process": True}


def test_a_run_in_nobodys_name_fails_with_the_reason_and_is_not_tried_again(
    office: Office,
) -> None:
    office.projects(each=1)
    office.engine.agents_workflow({"first": []})
    office.engine.rule = SearchingProvider(office.engine)
    run = office.run(office.engine.job(), "anns-0", None)
    assert run.status is dg.DagsterRunStatus.FAILURE
    error = str(office.engine.records(run)["first"].error)
    assert "answered 401: this run works in nobody's name; set REPRISE_INFERENCE_API__USER" in error
    assert [call.authorization for call in office.calls] == [None]


def test_a_refusal_is_never_kept_for_another_user(office: Office) -> None:
    office.projects(each=1)
    engine = office.engine
    engine.agents_workflow({"first": []})
    engine.rule = SearchingProvider(engine)
    refused = office.run(engine.job(), "anns-0", "ben")
    assert refused.status is dg.DagsterRunStatus.FAILURE
    assert "user 'ben' has no project 'anns-0'" in str(engine.records(refused)["first"].error)

    allowed = office.run(engine.job(), "anns-0", "ann")
    assert allowed.status is dg.DagsterRunStatus.SUCCESS
    assert not engine.records(allowed)["first"].from_cache
    assert [call.claims["sub"] for call in office.calls] == ["ben", "ann"]

    again = office.run(engine.job(), "anns-0", "ann")
    assert engine.records(again)["first"].from_cache
    assert len(office.calls) == 2


def test_users_who_may_search_share_one_answer_and_one_who_may_not_gets_none(
    office: Office,
) -> None:
    """By the agents' own tool: the key holds what is searched and by whom it is answered."""
    office.projects(each=1)
    engine = office.engine
    engine.agent("seeker", "Search, then answer.", tool_groups=["ProjectRead"])
    engine.workflow([{"label": "seek", "type": "Agent", "agent": "seeker"}])
    users = engine.wiring.behalf.users
    users.add_user(User(id="olga", email="olga@example.org", is_admin=True))
    engine.scripted = ScriptedProvider([SEARCHES, "found", SEARCHES, SEARCHES, "found again"])

    anns = office.run(engine.job(), "anns-0", "ann")
    assert anns.status is dg.DagsterRunStatus.SUCCESS
    assert engine.records(anns)["seek"].cache_reason is CacheReason.FIRST_TIME
    searches = [call for call in office.calls if call.path.endswith("/search")]
    assert [call.claims["sub"] for call in searches] == ["ann"]

    admins = office.run(engine.job(), "anns-0", "olga")
    assert engine.records(admins)["seek"].from_cache

    # Neither an earlier answer nor a second try, and nothing is left behind.
    bens = office.run(engine.job(), "anns-0", "ben")
    assert bens.status is dg.DagsterRunStatus.FAILURE
    error = str(engine.records(bens)["seek"].error)
    assert "answered 404: user 'ben' has no project 'anns-0'" in error
    assert engine.histogram(bens)["STEP_UP_FOR_RETRY"] == 0

    engine.wiring.projects.set_owner("anns-0", "ben")
    given = office.run(engine.job(), "anns-0", "ben")
    assert given.status is dg.DagsterRunStatus.SUCCESS
    assert engine.records(given)["seek"].from_cache
    fresh = office.run(engine.job(), "anns-0", "ben", cache="refresh")
    assert fresh.status is dg.DagsterRunStatus.SUCCESS
    assert [c.claims["sub"] for c in office.calls if c.path.endswith("/search")] == [
        "ann",
        "ben",
        "ben",
    ]
