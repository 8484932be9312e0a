"""Who a prepared step is to the cache: the policy's verdict, its key facts, its key and digests.

Running a step and planning one ask the same question here, so a plan cannot differ from the run.

Source: specification C1 to C5, C18, C23.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from pipelines.prepare import PreparedStep, step_agents
from pipelines.services import Services, StepContext, StepExecutor
from pipelines.step_run import StepRun
from pipelines.steps import EXECUTORS
from reprise.cache.explain import explained_digests
from reprise.cache.key import KeyFacts, cache_key, field_digests, key_fields
from reprise.cache.lookup import StepIdentity
from reprise.cache.policy import cache_verdict
from reprise.canonical import NotCanonical
from reprise.context.step_input import sees_request, shown_orders
from reprise.errors import StoreError, UnknownName
from reprise.model.cache import Lookup
from reprise.model.result import CacheReason

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IdentifiedStep:
    """A step that may be looked up, or why it may not."""

    executor: StepExecutor
    identity: StepIdentity | None = None
    """None when the policy says no or there is no key."""
    facts: KeyFacts | None = None
    """What its key was made of besides definition and input."""
    fields: Mapping[str, str | None] | None = None
    """The key's fields as text."""
    refusal: Lookup | None = None
    """Why there is no identity."""


def identify_step(run: StepRun, prepared: PreparedStep) -> IdentifiedStep:
    """Return a step's identity to the cache.

    Raises:
        UnknownName: No executor serves its type.
        RepriseError: A fact of its key cannot be had, such as a missing speech model.
    """
    executor = step_executor(run)
    context = prepared.context
    verdict = cache_verdict(context.step, context.agents)
    if not verdict.cacheable:
        refusal = Lookup(reason=CacheReason.POLICY, detail=verdict.reason)
        return IdentifiedStep(executor, refusal=refusal)
    try:
        facts = executor.key_facts(context)
        fields = _fields(run, context, facts, prepared.variables)
        identity = _identity(run, context, facts, fields)
    except (NotCanonical, UnicodeEncodeError) as error:
        # Without a whole key there is neither lookup nor store (specification C23).
        logger.warning("step cache: %s has no key: %s", run.where, error)
        refusal = Lookup(reason=CacheReason.NOT_HASHABLE, detail=str(error))
        return IdentifiedStep(executor, refusal=refusal)
    return IdentifiedStep(executor, identity, facts, fields)


def last_key(run: StepRun, services: Services) -> str | None:
    """Return the key of a step's latest result on the project, whichever workflow's run made it."""
    try:
        last = services.history.of_step(run.workflow.id, run.project_id, run.step.name, run_id=None)
    except StoreError as error:
        logger.warning("step cache: %s: its latest result cannot be told: %s", run.where, error)
        return None
    return None if last is None else last.cache_key


def step_executor(run: StepRun) -> StepExecutor:
    """Return the executor that serves a step.

    Raises:
        UnknownName: None does; names those that are served.
    """
    executor = EXECUTORS.get(run.step.type)
    if executor is None:
        served = ", ".join(sorted(EXECUTORS))
        message = f"{run.where}: no steps of type {run.step.type.value!r}; served are: {served}"
        raise UnknownName(message)
    return executor


def _fields(
    run: StepRun, context: StepContext, facts: KeyFacts, variables: Mapping[str, JsonValue]
) -> dict[str, str | None]:
    sees = sees_request(run.step, context.agents)
    return key_fields(
        context.step,
        facts,
        project_id=run.project_id,
        resolved_input=context.resolved_input,
        user_request=context.user_request if sees else None,
        variables=variables,
    )


def _identity(
    run: StepRun, context: StepContext, facts: KeyFacts, fields: Mapping[str, str | None]
) -> StepIdentity:
    agents = step_agents(run.step, context.services.agents)
    shown = shown_orders(run.step, run.workflow, agents)
    read = {
        f"step {order} ({item.label})": run.history[order].version
        for order, item in context.prior.items()
        if order in shown
    }
    seen = {file.id: (file.name, file.content_digest) for file in context.files}
    digests = field_digests(fields)
    return StepIdentity(
        project_id=run.project_id,
        workflow_id=run.workflow.id,
        step_label=run.step.label,
        step_type=run.step.type.value,
        agent_id=run.step.agent,
        cache_key=cache_key(digests),
        field_digests=explained_digests(digests, read, facts, seen),
    )
