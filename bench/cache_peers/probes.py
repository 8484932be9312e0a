"""What each cache does when code or data change, and when its store is broken.

Each case runs one step in a process, changes something, and runs it again in another. Executions
are counted by the lines that the step writes to a file.

To add a case: a line in `CASES`.

Source: specification R1, R2, R4.
"""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.cache_peers.environment import HERE, PeerEnvironment, run_program
from pipelines.cache_wiring import CACHE_FILE

ENGINE = "reprise"
PEERS = (ENGINE, "joblib", "diskcache", "langgraph", "hamilton", "redun", "prefect")
ENGINE_STORE = Path("home") / CACHE_FILE
TWINS = 3
SLOW_SECONDS = 3

STEP = """
import os, time
import helper
CONSTANT = {constant}
FOLDER = {folder!r}
{head}
    # {comment}
    with open(FOLDER + "/log", "a") as log: log.write("x\\n")
    if os.path.exists(FOLDER + "/boom"): raise ValueError("boom")
    if os.path.exists(FOLDER + "/slow"): time.sleep({seconds})
    text = {read}
    seen = [repr(x), helper.f(), CONSTANT, text, {body}]
    return {give}{{"seen": seen}}{end}
"""
OPEN = 'open(FOLDER + "/data.txt").read()'
HEADS = {
    "steps.py": ("def step(x):", OPEN, "", ""),
    "hamilton_steps.py": ("def out(x: object) -> dict:", OPEN, "", ""),
    # The engine's functions read project files; the driver keeps data.txt in the project.
    "engine_steps.py": (
        'def step(inputs):\n    x = inputs.variables["x"]',
        'inputs.read_text("data.txt")',
        "",
        "",
    ),
}
NODE = ('def node(state):\n    x = state["x"]', OPEN, '{"answer": ', "}")


@dataclass(frozen=True)
class Code:
    """The step's code and data, one version."""

    body: int = 1
    comment: str = "a"
    helper: int = 1
    constant: int = 1
    data: str = "v1"

    def write(self, folder: Path) -> None:
        """Write the modules, as each cache wants its step, and the file that the step reads."""
        folder.mkdir(exist_ok=True)
        for name, head in HEADS.items():
            self._write_module(folder / name, head)
        with (folder / "steps.py").open("a") as steps:
            steps.write(self._text(folder, NODE).partition("FOLDER = ")[2].partition("\n")[2])
        (folder / "helper.py").write_text(f"def f():\n    return {self.helper}\n")
        (folder / "data.txt").write_text(self.data)

    def _write_module(self, path: Path, head: tuple[str, str, str, str]) -> None:
        path.write_text(self._text(path.parent, head))

    def _text(self, folder: Path, head: tuple[str, str, str, str]) -> str:
        return STEP.format(
            head=head[0],
            read=head[1],
            give=head[2],
            end=head[3],
            folder=str(folder),
            seconds=SLOW_SECONDS,
            comment=self.comment,
            constant=self.constant,
            body=self.body,
        )


class Trial:
    """One case of one cache: a folder of its own.

    Args:
        peer: The cache.
        folder: An empty folder.
        peers: The peers' environment.
    """

    def __init__(self, peer: str, folder: Path, peers: PeerEnvironment) -> None:
        self._peer = peer
        self._peers = peers
        self.code = folder / "code"
        self.store = folder / "store"
        folder.mkdir(parents=True)

    def run(self, argument: object = "a") -> dict[str, object] | str:
        """Return the step's answer, or why there is none."""
        asked: list[str | Path] = [self.store, self.code, json.dumps(argument)]
        command: list[str | Path]
        if self._peer == ENGINE:
            command = [sys.executable, "-m", "bench.engine_probe", *asked]
        else:
            command = [self._peers.python, HERE / "probe.py", self._peer, *asked]
        out, error = run_program(command, self.store)
        for line in out.splitlines():
            if line.startswith("VALUE "):
                answer: dict[str, object] = json.loads(line.removeprefix("VALUE "))
                return answer
            if line.startswith("ERROR "):
                return line
        return error or "it said nothing"

    @property
    def executions(self) -> int:
        """How often the step was executed."""
        log = self.code / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def stored_files(self) -> Sequence[Path]:
        """Return the files of the store; the engine keeps other things beside its cache."""
        pattern = f"{ENGINE_STORE.name}*" if self._peer == ENGINE else "*"
        return [path for path in self.store.rglob(pattern) if path.is_file()]

    def take_path(self) -> None:
        """Put a file of somebody else's where the store would be."""
        path = self.store / ENGINE_STORE if self._peer == ENGINE else self.store
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not a store")


