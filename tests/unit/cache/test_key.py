from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprise.cache.key import (
    ALGORITHM_REVISIONS,
    KeyFacts,
    cache_key,
    field_digests,
    file_rows,
    key_fields,
)
from reprise.canonical import digest_fields
from reprise.model.agent import AgentDefinition, ModelParameters, ToolChoice, ToolGroup
from reprise.model.project import FileStatus, MediaKind, ProjectFile
from reprise.model.sandbox import SandboxFile, SandboxTree
from reprise.model.workflow import EditRoomConfig, InputMode, Step, StepType

AGENT = AgentDefinition(
    id="hook",
    agent_type="hook",
    system_prompt="Find hooks.",
    output_schema_name="hooks",
    output_schema={"type": "object"},
    assigned_skills=("be brief",),
    tool_groups=frozenset({ToolGroup.PROJECT_READ}),
    parameters=ModelParameters(model="m", temperature=0.5),
)
STEP = Step(order=2, label="hook", type=StepType.AGENT, agent="hook", prompt="Do it.")
FACTS = KeyFacts(
    agents=(AGENT,),
    providers=({"id": "p", "model": "m"},),
    tools=({"name": "read", "revision": "1"},),
    toolchain={"ffmpeg": "9"},
    files=(("f1", "d1"),),
    history=(("1", "analyze", "d3"),),
    context_budget={"max_input_chars": 1},
    function_fingerprint="c1",
    sandbox=SandboxTree(files=(SandboxFile(path="a.tsx", size_bytes=1, mode=0o644, digest="d5"),)),
)


def fields(
    step: Step = STEP,
    facts: KeyFacts = FACTS,
    *,
    project_id: str = "p1",
    resolved_input: str = "in",
    user_request: str | None = "make it",
    variables: dict[str, object] | None = None,
) -> dict[str, str | None]:
    return key_fields(
        step,
        facts,
        project_id=project_id,
        resolved_input=resolved_input,
        user_request=user_request,
        variables={} if variables is None else variables,  # type: ignore[arg-type]  # Objects.
    )


def key_of(key_fields: dict[str, str | None]) -> str:
    return cache_key(field_digests(key_fields))


def agent_with(**update: object) -> Callable[[], dict[str, str | None]]:
    facts = replace(FACTS, agents=(AGENT.model_copy(update=update),))
    return lambda: fields(facts=facts)


def step_with(**update: object) -> Callable[[], dict[str, str | None]]:
    return lambda: fields(STEP.model_copy(update=update))


def facts_with(**update: object) -> Callable[[], dict[str, str | None]]:
    return lambda: fields(facts=replace(FACTS, **update))  # type: ignore[arg-type]  # By name.


MUTATIONS: dict[str, Callable[[], dict[str, str | None]]] = {
    "project_id": lambda: fields(project_id="p2"),
    "step_type": step_with(type=StepType.GRAPHICS_ROOM),
    "input_mode": step_with(input_mode=InputMode.PREVIOUS_STEP_ONLY),
    "selected_prior_step_orders": step_with(selected_prior_step_orders=(1,)),
    "input_mapping": step_with(input_mapping={"a": 'steps."1"'}),
    "condition": step_with(condition="true"),
    "max_iterations": step_with(max_iterations=2),
    "min_score": step_with(min_score=0.5),
    "step_prompt": step_with(prompt="Do it well."),
    "edit_room": step_with(edit_room=EditRoomConfig()),
    "resolved_input": lambda: fields(resolved_input="in "),
    "user_request": lambda: fields(user_request="make it short"),
    "variables": lambda: fields(variables={"a": 1}),
    "agent_type": agent_with(agent_type="content"),
    "agent_definition_id": agent_with(id="hook2"),
    "agent_system_prompt": agent_with(system_prompt="Find hooks!"),
    "agent_output_schema_name": agent_with(output_schema_name="hooks2"),
    "agent_output_schema": agent_with(output_schema={"type": "array"}),
    "agent_assigned_skills": agent_with(assigned_skills=("be brief", "be kind")),
    "agent_model_parameters": agent_with(parameters=ModelParameters(model="m", temperature=0.6)),
    "agent_tool_groups": agent_with(tool_groups=frozenset()),
    "tool_choice": agent_with(tool_choice=ToolChoice.REQUIRED),
    "agent_inference_provider_id": facts_with(providers=({"id": "q", "model": "m"},)),
    "agent_tools": facts_with(tools=({"name": "read", "revision": "2"},)),
    "toolchain": facts_with(toolchain={"ffmpeg": "8"}),
    "project_file_fingerprint": facts_with(files=(("f1", "d2"),)),
    "history_digest": facts_with(history=(("1", "analyze", "d4"),)),
    "context_budget": facts_with(context_budget={"max_input_chars": 2}),
    "sandbox_digest": facts_with(
        sandbox=SandboxTree(
            files=(SandboxFile(path="a.tsx", size_bytes=1, mode=0o644, digest="d6"),)
        )
    ),
    "function_fingerprint": facts_with(function_fingerprint="c2"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_changing_one_field_changes_the_key_and_is_named(name: str) -> None:
    before, after = fields(), MUTATIONS[name]()

    assert key_of(before) != key_of(after)
    assert {n for n in before | after if before.get(n, 0) != after.get(n, 0)} == {name}


def test_no_field_is_left_out_of_the_mutation_test() -> None:
    names = set(fields()) | {"edit_room"}
    assert names - set(MUTATIONS) == {"schema_version"}


def test_a_new_revision_of_an_executor_changes_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    analyze = Step(order=1, label="analyze", type=StepType.VIDEO_ANALYZE)
    before = key_of(fields(analyze, KeyFacts()))
    revisions = {**ALGORITHM_REVISIONS, StepType.VIDEO_ANALYZE: "another"}
    monkeypatch.setattr("reprise.cache.key.ALGORITHM_REVISIONS", revisions)

    assert key_of(fields(analyze, KeyFacts())) != before


def test_fields_that_do_not_apply_are_absent() -> None:
    analyze = Step(order=1, label="analyze", type=StepType.VIDEO_ANALYZE)
    names = set(fields(analyze, KeyFacts(), user_request=None))

    assert names == {
        "algorithm_revision",
        "condition",
        "input_mapping",
        "input_mode",
        "max_iterations",
        "min_score",
        "project_id",
        "resolved_input",
        "schema_version",
        "selected_prior_step_orders",
        "step_prompt",
        "step_type",
        "variables",
    }


def test_the_label_of_a_step_is_not_in_its_key() -> None:
    assert key_of(fields()) == key_of(fields(STEP.model_copy(update={"label": "hooks"})))


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, "1"), (1, 1.0), (None, "None"), ("", None), ([], {})]
)
def test_variables_of_different_types_are_different(one: object, other: object) -> None:
    assert key_of(fields(variables={"a": one})) != key_of(fields(variables={"a": other}))


