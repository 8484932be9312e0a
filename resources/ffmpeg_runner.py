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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict, Unpack

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import ToolFailed
from reprise.ports import Cancelled, Progress
from resources.ffmpeg import FfmpegBinary
from resources.ffmpeg_output import ProgressReader, StderrTail

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,avi,wav,mp3,flac,ogg,aac,asf,flv,mpeg,"
    "mxf,png_pipe,jpeg_pipe"
)
"""Demuxers that may open a file; none of them follows references to other files.

`image2` is not among them: on ffmpeg 5.1 it picks svg by the file's extension and renders it.
"""

POLL_SECONDS = 0.25
"""How often cancellation and the deadline are looked at."""
TERM_SECONDS = 5.0
"""How long a stopped process may take before it is killed."""
_CHUNK_BYTES = 1 << 18
_SEVERE = re.compile(r"\[(error|fatal|panic)\] ")
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
        stderr = StderrTail(options.get("on_stderr_line"))
        report = ProgressReader(progress, purpose, options.get("duration_seconds"))
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
