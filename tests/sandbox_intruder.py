"""Whoever changes a sandbox's folder while a call is under way, at a chosen moment of it.

`python -m tests.sandbox_intruder FOLDER CALL` makes a sandbox for each deed and each step of the
call, begins the call in a process of its own, and at that step (a request to the system; Python
tells of each before it is made) does the deed. It prints a line of JSON for each: how many steps
there were, and how the call ended. The sandboxes stay in FOLDER, to be looked at.
"""

import contextlib
import hashlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprise.errors import RepriseError
from resources.sandbox import FolderSandbox

SECRET = b"secret of the outside"
INSIDE = b"inside"
REQUESTS = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir"})


def prepare(root: Path) -> None:
    """Make the sandbox in `ROOT/ws` and what is outside in `ROOT/out`, both of the same names."""
    for folder, data in (("ws/src/deep", INSIDE), ("out/deep", SECRET)):
        (root / folder).mkdir(parents=True)
        for name in ("deep/a.txt", "secret.txt"):
            (root / folder).parent.joinpath(name).write_bytes(data)


def _folder_for_link(root: Path) -> None:
    (root / "ws" / "src").rename(root / "ws" / "old")
    (root / "ws" / "src").symlink_to("../out")


def _deep_folder_for_link(root: Path) -> None:
    (root / "ws" / "src" / "deep").rename(root / "ws" / "old")
    (root / "ws" / "src" / "deep").symlink_to("../../out/deep")


def _file_for_link(root: Path) -> None:
    (root / "ws" / "src" / "deep" / "a.txt").unlink()
    (root / "ws" / "src" / "deep" / "a.txt").symlink_to("../../../out/deep/a.txt")


def _file_for_hard_link(root: Path) -> None:
    (root / "ws" / "src" / "deep" / "a.txt").unlink()
    (root / "ws" / "src" / "deep" / "a.txt").hardlink_to(root / "out" / "deep" / "a.txt")


def _file_for_pipe(root: Path) -> None:
    (root / "ws" / "src" / "deep" / "a.txt").unlink()
    os.mkfifo(root / "ws" / "src" / "deep" / "a.txt")


def _file_for_folder(root: Path) -> None:
    (root / "ws" / "src" / "deep" / "a.txt").unlink()
    (root / "ws" / "src" / "deep" / "a.txt").mkdir()


def _folder_for_file(root: Path) -> None:
    (root / "ws" / "src").rename(root / "ws" / "old")
    (root / "ws" / "src").write_bytes(b"a file")


def _part_for_link(root: Path) -> None:
    for part in (root / "ws").rglob(".part-*"):
        part.unlink()
        part.symlink_to(root / "out" / "secret.txt")


def _part_for_hard_link(root: Path) -> None:
    for part in (root / "ws").rglob(".part-*"):
        part.unlink()
        part.hardlink_to(root / "out" / "secret.txt")


def _new_folder_for_link(root: Path) -> None:
    new = root / "ws" / "src" / "new"
    if new.is_dir():
        new.rename(root / "ws" / "old")
    new.symlink_to("../../out")


def _removed(root: Path) -> None:
    (root / "ws").rename(root / "gone")


def _killed(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


DEEDS: dict[str, Callable[[Path], None]] = {
    "nothing": lambda _: None,
    "folder for link": _folder_for_link,
    "deep folder for link": _deep_folder_for_link,
    "file for link": _file_for_link,
    "file for hard link": _file_for_hard_link,
    "file for pipe": _file_for_pipe,
    "file for folder": _file_for_folder,
    "folder for file": _folder_for_file,
    "part for link": _part_for_link,
    "part for hard link": _part_for_hard_link,
    "new folder for link": _new_folder_for_link,
    "removed": _removed,
    "killed": _killed,
}

CALLS: dict[str, Callable[[FolderSandbox, Path], object]] = {
    "read": lambda sandbox, _: sandbox.read("src/deep/a.txt"),
    "edit": lambda sandbox, _: sandbox.update("src/deep/a.txt", lambda _: b"edited, longer"),
    "write": lambda sandbox, _: sandbox.update(
        "src/new/deep/a.txt", lambda _: b"written", create=True
    ),
    "remove": lambda sandbox, _: sandbox.remove(
        "src/deep/a.txt", digest=hashlib.sha256(INSIDE).hexdigest()
    ),
    "list": lambda sandbox, _: [file.digest for file in sandbox.list()],
    "copy": lambda sandbox, root: sandbox.copy_to(root / "copy"),
}


def main(folder: Path, call: str) -> None:
    """Try every deed at every step of a call."""
    for deed in DEEDS:
        step = 1
        while True:
            root = folder / f"{deed} {step}"
            prepare(root)
            outcome = _outcome(root, call, deed, step)
            sys.stdout.write(json.dumps({"deed": deed, "step": step, **outcome}) + "\n")
            if outcome["steps"] < step:
                break
            step += 1


def _outcome(root: Path, call: str, deed: str, step: int) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(_tried(root, call, deed, step)).encode())
        except BaseException:  # noqa: BLE001 - A fork must not go on as its parent would.
            traceback.print_exc()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"steps": step, "answer": "killed", "fault": None}


def _tried(root: Path, call: str, deed: str, step: int) -> dict[str, Any]:
    count = 0

    def watch(event: str, _: object) -> None:
        nonlocal count
        if event in REQUESTS and count >= 0:
            count += 1
            if count == step:
                count = -1  # The deed's own requests are none of the call's.
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    DEEDS[deed](root)
                count = step

    sandbox = FolderSandbox(root / "ws")
    sys.addaudithook(watch)
    fault, answer = None, ""
    try:
        answer = repr(CALLS[call](sandbox, root))
    except RepriseError as error:
        fault = getattr(error, "code", type(error).__name__)
    steps, count = count, -1
    return {"steps": steps, "answer": answer, "fault": fault}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
