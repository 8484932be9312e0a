"""`reprise ui`: the Dagster web server and daemon on localhost, with this home's instance."""

import argparse
import os
import subprocess
import sys

from apps.instance import instance_home, open_instance
from pipelines.definitions import Wiring
from pipelines.partitions import sync_partitions
from reprise.errors import BadInput
from resources.settings import load_settings

PORT_MAX = 65535


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand until it is interrupted."""
    if not 1 <= arguments.port <= PORT_MAX:
        message = f"--port {arguments.port}: a port is a number from 1 to {PORT_MAX}"
        raise BadInput(message)
    settings = load_settings()
    home = instance_home(settings)
    with open_instance(settings) as instance:
        sync_partitions(instance, Wiring(settings).projects)
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "REPRISE_HOME": str(settings.home_path),
    }
    print(f"http://127.0.0.1:{arguments.port} (Ctrl-C stops it)", flush=True)
    command = [sys.executable, "-m", "dagster", "dev", "-m", "pipelines.definitions"]
    command += ["--host", "127.0.0.1", "--port", str(arguments.port)]
    process = subprocess.Popen(command, env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        # The terminal sent the interrupt to the children too; they wind down by themselves.
        process.wait()
        return 130
