"""What a render is asked for, its bounds, and what is heard of it while it works.

Source: specification V4, V14, E3.
"""

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from reprise.errors import BadInput, ToolFailed
from reprise.model.sandbox import CompositionRequest
from reprise.ports import Progress
from resources.ffmpeg_output import REPORT_SECONDS

PROPS_CHARS_MAX = 50_000
TREE_FILES_MAX = 5_000
TREE_BYTES_MAX = 256 * 2**20
ERROR_CHARS_MAX = 2_000
ERROR_LINES_MAX = 14
ENTRIES = tuple(f"src/index.{ending}" for ending in ("ts", "tsx", "js", "jsx", "mjs"))
"""Where a project may register its compositions."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OWN_SERVER = re.compile(r"http://(127\.0\.0\.1|localhost):\d+/?")
_NOISE = re.compile(r"\s+at |undefined$|Module build failed \(from |Error: Transform failed with ")
_NTSC = Fraction(1001, 1000)


@dataclass(frozen=True)
class RemotionLimits:
    """Bounds of one call."""

    seconds: float = 600.0
    """Longest time until the frames are drawn, by the clock."""
    frame_seconds: float = 30.0
    """Longest that one frame may wait (`delayRender`); Remotion wants at least 7."""
    frames: int = 9_000
    """Most frames."""
    film_seconds: float = 300.0
    """Longest film."""
    pixels: int = 3840 * 2160
    """Largest picture."""
    rate: float = 120.0
    """Most frames a second."""
    heap_mebibytes: int = 1024
    """Memory of JavaScript, of Node and of each page."""
    memory_bytes: int = 4 * 2**30
    """Memory of all processes together."""
    disk_bytes: int = 8 * 2**30
    """What frames and the browser's files may take."""

    def as_json(self) -> dict[str, float]:
        """Return what the script checks of a composition."""
        return {
            "pixels": self.pixels,
            "fps": self.rate,
            "frames": self.frames,
            "seconds": self.film_seconds,
        }


def check_request(request: CompositionRequest) -> None:
    """Check what can be told without the composition.

    Raises:
        BadInput: It cannot be met.
    """
    if len(json.dumps(dict(request.input_props))) > PROPS_CHARS_MAX:
        message = (
            f"The input props are longer than {PROPS_CHARS_MAX} characters of JSON: "
            "put what they hold into a file of the sandbox"
        )
        raise BadInput(message)
    first, last = request.start_frame or 0, request.end_frame
    if last is not None and first > last:
        message = f"The first frame, {first}, comes after the last one, {last}"
        raise BadInput(message)


def film_name(request: CompositionRequest) -> str:
    """Return the name of a film's file; a part of a composition is told apart from the whole."""
    name = re.sub(r"[^\w-]+", "-", request.composition_id)[:80] or "composition"
    if request.start_frame is None and request.end_frame is None:
        return f"{name}.mp4"
    first, last = request.start_frame or 0, request.end_frame
    return f"{name}-frames-{first}-{'end' if last is None else last}.mp4"


def entry_file(tree: Path) -> Path:
    """Return the file that registers a project's compositions.

    Raises:
        ToolFailed: There is none, or the project holds what is not to be read.
    """
    count = size = 0
    for place, folders, names in os.walk(tree):
        folder = Path(place)
        if "node_modules" in folders:
            message = "`node_modules` is not read from the sandbox; the template's packages are"
            raise ToolFailed(message)
        for name in (*folders, *names):
            path = folder / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                message = (
                    f"{path.relative_to(tree).as_posix()!r} is neither a file nor a folder: "
                    "replace the link by what it leads to"
                )
                raise ToolFailed(message)
            count += 1
            size += path.lstat().st_size
    if count > TREE_FILES_MAX or size > TREE_BYTES_MAX:
        message = (
            f"The sandbox has {count} files and folders with {size} bytes; "
            f"{TREE_FILES_MAX} and {TREE_BYTES_MAX} can be rendered"
        )
        raise ToolFailed(message)
    found = next((tree / entry for entry in ENTRIES if (tree / entry).is_file()), None)
    if found is None:
        message = "There is no `src/index.ts`: make one that calls `registerRoot(Root)`"
        raise ToolFailed(message)
    return found


