"""Processes that have the command line's imports behind them, since those take seconds each.

A process that has imported everything forks one for each command: own number, own process group,
own environment, own streams, an exit code of its own. It ends with the tests.

    python -m tests.acceptance.warm_start SOCKET_FD
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUEST_BYTES_MAX = 1 << 20
POLL_SECONDS = 0.02
_CLONE_NEWNS = 0x20000


class WarmStart:
    """Starts commands; made once for all tests."""

    def __init__(self) -> None:
        self._mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name if __spec__ else __name__, str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        mounts: Sequence[Sequence[str]] = (),
    ) -> "Command":
        """Start `reprise` with these arguments.

        Args:
            arguments: What comes after `reprise`.
            environment: The whole environment.
            mounts: Arguments of `mount`, carried out in a mount namespace of its own.
        """
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        told, tells = socket.socketpair()
        request = {"arguments": arguments, "environment": dict(environment), "mounts": mounts}
        socket.send_fds(
            self._mine, [json.dumps(request).encode()], [out_write, err_write, tells.fileno()]
        )
        os.close(out_write)
        os.close(err_write)
        tells.close()
        return Command(told, out_read, err_read)

    def close(self) -> None:
        """End the process that forks."""
        self._mine.close()
        self._process.wait(30.0)


class Command:
    """A command at work; its output is read as it comes."""

    def __init__(self, told: socket.socket, out: int, err: int) -> None:
        self._told = told
        self._streams = {out: "", err: ""}
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
        waiting = [*self._open, *([self._told] if self._code is None else [])]
        if not waiting:
            return self._code
        for ready in select.select(waiting, [], [], seconds)[0]:
            if ready is self._told:
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
    # What every command imports; nothing of it starts a thread or opens a file.
    import apps.cli
    import apps.commands.project
    import apps.commands.results
    import apps.commands.run
    import apps.commands.workflow

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


def _become(request: dict[str, list[str]], out: int, err: int) -> None:
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["reprise", *request["arguments"]]
    if request["mounts"]:
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
            sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
        for arguments in (["--make-rprivate", "/"], *request["mounts"]):
            subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    main()
