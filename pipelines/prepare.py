"""A step made ready: its prior outputs, variables, agents and input text, from the history alone.

Source: specification W2, W4, W6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from pipelines.services import Services, StepContext
from pipelines.step_run import RunCacheMode, StepRun
from pipelines.step_sandbox import StepSandbox
from reprise.agents.messages import system_prompt
from reprise.context.budget import ComposedInput, ModelRoom, PriorText
from reprise.context.step_input import (
    CONFIG_FIELDS,
    SHOWS_PROMPT,
    agent_ids,
    body_text,
    is_readable,
    mode_orders,
    read_orders,
    resolved_input,
    used_names,
)
from reprise.context.variables import substitute, substitute_all
from reprise.errors import UnknownName
from reprise.model.agent import SANDBOX_GROUPS, AgentDefinition, ToolGroup
from reprise.model.budget import CHARS_PER_TOKEN
from reprise.model.conversation import PriorOutput
from reprise.model.sandbox import SandboxExecution
from reprise.model.variables import REQUEST_VARIABLE
from reprise.model.workflow import InputMode, Step, StepType
from reprise.tools.catalog import tool_facts

SAID_PART = 4
"""This part of a model's context is left for what the speakers of a room say to each other."""


@dataclass(frozen=True)
class PreparedStep:
    """A step that can run: everything that it may read, and the variables that it sees."""

    context: StepContext
    variables: dict[str, JsonValue]
    """The variables that its texts name, the request apart; for a Function step all it sees."""


def prepare_step(run: StepRun, services: Services, workdir: Path) -> PreparedStep:
    """Return the step with everything that it may read.

    Args:
        run: What is asked for.
        services: The ports.
        workdir: The step's own folder.

    Raises:
        UnknownName: An agent, or the result of a step that it reads, is not there.
        InputUnresolved: A variable has no value, or an expression is broken.
    """
    step, workflow = run.step, run.workflow
    agents = step_agents(step, services.agents)
    names = used_names(step, agents)
    reads = read_orders(step, workflow, agents)
    prior = _prior_outputs(run, services, reads)
    request_body = services.bodies.get(run.project_id, run.history[0].body_digest)
    request = body_text(request_body)
    request = substitute(request, workflow.variables, where="the request")
    variables = _variables(run, services, names, reads)
    values = {**variables, REQUEST_VARIABLE: request}
    agents = tuple(_substituted_agent(agent, values, run.where) for agent in agents)
    step = _substituted_step(step, values, run.where)
    by_mode = {order: prior[order] for order in mode_orders(step, workflow) if order in prior}
    composed = _composed_input(
        replace(run, step=step),
        services,
        by_mode,
        _ModelTexts(agents, request, services.withheld_tools),
    )
    context = StepContext(
        step=step,
        project_id=run.project_id,
        resolved_input=composed.text,
        budgeted=composed.report,
        user_request=request,
        prior=prior,
        prior_digests={order: run.history[order].body_digest for order in prior},
        variables=variables,
        agents=agents,
        searched=services.search_state(run.project_id, agents),
        files=tuple(services.projects.files(run.project_id)),
        sandbox=_sandbox(run, services, agents),
        provider=services.provider(run.provider_id or services.default_provider),
        services=services,
        workdir=workdir,
        progress=run.progress,
        cancelled=run.cancelled,
        reuse=run.cache_mode is RunCacheMode.USE,
        keep=run.cache_mode in (RunCacheMode.USE, RunCacheMode.REFRESH),
    )
    return PreparedStep(context, variables)


def step_agents(step: Step, agents: Mapping[str, AgentDefinition]) -> tuple[AgentDefinition, ...]:
    """Return the agents that work in a step, in speaking order.

    Raises:
        UnknownName: An agent has no definition.
    """
    found = []
    for name in agent_ids(step):
        agent = agents.get(name)
        if agent is None:
            message = (
                f"step {step.order} ({step.label}): no agent {name!r}; known: {', '.join(agents)}"
            )
            raise UnknownName(message)
        found.append(agent)
    return tuple(found)


def _sandbox(
    run: StepRun, services: Services, agents: Sequence[AgentDefinition]
) -> StepSandbox | None:
    groups = frozenset[ToolGroup]().union(*(agent.tool_groups for agent in agents))
    if not groups & SANDBOX_GROUPS:
        return None
    execution = SandboxExecution(
        run_id=run.run_id,
        project_id=run.project_id,
        workflow_id=run.workflow.id,
        template=run.workflow.sandbox.template,
        seed=run.workflow.sandbox.seed,
        earlier=run.earlier,
    )
    return StepSandbox(services.sandboxes, execution, run.step, groups)


