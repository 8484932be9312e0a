r"""What changing three lines of a composition of 400 costs and risks: by edits, or written anew.

A scripted model with slips, seeded, works through the real tools: it edits with EditSandboxFile (a
call a place), with ApplySandboxFileEdits (one call), or emits the file again with WriteSandboxFile.
Habits (white space at line ends, plain quotes, line ends) are drawn for each call, slips (a line
left out, an earlier one, other indentation) for each line, at the same rates for all three. An
edit's new text is made from the old text as the model gave it, with slips of its own; now and then
with habits of its own too. The rates are assumptions and no measurement of a model: compare the
ways. When an edit is refused the model copies the error's `text`, or reads the lines again.

Tokens are the project's estimate (`reprise.agents.token_estimate`: a quarter of the bytes) of the
calls' arguments, which are what a model puts out.

    python -m bench.edits [--trials 300]

Source: specification E.
"""

import argparse
import json
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from reprise.agents.token_estimate import text_tokens
from reprise.model.agent import ToolGroup
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.toolbox import Toolbox
from resources.memory_sandbox import MemorySandbox

PATH = "src/Composition.tsx"
LINES = 400
CHANGED_LINES = 3
CALLS_MAX = 12
APPLIED = "right at once"
RETRIED = "refused, right on the next call"
LATER = "refused, right later"
GAVE_UP = "not done, told so"
CORRUPTED = "silently corrupted"
OUTCOMES = (APPLIED, RETRIED, LATER, GAVE_UP, CORRUPTED)


@dataclass(frozen=True)
class Slips:
    """How often a model errs, of all its calls or of all lines that it emits."""

    trailing: float = 0.3
    """Of calls: white space at line ends is left out."""
    quotes: float = 0.2
    """Of calls: typographic quotes become plain ones."""
    apart: float = 0.1
    """Of edits: the new text has habits drawn apart from the old text's."""
    stale: float = 0.001
    """Of lines: a line is given as it was at an earlier time."""
    dropped: float = 0.0005
    """Of lines: a line is left out."""
    indent: float = 0.0005
    """Of lines: a line's tabs become blanks."""
    crlf: float = 0.8
    """Of texts: a CRLF file's is given with line feeds alone."""
    numbers: float = 0.03
    """Of edits: the old text has the line numbers of a ranged read in it."""

    @property
    def habits(self) -> tuple[float, float]:
        """How often each habit is there."""
        return self.trailing, self.quotes


RATES = {
    "careful": Slips(0.05, 0.03, 0.05, 0.0001, 0.0001, 0.0001, 0.8, 0.005),
    "middling": Slips(),
    "sloppy": Slips(0.6, 0.5, 0.2, 0.005, 0.003, 0.005, 0.8, 0.1),
}


def main() -> int:
    """Run the bench; return 0 when edits cost less and corrupt less at each rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300, help="files for each row")
    trials: int = parser.parse_args().trials
    is_reached = True
    for rate, slips in RATES.items():
        print(f"The {rate} model, {trials} files, {CHANGED_LINES} of {LINES} lines changed")
        print()
        print(*("| way | tokens put out | calls", *OUTCOMES, "of these, line ends |"), sep=" | ")
        print("| --- |" + " ---: |" * (len(OUTCOMES) + 3))
        rows = {way: _measured(way, slips, trials) for way in WAYS}
        for way, row in rows.items():
            print(row.line(way))
        print()
        whole = rows["WriteSandboxFile"]
        for way in ("EditSandboxFile", "ApplySandboxFileEdits"):
            ratio = whole.tokens / rows[way].tokens
            fewer = rows[way].outcomes[CORRUPTED] < whole.outcomes[CORRUPTED]
            is_reached = is_reached and fewer and ratio > 1 and rows[way].inexact == 0
            print(
                f"{way}: {ratio:.1f} × fewer tokens than writing anew, corrupts "
                f"{rows[way].share(CORRUPTED)} against {whole.share(CORRUPTED)}"
            )
        print()
    verdict = "reached" if is_reached else "NOT reached"
    print(
        "edits take fewer tokens, corrupt fewer files and change nothing beside, at each rate: "
        f"{verdict}"
    )
    return 0 if is_reached else 1


# ------------------------------------------------------------------------------------- the task


@dataclass(frozen=True)
class Task:
    """A file and what is to become of it."""

    rows: Sequence[str]
    """The lines, without ends."""
    earlier: Sequence[str]
    """The same at an earlier time."""
    end: str
    """The line end."""
    targets: Sequence[int]
    """Indexes of the lines to be changed, rising."""

    def changed(self, row: str) -> str:
        """Return a target's line as it is to be: its number is another."""
        head, _, tail = row.rpartition("// ")
        return f"{head}// now {tail}"

    @property
    def wanted(self) -> list[str]:
        """The lines as they are to be."""
        return [
            self.changed(row) if index in self.targets else row
            for index, row in enumerate(self.rows)
        ]

    def data(self, rows: Sequence[str]) -> bytes:
        """Return a file's bytes."""
        return "".join(f"{row}{self.end}" for row in rows).encode()


