"""Who started a run: Dagster's real web server over HTTP, with our run coordinator behind it.

What the daemon does is done by its own call, `submit_run` with a context that no request made.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import httpx2
import pytest
import yaml
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster_webserver.webserver import DagsterWebserver

from pipelines.initiator import NOBODY, initiator_of, initiator_tags
from pipelines.run_coordinator import InitiatorRunCoordinator
from reprise.model.user import User
from resources.sqlite_users import SqliteUserRegistry
from tests.inference_api_server import KEY, served

ROOT = Path(__file__).parents[2]
ANN = User(id="ann", email="ann@example.org")
ROBOT = User(id="robot", email="robot@example.org")
HEADER = "X-Forwarded-Email"
ROBOT_TAG = {"dagster/schedule_name": "daily_w"}

LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
REEXECUTE = """mutation($p: ReexecutionParams) { launchRunReexecution(reexecutionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
LOCATION = {"repositoryLocationName": "reprise", "repositoryName": "__repository__"}


@dataclass(frozen=True)
class Web:
    """The web server, and the instance behind it."""

    url: str
    instance: dg.DagsterInstance
    context: WorkspaceProcessContext

    def launch(
        self, *headers: tuple[str, str], tags: Mapping[str, str] | None = None, job: str = "w"
    ) -> dg.DagsterRun:
        """Launch a run over HTTP, with these headers and these tags from the client."""
        wanted = {"dagster/partition": "p", **(tags or {})}
        params: dict[str, object] = {
            "selector": {**LOCATION, "jobName": job},
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in wanted.items()]},
        }
        return self._asked("launchRun", LAUNCH, params, headers)

    def again(self, run: dg.DagsterRun, *headers: tuple[str, str]) -> dg.DagsterRun:
        """Launch a run again over HTTP, with its own tags, as the UI does."""
        params = {"parentRunId": run.run_id, "strategy": "ALL_STEPS", "useParentRunTags": True}
        return self._asked("launchRunReexecution", REEXECUTE, params, headers)

    def by_the_daemon(
        self, like: dg.DagsterRun, tags: Mapping[str, str], parent: dg.DagsterRun | None = None
    ) -> dg.DagsterRun:
        """Submit a run as the daemon does: without a request."""
        run = dg.DagsterRun(
            job_name=like.job_name,
            run_id=str(uuid.uuid4()),
            tags={"dagster/partition": "p", **tags},
            parent_run_id=None if parent is None else parent.run_id,
            root_run_id=None if parent is None else parent.run_id,
            remote_job_origin=like.remote_job_origin,
            job_code_origin=like.job_code_origin,
        )
        self.instance.add_run(run)
        return self.instance.submit_run(run.run_id, self.context.create_request_context())

    def _asked(
        self,
        what: str,
        query: str,
        params: dict[str, object],
        headers: tuple[tuple[str, str], ...],
    ) -> dg.DagsterRun:
        body = {"query": query, "variables": {"p": params}}
        with httpx2.Client(trust_env=False, timeout=120) as client:
            answer = client.post(f"{self.url}/graphql", json=body, headers=[*headers]).json()
        data = answer["data"][what]
        assert data["__typename"] == "LaunchRunSuccess", answer
        run = self.instance.get_run_by_id(data["run"]["runId"])
        assert run is not None
        return run


def initiator(run: dg.DagsterRun) -> str | None:
    return initiator_of(run.run_id, run.tags, KEY)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    root = tmp_path_factory.mktemp("web")
    workflows = root / "workflows"
    (workflows / "prompts").mkdir(parents=True)
    (workflows / "prompts" / "reader.md").write_text("---\nagent_type: reader\n---\nRead.\n")
    step = {"order": 1, "label": "read", "type": "Agent", "agent": "reader"}
    (workflows / "w.yaml").write_text(yaml.safe_dump({"id": "w", "steps": [step]}))
    users = SqliteUserRegistry(root / "home" / "users.db")
    users.add_user(ANN)
    users.add_user(ROBOT)
    users.close()
    module = InitiatorRunCoordinator.__module__
    overrides = {"run_coordinator": {"module": module, "class": "InitiatorRunCoordinator"}}
    target = ModuleTarget("pipelines.definitions", None, str(ROOT), "reprise")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRISE_HOME", str(root / "home"))
        patch.setenv("REPRISE_WORKFLOWS_DIR", str(workflows))
        patch.setenv("REPRISE_INFERENCE_API__SIGNING_KEY", KEY)
        patch.setenv("REPRISE_INFERENCE_API__PROXY_HEADER", HEADER)
        patch.setenv("REPRISE_INFERENCE_API__SCHEDULED_USER", ROBOT.email)
        with (
            dg.DagsterInstance.local_temp(str(root), overrides=overrides) as instance,
            WorkspaceProcessContext(instance, target) as context,
        ):
            instance.add_dynamic_partitions("projects", ["p"])
            app = DagsterWebserver(context).create_asgi_app()
            with served(app) as url:
                yield Web(url, instance, context)


