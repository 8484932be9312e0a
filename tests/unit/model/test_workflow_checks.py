"""What must hold between steps, one case a rule."""

import pytest

from reprise.errors import DefinitionInvalid
from reprise.model.agent import AgentDefinition
from reprise.model.loading import parse_workflow
from reprise.model.workflow import StepType
from reprise.model.workflow_checks import CONFIG_OF_TYPE

ANALYZE = "  - {order: 1, label: analyze, type: VideoAnalyze}\n"


def agent(name: str, **changes: object) -> AgentDefinition:
    values = {"id": name, "agent_type": name, "system_prompt": "Say {{request}}."}
    return AgentDefinition.model_validate({**values, **changes})


AGENTS = {
    "writer": agent("writer"),
    "uploader": agent("uploader", tool_groups=["ProjectWrite"]),
    "curious": agent("curious", system_prompt="Use {{nothing}} and {{analyze_output}}."),
    "director": agent("director"),
}


def told(steps: str, head: str = "") -> list[str]:
    text = f"id: demo\n{head}steps:\n{steps}"
    try:
        parse_workflow(text, "w.yaml", [*AGENTS, "broken"], AGENTS)
    except DefinitionInvalid as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            ANALYZE + "  - {order: 1, label: say, type: Agent, agent: writer}\n",
            "w.yaml:4: step 1 (say): order 1 is taken by step 'analyze' already; "
            "give each step its own order",
        ),
        (
            "  - {order: 2, label: say, type: Agent, agent: writer}\n" + ANALYZE,
            "w.yaml:4: step 1 (analyze): order 1 comes after order 2; "
            "write the steps by rising order",
        ),
        (
            ANALYZE + "  - {order: 2, label: Analyze, type: Agent, agent: writer}\n",
            "w.yaml:4: step 2 (Analyze): the label 'Analyze' reads like 'analyze' of step 1 "
            "(both are 'Analyze' in Dagster); choose another label",
        ),
        (
            "  - {order: 1, label: a b, type: VideoAnalyze}\n"
            "  - {order: 2, label: a-b, type: Agent, agent: writer}\n",
            "w.yaml:4: step 2 (a-b): the label 'a-b' reads like 'a b' of step 1 "
            "(both are 'a_b' in Dagster); choose another label",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " output_variable: analyze_output}\n",
            "w.yaml:4: step 2 (say): the output variable 'analyze_output' is set by step 1 "
            "already; give this step another output_variable",
        ),
        (
            "  - {order: 1, label: a, type: VideoAnalyze, edit_room: {}}\n",
            "w.yaml:3: step 1 (a): the config 'edit_room' does not belong to a step of type "
            "VideoAnalyze; use 'video_analyze' or remove it",
        ),
        (
            "  - {order: 1, label: a, type: Agent}\n",
            "w.yaml:3: step 1 (a): a step of type Agent needs `agent:` with the id of an agent; "
            "add it",
        ),
        (
            "  - {order: 1, label: a, type: VideoAnalyze, agent: writer}\n",
            "w.yaml:3: step 1 (a): a step of type VideoAnalyze has no single agent; remove `agent`",
        ),
        (
            "  - {order: 1, label: a, type: VideoAnalyze, prompt: Look.}\n",
            "w.yaml:3: step 1 (a): a step of type VideoAnalyze shows its prompt to nobody; "
            "remove `prompt`",
        ),
        (
            "  - {order: 1, label: a, type: VideoAnalyze, min_score: 3}\n",
            "w.yaml:3: step 1 (a): 'min_score' is for steps of type ReviewLoop alone; remove it",
        ),
        (
            "  - {order: 1, label: a, type: Function}\n",
            "w.yaml:3: step 1 (a): a Function step needs `function: {callable: module:name}`; "
            "add it",
        ),
        (
            "  - {order: 1, label: a, type: Agent, agent: wirter}\n",
            "w.yaml:3: step 1 (a): there is no agent 'wirter': add the prompt file "
            "prompts/wirter.md; did you mean 'writer'?",
        ),
        (
            "  - {order: 1, label: a, type: Agent, agent: broken}\n",
            "w.yaml:3: step 1 (a): the agent 'broken' has a file that is not valid; "
            "correct that file first",
        ),
        (
            "  - order: 1\n    label: a\n    type: EditRoom\n    edit_room:\n"
            "      agents:\n        - director\n        - critic\n",
            "w.yaml:9: step 1 (a): there is no agent 'critic': add the prompt file "
            "prompts/critic.md",
        ),
        (
            "  - {order: 1, label: a, type: EditRoom}\n",
            "w.yaml:3: step 1 (a): there is no agent 'story-editor': add the prompt file "
            "prompts/story-editor.md",
        ),
        (
            "  - {order: 1, label: a, type: Agent, agent: uploader, cache_mode: always}\n",
            "w.yaml:3: step 1 (a): cache_mode: always would skip what agent 'uploader' does with "
            "ProjectWrite; remove cache_mode, or add `allow_skipping_effects: true` to accept that",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " input_mode: selected_prior_steps, selected_prior_step_orders: [1, 3]}\n"
            + "  - {order: 3, label: late, type: Agent, agent: writer}\n",
            "w.yaml:4: step 2 (say): it reads the later step 3; a step reads earlier steps alone: "
            "1",
        ),
        (
            "  - {order: 1, label: say, type: Agent, agent: writer,"
            " input_mode: selected_prior_steps, selected_prior_step_orders: [7]}\n",
            "w.yaml:3: step 1 (say): no step has order 7; name one of none, this is the first step",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " selected_prior_step_orders: [1]}\n",
            "w.yaml:4: step 2 (say): selected_prior_step_orders is read in `input_mode: "
            "selected_prior_steps` alone; set that mode or remove the list",
        ),
        (
            ANALYZE
            + "  - order: 2\n    label: say\n    type: Agent\n    agent: writer\n"
            + "    input_mode: custom_mapped_subset\n"
            + "    input_mapping: {shots: 'steps.\"2\".sources[0].shots'}\n",
            "w.yaml:9: step 2 (say): it reads itself; a step reads earlier steps alone: 1",
        ),
        (
            ANALYZE
            + "  - order: 2\n    label: say\n    type: Agent\n    agent: writer\n"
            + "    input_mode: custom_mapped_subset\n"
            + "    input_mapping: {shots: 'steps..x'}\n",
            "w.yaml:9: step 2 (say): 'steps..x' is not JMESPath: ",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " input_mode: custom_mapped_subset}\n",
            "w.yaml:4: step 2 (say): input_mode: custom_mapped_subset needs `input_mapping` with "
            "names and expressions",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " condition: 'steps[\"3\"].score > 2'}\n"
            + "  - {order: 3, label: late, type: Agent, agent: writer}\n",
            "w.yaml:4: step 2 (say): it reads the later step 3; a step reads earlier steps alone: "
            "1",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " prompt: 'Use {{analyse_output}}.'}\n",
            "w.yaml:4: step 2 (say): unknown variable {{analyse_output}}; did you mean "
            "'analyze_output'?; known are analyze_output, request",
        ),
        (
            ANALYZE
            + "  - {order: 2, label: say, type: Agent, agent: writer,"
            + " prompt: 'Use {{late_output}}.'}\n"
            + "  - {order: 3, label: late, type: Agent, agent: writer}\n",
            "w.yaml:4: step 2 (say): the variable {{late_output}} is the output of step 3; "
            "name an earlier step's",
        ),
        (
            ANALYZE + "  - {order: 2, label: ask, type: Agent, agent: curious}\n",
            "w.yaml:4: step 2 (ask): unknown variable {{nothing}}; known are analyze_output, "
            "request (in the prompt of agent 'curious')",
        ),
    ],
)
def test_a_broken_rule_is_told_with_line_step_and_remedy(steps: str, expected: str) -> None:
    lines = told(steps)
    assert any(line.startswith(expected) for line in lines), lines


