"""The provider that needs no key, no network and no model: documented rules over the real inputs.

Source: specification A5; the rules are in reprise/agents/heuristics.
"""

import json

from reprise.agents.heuristics.dialogue import Move, next_move
from reprise.agents.heuristics.material import material_of
from reprise.agents.heuristics.rules import PLAIN_RULES, REVISION, RULES, TOOL_RULES
from reprise.errors import Cancelled as RunCancelled
from reprise.errors import InputUnresolved, ProviderError
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.model.result import Usage
from reprise.ports import Cancelled

MODEL = "heuristic-1"
"""How results that it gave are labelled."""


class HeuristicProvider:
    """Answers each built-in agent type from the request's inputs; it spends nothing."""

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return None

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key."""
        return ProviderIdentity(id="heuristic", kind="heuristic", model=MODEL, revision=REVISION)

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer by the rule of the agent's type, or use the tools that the rule needs first.

        Raises:
            ProviderError: There is no rule for this type, or the inputs lack what it reads.
            Cancelled: The run is being stopped.
        """
        if cancelled():
            message = "the run was stopped before the rules were applied"
            raise RunCancelled(message)
        agent = request.agent
        try:
            move = _move(request)
        except InputUnresolved as error:
            message = f"agent {agent.id!r}: {error}"
            raise ProviderError(message) from error
        return ModelReply(
            text="" if move.calls else json.dumps(move.answer, ensure_ascii=False),
            tool_calls=move.calls,
            finish_reason="tool_calls" if move.calls else "stop",
            usage=Usage(),
            model=MODEL,
        )


def _move(request: ModelRequest) -> Move:
    """Return what the rule of the agent's type does next."""
    agent, inputs = request.agent, request.inputs
    if agent.agent_type in TOOL_RULES:
        return next_move(TOOL_RULES[agent.agent_type], request)
    if agent.agent_type in PLAIN_RULES:
        return Move(answer=PLAIN_RULES[agent.agent_type](inputs))
    if agent.agent_type in RULES:
        return Move(answer=RULES[agent.agent_type](material_of(inputs)))
    message = (
        f"the heuristic provider has no rules for agent {agent.id!r} of type "
        f"{agent.agent_type!r} (it knows {', '.join((*RULES, *TOOL_RULES))}); choose another "
        "provider with `--provider` or `inference_provider_id`"
    )
    raise ProviderError(message)
