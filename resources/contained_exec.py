"""Runs a program that itself starts others, contained; stays until not one of them is left.

    python -I -S contained_exec.py SETTINGS_JSON PROGRAM ARGUMENT…

`limited_exec.py` becomes its program; this one stays above it, for programs such as Node and a
browser that put their children into sessions of their own. The keys of SETTINGS_JSON:

    parent         process id of whoever starts this
    folders        the only folders that may be written to
    readable       files and folders that may be read besides; null leaves all as they are
    own_network    true: nothing but a loopback of its own, where the kernel lets us
    memory_bytes   most memory of all its processes together
    disk_bytes     most that these folders may hold together
    file_bytes     largest file

On Linux the children of children become this process's own when their parent ends (subreaper), so
killing all that descend from it leaves no process. Landlock shuts the file system where the kernel
has it, and a network namespace the network; where the kernel has neither, both are left as they
are. Other systems have none of this; there the process group alone is killed.

Exit code: the program's; 128 + n when signal n ended it; the constants below for what ends it here.

Imports nothing of the project: it runs with neither site-packages nor the environment's Python
variables.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

OUT_OF_MEMORY, OUT_OF_DISK, STOPPED, PARENT_GONE, NOT_STARTED = 120, 121, 122, 125, 126

_POLL_SECONDS = 0.2
_DISK_SECONDS = 1.0
_KILL_SECONDS = 8.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_PR_CAPBSET_DROP, _CAPABILITY_VERSION = 24, 0x20080522
_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5
"""Capabilities that are kept, where there are any: of files, their owners, and ending processes."""
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ = 1 << 0 | 1 << 2 | 1 << 3
"""Landlock: execute, read a file, list a folder."""
_FILE_ONLY = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
"""Landlock: what a rule on a file, and not on a folder, may allow."""


def main(arguments: list[str]) -> int:
    """Contain this process, start the program, and wait until nothing of it is left."""
    settings = json.loads(arguments[0])
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if settings["own_network"]:
            _take_own_network(libc)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # TERM, not KILL: this process has to end the others first.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != settings["parent"]:
            return PARENT_GONE
        if settings["readable"] is not None:
            _shut_files(libc, settings["folders"], settings["readable"])
        _drop_rights(libc)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = settings["file_bytes"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        program = os.posix_spawn(arguments[1], arguments[1:], os.environ, setsigmask=[])
    except OSError as error:
        os.write(2, f"cannot execute {arguments[1]}: {error}\n".encode())
        return NOT_STARTED
    try:
        return _watch(program, settings, watched)
    finally:
        _end_all()


def _watch(program: int, settings: dict[str, Any], watched: set[signal.Signals]) -> int:
    """Wait for the program's end, a signal to stop, or a limit; return the exit code."""
    next_disk = 0.0
    while True:
        found = signal.sigtimedwait(watched, _POLL_SECONDS)
        if found is not None and found.si_signo != signal.SIGCHLD:
            return STOPPED
        code = _reap(program)
        if code is not None:
            return code
        if sum(map(_memory_bytes, _descendants())) > settings["memory_bytes"]:
            return OUT_OF_MEMORY
        if time.monotonic() >= next_disk:
            if sum(map(_folder_bytes, settings["folders"])) > settings["disk_bytes"]:
                return OUT_OF_DISK
            next_disk = time.monotonic() + _DISK_SECONDS


def _reap(program: int) -> int | None:
    """Collect the children that ended; return the program's exit code if it is among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            if child == program:
                ended = os.waitstatus_to_exitcode(status)
                code = ended if ended >= 0 else 128 - ended
    return code


def _end_all() -> None:
    """Kill all that descends from this process, until nothing does."""
    if sys.platform != "linux":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
        return
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        left = _descendants()
        if not left:
            return
        for child in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        _reap(0)


def _descendants() -> list[int]:
    """Return the processes below this one; none on a system without /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold blanks and parentheses.
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


def _memory_bytes(process: int) -> int:
    """Return the memory that a process has for itself: no file's pages."""
    try:
        lines = Path(f"/proc/{process}/status").read_bytes().splitlines()
    except OSError:
        return 0
    rows = [line.split() for line in lines if line.startswith((b"RssAnon", b"RssShmem"))]
    return sum(int(row[1]) * 1024 for row in rows)


def _folder_bytes(folder: str) -> int:
    """Return what a folder's files take on the disk."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(place, name).lstat().st_blocks * 512
    return total


def _take_own_network(libc: ctypes.CDLL) -> None:
    """Move to a network of nothing but a loopback, if the kernel lets an ordinary user do it."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(loopback, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(loopback, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


def _drop_rights(libc: ctypes.CDLL) -> None:
    """Give up, for good, what root may do beyond files of others and ending processes.

    Among it is reading other processes' variables, which Landlock does not keep root from.
    """
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for number in range(64):
        if not _RIGHTS >> number & 1:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION, 0))
    rights = ctypes.create_string_buffer(24)
    if libc.capget(header, rights) != 0:
        return
    # Effective, permitted and inheritable, the lower 32 of each, then the upper.
    effective, permitted = struct.unpack("6I", rights.raw[:24])[:2]
    left = struct.pack("6I", effective & _RIGHTS, permitted & _RIGHTS, 0, 0, 0, 0)
    libc.capset(header, ctypes.create_string_buffer(left))


def _shut_files(libc: ctypes.CDLL, folders: list[str], readable: list[str]) -> None:
    """Let this process and all below it read these paths, and write the folders alone."""
    version = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return
    # Rights grew with the versions: 13 at first, then linking, cutting short, devices.
    handled = (1 << 13) - 1 | sum(1 << n for n, since in ((13, 2), (14, 3)) if version >= since)
    rules = ctypes.create_string_buffer(struct.pack("Q", handled))
    ruleset = libc.syscall(_LANDLOCK_CREATE, rules, 8, 0)
    if ruleset < 0:
        return
    allowed = [(path, _READ) for path in readable] + [(folder, handled) for folder in folders]
    allowed += [("/dev/null", _FILE_ONLY), ("/dev/zero", _FILE_ONLY), ("/dev/shm", handled)]
    for path, rights in allowed:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not Path(path).is_dir():
            rights &= _FILE_ONLY
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights & handled, opened))
        libc.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0)
        os.close(opened)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