def _prior_outputs(
    run: StepRun, services: Services, orders: Sequence[int]
) -> dict[int, PriorOutput]:
    prior: dict[int, PriorOutput] = {}
    for order in orders:
        seen = run.history.get(order)
        if seen is None:
            message = f"{run.where} reads step {order}, which has no result; run that step first"
            raise UnknownName(message)
        if not is_readable(seen.status):
            continue
        source = run.workflow.step(order)
        agent = services.agents.get(source.agent) if source.agent else None
        prior[order] = PriorOutput(
            order=order,
            label=seen.label,
            type=source.type.value,
            agent_type=agent.agent_type if agent is not None else None,
            output=services.bodies.get(run.project_id, seen.body_digest),
        )
    return prior


@dataclass(frozen=True)
class _ModelTexts:
    """What a model is shown besides the prior outputs."""

    agents: tuple[AgentDefinition, ...]
    request: str
    withheld: frozenset[str]
    """Tools that the agents do not get."""

    def chars_with(self, task: str) -> int:
        """Return the characters of the longest system prompt, tools, request and task."""
        longest = max(
            len(system_prompt(agent))
            + sum(map(len, map(str, tool_facts(agent.tool_groups, self.withheld))))
            for agent in self.agents
        )
        return longest + len(self.request) + len(task)


def _composed_input(
    run: StepRun, services: Services, prior: Mapping[int, PriorOutput], shown: _ModelTexts
) -> ComposedInput:
    """Return a step's input text: raw outputs for code; for agents, what the budget leaves."""
    step = run.step
    if not SHOWS_PROMPT[step.type] or step.input_mode is InputMode.CUSTOM_MAPPED_SUBSET:
        return ComposedInput(resolved_input(step, prior, where=run.where))
    texts = [_prior_text(run, services, prior[order]) for order in sorted(prior)]
    if step.input_mode is InputMode.PREVIOUS_STEP_ONLY:
        # Often a machine's contract: it arrives whole (specification B7).
        return ComposedInput(texts[-1].text if texts else "")
    budget = services.budget
    return budget.compose(texts, budget.settings_for(_model_room(run, services, shown)))


def _prior_text(run: StepRun, services: Services, prior: PriorOutput) -> PriorText:
    """Return an output as prompts show it: in the step's own words where it gave some."""
    seen = run.history[prior.order]
    if seen.prompt_digest is None:
        return PriorText(prior.order, prior.label, body_text(prior.output), seen.body_digest)
    words = body_text(services.bodies.get(run.project_id, seen.prompt_digest))
    return PriorText(prior.order, prior.label, words, seen.prompt_digest)


def _model_room(run: StepRun, services: Services, shown: _ModelTexts) -> ModelRoom | None:
    """Return what the smallest of the step's models holds, or None when none is small."""
    chosen = run.provider_id or services.default_provider
    providers = {agent.inference_provider_id or chosen for agent in shown.agents}
    contexts = [services.provider(name).context_tokens for name in sorted(providers)]
    known = [tokens for tokens in contexts if tokens is not None]
    if not known:
        return None
    others = shown.chars_with(run.step.prompt or "")
    if len(shown.agents) > 1:
        others += min(known) * CHARS_PER_TOKEN // SAID_PART
    return ModelRoom(min(known), others)


def _variables(
    run: StepRun, services: Services, names: set[str], reads: Sequence[int]
) -> dict[str, JsonValue]:
    """Return the variables that a step sees.

    A Function step sees all of the workflow's, and all that the steps it reads have set: which of
    them its code takes cannot be told (specification C2). Any other step sees those that it names.
    """
    sees_all = run.step.type is StepType.FUNCTION
    visible = {n: value for n, value in run.workflow.variables.items() if sees_all or n in names}
    for order in sorted(run.history):
        for name, digest in run.history[order].variables.items():
            if order < run.step.order and (name in names or (sees_all and order in reads)):
                visible[name] = services.bodies.get(run.project_id, digest)
    return visible


def _substituted_agent(
    agent: AgentDefinition, values: Mapping[str, JsonValue], where: str
) -> AgentDefinition:
    where = f"{where}, agent {agent.id}"
    prompt = substitute(agent.system_prompt, values, where=where)
    skills = tuple(substitute(skill, values, where=where) for skill in agent.assigned_skills)
    if (prompt, skills) == (agent.system_prompt, agent.assigned_skills):
        # The very definition, so that what is known of it is not computed again.
        return agent
    return agent.model_copy(update={"system_prompt": prompt, "assigned_skills": skills})


def _substituted_step(step: Step, values: Mapping[str, JsonValue], where: str) -> Step:
    update: dict[str, object] = {}
    if step.prompt is not None:
        prompt = substitute(step.prompt, values, where=where)
        if prompt != step.prompt:
            update["prompt"] = prompt
    for field in CONFIG_FIELDS:
        blob = getattr(step, field)
        if blob is not None:
            data = blob.model_dump(mode="json")
            changed = substitute_all(data, values, where=where)
            if changed != data:
                update[field] = type(blob).model_validate(changed)
    return step.model_copy(update=update) if update else step
