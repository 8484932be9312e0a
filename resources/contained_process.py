"""Runs one contained program and hands out the lines that it says, until it ends or has to end.

See contained_exec.py for what contains it. Whatever ends this call, not one process is left.

Source: specification V4, R8.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ToolFailed
from reprise.ports import Cancelled
from resources.contained_exec import OUT_OF_DISK, OUT_OF_MEMORY

POLL_SECONDS = 0.25
"""How often cancellation and the deadline are looked at."""
TERM_SECONDS = 10.0
"""How long the container may take to end what it contains."""
LINE_BYTES_MAX = 1 << 18
SAID_CHARS_MAX = 8_000
"""How much of the end of standard error is kept."""
_CHILD = Path(__file__).with_name("contained_exec.py")


@dataclass(frozen=True)
class Containment:
    """What a program may take and reach."""

    folder: Path
    """The only folder that it may write to, besides a temporary one; its home is in it."""
    readable: tuple[Path, ...]
    """What it may read besides, where the kernel can keep it from the rest."""
    seconds: float
    """Longest run, by the clock."""
    memory_bytes: int = 4 * 2**30
    """Most memory of all its processes together."""
    disk_bytes: int = 8 * 2**30
    """Most that it may write."""
    file_bytes: int = 2 * 2**30
    """Largest file."""
    shut_files: bool = True
    """False leaves the file system open, as kernels without Landlock do."""
    own_network: bool = True
    """False leaves the machine's network, as kernels without namespaces for users do."""


@dataclass(frozen=True)
class ContainedEnd:
    """How a program ended."""

    returncode: int
    """Its exit code; 128 + n for signal n."""
    said: str
    """The end of what it wrote to standard error."""


def run_contained(
    command: Sequence[str],
    box: Containment,
    *,
    on_line: Callable[[bytes], None],
    doing: Callable[[], str],
    cancelled: Cancelled,
) -> ContainedEnd:
    """Run a program to its end.

    Args:
        command: Program, by its whole path, and arguments.
        box: What it may take and reach.
        on_line: Gets each line of its standard output, without its end.
        doing: Tells what is being done, for messages.
        cancelled: Asked at least twice a second.

    Raises:
        ToolFailed: It could not be started, or ran past a limit.
        Cancelled: The run is being stopped.
    """
    if cancelled():
        message = f"Stopped before {doing()}"
        raise RunCancelled(message)
    # Not in its folder: a browser makes a socket there, whose path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="reprise-", ignore_cleanup_errors=True) as temporary:
        return _run(command, box, Path(temporary).resolve(), on_line, doing, cancelled)


def _run(
    command: Sequence[str],
    box: Containment,
    temporary: Path,
    on_line: Callable[[bytes], None],
    doing: Callable[[], str],
    cancelled: Cancelled,
) -> ContainedEnd:
    process = _start(command, box, temporary)
    said = bytearray()

    def hear(data: bytes) -> None:
        said.extend(data)
        del said[:-SAID_CHARS_MAX]

    lines = _Lines(on_line)
    deadline = time.monotonic() + box.seconds
    try:
        with selectors.DefaultSelector() as selector:
            assert process.stdout is not None
            assert process.stderr is not None
            selector.register(process.stdout, selectors.EVENT_READ, lines.feed)
            selector.register(process.stderr, selectors.EVENT_READ, hear)
            while process.poll() is None or selector.get_map():
                for key, _ in selector.select(POLL_SECONDS):
                    data = os.read(key.fd, 1 << 16)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
                _look(cancelled, deadline, box.seconds, doing)
    finally:
        _end(process)
    _raise_on_limit(process.returncode, box, doing)
    return ContainedEnd(process.returncode, said.decode(errors="replace"))


def _start(command: Sequence[str], box: Containment, temporary: Path) -> "subprocess.Popen[bytes]":
    home = box.folder / "home"
    home.mkdir(exist_ok=True)
    settings = {
        "parent": os.getpid(),
        "folders": [str(box.folder), str(temporary)],
        "readable": [str(path) for path in box.readable] if box.shut_files else None,
        "own_network": box.own_network,
        "memory_bytes": box.memory_bytes,
        "disk_bytes": box.disk_bytes,
        "file_bytes": box.file_bytes,
    }
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CHILD), json.dumps(settings), *command],
            bufsize=0,
            cwd=box.folder,
            env=_environment(home, temporary),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        message = f"{command[0]!r} could not be started: {error}"
        raise ToolFailed(message) from error


def _environment(home: Path, temporary: Path) -> Mapping[str, str]:
    """Return an environment that holds nothing of this process: no key, no token."""
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": str(temporary),
        "TZ": "UTC",
    }


@dataclass
class _Lines:
    """Cuts what is read into lines; one that is too long is dropped."""

    on_line: Callable[[bytes], None]
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.on_line(line)
        if len(self._rest) > LINE_BYTES_MAX:
            self._rest = b""


def _look(cancelled: Cancelled, deadline: float, seconds: float, doing: Callable[[], str]) -> None:
    if cancelled():
        message = f"Stopped while {doing()}"
        raise RunCancelled(message)
    if time.monotonic() > deadline:
        message = (
            f"It took longer than {seconds:g} s and was stopped while {doing()}; look for a loop "
            "that never ends, render fewer frames, or raise REPRISE_SANDBOX__RENDER_SECONDS"
        )
        raise ToolFailed(message)


def _raise_on_limit(code: int, box: Containment, doing: Callable[[], str]) -> None:
    what = {
        OUT_OF_MEMORY: f"more than {box.memory_bytes / 2**20:.0f} MiB of memory",
        OUT_OF_DISK: f"more than {box.disk_bytes / 2**20:.0f} MiB on the disk",
    }.get(code)
    if what is not None:
        message = f"It took {what} and was stopped while {doing()}; let it do less at once"
        raise ToolFailed(message)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing behind; the container ends what it contains when it is told to."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TERM_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
