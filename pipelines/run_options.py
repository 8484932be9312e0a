"""What a run asks for besides its request: how to use the cache, which provider.

From the request asset's config (the Launchpad), else from run tags (schedules, the command line, a
step run alone).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
from pydantic import Field

from pipelines.step_run import RunCacheMode
from reprise.errors import BadInput
from reprise.model.workflow import Workflow

CACHE_TAG = "reprise/cache"
PROVIDER_TAG = "reprise/provider"


class RequestConfig(dg.Config):
    """What a person may say when launching a run."""

    user_request: str | None = Field(
        default=None,
        description=(
            "What you want, in your own words."
            " Left out: the project's last request, else the workflow's default."
        ),
    )
    cache: RunCacheMode | None = Field(
        default=None,
        description=(
            "use: take earlier results; refresh: execute and overwrite them;"
            " bypass: leave the cache alone."
        ),
    )
    provider: str | None = Field(
        default=None, description="Model provider of the agents; left out: the configured one."
    )


@dataclass(frozen=True)
class RunOptions:
    """How a run uses the cache, and its provider."""

    cache: RunCacheMode
    provider: str | None


def request_op(workflow: Workflow) -> str:
    """Return the name of the request asset's op in run config."""
    return f"{workflow.slug}__request"


def run_options(run: dg.DagsterRun, workflow: Workflow) -> RunOptions:
    """Return a run's options.

    Raises:
        BadInput: The cache tag names no mode.
    """
    config = _config_of(run.run_config, "ops", request_op(workflow), "config")
    mode = config.get("cache") or run.tags.get(CACHE_TAG) or RunCacheMode.USE.value
    provider = config.get("provider") or run.tags.get(PROVIDER_TAG)
    try:
        cache = RunCacheMode(str(mode).lower())
    except ValueError as error:
        known = ", ".join(RunCacheMode)
        message = f"tag {CACHE_TAG}: {mode!r} is no cache mode; use one of {known}"
        raise BadInput(message) from error
    return RunOptions(cache=cache, provider=None if provider is None else str(provider))


def _config_of(run_config: object, *path: str) -> Mapping[str, object]:
    for name in path:
        run_config = run_config.get(name) if isinstance(run_config, Mapping) else None
    return run_config if isinstance(run_config, Mapping) else {}