@dataclass
class RenderTalk:
    """Listens to the script, tells progress, and knows in the end what there is or went wrong."""

    progress: Progress
    spans: Mapping[str, tuple[float, float]]
    """Part of the work → share done before and after it."""
    places: Mapping[Path, str]
    """Folders of this machine → what they are called in messages."""
    finished: bool = False
    """Whether all frames are drawn."""
    width: int = 0
    """Pixels."""
    height: int = 0
    """Pixels."""
    frames: int = 0
    """How many are to be drawn."""
    rate: Fraction = Fraction(0)
    """Frames a second."""
    _part: str = "bundling"
    _done: int = 0
    _failure: dict[str, object] = field(default_factory=dict)
    _reported: float = 0.0

    def doing(self) -> str:
        """Return what is being done."""
        return {
            "bundling": "bundling the project",
            "opening": "opening the composition",
            "frames": f"drawing frame {min(self._done + 1, self.frames)} of {self.frames}",
        }[self._part]

    def hear(self, line: bytes) -> None:
        """Take a line that the script said."""
        try:
            told = _event(line)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return  # Whatever says so, it is not the script.
        event = told.get("event")
        if event == "stage":
            self._part = "opening" if told.get("name") == "opening" else "bundling"
            self._report(0.0, now=True)
        elif event == "composition":
            self.width, self.height = told["width"], told["height"]
            self.frames, self.rate = told["frames"], told["rate"]
            self._part = "frames"
        elif event == "frames":
            self._done = told["done"]
            self._report(self._done / max(self.frames, 1), now=self._done == self.frames)
        elif event == "done":
            self.finished = True
        elif event == "failed":
            self._failure = told

    def raise_failure(self) -> None:
        """Raise what the script told to have gone wrong, if something did.

        Raises:
            BadInput: The request cannot be met.
            ToolFailed: The project does not build or render.
        """
        if not self._failure:
            return
        kind = str(self._failure.get("kind"))
        text = self.relative(str(self._failure.get("message", "")))
        if kind == "unknown":
            names = self.relative(str(self._failure.get("names", ""))) or "none"
            message = f"There is no such composition; there are: {names}"
            raise BadInput(message)
        if kind in {"range", "size"}:
            message = f"The composition cannot be rendered so: {text}"
            raise BadInput(message)
        place = self.relative(str(self._failure.get("place", "")))
        where = f" (at {place})" if place else ""
        what = {
            "build": "The project does not build",
            "open": "The composition does not open",
            "install": "Remotion has to be installed anew",
            "render": f"Frame {self._failure.get('frame')} does not render",
        }.get(kind, f"It failed while {self.doing()}")
        message = f"{what}{where}: {text}"
        raise ToolFailed(message)

    def relative(self, text: str) -> str:
        """Return the first lines of a message, without this machine's folders."""
        text = _OWN_SERVER.sub("", _COLOUR.sub("", text))
        for place, name in sorted(self.places.items(), key=lambda item: -len(str(item[0]))):
            text = text.replace(f"{place}/", name).replace(str(place), name or ".")
        lines = [line for line in text.splitlines() if line.strip()]
        lines = [line for line in lines if not _NOISE.match(line)]
        return "\n".join(lines[:ERROR_LINES_MAX])[:ERROR_CHARS_MAX]

    def _report(self, share: float, *, now: bool) -> None:
        if not now and time.monotonic() - self._reported < REPORT_SECONDS:
            return
        self._reported = time.monotonic()
        before, after = self.spans[self._part]
        self.progress(self.doing(), before + (after - before) * share)


def _event(line: bytes) -> dict[str, Any]:
    """Return what a line of the script tells.

    Raises:
        ValueError, KeyError, TypeError, OverflowError, RecursionError: The script wrote no such
            line.
    """
    told: dict[str, Any] = {**json.loads(line)}
    if told.get("event") == "composition":
        told |= {name: int(told[name]) for name in ("width", "height", "frames")}
        told["rate"] = _rate(float(told["fps"]))
    elif told.get("event") == "frames":
        told["done"] = int(told["done"])
    return told


def _rate(fps: float) -> Fraction:
    """Return a rate as the fraction that it stands for: 29.97 is 30000/1001.

    Raises:
        ValueError, OverflowError: It is no rate.
    """
    if fps <= 0:
        message = f"{fps} frames a second"
        raise ValueError(message)
    for whole in (24, 30, 60, 120):
        if abs(fps - whole / _NTSC) < 0.005:
            return Fraction(whole) / _NTSC
    return Fraction(fps).limit_denominator(1000)
