"""`reprise ui`: the Dagster web server and daemon on localhost, with this home's instance."""

import argparse
import fcntl
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from apps.instance import instance_home, open_instance
from apps.launch import end_abandoned_runs
from apps.ui_servers import ServerEnded, UiServers, end_orphaned_runs
from pipelines.definitions import Wiring
from pipelines.partitions import sync_partitions
from reprise.errors import BadInput
from resources.settings import load_settings

PORT_MAX = 65535
HOST = "127.0.0.1"


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand until it is interrupted."""
    check_port(arguments.port)
    settings = load_settings()
    home = instance_home(settings)
    with (
        only_one(home, f"http://{HOST}:{arguments.port}"),
        open_instance(settings) as instance,
        tempfile.TemporaryDirectory(prefix="reprise-ui-") as folder,
    ):
        end_abandoned_runs(instance)
        end_orphaned_runs(instance)
        sync_partitions(instance, Wiring(settings).projects)
        environment = {
            **os.environ,
            "DAGSTER_HOME": str(home),
            "REPRISE_HOME": str(settings.home_path),
        }
        servers = UiServers(Path(folder), port=arguments.port, environment=environment)
        with interruptible():
            try:
                print("starting the web server and the daemon …", file=sys.stderr, flush=True)
                servers.start()
                print(f"{servers.address} (Ctrl-C stops it)", flush=True)
                servers.watch()
            except ServerEnded:
                servers.stop(instance)
                raise
            except KeyboardInterrupt:
                print("stopping …", file=sys.stderr, flush=True)
                servers.stop(instance)
            finally:
                servers.kill()
    return 130


def check_port(port: int) -> None:
    """Check that the web server may listen on a port.

    Raises:
        BadInput: It is no port, or it is taken.
    """
    if not 1 <= port <= PORT_MAX:
        message = f"--port {port}: a port is a number from 1 to {PORT_MAX}"
        raise BadInput(message)
    with socket.socket() as probe:
        # As the web server does: a port that a closed connection still lingers on is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            message = f"--port {port}: {error.strerror or error}; choose another with `--port`"
            raise BadInput(message) from error


@contextmanager
def only_one(home: Path, address: str) -> Iterator[None]:
    """Hold the instance's place for one UI; two daemons on one instance disturb each other.

    Raises:
        BadInput: Another UI works on it; says where it answers.
    """
    with (home / "ui.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            where = lock.read().strip() or "some port"
            message = f"the UI of {home} is open already, at {where}; use that, or stop it first"
            raise BadInput(message) from error
        lock.truncate(0)
        lock.write(address)
        lock.flush()
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Take SIGINT, SIGTERM and SIGHUP as Ctrl-C, also where a shell's `&` had SIGINT ignored."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
