"""The peers' own Python environment, and processes in it."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
INSTALL_SECONDS_MAX = 900
RUN_SECONDS_MAX = 120
SERVER_SECONDS_MAX = 90
ROOT = HERE.parent.parent

_QUIET = {
    "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class PeerEnvironment:
    """A virtual environment with every peer that can be installed.

    Args:
        folder: Where it is made; one that is there from before is used as it is.
        requirements: The peers, a pin a line.
    """

    def __init__(self, folder: Path, requirements: Path = HERE / "requirements.txt") -> None:
        self.python = folder / "venv" / "bin" / "python"
        self.missing: dict[str, str] = {}
        """Requirement → why it could not be installed."""
        self._folder = folder
        self._requirements = requirements

    def install(self) -> None:
        """Make the environment; one requirement after the other, so that one cannot sink all."""
        if not self.python.exists():
            venv.create(self._folder / "venv", with_pip=True)
        for line in self._requirements.read_text().splitlines():
            requirement = line.strip()
            if requirement and not requirement.startswith("#"):
                self._install_one(requirement)

    def _install_one(self, requirement: str) -> None:
        command: list[str | Path] = [self.python, "-m", "pip", "install", "--quiet", requirement]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            self.missing[requirement] = "its installation took too long"
            return
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["pip failed"]
            self.missing[requirement] = lines[-1][:120]

    @contextmanager
    def prefect_server(self, home: Path) -> Iterator[None]:
        """Have Prefect's server on loopback; without one each of its processes starts its own.

        Args:
            home: Its folder.
        """
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        address = f"http://127.0.0.1:{port}/api"
        start: list[str | Path] = [self.python, "-m", "prefect", "server", "start"]
        server = subprocess.Popen(
            [*start, "--host", "127.0.0.1", "--port", port],
            env={**os.environ, **_QUIET, "PREFECT_HOME": str(home), "PREFECT_API_URL": address},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _answers(f"{address}/health", server):
                os.environ["PREFECT_API_URL"] = address
            yield
        finally:
            os.environ.pop("PREFECT_API_URL", None)
            server.terminate()
            server.wait()

    def why_missing(self, peer: str) -> str | None:
        """Return why a peer cannot run, or None."""
        return next((why for name, why in self.missing.items() if peer in name), None)


def _answers(url: str, server: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + SERVER_SECONDS_MAX
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.2)
    return False


def run_program(command: list[str | Path], store: Path) -> tuple[str, str]:
    """Run a program of a peer or of the engine; return what it printed and its last error.

    Args:
        command: The command.
        store: Where a peer that takes its folders from the environment keeps its results.
    """
    environment = {
        **os.environ,
        **_QUIET,
        "PYTHONPATH": str(ROOT) if command[0] == sys.executable else "",
        "PREFECT_LOCAL_STORAGE_PATH": str(store),
        "PREFECT_HOME": str(store.parent / "prefect-home"),
    }
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer within {RUN_SECONDS_MAX} s"
    lines = done.stderr.strip().splitlines() or [""]
    return done.stdout, lines[-1][:120]
