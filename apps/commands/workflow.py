"""`reprise workflow list | show | check | schema`."""

import argparse
import json
from pathlib import Path

from apps.commands.tables import table
from pipelines.compile import check_served
from pipelines.definitions import Wiring
from pipelines.edges import step_reads, transitive_reduction
from reprise.cache.policy import cache_verdict
from reprise.context.step_input import agent_ids
from reprise.errors import DefinitionInvalid, RepriseError
from reprise.model.loading import workflow_json_schema
from reprise.model.workflow import Workflow
from resources.definition_files import check_file
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    if arguments.action == "schema":
        print(json.dumps(workflow_json_schema(), indent=2, sort_keys=True))
        return 0
    wiring = Wiring(load_settings())
    match arguments.action:
        case "list":
            return _list(wiring, as_json=arguments.json)
        case "show":
            return _show(wiring, arguments.name, as_json=arguments.json)
        case _:
            return _check(wiring, [Path(name) for name in arguments.files])


def _list(wiring: Wiring, *, as_json: bool) -> int:
    workflows = list(wiring.definitions.workflows.values())
    if as_json:
        rows = [{"id": w.id, "name": w.name or w.id, "steps": len(w.steps)} for w in workflows]
        print(json.dumps(rows))
    else:
        cells = [[w.id, str(len(w.steps)), w.description.split("\n")[0][:90]] for w in workflows]
        print(table(cells, ["workflow", "steps", "what it makes"]))
    for problem in wiring.definitions.all_problems:
        print(f"not loaded: {problem}")
    return 0


def _show(wiring: Wiring, name: str, *, as_json: bool) -> int:
    workflow = wiring.definitions.workflow(name)
    if as_json:
        print(workflow.model_dump_json())
        return 0
    print(f"{workflow.id}: {workflow.description}".strip())
    print(f"file: {workflow.source_path}")
    if workflow.default_request:
        print(f"default request: {workflow.default_request}")
    print()
    print(_steps_table(wiring, workflow))
    return 0


def _steps_table(wiring: Wiring, workflow: Workflow) -> str:
    agents = wiring.definitions.agents
    edges = transitive_reduction(step_reads(workflow, agents))
    cells = []
    for step in workflow.steps:
        names = agent_ids(step)
        verdict = cache_verdict(step, [agents[name] for name in names])
        cells.append(
            [
                str(step.order),
                step.label,
                step.type.value,
                ", ".join(names) or "-",
                ", ".join(str(order) for order in sorted(edges[step.order])) or "request",
                "cached" if verdict.cacheable else "not cached",
            ]
        )
    return table(cells, ["order", "label", "type", "agents", "after", "cache"])


def _check(wiring: Wiring, files: list[Path]) -> int:
    problems: list[str] = []
    if files:
        for file in files:
            problems += check_file(file, check_served)
        checked = len(files)
    else:
        definitions = wiring.definitions
        problems += definitions.all_problems
        for workflow in definitions.workflows.values():
            problems += _unserved(workflow)
        checked = len(definitions.workflows) + len(definitions.agents)
    if problems:
        raise DefinitionInvalid(problems)
    print(f"{checked} file{'s' if checked != 1 else ''}: no problems")
    return 0


def _unserved(workflow: Workflow) -> list[str]:
    try:
        check_served(workflow)
    except RepriseError as error:
        return [str(error)]
    return []
