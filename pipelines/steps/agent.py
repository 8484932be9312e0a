"""Agent: one agent answers, with its tools.

Source: specification W3, A1 to A3.
"""

from pydantic import JsonValue

from pipelines.services import StepContext
from pipelines.tool_access import ask_agent
from reprise.agents.loop import AgentTask
from reprise.cache.key import KeyFacts
from reprise.model.result import StepResult


class AgentExecutor:
    """Asks the step's agent once; its loop is bounded in turns, tokens, seconds and money."""

    def key_facts(self, context: StepContext) -> KeyFacts:
        """Return agent, provider and tools, and the project's files where it can read them."""
        return context.agent_facts()

    def execute(self, context: StepContext) -> StepResult:
        """Answer.

        Raises:
            AnswerInvalid: The answer does not fit its schema after the bounded repairs.
            LimitReached: A bound of the loop was reached.
            ProviderError: The provider did not answer.
        """
        agent = context.agents[0]
        context.progress(f"asking {agent.id}", None)
        task = AgentTask(
            agent=agent,
            resolved_input=context.resolved_input,
            task=context.step.prompt or "",
            inputs=context.agent_inputs(agent),
            limits=context.limits_of(agent),
        )
        answer, tools = ask_agent(context, task)
        figures: dict[str, JsonValue] = {
            "turns": answer.turns,
            "call_retries": answer.retries,
            "ended": answer.ended.value,
        }
        if tools.written:
            figures["files_written"] = ", ".join(tools.written)
        if tools.rendered:
            figures["films_rendered"] = ", ".join(film.name for film in tools.rendered)
        return StepResult(
            output=answer.output,
            artifacts=tools.rendered,
            usage=answer.usage,
            model=answer.model,
            notes=answer.notes,
            lossy=tools.lossy,
            metadata=figures,
        )
