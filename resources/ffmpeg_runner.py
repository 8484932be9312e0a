"""Runs one ffmpeg process: safe arguments, limits, progress, cancellation, nothing left behind.

    runner = FfmpegRunner(binary, RunnerLimits())
    runner.run(
        [*runner.input_args(path), "-f", "null", "-"],
        cwd=workdir, progress=progress, cancelled=cancelled, purpose="decoding 'a.mp4'",
    )

One selector in the calling thread drains standard output, standard error and the progress pipe, so
nothing can fill up, callbacks run where their exceptions belong, and the thread that started the
process is the one that reaps it.

Source: specification V2, V4.
"""

import contextlib
import fcntl
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypedDict, Unpack

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ToolFailed
from reprise.ports import Cancelled, Progress
from resources.ffmpeg import FfmpegBinary

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,avi,wav,mp3,flac,ogg,aac,asf,flv,mpeg,"
    "mxf,png_pipe,jpeg_pipe"
)
"""Demuxers that may open a file; none of them follows references to other files.

`image2` is not among them: on ffmpeg 5.1 it picks svg by the file's extension and renders it.
"""

POLL_SECONDS = 0.25
"""How often cancellation and the deadline are looked at."""
REPORT_SECONDS = 2.0
"""Least time between two progress reports."""
TERM_SECONDS = 5.0
"""How long a stopped process may take before it is killed."""
STDERR_CHARS_MAX = 64_000
"""How much of the end of standard error is kept."""
_CHUNK_BYTES = 1 << 18
_SEVERE = re.compile(r"\[(error|fatal|panic)\] ")
_SPEED = re.compile(r"[0-9]{1,3}(\.[0-9]+)?x")
_NOISE = re.compile(r"^(\[[^\]]* @ 0x[0-9a-f]+\] )?\[\w+\] ")
_CHILD = Path(__file__).with_name("limited_exec.py")


@dataclass(frozen=True)
class RunnerLimits:
    """Bounds of one process."""

    wall_seconds: float = 4 * 3600.0
    """Longest run, by the clock."""
    address_space_bytes: int = 4 * 2**30
    """RLIMIT_AS."""
    file_size_bytes: int = 64 * 2**30
    """RLIMIT_FSIZE: largest file that it may write."""
    cpu_seconds: int = 8 * 3600
    """RLIMIT_CPU."""
    max_pixels: int = 40_000_000
    """Largest frame that is decoded; 8K has 33 million pixels."""
    threads: int = 2
    """Threads of each codec. Part of the cache key: another count gives other bytes."""


class RunOptions(TypedDict, total=False):
    """What a run may be told besides its arguments."""

    duration_seconds: float | None
    """Length of the output, to turn its time into a share done; None reports no share."""
    on_stdout: Callable[[bytes], None] | None
    """Gets standard output (`pipe:1`) in chunks of any size; else it is thrown away."""
    on_stderr_line: Callable[[str], None] | None
    """Gets each line of standard error, without its end."""
    timeout_seconds: float | None
    """A shorter limit by the clock than that of the runner."""
    log_level: str
    """ffmpeg's log level; `warning` when not given."""
    purpose: str
    """What is being done, for messages and progress, such as `measuring 'talk.mp4'`."""
    check: bool
    """False returns an exit code other than 0 instead of raising."""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended."""

    returncode: int
    """0, unless the run was asked not to check."""
    stderr_text: str
    """The end of standard error, at most `STDERR_CHARS_MAX`."""
    seconds: float
    """By the clock."""

    def last_error_lines(self, count: int = 3) -> str:
        """Return the last meaningful lines of standard error, joined by `; `."""
        lines = [line.strip() for line in self.stderr_text.splitlines() if line.strip()]
        chosen = [line for line in lines if _SEVERE.search(line)] or lines
        return "; ".join(_NOISE.sub("", line) for line in chosen[-count:]) or "it said nothing"


class FfmpegRunner:
    """Runs ffmpeg under limits.

    Args:
        binary: What to run.
        limits: Bounds of each run.
    """

    def __init__(self, binary: FfmpegBinary, limits: RunnerLimits | None = None) -> None:
        self.binary = binary
        self.limits = limits or RunnerLimits()

    def input_args(self, path: Path, *, demuxer: str | None = None) -> list[str]:
        """Return the arguments that open a user's file, and no other file, as an input.

        Args:
            path: The file.
            demuxer: Forces this demuxer (`-f`); None lets ffmpeg guess within the white list.
        """
        forced = [] if demuxer is None else ["-f", demuxer]
        return [
            *("-protocol_whitelist", "file", "-format_whitelist", FORMATS),
            *("-max_pixels", str(self.limits.max_pixels), "-threads", str(self.limits.threads)),
            *forced,
            *("-i", f"file:{path.absolute()}"),
        ]

    def run(
        self,
        args: Sequence[str],
        *,
        cwd: Path,
        progress: Progress,
        cancelled: Cancelled,
        **options: Unpack[RunOptions],
    ) -> RunOutcome:
        """Run ffmpeg to its end.

        Args:
            args: Arguments after the global ones; `-nostdin`, `-y`, progress and log level are set
                here.
            cwd: Working directory of the process.
            progress: Called at most every 2 s, and at the end.
            cancelled: Asked at least twice a second.
            options: See `RunOptions`.

        Raises:
            ToolFailed: It could not be started, failed, or ran past a limit.
            Cancelled: The run is being stopped; the process and its group are gone.
        """
        purpose = options.get("purpose", "running ffmpeg")
        if cancelled():
            message = f"Stopped before {purpose}"
            raise RunCancelled(message)
        started = time.monotonic()
        timeout = min(options.get("timeout_seconds") or float("inf"), self.limits.wall_seconds)
        progress_read, progress_write = os.pipe()
        try:
            process = self._start(args, cwd, progress_write, options)
        except BaseException:
            os.close(progress_read)
            raise
        finally:
            os.close(progress_write)
        _widen(process.stdout)
        stderr = _StderrTail(options.get("on_stderr_line"))
        report = _ProgressReader(progress, purpose, options.get("duration_seconds"))
        watch = _Watch(process, cancelled, started + timeout, timeout, purpose)
        try:
            with selectors.DefaultSelector() as selector:
                if process.stdout is not None:
                    on_stdout = options.get("on_stdout") or _ignore
                    selector.register(process.stdout, selectors.EVENT_READ, on_stdout)
                assert process.stderr is not None
                selector.register(process.stderr, selectors.EVENT_READ, stderr.feed)
                selector.register(progress_read, selectors.EVENT_READ, report.feed)
                _drain(selector, watch)
            watch.wait()
        finally:
            _end(process)
            os.close(progress_read)
        stderr.end()
        outcome = RunOutcome(process.returncode, stderr.text(), time.monotonic() - started)
        if options.get("check", True) or outcome.returncode < 0:
            _raise_on_failure(outcome, purpose)
        report.finish()
        return outcome

    def _start(
        self, args: Sequence[str], cwd: Path, progress_fd: int, options: RunOptions
    ) -> "subprocess.Popen[bytes]":
        limits = self.limits
        command = [
            *(sys.executable, "-I", "-S", str(_CHILD), str(os.getpid())),
            *(str(limits.address_space_bytes), str(limits.file_size_bytes)),
            *(str(limits.cpu_seconds), str(self.binary.path)),
            *("-nostdin", "-hide_banner", "-y", "-nostats"),
            *("-loglevel", f"level+{options.get('log_level', 'warning')}"),
            *("-progress", f"pipe:{progress_fd}", "-stats_period", "0.5"),
            *("-filter_threads", str(limits.threads)),
            *("-filter_complex_threads", str(limits.threads)),
            *args,
        ]
        wants_stdout = options.get("on_stdout") is not None
        try:
            return subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if wants_stdout else subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(progress_fd,),
                start_new_session=True,
            )
        except OSError as error:
            message = f"ffmpeg could not be started: {error}; working directory {str(cwd)!r}"
            raise ToolFailed(message) from error


@dataclass
class _Watch:
    """Looks at the deadline and at cancellation while a process runs."""

    process: "subprocess.Popen[bytes]"
    cancelled: Cancelled
    deadline: float
    timeout_seconds: float
    purpose: str
    _next: float = 0.0

    def look(self) -> None:
        """Raise when the run must end; asks no more often than every `POLL_SECONDS`."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + POLL_SECONDS
        if self.cancelled():
            message = f"Stopped while {self.purpose}"
            raise RunCancelled(message)
        if now > self.deadline:
            message = (
                f"ffmpeg took longer than {self.timeout_seconds:g} s while {self.purpose} and was "
                "stopped; the file may be broken, or raise the limit"
            )
            raise ToolFailed(message)

    def wait(self) -> None:
        """Wait for the process, which has closed its pipes."""
        while True:
            try:
                self.process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                self.look()
            else:
                return


