"""`reprise project add | index | list | show | own | remove`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from apps.commands.tables import printable, size_text, table
from apps.commands.user import require_user
from apps.instance import open_instance, storage_errors
from pipelines.cache_wiring import now
from pipelines.definitions import Wiring
from pipelines.indexing import Indexed, IndexedOutcome
from pipelines.ingest import Change, Ingest
from pipelines.partitions import sync_partitions
from reprise.context.document_text import why_unread
from reprise.errors import StoreError
from reprise.model.cache import EntryFilter
from reprise.model.project import FileStatus, ProjectFile
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    ingest = wiring.ingest
    match arguments.action:
        case "add":
            return _add(wiring, ingest, arguments)
        case "index":
            return _index(wiring, ingest, arguments)
        case "list":
            return _list(wiring, as_json=arguments.json)
        case "show":
            return _show(wiring, ingest, arguments)
        case "own":
            return _own(wiring, ingest, arguments)
        case _:
            return _remove(wiring, ingest, arguments)


def _add(wiring: Wiring, ingest: Ingest, arguments: argparse.Namespace) -> int:
    user = wiring.behalf.command_line_user()
    ingest = replace(ingest, owner_id=None if user is None else user.id)
    named: set[str] = set()

    def report(name: str, change: Change) -> None:
        named.add(name)
        print(f"{change.value}  {printable(name)}", flush=True)

    project = ingest.add(arguments.name, [Path(path) for path in arguments.paths], report)
    with open_instance(wiring.settings) as instance, storage_errors("partitions cannot be kept"):
        sync_partitions(instance, wiring.projects)
    files = wiring.projects.files(project.id)
    print(f"project {project.name}: {len(files)} file{'s' if len(files) != 1 else ''}")
    if not arguments.no_index:
        try:
            outcomes = wiring.indexing.index_project(project, _tell_failed, footage=False)
        except StoreError as error:
            print(f"warning: the files are there, and not indexed: {error}", file=sys.stderr)
        else:
            looked_at = {outcome.name for outcome in outcomes}
            _tell_unread([file for file in files if file.name in named - looked_at])
            _tell_usage(outcomes)
    return 0


def _index(wiring: Wiring, ingest: Ingest, arguments: argparse.Namespace) -> int:
    project = ingest.require(arguments.name)
    outcomes = wiring.indexing.index_project(project, _tell, again=arguments.again)
    _tell_usage(outcomes)
    counts = [
        f"{count} {kind.value}"
        for kind in Indexed
        if (count := sum(outcome.indexed is kind for outcome in outcomes))
    ]
    looked_at = {outcome.name for outcome in outcomes}
    rest = [file for file in wiring.projects.files(project.id) if file.name not in looked_at]
    failed = sum(file.indexing_status is FileStatus.FAILED for file in rest)
    if failed:
        counts.append(f"{failed} failed before (`reprise project show {project.name}` says why)")
    print(f"project {project.name}: {', '.join(counts) or 'everything is indexed'}")
    return 0


def _tell(outcome: IndexedOutcome) -> None:
    note = f": {printable(outcome.note)}" if outcome.note else ""
    print(f"{outcome.indexed.value}  {printable(outcome.name)}{note}", flush=True)


def _tell_failed(outcome: IndexedOutcome) -> None:
    if outcome.indexed is Indexed.FAILED:
        print(f"not indexed  {printable(outcome.name)}: {printable(outcome.note)}", flush=True)


def _tell_unread(files: Sequence[ProjectFile]) -> None:
    for file in files:
        why = why_unread(file)
        if why is not None:
            print(f"not indexed  {printable(file.name)}: {printable(why)}", flush=True)


def _tell_usage(outcomes: Sequence[IndexedOutcome]) -> None:
    tokens = sum(outcome.usage.tokens for outcome in outcomes)
    if tokens:
        print(f"summaries took {tokens} tokens")


def _list(wiring: Wiring, *, as_json: bool) -> int:
    rows = []
    for project in wiring.projects.projects():
        files = wiring.projects.files(project.id)
        rows.append((project.name, len(files), sum(file.size_bytes for file in files)))
    if as_json:
        print(json.dumps([{"name": n, "files": c, "size_bytes": s} for n, c, s in rows]))
    elif not rows:
        print("no projects yet; make one with `reprise project add NAME PATH`")
    else:
        cells = [[name, str(count), size_text(size)] for name, count, size in rows]
        print(table(cells, ["project", "files", "size"]))
    return 0


def _show(wiring: Wiring, ingest: Ingest, arguments: argparse.Namespace) -> int:
    project = ingest.require(arguments.name)
    files = wiring.projects.files(project.id)
    if arguments.json:
        data = {
            "name": project.name,
            "created_at": project.created_at.isoformat(),
            "owner": project.owner_id,
            "files": [file.model_dump(mode="json") for file in files],
        }
        print(json.dumps(data))
        return 0
    cells = [
        [
            file.name,
            file.media_kind.value,
            size_text(file.size_bytes),
            file.uploaded_at.strftime("%Y-%m-%d %H:%M"),
            file.indexing_status.value,
            file.content_digest[:12],
        ]
        for file in files
    ]
    print(table(cells, ["file", "kind", "size", "added (UTC)", "indexed", "sha256"]))
    _tell_unread(files)
    return 0


def _own(wiring: Wiring, ingest: Ingest, arguments: argparse.Namespace) -> int:
    project = ingest.require(arguments.name)
    user = None
    if arguments.user is not None:
        user = require_user(wiring.behalf.users, arguments.user)
    wiring.projects.set_owner(project.name, None if user is None else user.id)
    print(f"project {project.name}: {'no owner' if user is None else f'owned by {user.email}'}")
    return 0


def _remove(wiring: Wiring, ingest: Ingest, arguments: argparse.Namespace) -> int:
    if arguments.files:
        ingest.remove_files(arguments.name, arguments.files)
        for name in arguments.files:
            print(f"removed  {printable(name)}")
    else:
        ingest.remove_project(arguments.name)
        _forget(wiring, arguments.name)
        print(f"removed  project {arguments.name}")
    with open_instance(wiring.settings) as instance, storage_errors("partitions cannot be kept"):
        sync_partitions(instance, wiring.projects)
    return 0


def _forget(wiring: Wiring, project: str) -> None:
    """Remove the project's cache entries too: a project of this name made later starts anew."""
    try:
        wiring.entries.invalidate(EntryFilter(project_id=project), now=now())
    except StoreError as error:
        print(f"warning: its cache entries stay until they expire: {error}", file=sys.stderr)