def _task(rng: random.Random) -> Task:
    rows = [
        "import {AbsoluteFill, Sequence, interpolate, useCurrentFrame} from 'remotion';",
        "",
        "export const Composition = () => {",
        "\tconst frame = useCurrentFrame();",
    ]
    while len(rows) < LINES - 2:
        index = len(rows)
        kind = rng.randrange(8)
        if kind == 0:
            rows += ["\treturn (" if index > LINES - 8 else "\t// Scene", "\t"]
        elif kind == 1:
            rows.append(f"\t<p style={{style{index}}}>“Scene {index}” – it’s shown</p>")
        elif kind == 2:
            rows.append(f"\tconst label{index} = 'part {index}';" + " " * rng.randrange(3))
        else:
            values = f"[{rng.randrange(99)}, {rng.randrange(100, 300)}]"
            rows.append(f"\tconst v{index} = interpolate(frame, {values}, [0, 1]); // row {index}")
    rows = [*rows[: LINES - 2], "\treturn <AbsoluteFill />;", "};"]
    able = [index for index, row in enumerate(rows) if "// row" in row]
    earlier = [row.replace("interpolate(", "spring(").replace("part", "piece") for row in rows]
    # Apart, so that no place has another among its lines.
    targets = rng.sample(able, CHANGED_LINES)
    while any(other - one < 4 for one, other in pairwise(sorted(targets))):
        targets = rng.sample(able, CHANGED_LINES)
    targets.sort()
    return Task(rows, earlier, rng.choice(["\n", "\r\n"]), targets)


# ------------------------------------------------------------------------------------ the model


@dataclass(frozen=True)
class Habits:
    """What a model does in the whole of a text."""

    is_trimmed: bool
    is_plain: bool

    def applied(self, row: str) -> str:
        """Return a line with the habits."""
        row = row.rstrip(" \t") if self.is_trimmed else row
        if self.is_plain:
            row = row.replace("“", '"').replace("”", '"').replace("’", "'")
        return row


