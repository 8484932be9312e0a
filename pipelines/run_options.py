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
from reprise.model.workflow import Step, Workflow, slug

CACHE_TAG = "reprise/cache"
CACHE_STEPS_TAG = "reprise/cache_steps"
"""Cache modes of single steps: `4=refresh,7=bypass`, by order or label."""
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
            "USE: take earlier results; REFRESH: execute and overwrite them;"
            " BYPASS: leave the cache alone; READONLY: look up, write nothing."
        ),
    )
    cache_steps: str | None = Field(
        default=None,
        description="Cache modes of single steps, by order or label: `4=refresh,hook=bypass`.",
    )
    provider: str | None = Field(
        default=None, description="Model provider of the agents; left out: the configured one."
    )


@dataclass(frozen=True)
class RunOptions:
    """How a run uses the cache, and its provider."""

    cache: RunCacheMode
    provider: str | None
    steps: Mapping[str, RunCacheMode]
    """Order or label → cache mode of a single step."""

    def cache_of(self, step: Step) -> RunCacheMode:
        """Return how a step uses the cache."""
        for name in (str(step.order), step.label, slug(step.label)):
            if name in self.steps:
                return self.steps[name]
        return self.cache


def request_op(workflow: Workflow) -> str:
    """Return the name of the request asset's op in run config."""
    return f"{workflow.slug}__request"


def run_options(run: dg.DagsterRun, workflow: Workflow) -> RunOptions:
    """Return a run's options.

    Raises:
        BadInput: A cache mode is none, or is given for a step that there is not.
    """
    config = _config_of(run.run_config, "ops", request_op(workflow), "config")
    mode = config.get("cache") or run.tags.get(CACHE_TAG) or RunCacheMode.USE.value
    provider = config.get("provider") or run.tags.get(PROVIDER_TAG)
    steps = config.get("cache_steps") or run.tags.get(CACHE_STEPS_TAG) or ""
    return RunOptions(
        cache=_mode(str(mode), CACHE_TAG),
        provider=None if provider is None else str(provider),
        steps=step_modes(str(steps), workflow),
    )


def step_modes(text: str, workflow: Workflow) -> dict[str, RunCacheMode]:
    """Return the cache modes of single steps, as `4=refresh,hook=bypass` gives them.

    Raises:
        BadInput: It is not of this form, or names no step or no mode.
    """
    known = {name for step in workflow.steps for name in (str(step.order), step.label)}
    modes: dict[str, RunCacheMode] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, mode = (part.strip() for part in item.partition("="))
        if not equals or name not in known | {slug(label) for label in known}:
            names = ", ".join(f"{step.order} ({step.label})" for step in workflow.steps)
            message = f"{item!r}: say ORDER=MODE or LABEL=MODE; steps are: {names}"
            raise BadInput(message)
        modes[name] = _mode(mode, item)
    return modes


def _mode(text: str, where: str) -> RunCacheMode:
    try:
        return RunCacheMode(text.lower())
    except ValueError as error:
        known = ", ".join(RunCacheMode)
        message = f"{where}: {text!r} is no cache mode; use one of {known}"
        raise BadInput(message) from error


def _config_of(run_config: object, *path: str) -> Mapping[str, object]:
    for name in path:
        run_config = run_config.get(name) if isinstance(run_config, Mapping) else None
    return run_config if isinstance(run_config, Mapping) else {}
