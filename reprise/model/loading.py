"""Definition files to values: a workflow's YAML, an agent's Markdown; all problems at once.

Each problem is one line: `file:line: step N (label): what is wrong; what to do`. Nothing is read
from disk here; resources/definition_files.py walks the folders.

An agent file is Markdown with YAML front matter between two `---` lines: `id` (default: the file's
stem), `agent_type`, `output_schema_name` and `output_schema` (a JSON Schema written in place, as
YAML), `tool_groups`, `skills` (names of files in `skills/`, whose texts become `assigned_skills`),
`inference_provider_id`, `parameters`, `limits`. The body is the system prompt, with the blocks of
reprise/model/feature_blocks.py.

Source: specification W1, W2, W2a, A1. Tests: tests/unit/model/test_loading.py.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import TypeVar

import jsonschema
from pydantic import BaseModel, Field, JsonValue, ValidationError

from reprise.errors import DefinitionInvalid
from reprise.model.agent import AgentDefinition, AgentLimits, ModelParameters, ToolChoice, ToolGroup
from reprise.model.base import Value
from reprise.model.feature_blocks import FEATURES, kept_text
from reprise.model.model_errors import describe_errors, did_you_mean
from reprise.model.workflow import Step, Workflow
from reprise.model.workflow_checks import Checked, Placed, find_problems
from reprise.model.yaml_text import Document, Path, Problem, read_yaml

TEXT_CHARS_MAX = 1_000_000
"""Longest definition file, in characters."""

FENCE = "---"

Model = TypeVar("Model", bound=BaseModel)


class AgentFrontMatter(Value):
    """The keys of an agent file's front matter."""

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]+$")
    """Unique id; the file's stem when it is left out."""
    agent_type: str = Field(min_length=1)
    """What kind of agent it is."""
    output_schema_name: str | None = None
    """Name of the output schema."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema (2020-12) of the answer. A text with `format: sentence-id` or `format: shot-id`
    is one of the ids in the analysis that the step reads."""
    tool_groups: frozenset[ToolGroup] = frozenset()
    """Tool groups that the agent may use."""
    tool_choice: ToolChoice | None = None
    """What the model is told of its tools: `auto`, `required` (it has to call one before it
    answers) or `none`; left out, the provider's own choice."""
    skills: tuple[str, ...] = ()
    """Names of skill files, in the order in which their texts follow the prompt."""
    inference_provider_id: str | None = None
    """A provider of its own."""
    parameters: ModelParameters = ModelParameters()
    """Model and sampling."""
    limits: AgentLimits = AgentLimits()
    """Bounds of its loop."""


def parse_workflow(
    text: str,
    source: str,
    agent_ids: Collection[str] | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    templates: Collection[str] | None = None,
) -> Workflow:
    """Return the workflow that a YAML text describes.

    Args:
        text: The YAML.
        source: File name for the messages.
        agent_ids: Ids of the agents that have a file; None leaves the names unchecked.
        agents: The agents whose file is valid, by id; None leaves unchecked what depends on them.
        templates: Names of the sandbox templates; None leaves the name unchecked.

    Raises:
        DefinitionInvalid: With every problem, by line.
    """
    document = _read(text, first_line=1)
    workflow = _checked_workflow(document, agent_ids, agents) if document.value else None
    if workflow is not None and templates is not None:
        _check_template(document, workflow.sandbox.template, templates)
    if document.value is None and not document.problems:
        document.at((), "the file is empty; a workflow needs `id` and `steps`")
    _raise_problems(document, source)
    if workflow is None:
        # Not reached while every way to no workflow notes a problem; this keeps that promise.
        message = f"{source}:1: no workflow in this file"
        raise DefinitionInvalid([message])
    return workflow.model_copy(update={"source_path": source})


def parse_agent(
    text: str,
    source: str,
    skills: Mapping[str, str] | None = None,
    features: Collection[str] = FEATURES,
) -> AgentDefinition:
    """Return the agent that a Markdown text with front matter describes.

    Args:
        text: The Markdown.
        source: File name for the messages; its stem is the default id.
        skills: Skill texts by name.
        features: Those that are on; blocks of others are left out.

    Raises:
        DefinitionInvalid: With every problem, by line.
    """
    front, body, body_line = _split_front_matter(text)
    if front is None:
        what = f"the file must begin with front matter between two `{FENCE}` lines; add it"
        raise DefinitionInvalid([f"{source}:1: {what}"])
    document = _read(front, first_line=2)
    header = _validated(AgentFrontMatter, document, ())
    kept = kept_text(body, features)
    document.problems += [
        Problem(("prompt",), body_line + line, what) for line, what in kept.problems
    ]
    if not kept.text.strip():
        what = "there is no prompt after the front matter; write it"
        document.problems.append(Problem(("prompt",), body_line, what))
    if header is not None:
        _check_output_schema(document, header)
        _check_skills(document, header, skills or {})
        if header.tool_choice is ToolChoice.REQUIRED and not header.tool_groups:
            document.at(("tool_choice",), "there is no tool to call; add `tool_groups`")
    _raise_problems(document, source)
    if header is None:
        message = f"{source}:1: no agent in this file"
        raise DefinitionInvalid([message])
    return AgentDefinition(
        id=header.id or PurePosixPath(source).stem,
        agent_type=header.agent_type,
        system_prompt=kept.text.strip() + "\n",
        output_schema_name=header.output_schema_name,
        output_schema=header.output_schema,
        assigned_skills=tuple((skills or {})[name] for name in header.skills),
        tool_groups=header.tool_groups,
        tool_choice=header.tool_choice,
        inference_provider_id=header.inference_provider_id,
        parameters=header.parameters,
        limits=header.limits,
        source_path=source,
    )


