"""A small JSON file that remembers what is costly to find out and cheap to check.

It holds an answer by what the answer depends on, such as a file's path, size and time of change. A
file that is broken, missing or cannot be written is no error: the answer is found out again.
"""

import json
import logging
import tempfile
from collections.abc import Iterable
from pathlib import Path

_log = logging.getLogger(__name__)

ENTRIES_MAX = 200
"""Most answers that are kept; the oldest go."""


def file_key(paths: Iterable[Path]) -> str:
    """Return a key that changes when one of these files is replaced."""
    stats = [(path.resolve(), path.stat()) for path in paths]
    return "|".join(f"{path}:{stat.st_size}:{stat.st_mtime_ns}" for path, stat in stats)


def read_memo(memo: Path | None, key: str) -> dict[str, str]:
    """Return what is remembered under a key; empty when nothing is."""
    return {} if memo is None else _entries(memo).get(key, {})


def write_memo(memo: Path | None, key: str, answer: dict[str, str]) -> None:
    """Remember an answer, if the file can be written."""
    if memo is None:
        return
    entries = _entries(memo)
    entries.pop(key, None)
    entries[key] = answer
    kept = dict(list(entries.items())[-ENTRIES_MAX:])
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=memo.parent, prefix=memo.name, suffix=".part", delete=False
        ) as part:
            json.dump(kept, part, indent=1)
        Path(part.name).replace(memo)
    except OSError as error:
        _log.warning("Could not write %s, so it will be found out again: %s", memo, error)


def _entries(memo: Path) -> dict[str, dict[str, str]]:
    try:
        entries = json.loads(memo.read_bytes())
        return {
            str(key): {str(name): str(value) for name, value in answer.items()}
            for key, answer in entries.items()
        }
    except (OSError, ValueError, AttributeError):
        return {}
