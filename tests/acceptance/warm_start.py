"""Processes that have the command line's imports behind them, since those take seconds each.

A process that has imported everything forks one for each command: own number, own process group,
own environment, own streams, an exit code of its own. It ends with the tests.

    python -m tests.acceptance.warm_start SOCKET_FD
"""

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.child_process import can_mount

ROOT = Path(__file__).parents[2]
REQUEST_BYTES_MAX = 1 << 20
POLL_SECONDS = 0.02

FILE_BYTES_MAX = "TEST_FILE_BYTES_MAX"
"""In a command's environment: no file of it grows beyond, as if the disk were full there."""


class WarmStart:
    """Starts commands; made once for all tests."""

    def __init__(self) -> None:
        self._mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.can_mount = can_mount()
        self._process = subprocess.Popen(
            [
                *(("unshare", "-m", "--") if self.can_mount else ()),
                *(sys.executable, "-m", "tests.acceptance.warm_start", str(theirs.fileno())),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path = ROOT
    ) -> "Command":
        """Start `reprise` with these arguments and this environment, in this folder."""
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        told, tells = socket.socketpair()
        request = {
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(folder),
        }
        socket.send_fds(
            self._mine, [json.dumps(request).encode()], [out_write, err_write, tells.fileno()]
        )
        os.close(out_write)
        os.close(err_write)
        tells.close()
        return Command(told, out_read, err_read)

    def inside(self, *command: str) -> None:
        """Run a command where the started ones live: their mounts are not those of the tests."""
        subprocess.run(["nsenter", "-t", str(self._process.pid), "-m", *command], check=True)

    def seen(self, path: Path) -> Path:
        """Return a path under which the tests see what started commands see."""
        return Path(f"/proc/{self._process.pid}/root{path}") if self.can_mount else path

    def close(self) -> None:
        """End the process that forks."""
        self._mine.close()
        self._process.wait(30.0)


class Command:
    """A command at work; its output is read as it comes."""

    def __init__(self, told: socket.socket, out: int, err: int) -> None:
        self._told = told
        self._raw = {out: b"", err: b""}
        self._out, self._err = out, err
        self._open = {out, err}
        self._code: int | None = None
        told.settimeout(120.0)
        self.pid = int(told.recv(64))

    @property
    def out(self) -> str:
        """Standard output up to now."""
        return self._raw[self._out].decode()

    @property
    def err(self) -> str:
        """Standard error up to now."""
        return self._raw[self._err].decode()

    def look(self, seconds: float = POLL_SECONDS) -> int | None:
        """Read what there is, waiting at most so long; return the exit code once it has ended."""
        waiting = [*self._open, *([self._told.fileno()] if self._code is None else [])]
        if not waiting:
            return self._code
        for ready in select.select(waiting, [], [], seconds)[0]:
            if ready not in self._open:
                self._code = int(self._told.recv(64))
                self._told.close()
                continue
            data = os.read(ready, 1 << 16)
            self._raw[ready] += data
            if not data:
                os.close(ready)
                self._open.discard(ready)
        return None if self._open else self._code

    def kill_all(self) -> None:
        """Kill its process group."""
        os.killpg(self.pid, signal.SIGKILL)


def main() -> None:
    """Import everything, then fork for each request until the tests have gone."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    # What every command imports; nothing of it starts a thread or keeps a file open.
    import apps.cli
    import apps.commands.project
    import apps.commands.results
    import apps.commands.run
    import apps.commands.workflow
    from apps.instance import open_instance
    from resources.settings import Settings

    # Opening an instance imports as much again.
    with tempfile.TemporaryDirectory() as folder, open_instance(Settings(home=Path(folder))):
        pass

    # Else every collection in a child would copy the pages of all these modules.
    gc.freeze()
    at_work: dict[int, socket.socket] = {}
    while True:
        if select.select([requests], [], [], POLL_SECONDS)[0]:
            data, handles, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 3)
            if not data:
                return
            tells = socket.socket(fileno=handles[2])
            pid = os.fork()
            if pid == 0:
                requests.close()
                _become(json.loads(data), handles[0], handles[1])
                sys.exit(apps.cli.main())
            os.close(handles[0])
            os.close(handles[1])
            tells.send(str(pid).encode())
            at_work[pid] = tells
        _tell_ended(at_work)


def _tell_ended(at_work: dict[int, socket.socket]) -> None:
    for pid in list(at_work):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            tells = at_work.pop(pid)
            # Whoever started it may have given up.
            with contextlib.suppress(OSError):
                tells.send(str(os.waitstatus_to_exitcode(status)).encode())
            tells.close()


def _become(request: dict[str, Any], out: int, err: int) -> None:
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    if FILE_BYTES_MAX in os.environ:
        size_bytes = int(os.environ.pop(FILE_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))
    sys.argv = ["reprise", *request["arguments"]]


if __name__ == "__main__":
    main()
