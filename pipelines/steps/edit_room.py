"""EditRoom: several agents agree on an edit; code turns the last one's choice into frames.

Source: specification W3; reprise/media/edit_plan.py holds the rules for frames.
"""

from dataclasses import replace

from pydantic import JsonValue

from pipelines.services import StepContext
from pipelines.tool_access import ask_agent
from reprise.agents.loop import AgentAnswer, AgentTask, add_usage
from reprise.cache.key import KeyFacts
from reprise.context.step_input import body_text
from reprise.errors import StepFailed
from reprise.media.edit_plan import edit_decision
from reprise.media.film_length import wanted_seconds
from reprise.model.conversation import PriorOutput
from reprise.model.media import VideoAnalysis
from reprise.model.result import StepResult, Usage
from reprise.model.workflow import EditRoomConfig, StepType


class EditRoomExecutor:
    """Asks the room's agents in speaking order; each sees what those before it said."""

    def key_facts(self, context: StepContext) -> KeyFacts:
        """Return agents, providers and tools, the outputs read, files where one can read them."""
        # The analysis is taken as a value, whatever the input text holds of it.
        return replace(context.agent_facts(), history=context.prior_rows())

    def execute(self, context: StepContext) -> StepResult:
        """Agree on an edit.

        Raises:
            StepFailed: There is no analysis among the prior outputs, or nothing in it can be cut.
            AnswerInvalid: An answer does not fit its schema.
        """
        answers: list[AgentAnswer] = []
        try:
            return self._agree(context, answers)
        except BaseException as error:
            add_usage(error, _spent(answers))
            raise

    def _agree(self, context: StepContext, answers: list[AgentAnswer]) -> StepResult:
        config = context.step.edit_room or EditRoomConfig()
        analysis = _analysis(context)
        said: list[PriorOutput] = []
        lossy = None
        for place, agent in enumerate(context.agents):
            context.progress(f"{agent.id} ({place + 1} of {len(context.agents)})", None)
            answer, tools = ask_agent(
                context,
                AgentTask(
                    agent=agent,
                    resolved_input=_with_room(context.resolved_input, said),
                    task=context.step.prompt or "",
                    inputs=context.agent_inputs(agent, said, _parameters(config)),
                    limits=context.limits_of(agent),
                ),
            )
            lossy = lossy or tools.lossy
            answers.append(answer)
            said.append(
                # No order of the workflow: where the room stands in it is not in its key.
                PriorOutput(
                    order=0,
                    label=agent.id,
                    type=StepType.AGENT.value,
                    agent_type=agent.agent_type,
                    output=answer.output,
                )
            )
        read = [*(context.prior[order] for order in sorted(context.prior)), *said]
        target = wanted_seconds(context.user_request, read, config.target_seconds)
        decision = edit_decision(said[-1].output, analysis, config, target)
        return StepResult(
            output=decision.model_dump(mode="json"),
            usage=_spent(answers),
            model=answers[-1].model,
            notes=(*(note for answer in answers for note in answer.notes), *decision.notes),
            lossy=lossy,
            metadata={
                "cuts": len(decision.cuts),
                "turns": sum(answer.turns for answer in answers),
                "call_retries": sum(answer.retries for answer in answers),
                "ended": answers[-1].ended.value,
            },
        )


def _spent(answers: list[AgentAnswer]) -> Usage:
    return sum((answer.usage for answer in answers), Usage())


def _analysis(context: StepContext) -> VideoAnalysis:
    found = [p for p in context.prior.values() if p.type == StepType.VIDEO_ANALYZE.value]
    if not found:
        message = f"{context.where} reads no VideoAnalyze step; add its order to the step's input"
        raise StepFailed(message)
    return VideoAnalysis.model_validate(found[-1].output)


def _with_room(resolved_input: str, said: list[PriorOutput]) -> str:
    parts = [resolved_input] if resolved_input else []
    parts += [f"## In this room: {item.label}\n{body_text(item.output)}" for item in said]
    return "\n\n".join(parts)


def _parameters(config: EditRoomConfig) -> dict[str, JsonValue]:
    return {
        "target_seconds": config.target_seconds,
        "seconds_min": config.seconds_min,
        "seconds_max": config.seconds_max,
        "cuts_min": config.cuts_min,
    }
