"""What `reprise ui` refuses before it starts anything."""

import socket
from pathlib import Path

from tests.acceptance.ui_process import UiHome


def test_a_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, errors = UiHome(tmp_path).call("ui", "--port", str(port))
    assert code == 2
    assert errors == f"error: --port {port}: Address already in use; choose another with `--port`\n"
