"""What an object's key may be, the same for every object store.

Source: specification W9; `ObjectStore` in reprise/ports.py.
"""

from reprise.errors import BadInput

KEY_BYTES_MAX = 1024
"""S3's limit."""
SEGMENT_BYTES_MAX = 255
"""The limit of a file name on the usual file systems."""
PART_PREFIX = ".part-"
"""Begins the name of a file that is being written; no key may look like one."""


def checked_key(key: str) -> str:
    """Return the key.

    Raises:
        BadInput: It is empty, absolute, too long, holds a control character, or has an empty
            segment, `.`, `..`, or one that begins like an unfinished file.
    """
    problem = None if key else "it is empty"
    problem = problem or _text_problem(key)
    problem = problem or next(filter(None, map(_segment_problem, key.split("/"))), None)
    if problem:
        message = f"object key {key!r}: {problem}; use a relative path with forward slashes"
        raise BadInput(message)
    return key


def checked_prefix(prefix: str) -> str:
    """Return the prefix of keys; it may be empty, and may end within a segment.

    Raises:
        BadInput: No key that is allowed begins so.
    """
    whole = prefix.rpartition("/")[0]
    if whole or prefix.startswith("/"):
        checked_key(whole)
    problem = _text_problem(prefix)
    if problem:
        message = f"object prefix {prefix!r}: {problem}; use a relative path with forward slashes"
        raise BadInput(message)
    return prefix


def _text_problem(text: str) -> str | None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "it holds a lone surrogate"
    if size > KEY_BYTES_MAX:
        return f"it has {size} bytes, more than {KEY_BYTES_MAX}"
    # No file name holds NUL, and S3 lists keys in XML, which holds no control character.
    if any(character < " " or character == "\x7f" for character in text):
        return "it holds a control character"
    return None


def _segment_problem(segment: str) -> str | None:
    if segment == "":
        return "it is absolute or has an empty segment"
    if segment in (".", ".."):
        return f"it has the segment {segment!r}"
    if segment.startswith(PART_PREFIX):
        return f"a segment begins with {PART_PREFIX!r}, which marks unfinished files"
    if len(segment.encode()) > SEGMENT_BYTES_MAX:
        return f"a segment has more than {SEGMENT_BYTES_MAX} bytes"
    return None
