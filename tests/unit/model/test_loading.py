"""Workflows and agents from text: what loads, and what each mistake is told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.errors import DefinitionInvalid
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.loading import parse_agent, parse_workflow
from reprise.model.sandbox import SandboxSeed
from reprise.model.workflow import InputMode, StepType

HEAD = "id: demo\nsteps:\n"
ANALYZE = "  - {order: 1, label: analyze, type: VideoAnalyze}\n"


def problems(text: str, **arguments: object) -> list[str]:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_workflow(text, "w.yaml", **arguments)  # type: ignore[arg-type]  # As the test gives.
    return list(caught.value.problems)


def agent_problems(text: str, skills: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_agent(text, "prompts/a.md", skills)
    return list(caught.value.problems)


def writer(**changes: object) -> AgentDefinition:
    values = {"id": "writer", "agent_type": "writer", "system_prompt": "Write."}
    return AgentDefinition.model_validate({**values, **changes})


def test_a_workflow_loads_with_its_defaults() -> None:
    workflow = parse_workflow(
        HEAD + ANALYZE + "  - {order: 2, label: Say it, type: Agent, agent: writer}\n", "w.yaml"
    )
    assert workflow.source_path == "w.yaml"
    assert [step.type for step in workflow.steps] == [StepType.VIDEO_ANALYZE, StepType.AGENT]
    assert workflow.steps[1].input_mode is InputMode.FULL_WORKFLOW
    assert workflow.steps[1].variable == "Say_it_output"


def test_every_problem_is_told_at_once_by_line() -> None:
    text = (
        "id: demo\n"
        "nmae: Demo\n"
        "steps:\n"
        "  - order: 1\n"
        "    label: first\n"
        "    type: Agnet\n"
        "  - order: 2\n"
        "    label: second\n"
        "    type: VideoAnalyze\n"
        "    video_analyze: {speech: 'true'}\n"
    )
    assert problems(text) == [
        "w.yaml:2: unknown key 'nmae'; did you mean 'name'?",
        "w.yaml:6: step 1 (first): type: 'Agnet' is not one of Extract, VideoAnalyze, "
        "VideoCompile, EditRoom, GraphicsRoom, ColorGradeRoom, Agent, ReviewLoop, Conditional, "
        "ForEach, Parallel, Function, Script; did you mean 'Agent'?",
        "w.yaml:10: step 2 (second): speech: expected `true` or `false`, found 'true'",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "w.yaml:1: the file is empty; a workflow needs `id` and `steps`"),
        ("[1, 2]", "w.yaml:1: the file: expected keys with values, found [1, 2]"),
        ("id: demo\n", "w.yaml:1: the key 'steps' is missing; add it"),
        (
            "id: demo\nsteps:\n\t- order: 1\n",
            "w.yaml:3: this is not YAML: found character '\\t' that cannot start any token; "
            "indent with blanks, not with tabs",
        ),
        (
            "id: demo\nname: Demo: the film\nsteps: []\n",
            "w.yaml:2: this is not YAML: mapping values are not allowed here; "
            "put a text that holds `: ` in quotes",
        ),
        (
            "id: demo\nid: other\nsteps:\n" + ANALYZE,
            "w.yaml:2: the key 'id' stands here a second time (first in line 1); keep one",
        ),
        (
            "id: demo\nname: yes\nsteps:\n" + ANALYZE,
            "w.yaml:2: yes is read as a truth value; write `true` or `false`, "
            "or put the text in quotes",
        ),
        (
            "id: demo\nvariables: {length: 1:30}\nsteps:\n" + ANALYZE,
            "w.yaml:2: 1:30 is no plain whole number; write it in decimal digits, "
            "or put the text in quotes",
        ),
        (
            "id: demo\nvariables: {day: 2026-01-02}\nsteps:\n" + ANALYZE,
            "w.yaml:2: 2026-01-02 is read as a date; put it in quotes",
        ),
        (
            "id: demo\ndefault_request: {{ask}}\nsteps:\n" + ANALYZE,
            "w.yaml:2: a key must be text; a text that begins with `{{` needs quotes around it",
        ),
        (
            "id: demo\nname: \x07\nsteps:\n" + ANALYZE,
            "w.yaml:2: the character U+0007 is not allowed; remove it",
        ),
        (
            "id: demo\nname: !!python/name:os.system x\nsteps:\n" + ANALYZE,
            "w.yaml:2: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported; "
            "remove it",
        ),
        (
            "id: demo\nvariables: &v {a: *v}\nsteps:\n" + ANALYZE,
            "w.yaml:2: the anchors here expand without end; write the values out",
        ),
        (
            HEAD + "  - {order: 1, label: a, type: VideoAnalyze, speech: true}\n",
            "w.yaml:3: step 1 (a): unknown key 'speech'; it belongs under 'video_analyze'",
        ),
        (
            "id: demo\nsource_path: x\nsteps:\n" + ANALYZE,
            "w.yaml:2: unknown key 'source_path'; remove it",
        ),
    ],
)
def test_a_broken_file_is_told_line_and_remedy(text: str, told: str) -> None:
    assert told in problems(text)


SANDBOX = "id: demo\nsandbox:\n  template: promo\n  seed: previous\nsteps:\n" + ANALYZE


def test_a_sandbox_begins_with_a_template_that_there_is() -> None:
    workflow = parse_workflow(SANDBOX, "w.yaml", templates={"promo"})
    assert workflow.sandbox.template == "promo"
    assert workflow.sandbox.seed is SandboxSeed.PREVIOUS


def test_an_unknown_template_is_told_with_what_to_do() -> None:
    assert problems(SANDBOX, templates={"promos"}) == [
        "w.yaml:3: there is no template 'promo': add the folder templates/promo beside this file; "
        "did you mean 'promos'?",
    ]


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "/etc"])
def test_a_template_is_named_not_its_path(name: str) -> None:
    text = SANDBOX.replace("promo", f'"{name}"')
    assert any(line.startswith("w.yaml:3: template") for line in problems(text))


def test_the_tenfold_anchor_bomb_is_refused_quickly() -> None:
    lines = ["id: demo", "variables:", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    told = problems("\n".join(lines) + "\nsteps:\n" + ANALYZE)
    assert any("expand without end" in line for line in told)


@given(st.text(max_size=200))
def test_any_text_gives_a_workflow_or_problems_with_lines(text: str) -> None:
    told: tuple[str, ...] = ("w.yaml:",)
    try:
        parse_workflow(text, "w.yaml")
    except DefinitionInvalid as error:
        told = error.problems
    assert told
    assert all(line.startswith("w.yaml:") for line in told)


AGENT = """---
agent_type: writer
output_schema_name: line
output_schema:
  type: object
  required: [text]
  properties:
    text: {type: string, maxLength: 10}
