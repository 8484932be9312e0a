"""A loopback server in place of a model's endpoint: what it answers is up to the test."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import JsonValue

Responder = Callable[["Asked", dict[str, Any]], None]


class Asked(BaseHTTPRequestHandler):
    """Answers each POST by the server's responder and keeps what was asked."""

    server: "EndpointServer"
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.path, headers, body))
        try:
            self.server.responder(self, body)
        except (BrokenPipeError, ConnectionResetError):
            # The other side gave the call up.
            self.close_connection = True

    def answer(
        self, body: JsonValue, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self) -> None:
        """Begin an answer in chunks, of server-sent events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, data: JsonValue, name: str = "") -> None:
        head = f"event: {name}\n" if name else ""
        self.chunk(f"{head}data: {json.dumps(data)}\n\n".encode())

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def break_off(self) -> None:
        """Close the connection in the middle of an answer."""
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


class EndpointServer(ThreadingHTTPServer):
    """A server whose responder a test sets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.responder: Responder = lambda asked, _: asked.answer(completion("hello"))
        self.release = threading.Event()

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"


@contextmanager
def endpoint_server() -> Iterator[EndpointServer]:
    server = EndpointServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def completion(
    text: str | None, *, finish: str = "stop", tool_calls: list[JsonValue] | None = None
) -> JsonValue:
    message: dict[str, JsonValue] = {"role": "assistant", "content": text}
    if tool_calls:
        message["tool_calls"] = tool_calls
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "tiny-1-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }


def anthropic_message(
    *blocks: JsonValue, stop_reason: str = "end_turn", **usage: JsonValue
) -> JsonValue:
    """An answer of Anthropic's protocol; the blocks default to one text."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test-1",
        "content": list(blocks) or [{"type": "text", "text": "hello"}],
        "stop_reason": stop_reason,
        "usage": {
            "input_tokens": 40,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "output_tokens": 20,
            "output_tokens_details": {"thinking_tokens": 5},
            **usage,
        },
    }