def test_the_proxys_user_is_the_initiator(web: Web) -> None:
    run = web.launch((HEADER, "ANN@example.org"))
    assert run.status is dg.DagsterRunStatus.QUEUED
    assert run.tags["reprise/initiator"] == "ann"
    assert initiator(run) == "ann"
    assert run.tags["reprise/project"] == "p"
    assert run.tags["reprise/workflow"] == "w"


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((HEADER, "zoe@example.org"),),
        ((HEADER, ""),),
        ((HEADER, "ann@example.org"), (HEADER, "robot@example.org")),
        (("X-Forwarded-User", "ann"),),
    ],
    ids=["none", "unknown", "empty", "two", "another"],
)
def test_without_one_known_user_in_the_header_it_is_nobody(
    web: Web, headers: tuple[tuple[str, str], ...]
) -> None:
    run = web.launch(*headers)
    assert "reprise/initiator" not in run.tags
    assert initiator(run) is None


@pytest.mark.parametrize(
    "tags",
    [
        {"reprise/initiator": "ann"},
        {"reprise/initiator": "ann", "reprise/initiator_proof": "0" * 64},
        initiator_tags(ANN, "some-other-run", KEY),
        {"reprise/initiator": "robot", **ROBOT_TAG},
        {"reprise/initiator": "robot", "dagster/sensor_name": "s"},
    ],
    ids=["tag", "made-up-proof", "copied-proof", "as-a-schedule", "as-a-sensor"],
)
def test_a_client_that_sets_the_tag_itself_is_not_believed(
    web: Web, tags: Mapping[str, str]
) -> None:
    run = web.launch(tags=tags)
    assert run.tags["reprise/initiator"] == NOBODY
    assert initiator(run) is None
    signed_in = web.launch((HEADER, "ann@example.org"), tags={**tags, "reprise/initiator": "robot"})
    assert initiator(signed_in) == "ann"


def test_a_client_cannot_say_what_a_run_works_on(web: Web) -> None:
    run = web.launch(tags={"reprise/project": "other", "reprise/workflow": "other"})
    assert (run.tags["reprise/project"], run.tags["reprise/workflow"]) == ("p", "w")


def test_a_run_that_is_launched_again_works_in_the_name_of_who_did_that(web: Web) -> None:
    first = web.launch((HEADER, "ann@example.org"))
    again = web.again(first, (HEADER, "robot@example.org"))
    assert again.parent_run_id == first.run_id
    assert initiator(again) == "robot"
    unsigned = web.again(first)
    assert unsigned.tags["reprise/initiator"] == NOBODY
    assert initiator(unsigned) is None


def test_a_schedules_run_works_in_the_name_of_the_settings_user(web: Web) -> None:
    like = web.launch()
    assert initiator(web.by_the_daemon(like, ROBOT_TAG)) == "robot"
    assert initiator(web.by_the_daemon(like, {"dagster/sensor_name": "s"})) == "robot"
    assert initiator(web.by_the_daemon(like, {})) is None


def test_a_backfill_works_in_nobodys_name_whatever_its_tags_say(web: Web) -> None:
    like = web.launch()
    run = web.by_the_daemon(
        like, {"dagster/backfill": "b", "reprise/initiator": "ann", **ROBOT_TAG}
    )
    assert run.tags["reprise/initiator"] == NOBODY
    assert initiator(run) is None


def test_a_retry_by_the_daemon_keeps_the_initiator_and_no_claim_of_one(web: Web) -> None:
    anns = web.launch((HEADER, "ann@example.org"))
    assert initiator(web.by_the_daemon(anns, anns.tags, anns)) == "ann"
    claimed = web.launch(tags={"reprise/initiator": "ann", **ROBOT_TAG})
    assert initiator(web.by_the_daemon(claimed, claimed.tags, claimed)) is None
