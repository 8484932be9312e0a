"""`reprise cache list | show | stats | invalidate | pin | prune`."""

import argparse
import itertools
import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from apps.commands.tables import size_text, table
from pipelines.cache_wiring import now
from pipelines.definitions import Wiring
from reprise.cache.explain import PART
from reprise.errors import BadInput, UnknownName
from reprise.model.cache import EntryFilter, EntrySummary
from reprise.model.model_errors import did_you_mean
from resources.settings import load_settings

LISTED_MAX = 200

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    match arguments.action:
        case "list":
            return _list(wiring, arguments)
        case "show":
            return _show(wiring, arguments)
        case "stats":
            return _stats(wiring, arguments)
        case "invalidate":
            return _invalidate(wiring, arguments)
        case "pin":
            return _pin(wiring, arguments)
        case _:
            return _prune(wiring)


def _filter(arguments: argparse.Namespace) -> EntryFilter:
    file = getattr(arguments, "file", None)
    return EntryFilter(
        project_id=arguments.project,
        workflow_id=arguments.workflow,
        step_label=arguments.step,
        agent_id=arguments.agent,
        field=None if file is None else f"project_file_fingerprint{PART}{file}",
        older_than=_moment(arguments.older_than),
        newer_than=_moment(arguments.newer_than),
    )


def _check_names(wiring: Wiring, wanted: EntryFilter) -> None:
    """Check the names of a filter that means no entry.

    Raises:
        UnknownName: Nothing has one of them; names the nearest that there is.
    """
    definitions = wiring.definitions
    steps = [step for workflow in definitions.workflows.values() for step in workflow.steps]
    known = {
        "project_id": ("project", [project.id for project in wiring.projects.projects()]),
        "workflow_id": ("workflow", list(definitions.workflows)),
        "step_label": ("step", [step.label for step in steps]),
        "agent_id": ("agent", list(definitions.agents)),
    }
    for field, (what, names) in known.items():
        name = getattr(wanted, field)
        if name is None or name in names:
            continue
        # An entry may be of something that is not there any more.
        if next(iter(wiring.entries.find(EntryFilter(**{field: name}))), None) is None:
            message = f"no entry and no {what} has the name {name!r}{did_you_mean(name, names)}"
            raise UnknownName(message)


def _moment(age: str | None) -> datetime | None:
    """Return the moment that is so long ago, such as `36h`, `7d` or `30m`.

    Raises:
        BadInput: It is not of this form.
    """
    if age is None:
        return None
    match = re.fullmatch(r"(\d{1,6})([mhd])", age)
    if match is None:
        message = f"{age!r} is no age; write minutes, hours or days as `30m`, `36h` or `7d`"
        raise BadInput(message)
    return now() - timedelta(**{_UNITS[match[2]]: int(match[1])})


def _list(wiring: Wiring, arguments: argparse.Namespace) -> int:
    wanted = _filter(arguments)
    found = list(itertools.islice(wiring.entries.find(wanted), LISTED_MAX + 1))
    if not found:
        _check_names(wiring, wanted)
    if arguments.json:
        print(json.dumps([entry.model_dump(mode="json") for entry in found[:LISTED_MAX]]))
        return 0
    if not found:
        print("no entries")
        return 0
    print(_table(found[:LISTED_MAX]))
    if len(found) > LISTED_MAX:
        print(f"and more than these {LISTED_MAX}; narrow the list with --project, --step, …")
    return 0


def _table(entries: Sequence[EntrySummary]) -> str:
    rows = [
        [
            entry.cache_key[:12],
            entry.project_id,
            entry.workflow_id,
            entry.step_label,
            f"{entry.created_at:%Y-%m-%d %H:%M}",
            "pinned" if entry.pinned else f"{entry.expires_at:%Y-%m-%d %H:%M}",
            str(entry.hits),
            size_text(entry.size_bytes),
        ]
        for entry in entries
    ]
    heads = ["key", "project", "workflow", "step", "made (UTC)", "expires", "hits", "size"]
    return table(rows, heads)


def _one(wiring: Wiring, key: str, project: str | None) -> EntrySummary:
    if not re.fullmatch("[0-9a-f]{4,64}", key):
        message = (
            f"{key!r} is no cache key; take it, or its first digits, from `reprise cache list`"
        )
        raise BadInput(message)
    wanted = EntryFilter(key_prefix=key, project_id=project)
    found = list(itertools.islice(wiring.entries.find(wanted), 2))
    if not found:
        message = f"no entry whose key begins with {key!r}; see `reprise cache list`"
        raise UnknownName(message)
    if len(found) > 1:
        message = f"several entries begin with {key!r}; give more of the key, or --project"
        raise BadInput(message)
    return found[0]


def _show(wiring: Wiring, arguments: argparse.Namespace) -> int:
    summary = _one(wiring, arguments.key, arguments.project)
    entry = wiring.entries.get(summary.project_id, summary.cache_key, now=now())
    data = summary.model_dump(mode="json")
    data["fields"] = sorted(entry.field_digests) if entry is not None else []
    data["artifacts"] = [a.storage_key for a in entry.artifacts] if entry is not None else []
    data["valid"] = entry is not None
    if arguments.json:
        print(json.dumps(data))
        return 0
    for name, value in data.items():
        shown = "\n    ".join(["", *value]) if isinstance(value, list) else value
        print(f"{name}: {shown}")
    return 0


def _stats(wiring: Wiring, arguments: argparse.Namespace) -> int:
    stats = wiring.entries.stats(arguments.project, now=now())
    if arguments.json:
        print(stats.model_dump_json())
        return 0
    for name, value in stats.model_dump(mode="json").items():
        print(f"{name}: {size_text(value) if name == 'size_bytes' else value}")
    return 0


def _invalidate(wiring: Wiring, arguments: argparse.Namespace) -> int:
    wanted = _filter(arguments)
    if wanted == EntryFilter() and not arguments.all:
        message = (
            "say which entries: --project, --workflow, --step, --agent, --file, an age, or --all"
        )
        raise BadInput(message)
    if arguments.dry_run:
        count = sum(1 for _ in wiring.entries.find(wanted))
        if not count:
            _check_names(wiring, wanted)
        print(f"{count} entr{'y' if count == 1 else 'ies'} would be invalidated")
        return 0
    count = wiring.entries.invalidate(wanted, now=now())
    if not count:
        _check_names(wiring, wanted)
    print(f"{count} entr{'y' if count == 1 else 'ies'} invalidated")
    return 0


def _pin(wiring: Wiring, arguments: argparse.Namespace) -> int:
    entry = _one(wiring, arguments.key, arguments.project)
    wiring.entries.pin(entry.project_id, entry.cache_key, on=not arguments.off)
    state = (
        "is no longer pinned" if arguments.off else "is pinned: it neither expires nor is evicted"
    )
    print(f"{entry.cache_key[:12]} ({entry.project_id}, {entry.step_label}) {state}")
    return 0


def _prune(wiring: Wiring) -> int:
    count, objects = wiring.cache_wiring.sweep()
    print(f"{count} expired or surplus entr{'y' if count == 1 else 'ies'} removed")
    if objects:
        print(f"{objects} stored payload{'' if objects == 1 else 's'} that no entry names removed")
    return 0