def workflow_json_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of a workflow's YAML, for editors to complete and check it.

    Source: specification W1.
    """
    schema: dict[str, JsonValue] = Workflow.model_json_schema()
    properties = schema.get("properties")
    if isinstance(properties, dict):
        properties.pop("source_path", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Reprise workflow",
    }


def _read(text: str, *, first_line: int) -> Document:
    if len(text) > TEXT_CHARS_MAX:
        document = Document()
        document.problems.append(
            Problem(
                (), first_line, f"the file is longer than {TEXT_CHARS_MAX} characters; shorten it"
            )
        )
        return document
    return read_yaml(text, first_line=first_line)


def _checked_workflow(
    document: Document,
    agent_ids: Collection[str] | None,
    agents: Mapping[str, AgentDefinition] | None,
) -> Workflow | None:
    workflow = _validated(Workflow, document, ())
    value = document.value
    if not isinstance(value, dict):
        return workflow
    if "source_path" in value:
        document.at(("source_path",), "unknown key 'source_path'; remove it")
    raw = value.get("steps")
    raw_steps = raw if isinstance(raw, list) else []
    placed = [
        Placed(index, step)
        for index, item in enumerate(raw_steps)
        if (step := _quietly_validated(Step, item)) is not None
    ]
    orders = [item.get("order") for item in raw_steps if isinstance(item, dict)]
    variables = value.get("variables")
    request = value.get("default_request")
    checked = Checked(
        steps=tuple(placed),
        orders=frozenset(order for order in orders if isinstance(order, int)),
        variables=variables if isinstance(variables, dict) else {},
        default_request=request if isinstance(request, str) else "",
        complete=len(placed) == len(raw_steps),
        agent_ids=agent_ids,
        agents=agents,
    )
    for path, what in find_problems(checked):
        document.at(path, what)
    return workflow


def _check_template(document: Document, name: str | None, templates: Collection[str]) -> None:
    if name is not None and name not in templates:
        hint = did_you_mean(name, templates)
        what = f"there is no template {name!r}: add the folder templates/{name} beside this file"
        document.at(("sandbox", "template"), f"{what}{hint}")


def _validated(model: type[Model], document: Document, base: Path) -> Model | None:
    """Return the document as a model, or note what is wrong, once for each place."""
    if document.value is None:
        return None
    refused = {problem.path for problem in document.problems}
    try:
        return model.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        for path, what in describe_errors(model, error):
            if (*base, *path) not in refused:
                document.at((*base, *path), what)
        return None


def _quietly_validated(model: type[Model], value: JsonValue) -> Model | None:
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return None


def _split_front_matter(text: str) -> tuple[str | None, str, int]:
    """Return front matter, body, and the line in which the body begins."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines or lines[0].rstrip() != FENCE:
        return None, text, 1
    for at, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:at]) + "\n", "\n".join(lines[at + 1 :]), at + 2
    return None, text, 1


def _check_output_schema(document: Document, header: AgentFrontMatter) -> None:
    schema = header.output_schema
    if schema is None:
        if header.output_schema_name is not None:
            document.at(("output_schema_name",), "it names no schema; add `output_schema`")
        return
    if header.output_schema_name is None:
        document.at(("output_schema",), "the schema has no name; add `output_schema_name`")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        path = ("output_schema", *error.absolute_path)
        document.at(path, f"this is no valid JSON Schema: {error.message[:200]}")
    for path, target in _references(schema, ("output_schema",)):
        if not _leads_somewhere(schema, target):
            what = f"the reference {target!r} leads nowhere in this schema; use `#/$defs/…`"
            document.at(path, what)


def _references(value: JsonValue, path: Path) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    if isinstance(value, dict):
        for name, item in value.items():
            here = (*path, name)
            if name in {"$ref", "$dynamicRef"} and isinstance(item, str):
                found.append((here, item))
            else:
                found += _references(item, here)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += _references(item, (*path, at))
    return found


def _leads_somewhere(schema: JsonValue, target: str) -> bool:
    """Answer whether a reference is a JSON pointer into the schema; nothing is ever fetched."""
    if target != "#" and not target.startswith("#/"):
        return False
    here = schema
    for part in target.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and name in here:
            here = here[name]
        elif isinstance(here, list) and name.isdecimal() and int(name) < len(here):
            here = here[int(name)]
        else:
            return False
    return True


def _check_skills(document: Document, header: AgentFrontMatter, skills: Mapping[str, str]) -> None:
    for at, name in enumerate(header.skills):
        if name not in skills:
            hint = did_you_mean(name, skills)
            document.at(("skills", at), f"there is no skill {name!r}: add skills/{name}.md{hint}")


def _raise_problems(document: Document, source: str) -> None:
    if not document.problems:
        return
    ordered = sorted(document.problems, key=lambda problem: problem.line)
    texts = [
        f"{source}:{problem.line}: {_step_of(document, problem.path)}{problem.text}"
        for problem in ordered
    ]
    raise DefinitionInvalid(list(dict.fromkeys(texts)))


def _step_of(document: Document, path: Path) -> str:
    """Return `step 3 (audience): ` for a place inside a step, else an empty text."""
    if len(path) < 2 or path[0] != "steps" or not isinstance(path[1], int):
        return ""
    value = document.value
    steps = value.get("steps") if isinstance(value, dict) else None
    step = steps[path[1]] if isinstance(steps, list) and path[1] < len(steps) else None
    if not isinstance(step, dict):
        return f"step at place {path[1] + 1}: "
    order, label = step.get("order"), step.get("label")
    name = f"step {order}" if isinstance(order, int) else f"step at place {path[1] + 1}"
    return f"{name} ({label}): " if isinstance(label, str) else f"{name}: "
