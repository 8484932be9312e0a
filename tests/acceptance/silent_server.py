"""A model endpoint that takes every question and answers none."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SilentServer:
    """Listens on loopback and keeps what calls it waiting.

    Attributes:
        calls: How many connections came in.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """What a provider is configured with."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def close(self) -> None:
        """Hang up on everybody."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10.0)
        for held in self._held:
            held.close()

    def _take(self) -> None:
        while True:
            try:
                held, _ = self._socket.accept()
            except OSError:
                return
            self._held.append(held)
            self.calls += 1


@contextmanager
def silent_server() -> Iterator[SilentServer]:
    """Give a server for the time of a test."""
    server = SilentServer()
    try:
        yield server
    finally:
        server.close()
