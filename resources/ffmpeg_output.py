"""Reads what an ffmpeg process says: standard error and its progress pipe.

Source: specification V4.
"""

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from reprise.ports import Progress

REPORT_SECONDS = 2.0
"""Least time between two progress reports."""
STDERR_CHARS_MAX = 64_000
"""How much of the end of standard error is kept."""
_SPEED = re.compile(r"[0-9]{1,3}(\.[0-9]+)?x")


@dataclass
class StderrTail:
    """Keeps the end of standard error and hands out its lines."""

    on_line: Callable[[str], None] | None
    _rest: bytes = b""
    _lines: deque[str] = field(default_factory=deque)
    _chars: int = 0

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._add(line)
        if len(self._rest) > STDERR_CHARS_MAX:
            self.end()

    def end(self) -> None:
        """Take what is left as a last line."""
        if self._rest:
            self._add(self._rest)
            self._rest = b""

    def text(self) -> str:
        """Return the end of standard error."""
        return "\n".join(self._lines)[-STDERR_CHARS_MAX:]

    def _add(self, raw: bytes) -> None:
        line = raw.decode(errors="replace")
        self._lines.append(line)
        self._chars += len(line)
        while self._chars > STDERR_CHARS_MAX and len(self._lines) > 1:
            self._chars -= len(self._lines.popleft())
        if self.on_line is not None:
            self.on_line(line)


@dataclass
class ProgressReader:
    """Turns ffmpeg's `key=value` blocks into at most one report every `REPORT_SECONDS`."""

    progress: Progress
    purpose: str
    duration_seconds: float | None
    _rest: bytes = b""
    _block: dict[str, str] = field(default_factory=dict)
    _reported: float = field(default_factory=time.monotonic)

    def feed(self, data: bytes) -> None:
        """Take what was read, and report when it is time."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.decode(errors="replace").partition("=")
            self._block[name.strip()] = value.strip()
            if name == "progress" and time.monotonic() - self._reported >= REPORT_SECONDS:
                self._reported = time.monotonic()
                self.progress(self._text(), self._share())

    def finish(self) -> None:
        """Report the end."""
        self.progress(self.purpose, 1.0)

    def _share(self) -> float | None:
        # `out_time_ms` is in microseconds too (an old bug), and either may be N/A or negative
        # early.
        raw = self._block.get("out_time_us", "N/A")
        if not self.duration_seconds or not raw.lstrip("-").isdigit():
            return None
        return min(max(int(raw) / 1e6 / self.duration_seconds, 0.0), 1.0)

    def _text(self) -> str:
        # At the ends of a run ffmpeg divides by next to nothing: `N/A`, `2.28e+12x`.
        speed = self._block.get("speed", "N/A")
        return f"{self.purpose} at {speed}" if _SPEED.fullmatch(speed) else self.purpose