def test_the_order_of_a_schemas_properties_is_in_the_key() -> None:
    # A model is shown them in that order, and writes them in it.
    one = agent_with(output_schema={"properties": {"a": {}, "b": {}}})
    other = agent_with(output_schema={"properties": {"b": {}, "a": {}}})

    assert key_of(one()) != key_of(other())


def test_null_empty_absent_and_the_word_null_are_different_keys() -> None:
    for name in ("resolved_input", "user_request"):
        values: list[str | None] = [None, "", "null", '"null"', '""']
        keys = {key_of({name: value}) for value in values} | {key_of({})}

        assert len(keys) == 6


def test_the_key_is_pinned() -> None:
    assert key_of(fields()) == "0b52331236b6265224add6f1b815b6e4104f16686b4ea7e6aef5aef3d76a57f2"


@given(
    st.dictionaries(
        st.one_of(st.text(max_size=12), st.sampled_from(["%s", "a%", "resolved_input", "\0" * 64])),
        st.one_of(st.text("0123456789abcdef", min_size=64, max_size=64), st.text(max_size=70)),
        max_size=8,
    )
)
@example({"a": "é" * 64, "b": "%s" * 32})
def test_the_key_is_the_digest_of_the_field_named_encoding(digests: dict[str, str]) -> None:
    assert cache_key(digests) == digest_fields(digests)


def test_what_is_remembered_of_a_definition_is_no_other_ones() -> None:
    keys = []
    for number in range(50):
        # Each lives no longer than its turn, so that the next one may have its place in memory.
        agent = AGENT.model_copy(update={"system_prompt": f"Prompt {number}."})
        step = STEP.model_copy(update={"prompt": f"Do {number}."})
        facts = replace(FACTS, agents=(agent,), providers=({"id": f"p{number}"},))
        keys.append(fields(step, facts))
    for number, found in enumerate(keys):
        assert found["agent_system_prompt"] == f'["Prompt {number}."]'
        assert found["step_prompt"] == f"Do {number}."
        assert found["agent_inference_provider_id"] == f'[{{"id":"p{number}"}}]'


def test_the_fingerprint_of_a_project_follows_every_column_and_no_order() -> None:
    first = ProjectFile(
        id="f1",
        project_id="p",
        name="a.md",
        storage_key="k1",
        size_bytes=3,
        content_digest="d1",
        media_kind=MediaKind.DOCUMENT,
        uploaded_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    second = first.model_copy(update={"id": "f0"})
    rows = file_rows([first, second])

    assert rows == file_rows([second, first])
    for update in (
        {"id": "f9"},
        {"storage_key": "k2"},
        {"size_bytes": 4},
        {"uploaded_at": datetime(2026, 1, 3, tzinfo=UTC)},
        {"summary_status": FileStatus.DONE},
        {"indexing_status": FileStatus.DONE},
    ):
        assert file_rows([first.model_copy(update=update), second]) != rows
