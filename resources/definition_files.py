"""Definition files on disk: workflows, the agents that they name, and the agents' skills.

    folder/*.yaml           workflows
    folder/prompts/*.md     agents
    folder/skills/*.md      texts that agents share
    folder/templates/*/     what sandboxes begin with

A broken file hides no other one: its problems are kept by file, and the rest loads.
`write_workflow_schema` renews workflows/workflow.schema.json after a change of the model.

Source: specification W1, W2a.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from reprise.errors import DefinitionInvalid, UnknownName
from reprise.model.agent import AgentDefinition
from reprise.model.feature_blocks import FEATURES, kept_text
from reprise.model.loading import parse_agent, parse_workflow, workflow_json_schema
from reprise.model.model_errors import did_you_mean
from reprise.model.workflow import Workflow, slug

SIZE_BYTES_MAX = 4 * 2**20
"""Largest definition file that is read."""

TEMPLATES = "templates"
"""Folder of the sandbox templates."""

WORKFLOW_SUFFIXES = (".yaml", ".yml")

Definition = TypeVar("Definition", Workflow, AgentDefinition)


@dataclass(frozen=True)
class Definitions:
    """What a folder of definitions holds."""

    folder: Path
    """The folder."""
    workflows: Mapping[str, Workflow]
    """The valid workflows by id, sorted."""
    agents: Mapping[str, AgentDefinition]
    """The valid agents by id, sorted."""
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """File → what is wrong with it, a line each; only files that have problems."""

    @property
    def all_problems(self) -> tuple[str, ...]:
        """Every problem, file by file."""
        return tuple(line for lines in self.problems.values() for line in lines)

    def workflow(self, name: str) -> Workflow:
        """Return a workflow by its id or its slug.

        Raises:
            DefinitionInvalid: Its file is broken.
            UnknownName: There is none of this name.
        """
        found = _by_id_or_slug(self.workflows, name)
        if found is not None:
            return found
        self._raise_if_broken(name, WORKFLOW_SUFFIXES)
        known = ", ".join(self.workflows) or "none"
        hint = did_you_mean(name, self.workflows)
        message = f"there is no workflow {name!r} in {self.folder}{hint or f'; known are {known}'}"
        raise UnknownName(message)

    def agent(self, name: str) -> AgentDefinition:
        """Return an agent by its id or its slug.

        Raises:
            DefinitionInvalid: Its file is broken.
            UnknownName: There is none of this name.
        """
        found = _by_id_or_slug(self.agents, name)
        if found is not None:
            return found
        self._raise_if_broken(name, (".md",))
        known = ", ".join(self.agents) or "none"
        hint = did_you_mean(name, self.agents)
        where = self.folder / "prompts"
        message = f"there is no agent {name!r} in {where}{hint or f'; known are {known}'}"
        raise UnknownName(message)

    def _raise_if_broken(self, name: str, suffixes: tuple[str, ...]) -> None:
        for file, lines in self.problems.items():
            path = Path(file)
            if path.suffix in suffixes and slug(path.stem) == slug(name):
                raise DefinitionInvalid(lines)


def load_definitions(folder: Path, features: Collection[str] = FEATURES) -> Definitions:
    """Return all definitions of a folder; what is wrong with a file is among the problems.

    Args:
        folder: The folder.
        features: Those that are on; blocks of others are left out of prompts and skills.

    Raises:
        UnknownName: There is no such folder.
    """
    if not folder.is_dir():
        message = f"there is no folder {str(folder)!r} with workflows; check `workflows_dir`"
        raise UnknownName(message)
    problems: dict[str, tuple[str, ...]] = {}
    agents, agent_ids = _load_agents(folder, problems, features)
    templates = template_names(folder)
    workflows: dict[str, Workflow] = {}
    for path in _files(folder, WORKFLOW_SUFFIXES):
        try:
            workflow = parse_workflow(_text(path), str(path), agent_ids, agents, templates)
        except DefinitionInvalid as error:
            problems[str(path)] = error.problems
            continue
        taken = _slug_taken(workflow.id, workflows, "workflow")
        if taken:
            problems[str(path)] = (f"{path}:1: {taken}",)
            continue
        workflows[workflow.id] = workflow
    return Definitions(folder, dict(sorted(workflows.items())), agents, problems)


def check_file(
    path: Path, check: Callable[[Workflow], None] = lambda _workflow: None
) -> tuple[str, ...]:
    """Return what is wrong with one file, a line each; a workflow's agents are beside it.

    Args:
        path: The file.
        check: A further check of a workflow that is valid; raises DefinitionInvalid.

    Raises:
        UnknownName: There is no such file.
    """
    if not path.is_file():
        message = f"there is no file {str(path)!r}"
        raise UnknownName(message)
    try:
        if path.suffix == ".md":
            parse_agent(_text(path), str(path), _skills(path.parent.parent, {}, FEATURES))
        else:
            problems: dict[str, tuple[str, ...]] = {}
            agents, agent_ids = _load_agents(path.parent, problems, FEATURES)
            templates = template_names(path.parent)
            check(parse_workflow(_text(path), str(path), agent_ids, agents, templates))
    except DefinitionInvalid as error:
        return error.problems
    return ()


def template_names(folder: Path) -> frozenset[str]:
    """Return the names of the sandbox templates that are beside workflow files."""
    templates = folder / TEMPLATES
    if not templates.is_dir():
        return frozenset()
    return frozenset(path.name for path in templates.iterdir() if path.is_dir())


def workflow_schema_text() -> str:
    """Return the text of workflows/workflow.schema.json."""
    return json.dumps(workflow_json_schema(), indent=2, ensure_ascii=False) + "\n"


def write_workflow_schema(path: Path) -> None:
    """Write the JSON Schema that editors complete workflows by."""
    path.write_text(workflow_schema_text(), encoding="utf-8")


def _load_agents(
    folder: Path, problems: dict[str, tuple[str, ...]], features: Collection[str]
) -> tuple[dict[str, AgentDefinition], frozenset[str]]:
    """Return the valid agents, and the ids of all agents that have a file."""
    skills = _skills(folder, problems, features)
    agents: dict[str, AgentDefinition] = {}
    broken: set[str] = set()
    for path in _files(folder / "prompts", (".md",)):
        try:
            agent = parse_agent(_text(path), str(path), skills, features)
        except DefinitionInvalid as error:
            problems[str(path)] = error.problems
            broken.add(path.stem)
            continue
        taken = _slug_taken(agent.id, agents, "agent")
        if taken:
            problems[str(path)] = (f"{path}:1: {taken}",)
            continue
        agents[agent.id] = agent
    return dict(sorted(agents.items())), frozenset({*agents, *broken})


def _slug_taken(
    name: str, known: Mapping[str, Workflow] | Mapping[str, AgentDefinition], what: str
) -> str:
    for other, definition in known.items():
        if slug(other).lower() == slug(name).lower():
            return (
                f"the id {name!r} reads like {other!r} of {definition.source_path} "
                f"(both are {slug(name)!r} in Dagster); give one {what} another id"
            )
    return ""


def _skills(
    folder: Path, problems: dict[str, tuple[str, ...]], features: Collection[str]
) -> dict[str, str]:
    skills: dict[str, str] = {}
    for path in _files(folder / "skills", (".md",)):
        try:
            kept = kept_text(_text(path), features)
        except DefinitionInvalid as error:
            problems[str(path)] = error.problems
            continue
        skills[path.stem] = kept.text.strip() + "\n"
        if kept.problems:
            problems[str(path)] = tuple(
                f"{path}:{line + 1}: {what}" for line, what in kept.problems
            )
    return skills


def _by_id_or_slug(known: Mapping[str, Definition], name: str) -> Definition | None:
    if name in known:
        return known[name]
    wanted = slug(name).lower()
    return next((value for key, value in known.items() if slug(key).lower() == wanted), None)


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in suffixes and path.is_file() and not path.name.startswith(".")
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > SIZE_BYTES_MAX:
            problem = f"{path}:1: the file is larger than {SIZE_BYTES_MAX} bytes; shorten it"
            raise DefinitionInvalid([problem])
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        problem = f"{path}:{line}: this is not UTF-8 text; save the file as UTF-8"
        raise DefinitionInvalid([problem]) from error
    except OSError as error:
        problem = f"{path}:1: the file cannot be read: {error.strerror or error}; check its rights"
        raise DefinitionInvalid([problem]) from error
