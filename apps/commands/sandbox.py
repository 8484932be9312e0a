"""`reprise sandbox show | diff | export RUN STEP`: the files that agents of a run worked on."""

import argparse
import difflib
import json
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apps.commands.explain import find_run
from apps.commands.tables import printable, size_text, table
from pipelines.definitions import Wiring
from reprise.errors import BadInput, ObjectMissing, UnknownName
from reprise.model.result import StepRecord
from reprise.model.sandbox import (
    SandboxFile,
    SandboxMoment,
    SandboxSnapshot,
    SandboxTree,
    changed_paths,
)
from reprise.model.workflow import slug
from reprise.ports import Sandboxes
from resources.atomic_file import store_error
from resources.sandbox.seeding import Beginning, build
from resources.settings import load_settings


@dataclass(frozen=True)
class _Step:
    """A step of a run, and what was kept of its sandbox."""

    run_id: str
    order: int
    label: str
    before: SandboxSnapshot
    after: SandboxSnapshot | None
    """None where the run was killed before the step ended."""
    sandboxes: Sandboxes

    @property
    def title(self) -> str:
        return f"step {self.order} ({self.label}) of run {self.run_id[:8]}"

    def tree(self, moment: SandboxMoment) -> SandboxTree:
        """Return the files before or after the step.

        Raises:
            UnknownName: They are not kept.
        """
        return self._kept(self.snapshot(moment).digest)

    def snapshot(self, moment: SandboxMoment) -> SandboxSnapshot:
        """Return the snapshot before or after the step.

        Raises:
            UnknownName: There is none.
        """
        found = self.before if moment is SandboxMoment.BEFORE else self.after
        if found is None:
            message = (
                f"{self.title} was killed before its files were kept; "
                "`sandbox show --before` shows what it began with"
            )
            raise UnknownName(message)
        return found

    def _kept(self, digest: str) -> SandboxTree:
        try:
            return self.sandboxes.kept_tree(digest)
        except ObjectMissing as error:
            message = f"{self.title}: its snapshot is not kept any more; run the workflow again"
            raise UnknownName(message) from error

    def text(self, file: SandboxFile | None) -> str | None:
        """Return a file's text; None when it is no text. No file is an empty one."""
        if file is None:
            return ""
        try:
            return self.sandboxes.kept_file(file.digest).decode()
        except UnicodeDecodeError:
            return None


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    step = _find(wiring, find_run(wiring, arguments.run), arguments.step)
    ACTIONS[arguments.action](step, arguments)
    return 0


def _show(step: _Step, arguments: argparse.Namespace) -> None:
    moment = _moment(arguments)
    tree = step.tree(moment)
    if arguments.path is not None:
        _show_file(step, _file(step, tree, arguments.path), arguments)
        return
    snapshot = step.snapshot(moment)
    if arguments.json:
        head = {"run_id": step.run_id, **snapshot.model_dump(mode="json")}
        print(json.dumps({**head, "files": [file.model_dump(mode="json") for file in tree.files]}))
        return
    before = step.tree(SandboxMoment.BEFORE).by_path
    rows = [[file.path, size_text(file.size_bytes), _change(before, file)] for file in tree.files]
    size = size_text(sum(file.size_bytes for file in tree.files))
    print(f"{step.title}, {moment}: {len(rows)} files, {size}, {snapshot.digest[:16]}")
    if rows:
        print(table(rows, ["file", "size", ""]))


def _show_file(step: _Step, file: SandboxFile, arguments: argparse.Namespace) -> None:
    text = step.text(file)
    if text is None:
        message = f"{file.path!r} is not text; `reprise sandbox export` copies it"
        raise BadInput(message)
    if arguments.json:
        print(json.dumps({"run_id": step.run_id, **file.model_dump(mode="json"), "text": text}))
        return
    sys.stdout.write(_safe(text))


def _diff(step: _Step, arguments: argparse.Namespace) -> None:
    before, after = step.tree(SandboxMoment.BEFORE), step.tree(SandboxMoment.AFTER)
    paths = list(changed_paths(before, after))
    if arguments.path is not None:
        if arguments.path not in before.by_path:
            _file(step, after, arguments.path)
        paths = [path for path in paths if path == arguments.path]
    old, new = before.by_path, after.by_path
    diffs = {path: _file_diff(step, path, old.get(path), new.get(path)) for path in paths}
    if arguments.json:
        print(json.dumps({"run_id": step.run_id, "order": step.order, "diffs": diffs}))
    elif not diffs:
        print(f"{step.title} changed nothing")
    else:
        sys.stdout.write(_safe("".join(diffs.values())))


