"""A sandbox: the files of one execution that agents browse, author and render.

Source: specification E.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property

from pydantic import AwareDatetime, Field

from reprise.model.base import Value

FILE_BYTES_MAX = 2 * 2**20
"""Largest file that the tools read, write or edit."""
TREE_BYTES_MAX = 512 * 2**20
"""Largest sandbox: all its files together."""
ENTRIES_MAX = 5_000
"""Most files, folders and links that a sandbox holds."""


class SandboxFault(StrEnum):
    """Why a path or file cannot be used: a closed set, `code` in a tool's answer."""

    BAD_PATH = "bad_path"
    """Absolute, empty, climbing out, or with what no file name may hold."""
    OUTSIDE = "outside"
    """A symbolic link on the way leads out of the sandbox."""
    NOT_FOUND = "not_found_file"
    """There is no such file."""
    IS_FOLDER = "is_folder"
    """It is a folder."""
    NOT_A_FILE = "not_a_file"
    """A device, a pipe or a socket."""
    HARD_LINK = "hard_link"
    """The file has further names, which may be outside."""
    CASE_CLASH = "case_clash"
    """Another name in the folder differs by letter case alone."""
    TOO_LARGE = "too_large"
    """The file, or the sandbox, would be larger than its limit."""
    STALE = "stale"
    """The file is not what it was when it was read."""
    DENIED = "denied"
    """The file system refuses."""


class SandboxLimits(Value):
    """How large a sandbox may become. What was made larger by a program can be read and shrunk."""

    file_bytes_max: int = Field(default=FILE_BYTES_MAX, ge=1)
    """Largest file that is read by default, edited or written."""
    tree_bytes_max: int = Field(default=TREE_BYTES_MAX, ge=1)
    """All files together."""
    entries_max: int = Field(default=ENTRIES_MAX, ge=1)
    """Files, folders and links together."""


class SandboxFile(Value):
    """One file of a sandbox."""

    path: str
    """Relative, with forward slashes."""
    size_bytes: int = Field(ge=0)
    """Size in bytes."""
    mode: int = Field(ge=0, le=0o777)
    """Permission bits."""
    digest: str
    """SHA-256 of its bytes, in hex."""


class SandboxTree(Value):
    """All files of a sandbox at one moment, by path."""

    files: tuple[SandboxFile, ...] = ()
    """The files, by path."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what tells two trees apart: paths, modes and contents."""
        rows = [[file.path, file.mode, file.digest] for file in self.files]
        return hashlib.sha256(json.dumps(rows, ensure_ascii=True).encode()).hexdigest()

    @property
    def by_path(self) -> Mapping[str, SandboxFile]:
        """The files by path."""
        return {file.path: file for file in self.files}


class SandboxSeed(StrEnum):
    """What a new execution's sandbox begins with."""

    TEMPLATE = "template"
    """The workflow's template folder; nothing when it names none."""
    PREVIOUS = "previous"
    """What the workflow's last execution on the project left; the template when there is none."""


class CompositionRequest(Value):
    """A Remotion composition to be rendered."""

    composition_id: str
    """Its id, as the outline names it."""
    input_props: Mapping[str, object] = Field(default_factory=dict)
    """Properties passed to it; JSON."""
    start_frame: int | None = Field(default=None, ge=0)
    """First frame; null: from the beginning."""
    end_frame: int | None = Field(default=None, ge=0)
    """Last frame, included; null: to the end."""


class RenderedComposition(Value):
    """A film that a composition gave, before it is kept: H.264, limited range, BT.709."""

    file_name: str
    """Name in the folder that it was rendered into."""
    width: int = Field(gt=0)
    """Pixels."""
    height: int = Field(gt=0)
    """Pixels."""
    frame_count: int = Field(gt=0)
    """Frames."""
    duration_seconds: float = Field(gt=0)
    """Length."""
    versions: Mapping[str, str]
    """Program → version: what rendered it."""


def changed_paths(before: SandboxTree, after: SandboxTree) -> Sequence[str]:
    """Return the paths that were added, removed or changed, sorted."""
    old, new = before.by_path, after.by_path
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


class SandboxMoment(StrEnum):
    """When a snapshot was taken."""

    BEFORE = "before"
    """Before a step's work."""
    AFTER = "after"
    """After it, also where it failed or was stopped."""


class SandboxSnapshot(Value):
    """A sandbox's files at the beginning or the end of a step."""

    order: int = Field(ge=1)
    """The step's order."""
    label: str
    """The step's label."""
    moment: SandboxMoment
    """Which of the two."""
    digest: str
    """`SandboxTree.digest`."""
    taken_at: AwareDatetime
    """When; aware, UTC."""


class EarlierRun(Value):
    """A run that another one goes on from."""

    run_id: str
    """The run."""
    before_order: int | None = None
    """Its sandbox as it was before the step of this order; null: as it was last."""


class SandboxExecution(Value):
    """Whose sandbox is meant, and what it begins with where there is none yet."""

    run_id: str
    """The run."""
    project_id: str
    """The project."""
    workflow_id: str
    """The workflow."""
    template: str | None = None
    """The template folder's name; null: an empty folder."""
    seed: SandboxSeed = SandboxSeed.TEMPLATE
    """What it begins with when it goes on from no earlier run."""
    earlier: tuple[EarlierRun, ...] = ()
    """Runs that it goes on from: the first that has a sandbox counts."""


def last_snapshot(
    snapshots: Sequence[SandboxSnapshot], before_order: int | None
) -> SandboxSnapshot | None:
    """Return the last snapshot of a run, or the last that shows it before the step of an order."""
    if before_order is None:
        return snapshots[-1] if snapshots else None

    def is_before(each: SandboxSnapshot) -> bool:
        began = each.moment is SandboxMoment.BEFORE and each.order == before_order
        return began or each.order < before_order

    return next((each for each in reversed(snapshots) if is_before(each)), None)
