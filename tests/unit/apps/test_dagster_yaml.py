"""A home's `dagster.yaml` after an upgrade."""

import hashlib
from pathlib import Path

import pytest

from apps.dagster_yaml import SHIPPED_DIGESTS, keep_dagster_yaml

ROOT = Path(__file__).parents[3]
NEWEST = (ROOT / "dagster.yaml").read_bytes()

# The first version that was shipped.
OLDEST = b"""\
# The Dagster instance. `reprise ui` and `reprise run` keep a copy of this file in the home's \
`dagster` folder; a copy
# there that you have changed is left alone. Everything is in SQLite files beside it.

telemetry:
  enabled: false

nux:
  enabled: false

run_monitoring:
  enabled: true
  start_timeout_seconds: 180
  max_runtime_seconds: 43200

concurrency:
  runs:
    max_concurrent_runs: 4
    # Two runs of one project at once are right but wasteful: the second waits and then mostly hits.
    tag_concurrency_limits:
      - key: dagster/partition
        limit: 1
        value:
          applyLimitPerUniqueValue: true

run_coordinator:
  module: dagster._core.run_coordinator
  class: QueuedRunCoordinator
  config:
    dequeue_interval_seconds: 1
    dequeue_use_threads: true
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "dagster.yaml"


def test_the_newest_version_is_the_last_that_is_known() -> None:
    assert hashlib.sha256(NEWEST).hexdigest() == SHIPPED_DIGESTS[-1], "append the new digest"


def test_a_home_without_one_gets_it(config: Path) -> None:
    keep_dagster_yaml(config.parent)
    assert config.read_bytes() == NEWEST
    assert [path.name for path in config.parent.iterdir()] == ["dagster.yaml"]


def test_one_that_an_older_version_made_is_replaced(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config.write_bytes(OLDEST)
    keep_dagster_yaml(config.parent)
    assert config.read_bytes() == NEWEST
    assert caplog.messages == []


def test_a_changed_one_is_left_alone_and_what_it_lacks_is_told_once(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine = OLDEST.replace(b"max_concurrent_runs: 4", b"max_concurrent_runs: 9")
    config.write_bytes(mine)
    for _ in range(3):
        keep_dagster_yaml(config.parent)
    assert config.read_bytes() == mine
    (told,) = caplog.messages
    assert f"{config} is not as this version ships it" in told
    assert f"it lacks `python_logs`, `run_coordinator`: copy that from {ROOT}" in told


@pytest.mark.parametrize(
    "mine",
    [
        NEWEST.replace(b"max_concurrent_runs: 4", b"max_concurrent_runs: 9"),
        b"storage: {nonsense: [\n",
    ],
)
def test_one_that_lacks_nothing_or_is_broken_is_left_without_a_word(
    config: Path, mine: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    config.write_bytes(mine)
    keep_dagster_yaml(config.parent)
    assert config.read_bytes() == mine
    assert caplog.messages == []