def _file_diff(step: _Step, path: str, old: SandboxFile | None, new: SandboxFile | None) -> str:
    heads = (
        f"a/{path}" if old is not None else "/dev/null",
        f"b/{path}" if new is not None else "/dev/null",
    )
    modes = "" if old is None or new is None or old.mode == new.mode else _modes(old, new)
    texts = step.text(old), step.text(new)
    if texts[0] is None or texts[1] is None:
        return f"{modes}Binary files {heads[0]} and {heads[1]} differ\n"
    lines = difflib.unified_diff(_lines(texts[0]), _lines(texts[1]), *heads)
    whole = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return modes + (whole or ("" if modes else f"--- {heads[0]}\n+++ {heads[1]}\n"))


def _modes(old: SandboxFile, new: SandboxFile) -> str:
    return f"old mode {old.mode:o}\nnew mode {new.mode:o}\n--- a/{old.path}\n+++ b/{new.path}\n"


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _export(step: _Step, arguments: argparse.Namespace) -> None:
    moment = _moment(arguments)
    tree = step.tree(moment)
    target = Path(arguments.target).expanduser().absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        message = f"{str(target)!r} is not empty; name a new or an empty folder"
        raise BadInput(message)
    part = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    kept = step.sandboxes.kept_file
    try:
        build(Beginning(step.title, tree, lambda file: kept(file.digest)), part)
        # An empty folder gives way.
        part.rename(target)
    except OSError as error:
        raise store_error(error, f"{str(target)!r}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print(f"{step.title}, {moment}: {len(tree.files)} files in {target}")


ACTIONS: Mapping[str, Callable[[_Step, argparse.Namespace], None]] = {
    "show": _show,
    "diff": _diff,
    "export": _export,
}


def _moment(arguments: argparse.Namespace) -> SandboxMoment:
    return SandboxMoment.BEFORE if arguments.before else SandboxMoment.AFTER


def _change(before: Mapping[str, SandboxFile], file: SandboxFile) -> str:
    if file.path not in before:
        return "new"
    return "" if before[file.path] == file else "changed"


def _file(step: _Step, tree: SandboxTree, path: str) -> SandboxFile:
    file = tree.by_path.get(path)
    if file is None:
        message = f"{step.title} has no file {path!r}; `reprise sandbox show` lists its files"
        raise UnknownName(message)
    return file


def _safe(text: str) -> str:
    """Return a text as it is, or what a terminal may show of it: an agent wrote it."""
    if not sys.stdout.isatty():
        return text
    return "".join(each if each in "\n\t" else printable(each) for each in text)


def _find(wiring: Wiring, run_id: str, name: str) -> _Step:
    records = list(wiring.history.of_run(run_id))
    project_id = records[0].project_id
    lines = wiring.sandboxes.snapshots(run_id, project_id)
    # A run that was killed has no record of its last step, but what that began with is kept.
    steps = {line.order: line.label for line in lines}
    steps |= {record.order: record.label for record in records if record.order > 0}
    order = next((each for each in sorted(steps) if _is_named(name, each, steps[each])), None)
    if order is None:
        known = ", ".join(f"{each} ({steps[each]})" for each in sorted(steps)) or "none"
        message = f"run {run_id[:8]} has no step {name!r}; its steps: {known}"
        raise UnknownName(message)
    its_lines = [line for line in lines if line.order == order]
    begins = [at for at, line in enumerate(its_lines) if line.moment is SandboxMoment.BEFORE]
    if not begins:
        record = next((each for each in records if each.order == order), None)
        raise UnknownName(
            _why_none(wiring, f"step {order} ({steps[order]})", records, record, lines)
        )
    # The last attempt of several.
    last = its_lines[begins[-1] :]
    after = last[1] if len(last) > 1 else None
    return _Step(run_id, order, steps[order], last[0], after, wiring.sandboxes)


def _is_named(name: str, order: int, label: str) -> bool:
    return name in (str(order), label) or slug(name) == slug(label)


def _why_none(
    wiring: Wiring,
    title: str,
    records: Sequence[StepRecord],
    record: StepRecord | None,
    lines: Sequence[SandboxSnapshot],
) -> str:
    run = f"run {records[0].run_id[:8]}"
    if record is not None and record.from_cache:
        source = (record.cache_run_id or "")[:8]
        return (
            f"{title} of {run} came from the cache and used no sandbox; "
            f"`reprise sandbox show {source} {record.order}` shows that of the run that executed it"
        )
    if lines:
        used = ", ".join(dict.fromkeys(f"{line.order} ({line.label})" for line in lines))
        return f"{title} of {run} used no sandbox; those that did: {used}"
    days = wiring.settings.sandbox.retention_days
    newest = max(each.finished_at for each in records)
    if datetime.now(UTC) - newest > timedelta(days=days):
        return (
            f"nothing is kept of the sandbox of {run}: it goes {days:g} days after its last use "
            "(REPRISE_SANDBOX__RETENTION_DAYS)"
        )
    return f"no step of {run} used a sandbox: its agents have no tools for one"
