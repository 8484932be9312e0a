"""Lines of a sandbox file as a reading by lines shows them: numbered, long ones cut.

Source: specification E4, E11. Tests: tests/unit/tools/test_sandbox_browse.py.
"""

import itertools
import re
from collections.abc import Sequence

from reprise.tools.edit_diff import cut_at

LINE_CHARS_MAX = 1_000
"""A longer line is cut in a reading by lines."""

CUT_MARK = re.compile(r"\[cut: [0-9]+ more characters\]")
"""What stands where a line was cut; the file does not hold it."""

_NUMBER = re.compile(r"^([0-9]{1,9})\|(?: |$)", re.MULTILINE)


def line_count(data: bytes) -> int:
    """Return how many lines a file has; an empty one has none."""
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def numbered(lines: Sequence[str], first: int) -> list[str]:
    """Return lines with their numbers, `12| text`, long ones cut.

    Args:
        lines: The lines.
        first: Number of the first of them.
    """
    return [f"{at}| {_shown(line)}" for at, line in enumerate(lines, first)]


def numbered_pairs(text: str) -> int:
    """Return how often two lines that follow each other begin with numbers that do, `12| `."""
    found = [(match.start(), int(match[1])) for match in _NUMBER.finditer(text)]
    return sum(
        number == before + 1 and text.count("\n", start, at) == 1
        for (start, before), (at, number) in itertools.pairwise(found)
    )


def _shown(line: str) -> str:
    if len(line) <= LINE_CHARS_MAX:
        return line
    at = cut_at(line, LINE_CHARS_MAX)
    return f"{line[:at]}[cut: {len(line) - at} more characters]"
