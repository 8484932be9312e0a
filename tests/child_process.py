"""Python code in a process of its own, for tests that fill disks, take rights away or kill."""

import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS_MAX = 120


def start_python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start code whose output and errors are read through pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(code: str, *arguments: str, own_mounts: bool = False) -> str:
    """Run code to its end and return its output; its mounts, if any, are its own."""
    unshare = ["unshare", "-m", "--"] if own_mounts else []
    done = subprocess.run(
        [*unshare, sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def can_mount() -> bool:
    """Whether a child may mount in a namespace of its own."""
    probe = ["unshare", "-m", "--", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
