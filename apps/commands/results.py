"""`reprise results WORKFLOW PROJECT`: the latest outputs, and where the artifacts are."""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import BinaryIO

from apps.commands.tables import size_text, table
from pipelines.definitions import Wiring
from reprise.errors import BadInput
from reprise.model.result import Artifact, StepRecord
from resources.atomic_file import store_error, write_whole
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    workflow = wiring.definitions.workflow(arguments.workflow)
    project = wiring.ingest.require(arguments.project)
    found = [
        wiring.history.of_step(workflow.id, project.id, step.name, run_id=None)
        for step in workflow.steps
    ]
    # What is older belongs to a project of the same name that was removed.
    records = [r for r in found if r is not None and r.started_at >= project.created_at]
    if not records:
        message = (
            f"{workflow.id} has no results for project {project.name!r} yet;"
            f" run it with `reprise run {workflow.id} {project.name}`"
        )
        raise BadInput(message)
    copied: list[Path] = []
    if arguments.copy is not None:
        copied = _copy(wiring, records, Path(arguments.copy).expanduser())
    if arguments.json:
        print(json.dumps({"steps": [_step_json(wiring, record) for record in records]}))
        return 0
    print(_text(wiring, records))
    for path in copied:
        print(f"copied  {path}")
    return 0


def _step_json(wiring: Wiring, record: StepRecord) -> dict[str, object]:
    return {
        "order": record.order,
        "label": record.label,
        "run_id": record.run_id,
        "from_cache": record.from_cache,
        "output": _output(wiring, record),
        "artifacts": [
            {**artifact.model_dump(mode="json"), "url": wiring.objects.url(artifact.storage_key)}
            for artifact in record.artifacts
        ],
    }


def _output(wiring: Wiring, record: StepRecord) -> object:
    if record.reference is None:
        return None
    return wiring.services.bodies.get(record.project_id, record.reference.seen.body_digest)


def _text(wiring: Wiring, records: list[StepRecord]) -> str:
    cells = [
        [
            str(record.order),
            record.label,
            record.status.value,
            record.finished_at.strftime("%Y-%m-%d %H:%M:%S"),
            record.run_id[:8],
            str(len(record.artifacts)),
        ]
        for record in records
    ]
    parts = [table(cells, ["step", "label", "status", "finished (UTC)", "run", "artifacts"])]
    for record in records:
        if record.output_storage_key is None:
            continue
        parts.append(f"\n{record.label}:")
        parts += [f"  {_place(wiring, artifact)}" for artifact in record.artifacts]
    parts.append("\noutputs of all steps: `--json` prints them, `--copy DIR` takes them out")
    return "\n".join(parts)


def _place(wiring: Wiring, artifact: Artifact) -> str:
    size = size_text(artifact.size_bytes)
    if wiring.objects.head(artifact.storage_key) is None:
        return f"{artifact.name} ({size})  gone from the object store; run the workflow again"
    return f"{artifact.name} ({size})  {wiring.objects.url(artifact.storage_key)}"


def _copy(wiring: Wiring, records: list[StepRecord], folder: Path) -> list[Path]:
    copied: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for record in records:
            output = folder / f"{record.name}.json"
            text = json.dumps(_output(wiring, record), indent=2, ensure_ascii=False)
            write_whole(output, partial(_write, data=text.encode()))
            copied.append(output)
            for artifact in record.artifacts:
                plain = folder / artifact.name
                target = plain if plain not in copied else folder / f"{record.name}-{artifact.name}"
                wiring.objects.fetch(artifact.storage_key, target)
                copied.append(target)
    except OSError as error:
        raise store_error(error, f"{str(folder)!r}") from error
    return copied


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