def test_a_request_may_name_workflow_variables_alone() -> None:
    head = "variables: {tone: warm}\ndefault_request: 'Be {{tone}} and {{loud}}.'\n"
    assert told(ANALYZE, head) == ["w.yaml:3: unknown variable {{loud}}; declare it in `variables`"]


FUNCTION = "  - {order: 1, label: f, type: Function, function: {callable: 'mod:run'%s}}\n"
SAY = "  - {order: 2, label: say, type: Agent, agent: writer, prompt: '{{score}}'}\n"


def test_a_variable_that_a_function_declares_may_be_named_after_it() -> None:
    assert told(FUNCTION % ", sets: [score]" + SAY) == []


def test_a_variable_that_no_function_declares_is_unknown() -> None:
    assert told(FUNCTION % "" + SAY) == [
        "w.yaml:4: step 2 (say): unknown variable {{score}}; known are f_output, request"
    ]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ("[f_output]", "the variable 'f_output' is set by step 1 already; rename this one"),
        ("[request]", "the variable 'request' is set by the engine already; rename this one"),
        ("[tone]", "the variable 'tone' is set by the workflow already; rename this one"),
        ("[a b]", "'a b' cannot be written as a variable; use letters, digits and `_`"),
        ("[s, s]", "the variable 's' is set by step 1 already; rename this one"),
    ],
)
def test_the_names_that_a_function_sets_are_its_own(sets: str, expected: str) -> None:
    found = told(FUNCTION % f", sets: {sets}", "variables: {tone: warm}\n")
    assert found == [f"w.yaml:4: step 1 (f): {expected}"]


def test_an_effect_may_be_skipped_by_a_second_word() -> None:
    steps = (
        "  - {order: 1, label: a, type: Agent, agent: uploader, cache_mode: always,"
        " allow_skipping_effects: true}\n"
    )
    assert told(steps) == []


def test_reading_no_prior_step_at_all_is_allowed() -> None:
    steps = (
        "  - {order: 1, label: a, type: VideoAnalyze, input_mode: selected_prior_steps,"
        " selected_prior_step_orders: []}\n"
    )
    assert told(steps) == []


def test_every_step_type_has_a_row_in_the_config_table() -> None:
    assert set(CONFIG_OF_TYPE) == set(StepType)
