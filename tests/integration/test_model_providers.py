"""The providers that need no network: heuristic and scripted."""

import json
from pathlib import Path

import pytest

from reprise.agents.loop import AgentTask
from reprise.errors import BadInput, Cancelled, ProviderError
from reprise.model.agent import SANDBOX_GROUPS, AgentDefinition
from reprise.model.conversation import AgentInputs, ModelRequest, PriorOutput
from reprise.model.result import Usage
from resources.definition_files import load_definitions
from resources.heuristic_provider import HeuristicProvider
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from resources.scripted_provider import ScriptedProvider
from tests.agent_loop import run_agent
from tests.analyses import talk

WORKFLOWS = Path(__file__).parents[2] / "workflows"
INPUTS = AgentInputs(
    prior=(
        PriorOutput(order=1, label="a", type="VideoAnalyze", output=talk().model_dump(mode="json")),
    )
)


def agent(name: str = "poet") -> AgentDefinition:
    return AgentDefinition(id=name, agent_type=name, system_prompt="x")


def request(name: str = "poet") -> ModelRequest:
    return ModelRequest(agent=agent(name), system_prompt="x", messages=())


def never() -> bool:
    return False


def test_the_heuristic_provider_answers_each_shipped_agent_and_spends_nothing() -> None:
    for shipped in load_definitions(WORKFLOWS).agents.values():
        answer = run_agent(
            AgentTask(agent=shipped, inputs=INPUTS), HeuristicProvider(), cancelled=never
        )
        assert answer.model == "heuristic-1"
        assert answer.usage == Usage()
        # Who works in a sandbox asks its tools first.
        assert answer.turns == 1 or shipped.tool_groups & SANDBOX_GROUPS


def test_the_heuristic_provider_says_what_to_do_about_an_agent_without_rules() -> None:
    with pytest.raises(ProviderError, match=r"no rules for agent 'poet' .* choose another") as e:
        HeuristicProvider().complete(request(), cancelled=never)
    assert e.value.transient is False


def test_the_heuristic_provider_needs_an_analysis() -> None:
    with pytest.raises(ProviderError, match="add its order to selected_prior_step_orders"):
        HeuristicProvider().complete(request("director"), cancelled=never)


def test_no_provider_answers_a_stopped_run() -> None:
    for provider in (HeuristicProvider(), ScriptedProvider(["x"])):
        with pytest.raises(Cancelled):
            provider.complete(request("director"), cancelled=lambda: True)


def test_a_provider_tells_its_models_context() -> None:
    assert HeuristicProvider().context_tokens is None
    assert ScriptedProvider([]).context_tokens is None
    assert ScriptedProvider([], context_tokens=2048).context_tokens == 2048
    small = OpenAICompatibleProvider(Endpoint("x", "http://127.0.0.1:9/v1"), context_tokens=2048)
    assert small.context_tokens == 2048


def test_a_script_at_its_end_is_an_error() -> None:
    provider = ScriptedProvider(["one"])
    assert provider.complete(request(), cancelled=never).text == "one"
    with pytest.raises(ProviderError, match="has 1 items for agent 'poet' and was asked for one"):
        provider.complete(request(), cancelled=never)


def test_a_script_by_agent_does_not_depend_on_who_asks_first(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(
        json.dumps(
            {
                "a": ["first a", {"answer": {"x": 1}}],
                "b": [
                    {"error": "busy", "transient": True, "retry_after_seconds": 2},
                    {"text": "cut", "finish_reason": "length"},
                ],
            }
        )
    )
    provider = ScriptedProvider.from_file("trial", path)
    assert provider.identity().id == "trial"
    with pytest.raises(ProviderError) as caught:
        provider.complete(request("b"), cancelled=never)
    assert (caught.value.transient, caught.value.retry_after_seconds) == (True, 2.0)
    assert provider.complete(request("a"), cancelled=never).text == "first a"
    assert provider.complete(request("b"), cancelled=never).finish_reason == "length"
    assert json.loads(provider.complete(request("a"), cancelled=never).text) == {"x": 1}


def test_another_script_is_another_provider_to_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('["one"]')
    before = ScriptedProvider.from_file("trial", path).identity()
    path.write_text('["two"]')
    assert ScriptedProvider.from_file("trial", path).identity() != before


@pytest.mark.parametrize("text", ["{", "3", '{"a": 1}', '[{"finish": 1}]'])
def test_a_file_that_is_no_script_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="provider 'trial'"):
        ScriptedProvider.from_file("trial", path)


def test_a_missing_script_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        ScriptedProvider.from_file("trial", tmp_path / "none.json")
