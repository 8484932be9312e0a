"""Becomes another program, under limits.

    python -I -S limited_exec.py PARENT_PID AS_BYTES FSIZE_BYTES CPU_SECONDS PROGRAM ARGUMENT…

The runner starts every media program through this file in place of a `preexec_fn`: Python code
between fork and exec can deadlock in a process with threads, and would copy the page tables of a
big parent each time. It takes about 20 ms.

On Linux it also asks the kernel to kill the program when its parent dies (PR_SET_PDEATHSIG). That
signal is bound to the *thread* that started the program, not to the process; the runner starts,
reads and reaps in one call on one thread, so this thread outlives the program unless the whole
process is gone.

Imports nothing of the project: it runs with neither site-packages nor the environment's Python
variables.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Set the limits (0 leaves one as it is) and replace this process by the program."""
    parent, address_space, file_size, cpu = (int(word) for word in arguments[:4])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return 125  # The parent died before the kernel knew what to do then.
    for which, limit in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_FSIZE, file_size),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_CORE, -1),
    ):
        if limit:
            hard = resource.getrlimit(which)[1]
            wanted = max(limit, 0)
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(which, (value, hard))
    try:
        os.execv(arguments[4], arguments[4:])
    except OSError as error:
        os.write(2, f"cannot execute {arguments[4]}: {error}\n".encode())
    return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
