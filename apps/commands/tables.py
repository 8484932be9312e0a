"""Plain tables for a terminal, readable without colour."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    """Return rows under heads; numbers are set to the right."""
    cells = [list(heads), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    right = [all(_is_number(row[i]) for row in cells[1:]) for i in range(len(heads))]
    lines = []
    for place, row in enumerate(cells):
        parts = [
            cell.rjust(widths[i]) if right[i] else cell.ljust(widths[i])
            for i, cell in enumerate(row)
        ]
        lines.append("  ".join(parts).rstrip())
        if place == 0:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)


def one_line(text: str) -> str:
    """Return text on one line, safe to show: white space folded, control characters escaped."""
    return printable(" ".join(text.split()))


def printable(name: str) -> str:
    """Return a name as it is, except that what would move the cursor is written as an escape."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _is_number(cell: str) -> bool:
    return bool(cell) and (cell[0].isdigit() or cell in {"-", ""})


def size_text(size_bytes: int) -> str:
    """Return a size for people."""
    size = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
