"""What contains a program that starts others: limits, what it reaches, and that nothing is left."""

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reprise.errors import Cancelled, ToolFailed
from resources.contained_process import ContainedEnd, Containment, run_contained
from tests.child_process import start_python
from tests.media_files import never_cancelled
from tests.remotion_project import left_over

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems contain nothing")

PYTHON = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc", sys.prefix, sys.base_prefix)

# Starts a grandchild in a session of its own and tells when it is there.
ORPHAN = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        print("up", flush=True)
        signal.pause()
    os._exit(0)
"""


@pytest.fixture
def box(tmp_path: Path) -> Containment:
    folder = tmp_path / "box"
    folder.mkdir()
    readable = tuple(Path(path) for path in PYTHON)
    return Containment(folder.resolve(), readable, 60.0, disk_bytes=64 * 2**20)


def run(
    code: str,
    box: Containment,
    *arguments: object,
    lines: list[bytes] | None = None,
    cancelled: Callable[[], bool] = never_cancelled,
) -> ContainedEnd:
    heard = [] if lines is None else lines
    command = [sys.executable, "-I", "-S", "-c", code, *map(str, arguments)]
    try:
        return run_contained(
            command, box, on_line=heard.append, doing=lambda: "testing", cancelled=cancelled
        )
    finally:
        assert left_over(box.folder) == []


def test_the_exit_code_the_lines_and_the_last_words_come_back(box: Containment) -> None:
    lines: list[bytes] = []
    code = "import sys; print('a\\nb'); print('no', file=sys.stderr); sys.exit(3)"
    assert run(code, box, lines=lines) == ContainedEnd(3, "no\n")
    assert lines == [b"a", b"b"]


def test_a_signal_that_ended_the_program_is_told(box: Containment) -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    assert run(code, box).returncode == 128 + signal.SIGKILL


def test_a_grandchild_in_a_session_of_its_own_does_not_outlive_the_program(
    box: Containment,
) -> None:
    # `run` looks for what is left.
    assert run(ORPHAN, box).returncode == 0


def test_stopping_ends_the_grandchild_too(box: Containment) -> None:
    lines: list[bytes] = []
    with pytest.raises(Cancelled, match="Stopped while testing"):
        run(f"{ORPHAN}\nsignal.pause()", box, lines=lines, cancelled=lambda: lines == [b"up"])
    assert lines == [b"up"]


def test_a_parent_that_is_killed_takes_all_with_it(box: Containment) -> None:
    code = f"""
import sys
from pathlib import Path
from resources.contained_process import Containment, run_contained
box = Containment(Path(sys.argv[1]), (), 60.0, shut_files=False)
run_contained(
    [sys.executable, "-I", "-S", "-c", {ORPHAN + "signal.pause()"!r}], box,
    on_line=lambda line: print(line.decode(), flush=True), doing=lambda: "",
    cancelled=lambda: False,
)
"""
    process = start_python(code, str(box.folder))
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    watched = [os.pidfd_open(int(each.partition(" ")[0])) for each in left_over(box.folder)]
    assert len(watched) >= 3
    process.kill()
    process.communicate()
    for descriptor in watched:
        assert select.select([descriptor], [], [], 20.0)[0], "it still runs"
        os.close(descriptor)
    assert left_over(box.folder) == []


def test_a_program_past_its_time_is_stopped(box: Containment) -> None:
    with pytest.raises(ToolFailed, match=r"longer than 0\.5 s and was stopped while testing"):
        run("while True: pass", replace(box, seconds=0.5))


def test_the_memory_of_all_processes_together_is_bounded(box: Containment) -> None:
    code = """
import os, signal
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(b"x" * (96 * 2**20))
        signal.pause()
signal.pause()
"""
    with pytest.raises(ToolFailed, match="more than 256 MiB of memory"):
        run(code, replace(box, memory_bytes=256 * 2**20))


def test_what_is_written_is_bounded(box: Containment) -> None:
    code = """
import os, signal
for number in range(100):
    with open(f"{os.environ['TMPDIR']}/{number}", "wb") as stream:
        stream.write(b"x" * 2**20)
signal.pause()
"""
    with pytest.raises(ToolFailed, match="more than 64 MiB on the disk"):
        run(code, box)


def test_a_file_past_its_limit_is_not_written(box: Containment) -> None:
    code = "open('big', 'wb').write(b'x' * 2**21)"
    assert run(code, replace(box, file_bytes=2**20)).returncode != 0
    assert (box.folder / "big").stat().st_size <= 2**20


def test_no_variable_of_this_process_reaches_the_program(
    box: Containment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    lines: list[bytes] = []
    run("import os; print(sorted(os.environ))", box, lines=lines)
    assert lines == [b"['HOME', 'LANG', 'PATH', 'TMPDIR', 'TZ']"]


@pytest.mark.parametrize("own_network", [True, False])
def test_files_outside_are_neither_read_nor_written_where_the_kernel_can(
    box: Containment, tmp_path: Path, own_network: bool
) -> None:
    (tmp_path / "secret").write_text("x")
    code = """
import os, sys
def tried(work):
    try:
        work()
    except PermissionError:
        return "refused"
    return "done"
print(tried(lambda: open(sys.argv[1] + "/secret").read()))
print(tried(lambda: open(sys.argv[1] + "/made", "w").write("x")))
print(tried(lambda: open("/proc/%s/environ" % sys.argv[2], "rb").read()))
print(tried(lambda: open("inside", "w").write("x")))
"""
    lines: list[bytes] = []
    run(code, replace(box, own_network=own_network), tmp_path, os.getpid(), lines=lines)
    assert lines == [b"refused", b"refused", b"refused", b"done"] or not has_landlock()
    assert lines[3] == b"done"


def test_no_address_is_reached_where_the_kernel_can(box: Containment) -> None:
    lines: list[bytes] = []
    run("print(open('/proc/net/dev').read().count(':'))", box, lines=lines)
    assert lines == [b"1"] or not has_own_network()


def has_landlock() -> bool:
    return bool(ctypes.CDLL(None).syscall(444, None, 0, 1) > 0)


def has_own_network() -> bool:
    done = subprocess.run(["unshare", "--user", "--net", "true"], capture_output=True)
    return done.returncode == 0