@dataclass
class Run:
    """One attempt at a task."""

    task: Task
    rng: random.Random
    slips: Slips
    files: MemorySandbox = field(init=False)
    toolbox: Toolbox = field(init=False)
    tokens: int = 0
    calls: int = 0
    is_refused: bool = False
    is_exact: bool = True
    """False when an edit did otherwise than replace the old text by the new one."""

    def __post_init__(self) -> None:
        """Give the file and let the model read it, which puts out next to nothing."""
        self.files = MemorySandbox({PATH: self.task.data(self.task.rows)})
        groups = (ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING)
        self.toolbox = Toolbox(groups, ToolAccess(sandbox=SandboxDoor(self.files)))
        self.toolbox.run("ReadSandboxFile", json.dumps({"path": PATH}))

    def call(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """Call a tool and count what the call puts out."""
        text = json.dumps({"path": PATH, **arguments}, ensure_ascii=False)
        self.tokens += text_tokens(name) + text_tokens(text)
        self.calls += 1
        before = self.files.read(PATH)
        answer: dict[str, object] = json.loads(self.toolbox.run(name, text))
        self.is_refused = self.is_refused or answer["ok"] is False
        if name == "WriteSandboxFile":
            return answer
        given = arguments.get("edits", [arguments]) if answer["ok"] is True else []
        expected = before.decode().replace("\r\n", "\n")
        for edit in given if isinstance(given, list) else []:
            if "oldText" in edit:
                old, new = (edit[key].replace("\r\n", "\n") for key in ("oldText", "newText"))
                expected = expected.replace(old, new, 1)
        after = self.task.end.join(expected.split("\n")).encode()
        self.is_exact = self.is_exact and self.files.read(PATH) == after
        return answer

    def habits(self) -> Habits:
        """Return what the model does in the whole of a text."""
        return Habits(*(self.rng.random() < rate for rate in self.slips.habits))

    def emitted(
        self, rows: Sequence[str], habits: Habits, earlier: Sequence[str] | None = None
    ) -> list[str]:
        """Return lines as the model gives them."""
        slips, chance = self.slips, self.rng.random
        given = []
        for index, row in enumerate(rows):
            if chance() < slips.dropped:
                continue
            if earlier is not None and chance() < slips.stale:
                row = earlier[index]
            if chance() < slips.indent:
                row = row.replace("\t", "    ")
            given.append(habits.applied(row))
        return given

    def end(self) -> str:
        """Return the line end that the model gives."""
        return "\n" if self.rng.random() < self.slips.crlf else self.task.end

    def hunk(self, rows: Sequence[str], earlier: Sequence[str] | None) -> dict[str, object]:
        """Return an edit of the target among these lines of the file."""
        habits = self.habits()
        old = self.emitted(rows, habits, earlier)
        # What is new is written from what was just given as old, or once more from what was read.
        is_apart = self.rng.random() < self.slips.apart
        source, own = (rows, self.habits()) if is_apart else (old, habits)
        new = self.emitted(
            [self.task.changed(row) if self.is_target(row) else row for row in source], own
        )
        end = self.end()
        if self.rng.random() < self.slips.numbers:
            old = [f"{index}| {row}" for index, row in enumerate(old, start=7)]
        return {"oldText": end.join(old), "newText": end.join(new)}

    def is_target(self, row: str) -> bool:
        """Tell whether a line is one of those to be changed."""
        return any(
            row.rpartition("// ")[2].strip() == self.task.rows[index].rpartition("// ")[2]
            for index in self.task.targets
            if "// row" in row
        )

    def around(self, target: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return a target's line with one before and one after, now and at an earlier time."""
        part = slice(target - 1, target + 2)
        return self.task.rows[part], self.task.earlier[part]

    def again(self, answer: dict[str, object], target: int) -> dict[str, object]:
        """Return the edit anew after a refusal: from the error's text, else from a reading."""
        text = answer.get("text")
        rows = text.split("\n") if isinstance(text, str) else []
        if sum(map(self.is_target, rows)) != 1:
            self.call("ReadSandboxFileLines", {"startLine": target, "lineCount": 3})
            rows = list(self.around(target)[0])
        return self.hunk(rows, None)

    def outcome(self, *, is_done: bool, calls_least: int) -> str:
        """Return how it ended."""
        data = self.files.read(PATH)
        if data != self.task.data(self.task.wanted):
            is_partly = is_done or data != self.task.data(self.task.rows)
            return CORRUPTED if is_partly else GAVE_UP
        if not self.is_refused:
            return APPLIED
        return RETRIED if self.calls == calls_least + 1 else LATER


def _edit(run: Run) -> str:
    """Change each place by a call of its own."""
    is_done = True
    for target in run.task.targets:
        edit = run.hunk(*run.around(target))
        answer = run.call("EditSandboxFile", edit)
        while answer["ok"] is False and run.calls < CALLS_MAX:
            answer = run.call("EditSandboxFile", run.again(answer, target))
        is_done = is_done and answer["ok"] is True
    return run.outcome(is_done=is_done, calls_least=CHANGED_LINES)


def _apply(run: Run) -> str:
    """Change all places by one call."""
    targets = run.task.targets
    edits = [run.hunk(*run.around(target)) for target in targets]
    answer = run.call("ApplySandboxFileEdits", {"edits": edits})
    while answer["ok"] is False and run.calls < CALLS_MAX:
        failed = answer.get("edit")
        index = failed if isinstance(failed, int) else 0
        edits[index] = run.again(answer, targets[index])
        answer = run.call("ApplySandboxFileEdits", {"edits": edits})
    return run.outcome(is_done=answer["ok"] is True, calls_least=1)


def _write(run: Run) -> str:
    """Write the file anew."""
    task = run.task
    earlier = [
        task.changed(row) if index in task.targets else row
        for index, row in enumerate(task.earlier)
    ]
    rows, end = run.emitted(task.wanted, run.habits(), earlier), run.end()
    answer = run.call("WriteSandboxFile", {"content": end.join(rows) + end})
    return run.outcome(is_done=answer["ok"] is True, calls_least=1)


WAYS: dict[str, Callable[[Run], str]] = {
    "EditSandboxFile": _edit,
    "ApplySandboxFileEdits": _apply,
    "WriteSandboxFile": _write,
}


# ---------------------------------------------------------------------------------- the figures


@dataclass(frozen=True)
class Row:
    """What one way gave."""

    tokens: float
    calls: float
    outcomes: Counter[str]
    other_ends: int
    """Corrupted files with other line ends than the file had."""
    inexact: int
    """Files in which an edit did otherwise than replace the old text by the new one."""

    def share(self, outcome: str) -> str:
        """Return an outcome's share."""
        return f"{self.outcomes[outcome] / self.outcomes.total():.1%}"

    def line(self, way: str) -> str:
        """Return the table's row."""
        shares = " | ".join(self.share(outcome) for outcome in OUTCOMES)
        ends = f"{self.other_ends / self.outcomes.total():.1%}"
        return f"| {way} | {self.tokens:,.0f} | {self.calls:.1f} | {shares} | {ends} |"


def _measured(way: str, slips: Slips, trials: int) -> Row:
    outcomes: Counter[str] = Counter()
    tokens, calls = [], []
    other_ends = inexact = 0
    for trial in range(trials):
        # The same files for each way; the slips are drawn apart.
        task = _task(random.Random(trial))
        run = Run(task, random.Random(f"{way} {trial}"), slips)
        outcome = WAYS[way](run)
        outcomes[outcome] += 1
        inexact += not run.is_exact
        tokens.append(run.tokens)
        calls.append(run.calls)
        if outcome == CORRUPTED:
            other_ends += (b"\r\n" in run.files.read(PATH)) != (task.end == "\r\n")
    return Row(statistics.mean(tokens), statistics.mean(calls), outcomes, other_ends, inexact)


if __name__ == "__main__":
    sys.exit(main())
