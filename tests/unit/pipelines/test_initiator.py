"""The tag that says who started a run counts only when the engine wrote it for this run."""

import logging

import pytest

from pipelines.initiator import (
    INITIATOR_TAG,
    NOBODY,
    PROOF_TAG,
    initiator_of,
    initiator_tags,
    named_user,
)
from reprise.model.user import User
from resources.memory_users import MemoryUserRegistry

KEY = "k" * 32
ANN = User(id="ann", email="ann@example.org")
BEN = User(id="ben", email="ben@example.org")


def test_what_the_engine_wrote_is_believed() -> None:
    tags = initiator_tags(ANN, "run-1", KEY)
    assert tags[INITIATOR_TAG] == "ann"
    assert initiator_of("run-1", tags, KEY) == "ann"


@pytest.mark.parametrize(
    ("run_id", "tags", "key"),
    [
        ("run-1", {INITIATOR_TAG: "ann"}, KEY),
        ("run-1", {INITIATOR_TAG: "ann", PROOF_TAG: ""}, KEY),
        ("run-1", {INITIATOR_TAG: "ann", PROOF_TAG: "é"}, KEY),
        ("run-1", {INITIATOR_TAG: "ann", PROOF_TAG: "0" * 64}, KEY),
        ("run-2", initiator_tags(ANN, "run-1", KEY), KEY),
        ("run-1", {**initiator_tags(BEN, "run-1", KEY), INITIATOR_TAG: "ann"}, KEY),
        ("run-1", initiator_tags(ANN, "run-1", "o" * 32), KEY),
    ],
    ids=["no-proof", "empty", "no-ascii", "made-up", "other-run", "other-user", "other-key"],
)
def test_what_a_client_wrote_is_not_believed_and_logged(
    run_id: str, tags: dict[str, str], key: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert initiator_of(run_id, tags, key) is None
    assert f"run {run_id}: its tag reprise/initiator is not believed" in caplog.text


@pytest.mark.parametrize(
    ("tags", "key"),
    [({}, KEY), ({INITIATOR_TAG: NOBODY, PROOF_TAG: NOBODY}, KEY), ({INITIATOR_TAG: "ann"}, None)],
    ids=["no-tag", "taken-off", "no-key"],
)
def test_nobody_is_nobody_without_a_word(
    tags: dict[str, str], key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert initiator_of("run-1", tags, key) is None
    assert caplog.text == ""


def test_without_a_key_the_tag_stands_without_proof() -> None:
    assert initiator_tags(ANN, "run-1", None) == {INITIATOR_TAG: "ann"}
    assert initiator_tags(None, "run-1", KEY) == {}


def test_a_user_is_named_by_id_or_by_address() -> None:
    users = MemoryUserRegistry()
    users.add_user(ANN)
    assert named_user(users, "ann") == ANN
    assert named_user(users, "ANN@example.org") == ANN
    assert named_user(users, "ben") is None
    assert named_user(users, "ben@example.org") is None
