import pytest

from reprise.context.step_input import read_orders, resolved_input, sees_request
from reprise.errors import InputUnresolved
from reprise.model.agent import AgentDefinition
from reprise.model.conversation import PriorOutput
from reprise.model.workflow import ExtractConfig, InputMode, Step, StepType, Workflow

PRIOR = {
    1: PriorOutput(order=1, label="analyze", type="VideoAnalyze", output={"b": 1, "a": [2]}),
    2: PriorOutput(order=2, label="hook", type="Agent", output="plain\ntext"),
}


def step(order: int = 3, **fields: object) -> Step:
    return Step.model_validate(
        {"order": order, "label": f"s{order}", "type": StepType.EXTRACT, **fields}
    )


def workflow(*steps: Step) -> Workflow:
    return Workflow(id="w", steps=(step(1), step(2), *steps))


def test_the_whole_workflow_is_joined_under_headers_in_order() -> None:
    text = resolved_input(step(), PRIOR, where="here")
    assert text == '## Step 1: analyze\n{"a":[2],"b":1}\n\n## Step 2: hook\nplain\ntext'


def test_the_previous_step_alone_comes_without_header() -> None:
    only = step(input_mode=InputMode.PREVIOUS_STEP_ONLY)
    assert resolved_input(only, {2: PRIOR[2]}, where="here") == "plain\ntext"


def test_a_mapping_takes_values_by_expression() -> None:
    mapped = step(
        input_mode=InputMode.CUSTOM_MAPPED_SUBSET,
        input_mapping={"first": 'steps."1".a[0]', "all": 'steps."2"', "none": 'steps."1".zzz'},
    )
    assert (
        resolved_input(mapped, PRIOR, where="here")
        == '{"all":"plain\\ntext","first":2,"none":null}'
    )


def test_a_broken_expression_names_the_mapping() -> None:
    mapped = step(input_mode=InputMode.CUSTOM_MAPPED_SUBSET, input_mapping={"x": "steps.["})
    with pytest.raises(InputUnresolved, match=r"here: input_mapping 'x': 'steps\.\['"):
        resolved_input(mapped, PRIOR, where="here")


def test_no_prior_output_is_an_empty_input() -> None:
    assert resolved_input(step(), {}, where="here") == ""


@pytest.mark.parametrize(
    ("fields", "orders"),
    [
        ({}, [1, 2]),
        ({"input_mode": "previous_step_only"}, [2]),
        ({"input_mode": "selected_prior_steps"}, []),
        ({"input_mode": "selected_prior_steps", "selected_prior_step_orders": [1]}, [1]),
        (
            {"input_mode": "custom_mapped_subset", "input_mapping": {"a": 'steps."2".x'}},
            [2],
        ),
        ({"input_mode": "selected_prior_steps", "prompt": "use {{s2_output}}"}, [2]),
        (
            {
                "input_mode": "selected_prior_steps",
                "extract": ExtractConfig(fields={"a": "{{s1_output}}"}),
            },
            [1],
        ),
    ],
)
def test_a_step_reads_what_its_mode_and_its_texts_name(
    fields: dict[str, object], orders: list[int]
) -> None:
    reader = step(3, **fields)
    assert read_orders(reader, workflow(reader), ()) == orders


def test_an_agents_prompt_counts_as_the_steps() -> None:
    agent = AgentDefinition(id="a", agent_type="a", system_prompt="see {{s1_output}}")
    reader = step(input_mode=InputMode.SELECTED_PRIOR_STEPS)
    assert read_orders(reader, workflow(reader), (agent,)) == [1]


def test_only_agents_and_who_names_it_see_the_request() -> None:
    agent = AgentDefinition(id="a", agent_type="a", system_prompt="x")
    assert not sees_request(step(), ())
    assert sees_request(step(), (agent,))
    assert sees_request(step(prompt="{{request}}"), ())
