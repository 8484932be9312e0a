"""A reader of the documentation, who types every block of a page in its order.

    with Reader(tmp_path, warm) as reader:
        reader.follow(ROOT / "docs/guide/first-film.md")

The reader has a folder that looks like a clone, a home, and footage and a brief of their own. A
page's `bash` blocks run in one real bash that stops at the first failure; `reprise` is a process of
its own each time, from the warm start.

What the pages mark, in a comment right above a block:

    <!-- file: workflows/opening.yaml -->      the block is that file
    <!-- not run by the test: … -->            the block is left out, for this reason
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.acceptance.command_line import ROOT
from tests.acceptance.warm_start import WarmStart
from tests.media_files import scenes

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file|not run by the test): (?P<word>.+?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
PLAN = re.compile(r"^(?:\S*/)?reprise plan .*$", re.MULTILINE)
PAGE_SECONDS_MAX = 240.0
MESSAGE_BYTES_MAX = 1 << 20

BRIEF = """# Holiday by the sea

Audience: friends who could not come

Goal: make them book the next one
"""

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.environ["DOCS_SOCKET"])
    asked = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}}
    server.sendall(json.dumps(asked).encode())
    server.shutdown(socket.SHUT_WR)
    answer = json.loads(server.makefile("rb").read())
sys.stdout.write(answer["out"])
sys.stderr.write(answer["err"])
sys.exit(answer["code"])
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    file: str | None
    """The file that it is, for a reader to make."""
    left_out: str | None
    """Why the tests do not run it."""
    line: int
    """Line of its first line."""


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text("utf-8")
    for found in BLOCK.finditer(text):
        mark, word = found["mark"], found["word"]
        yield Block(
            language=found["language"],
            text=found["text"],
            file=word if mark == "file" else None,
            left_out=word if mark and mark != "file" else None,
            line=text.count("\n", 0, found.start("text")) + 1,
        )


class Reader:
    """Follows pages in a folder of their own.

    Args:
        root: An empty folder.
        warm: Starts commands.
    """

    def __init__(self, root: Path, warm: WarmStart) -> None:
        self.clone = root / "clone"
        self.user = root / "user"
        self._warm = warm
        self._socket_folder = tempfile.TemporaryDirectory(prefix="docs-")
        address = Path(self._socket_folder.name) / "s"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(address))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("REPRISE_", "DAGSTER_"))},
            "HOME": str(self.user),
            "DOCS_SOCKET": str(address),
        }
        self._make_clone()
        self._make_footage()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(30.0)
        self._socket_folder.cleanup()

    def follow(self, page: Path, replace: dict[str, str] | None = None) -> str:
        """Do what a page says; return what was printed.

        Args:
            page: The page.
            replace: Texts of the page that stand for something else here, such as an address.
        """
        script = ["set -euo pipefail"]
        for block in blocks(page):
            text = block.text
            for old, new in (replace or {}).items():
                text = text.replace(old, new)
            if block.file is not None:
                path = self.clone / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif block.language == "bash" and block.left_out is None:
                # `reprise plan` says with 3 that a step would run, which is no failure.
                typed = PLAN.sub(r"{ \g<0>; } || [ $? -eq 3 ]", text)
                where = shlex.quote(f"{page.name}:{block.line}")
                script += [f"echo == {where}", f"echo == {where} >&2", typed]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self.clone,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PAGE_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{page.name}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def _make_clone(self) -> None:
        programs = self.clone / ".venv" / "bin"
        programs.mkdir(parents=True)
        (programs / "reprise").write_text(CLIENT.format(python=sys.executable))
        (programs / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        for program in programs.iterdir():
            program.chmod(0o755)
        shutil.copytree(ROOT / "workflows", self.clone / "workflows")

    def _make_footage(self) -> None:
        footage = self.user / "footage"
        footage.mkdir(parents=True)
        # Without sound, as the speech model would take most of the time; other tests hear.
        pictures = [("testsrc2", 4.0), ("mandelbrot", 4.0), ("testsrc", 4.0), ("yuvtestsrc", 4.0)]
        scenes(footage / "beach.mp4", pictures)
        (self.user / "brief.md").write_text(BRIEF)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return  # The reader has finished.
            with connection:
                asked = json.loads(connection.makefile("rb").read(MESSAGE_BYTES_MAX))
                command = self._warm.start(
                    asked["arguments"], asked["environment"], Path(asked["folder"])
                )
                code = None
                while code is None:
                    code = command.look()
                answer = {"code": code, "out": command.out, "err": command.err}
                connection.sendall(json.dumps(answer).encode())
