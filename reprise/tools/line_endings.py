r"""Line ends of a text: a view in which each is a line feed, and what each really is.

A line ends at `\n` or `\r\n`, at nothing else: a lone carriage return, a form feed, NEL, U+2028 and
what else `str.splitlines` parts are characters like others. View and ends together are the text,
byte for byte: `joined(*parted(text)) == text`.

Source: specification E4.
"""

BOM = "\ufeff"
"""The byte order mark, as a character."""

CRLF = 1
"""A line end that is `\\r\\n` in the text; 0 is `\\n`."""


def parted(text: str) -> tuple[str, bytearray]:
    r"""Return a text with each `\r\n` as `\n`, and for each `\n` of it whether it was `\r\n`."""
    pairs, breaks = text.count("\r\n"), text.count("\n")
    if pairs == breaks or pairs == 0:
        return text.replace("\r\n", "\n"), bytearray([min(pairs, CRLF)]) * breaks
    ends = bytearray(part[-1:] == "\r" for part in text.split("\n"))
    return text.replace("\r\n", "\n"), ends[:-1]


def joined(view: str, ends: bytearray) -> str:
    """Return the text of a view and its line ends."""
    if not is_mixed(ends):
        return view.replace("\n", "\r\n") if CRLF in ends else view
    parts = view.split("\n")
    marks = ["\r\n" if end else "\n" for end in ends]
    return "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))


def is_mixed(ends: bytearray) -> bool:
    """Tell whether a text has line ends of both kinds."""
    return 0 in ends and CRLF in ends


def shown_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends and without its byte order mark.

    A final line end makes no further line; an empty text has none.
    """
    lines = parted(text.removeprefix(BOM))[0].split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def shared_start(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