@dataclass
class _StderrTail:
    """Keeps the end of standard error and hands out its lines."""

    on_line: Callable[[str], None] | None
    _rest: bytes = b""
    _lines: deque[str] = field(default_factory=deque)
    _chars: int = 0

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._add(line)
        if len(self._rest) > STDERR_CHARS_MAX:
            self.end()

    def end(self) -> None:
        if self._rest:
            self._add(self._rest)
            self._rest = b""

    def text(self) -> str:
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
class _ProgressReader:
    """Turns ffmpeg's `key=value` blocks into at most one report every `REPORT_SECONDS`."""

    progress: Progress
    purpose: str
    duration_seconds: float | None
    _rest: bytes = b""
    _block: dict[str, str] = field(default_factory=dict)
    _reported: float = field(default_factory=time.monotonic)

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.decode(errors="replace").partition("=")
            self._block[name.strip()] = value.strip()
            if name == "progress" and time.monotonic() - self._reported >= REPORT_SECONDS:
                self._reported = time.monotonic()
                self.progress(self._text(), self._share())

    def finish(self) -> None:
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


def _drain(selector: selectors.BaseSelector, watch: _Watch) -> None:
    while selector.get_map():
        for key, _ in selector.select(POLL_SECONDS):
            data = os.read(key.fd, _CHUNK_BYTES)
            if data:
                key.data(data)
            else:
                selector.unregister(key.fileobj)
        watch.look()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing behind: stop the process group if it still runs, reap it, close its pipes."""
    try:
        if process.poll() is None:
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TERM_SECONDS)
    finally:
        if process.poll() is None:
            _signal_group(process, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        # It is not the leader of its group yet, or gone.
        process.send_signal(number)


def _raise_on_failure(outcome: RunOutcome, purpose: str) -> None:
    code = outcome.returncode
    if code == 0:
        return
    how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    remedy = {
        signal.SIGXCPU: "it used up its CPU time; the file may be broken, or raise the limit",
        signal.SIGXFSZ: "its output grew past the limit of a file's size",
        signal.SIGKILL: "it was killed, perhaps for want of memory",
    }.get(
        signal.Signals(-code) if code < 0 else signal.SIGTERM, "look at the file or the lines above"
    )
    message = f"ffmpeg failed while {purpose} ({how}): {outcome.last_error_lines()}; {remedy}"
    raise ToolFailed(message)


def _widen(pipe: IO[bytes] | None) -> None:
    """Make the pipe as large as one read: fewer turns between ffmpeg and this process."""
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _CHUNK_BYTES)


def _ignore(_: bytes) -> None:
    return
