"""`reprise results WORKFLOW PROJECT`: the latest outputs, and where the artifacts are."""

import argparse
import json
from pathlib import Path

from apps.commands.tables import size_text, table
from pipelines.definitions import Wiring, now
from pipelines.ingest import Ingest
from reprise.errors import BadInput, StoreError
from reprise.model.result import StepRecord
from resources.media_kind import media_kind
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    workflow = wiring.definitions.workflow(arguments.workflow)
    project = Ingest(wiring.projects, wiring.objects, media_kind, now).require(arguments.project)
    found = [
        wiring.history.of_step(workflow.id, project.id, step.name, run_id=None)
        for step in workflow.steps
    ]
    records = [record for record in found if record is not None]
    if not records:
        message = (
            f"{workflow.id} has no results for project {project.name!r} yet;"
            f" run it with `reprise run {workflow.id} {project.name}`"
        )
        raise BadInput(message)
    copied = _copy(wiring, records, Path(arguments.copy)) if arguments.copy else []
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
        parts += [
            f"  {a.name} ({size_text(a.size_bytes)})  {wiring.objects.url(a.storage_key)}"
            for a in record.artifacts
        ]
    return "\n".join(parts)


def _copy(wiring: Wiring, records: list[StepRecord], folder: Path) -> list[Path]:
    copied: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for record in records:
            output = folder / f"{record.name}.json"
            part = output.with_suffix(".part")
            part.write_text(json.dumps(_output(wiring, record), indent=2, ensure_ascii=False))
            part.replace(output)
            copied.append(output)
            for artifact in record.artifacts:
                plain = folder / artifact.name
                target = plain if plain not in copied else folder / f"{record.name}-{artifact.name}"
                wiring.objects.fetch(artifact.storage_key, target)
                copied.append(target)
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror or error}"
        raise StoreError(message) from error
    return copied
