"""`reprise api`: the Inference API on this machine, until it is stopped."""

import argparse
import ipaddress
import logging
import socket
import sys

import uvicorn

from apps.api_server import Access, InferenceApiServer
from apps.commands.ui import PORT_MAX
from pipelines.definitions import Wiring
from reprise.errors import BadInput
from resources.settings import load_settings

CONNECTIONS_MAX = 64
HEADER_BYTES_MAX = 16 * 1024
STOP_SECONDS_MAX = 5


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand until it is interrupted."""
    # Who asked for what, and why somebody was refused, which the answer does not say.
    logging.getLogger("apps.api_server").setLevel(logging.INFO)
    wiring = Wiring(load_settings())
    # Before anything listens: a missing key is told at the start.
    access = Access(wiring.behalf.tokens, wiring.behalf.users, wiring.projects)
    app = InferenceApiServer(access, wiring.index).app()
    config = uvicorn.Config(
        app,
        log_config=None,
        # Its lines would hold no token, and nothing that ours do not.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        limit_concurrency=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        timeout_graceful_shutdown=STOP_SECONDS_MAX,
    )
    with _listening(arguments.host, arguments.port) as listener:
        host, port = listener.getsockname()[:2]
        if not ipaddress.ip_address(host).is_loopback:
            print(
                f"warning: {host} is reached from other machines, and tokens travel as they are; "
                "put a proxy with TLS in front",
                file=sys.stderr,
            )
        shown = f"[{host}]" if ":" in host else host
        print(f"http://{shown}:{port} (Ctrl-C stops it)", flush=True)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            # It has answered what it had begun, and gives the signal back.
            print("stopped", file=sys.stderr, flush=True)
    return 130


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        BadInput: It is no address of this machine, or it is taken.
    """
    if not 0 <= port <= PORT_MAX:
        message = f"--port {port}: a port is a number from 0 (any) to {PORT_MAX}"
        raise BadInput(message)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        message = f"--host {host} --port {port}: {error.strerror or error}; choose another"
        raise BadInput(message) from error