def _edit(trial: Trial, code: Code) -> str:
    Code().write(trial.code)
    before = trial.run()
    code.write(trial.code)
    after = trial.run()
    if isinstance(before, str) or isinstance(after, str):
        return f"FAILS ({before if isinstance(before, str) else after})"[:60]
    return "ok" if after != before else "STALE"


def _comment(trial: Trial) -> str:
    Code().write(trial.code)
    trial.run()
    Code(comment="b").write(trial.code)
    trial.run()
    return "ok" if trial.executions == 1 else "rerun"


def _arguments(trial: Trial, one: object, other: object, same: bool) -> str:
    Code().write(trial.code)
    before, after = trial.run(one), trial.run(other)
    if same:
        return "ok" if trial.executions == 1 else "rerun"
    return "ok" if before != after else "STALE"


def _failure(trial: Trial) -> str:
    Code().write(trial.code)
    (trial.code / "boom").touch()
    trial.run()
    (trial.code / "boom").unlink()
    return "ok" if isinstance(trial.run(), dict) else "KEPT"


def _broken(trial: Trial, damage: Callable[[Path], object]) -> str:
    Code().write(trial.code)
    trial.run()
    for path in trial.stored_files():
        damage(path)
    answer = trial.run()
    return "ok" if isinstance(answer, dict) else "FAILS"


def _path_is_taken(trial: Trial) -> str:
    Code().write(trial.code)
    trial.take_path()
    return "ok" if isinstance(trial.run(), dict) else "FAILS"


def _twins(trial: Trial) -> str:
    Code().write(trial.code)
    # The store is there before they meet.
    trial.run("first")
    before = trial.executions
    (trial.code / "slow").touch()
    with ThreadPoolExecutor(TWINS) as pool:
        answers = list(pool.map(lambda _: trial.run("same"), range(TWINS)))
    failed = sum(isinstance(answer, str) for answer in answers)
    return str(trial.executions - before) + (f", {failed} fail" if failed else "")


CASES: dict[str, Callable[[Trial], str]] = {
    "own body edited": lambda trial: _edit(trial, Code(body=2)),
    "helper edited": lambda trial: _edit(trial, Code(helper=2)),
    "module constant edited": lambda trial: _edit(trial, Code(constant=2)),
    "file that it reads edited": lambda trial: _edit(trial, Code(data="v2")),
    "comment edited": _comment,
    "'1' and 1": lambda trial: _arguments(trial, "1", 1, same=False),
    "True and 1": lambda trial: _arguments(trial, True, 1, same=False),
    "order of a dictionary": lambda trial: _arguments(
        trial, {"a": 1, "b": 2}, {"b": 2, "a": 1}, same=True
    ),
    "failure, then success": _failure,
    "store overwritten with garbage": lambda trial: _broken(
        trial, lambda path: path.write_bytes(b"\0garbage\xff" * 50)
    ),
    "store cut in half": lambda trial: _broken(
        trial, lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    ),
    "store's path is taken by a file": _path_is_taken,
    f"{TWINS} identical at once: executions": _twins,
}


def compare_behaviour(root: Path, peers: PeerEnvironment, names: Sequence[str] = PEERS) -> None:
    """Print what each cache does in each case.

    Args:
        root: An empty folder.
        peers: The peers' environment.
        names: The caches.
    """
    print(
        "\nBehaviour: ok; STALE, an old answer was served; rerun, needless but safe; "
        "FAILS, the step died of its cache\n"
    )
    print(f"| case | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}")
    for number, (case, run) in enumerate(CASES.items()):
        found = []
        for name in names:
            why = None if name == ENGINE else peers.why_missing(name)
            folder = root / f"{name}-{number}"
            found.append("not installed" if why else run(Trial(name, folder, peers)))
            shutil.rmtree(folder, ignore_errors=True)
        print(f"| {case} | {' | '.join(found)} |", flush=True)
