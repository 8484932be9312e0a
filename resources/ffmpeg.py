"""Which ffmpeg is used, and its identity for cache keys.

The order is fixed: an explicit setting, the binary inside the `imageio-ffmpeg` wheel, PATH. The
wheel comes before PATH so that results do not depend on what a host happens to have. Nothing runs
when this module is imported or an `FfmpegLocator` is made; the identity is kept in a small JSON
file, so that another process asks no binary for it.

Source: specification V1, V3.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reprise.errors import ToolFailed
from resources.memo import file_key, read_memo, write_memo

ASK_SECONDS = 60.0
"""Longest time that the binary may take to tell about itself."""

_MEMO_VERSION = 1
"""Raised when what is asked of a binary changes."""


@dataclass(frozen=True)
class FfmpegBinary:
    """An ffmpeg binary and what is known of it."""

    path: Path
    """Where it is."""
    version: str
    """First line of `-version`, without the copyright note."""
    build_digest: str
    """SHA-256 of its version text, build configuration and list of filters."""
    has_filter_complex_script: bool
    """Has the old `-filter_complex_script`; newer ones (9.0) read `-/filter_complex FILE`."""

    def identity(self) -> Mapping[str, str]:
        """Return what of it belongs into a cache key."""
        return {"ffmpeg": self.version, "ffmpeg_build": self.build_digest}


class FfmpegLocator:
    """Finds ffmpeg on first use and remembers it; safe to share between threads.

    Args:
        explicit: The setting, when there is one.
        memo_path: JSON file that keeps identities; None keeps none.
    """

    def __init__(self, explicit: Path | None, memo_path: Path | None) -> None:
        self._explicit = explicit
        self._memo_path = memo_path
        self._lock = threading.Lock()
        self._found: FfmpegBinary | None = None

    def binary(self) -> FfmpegBinary:
        """Return the binary.

        Raises:
            ToolFailed: There is none, or it does not run.
        """
        with self._lock:
            if self._found is None:
                self._found = find_ffmpeg(self._explicit, self._memo_path)
            return self._found


def find_ffmpeg(explicit: Path | None, memo_path: Path | None) -> FfmpegBinary:
    """Return the ffmpeg to use, with its identity.

    Args:
        explicit: Path or program name from the settings; nothing else is tried when it is given.
        memo_path: JSON file that keeps the identity by path, size and time of change, so that a
            binary is run once in its life; None keeps nothing.

    Raises:
        ToolFailed: There is none, or it does not run; says what to install.

    Source: specification V1.
    """
    path = _resolve(explicit)
    key = f"{_MEMO_VERSION}:{file_key((path,))}"
    known = read_memo(memo_path, key)
    if {"version", "build_digest", "has_filter_complex_script"} <= known.keys():
        return FfmpegBinary(
            path=path,
            version=known["version"],
            build_digest=known["build_digest"],
            has_filter_complex_script=known["has_filter_complex_script"] == "yes",
        )
    binary = _ask(path)
    answer = {
        "version": binary.version,
        "build_digest": binary.build_digest,
        "has_filter_complex_script": "yes" if binary.has_filter_complex_script else "no",
    }
    write_memo(memo_path, key, answer)
    return binary


def _resolve(explicit: Path | None) -> Path:
    if explicit is not None:
        found = shutil.which(str(explicit))
        if found is None:
            message = (
                f"The ffmpeg of the settings, {str(explicit)!r}, is not there or not executable; "
                "correct `REPRISE_FFMPEG`, or remove it to use the packaged one"
            )
            raise ToolFailed(message)
        return Path(found).resolve()
    for candidate in (_wheel_binary(), shutil.which("ffmpeg")):
        if candidate is not None:
            return Path(candidate).resolve()
    message = (
        "No ffmpeg was found: install the package `imageio-ffmpeg` (it carries one), "
        "put `ffmpeg` on the PATH, or name one in `REPRISE_FFMPEG`"
    )
    raise ToolFailed(message)


def _wheel_binary() -> Path | None:
    """Return the binary inside the imageio-ffmpeg wheel without importing it.

    Its own function falls back to environment variables and to PATH, which is not the order of the
    specification.
    """
    spec = importlib.util.find_spec("imageio_ffmpeg")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for path in sorted(Path(folder, "binaries").glob("ffmpeg-*")):
            if os.access(path, os.X_OK):
                return path
    return None


def _ask(path: Path) -> FfmpegBinary:
    version_text = _output(path, "-version")
    version = version_text.partition("\n")[0].partition(" Copyright")[0].strip()
    if not version.startswith("ffmpeg version"):
        message = f"{path.name!r} is not ffmpeg: its `-version` begins with {version[:80]!r}"
        raise ToolFailed(message)
    build = "\n".join((version_text, _output(path, "-buildconf"), _output(path, "-filters")))
    return FfmpegBinary(
        path=path,
        version=version,
        build_digest=hashlib.sha256(build.encode()).hexdigest(),
        has_filter_complex_script="-filter_complex_script" in _output(path, "-h", "long"),
    )


def _output(path: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [path, "-hide_banner", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"{path.name!r} does not run ({error}); install the package `imageio-ffmpeg`"
        raise ToolFailed(message) from error
    if done.returncode != 0:
        tail = done.stderr.decode(errors="replace").strip()[-300:]
        message = f"{path.name!r} failed to answer `{' '.join(arguments)}`: {tail}"
        raise ToolFailed(message)
    return done.stdout.decode(errors="replace")