tool_groups: [ProjectRead]
skills: [plain]
parameters: {temperature: 0.5}
---
You write.
"""


def test_an_agent_loads_from_front_matter_and_body() -> None:
    agent = parse_agent(AGENT, "prompts/my-writer.md", {"plain": "Write plainly.\n"})
    assert agent.id == "my-writer"
    assert agent.system_prompt == "You write.\n"
    assert agent.assigned_skills == ("Write plainly.\n",)
    assert agent.tool_groups == frozenset({ToolGroup.PROJECT_READ})
    assert agent.parameters.temperature == 0.5
    assert agent.source_path == "prompts/my-writer.md"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("---\nYou write.\n", "---\n\n", "prompts/a.md:13: there is no prompt after the front"),
        ("agent_type: writer\n", "", "prompts/a.md:2: the key 'agent_type' is missing; add it"),
        (
            "[ProjectRead]",
            "[ProjektRead]",
            "prompts/a.md:9: tool_groups: 'ProjektRead' is not one of ProjectRead, ProjectWrite, "
            "WorkflowRead, SandboxBrowse, SandboxAuthoring, SandboxRender; "
            "did you mean 'ProjectRead'?",
        ),
        (
            "tool_groups: [ProjectRead]",
            "tool_choice: required",
            "prompts/a.md:9: there is no tool to call; add `tool_groups`",
        ),
        ("[plain]", "[plian]", "prompts/a.md:10: there is no skill 'plian': add skills/plian.md"),
        ("output_schema_name: line\n", "", "prompts/a.md:3: the schema has no name; add"),
        ("maxLength: 10", "maxLength: ten", "prompts/a.md:8: this is no valid JSON Schema: 'ten'"),
        (
            "{type: string, maxLength: 10}",
            "{$ref: 'https://example.org/x'}",
            "prompts/a.md:8: the reference 'https://example.org/x' leads nowhere in this schema",
        ),
        ("temperature: 0.5", "temprature: 0.5", "unknown key 'temprature'; did you mean 'temp"),
        ("---\nagent_type", "agent_type", "prompts/a.md:1: the file must begin with front matter"),
    ],
)
def test_a_broken_agent_file_is_told_line_and_remedy(old: str, new: str, told: str) -> None:
    lines = agent_problems(AGENT.replace(old, new, 1), {"plain": "x"})
    assert any(told in line for line in lines), lines


def test_windows_line_ends_and_a_byte_order_mark_make_no_difference() -> None:
    plain = parse_agent(AGENT, "a.md", {"plain": "x"})
    windows = parse_agent("\ufeff" + AGENT.replace("\n", "\r\n"), "a.md", {"plain": "x"})
    assert windows == plain


def test_the_shipped_files_have_no_tabs_and_end_with_a_newline() -> None:
    folder = Path(__file__).parents[3] / "workflows"
    for path in sorted(folder.rglob("*.*")):
        text = path.read_text(encoding="utf-8")
        assert "\t" not in text, path
        assert text.endswith("\n"), path
