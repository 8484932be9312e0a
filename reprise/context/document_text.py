"""A document's text and a transcript as passages: the parts that a search finds.

A passage of a document is a few lines of it, of a subtitle file one cue with its times, of a
transcript one sentence.

Source: specification W8.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from reprise.model.heard import HeardTranscript
from reprise.model.project import MediaKind, ProjectFile
from reprise.model.search import Passage

DOCUMENT_BYTES_MAX = 16 * 2**20
"""Larger documents are neither indexed nor read by tools."""

PASSAGE_CHARS_MAX = 1_000
"""A passage ends before it is longer than this; a longer line is several passages."""

PASSAGES_MAX = 20_000
"""Most passages of one file; what comes after them is not found."""

CUE_ENDINGS = (".srt", ".vtt")
"""Documents whose lines have times."""

_NO_READER = ("application/pdf", "application/msword", "application/vnd.", "application/rtf")
"""Beginnings of the media types that hold text which nothing here reads."""

_TIMING = re.compile(
    r"^\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s*-->"
    r"\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
)
_TAG = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")


def why_unread(file: ProjectFile) -> str | None:
    """Return why nothing here reads the text that a file holds, for people and models.

    None for a document that is read, and for what holds no text: footage, pictures, other data.
    """
    if file.media_kind is MediaKind.DOCUMENT and file.size_bytes > DOCUMENT_BYTES_MAX:
        return f"it is larger than {DOCUMENT_BYTES_MAX // 2**20} MiB; add it in parts"
    if file.media_kind is MediaKind.OTHER and file.media_type.startswith(_NO_READER):
        return f"nothing here reads {file.media_type}; add its text as .md or .txt"
    return None


def document_text(data: bytes) -> str:
    """Return a document's bytes as text: UTF-8, or UTF-16 with its mark; what is neither is marked.

    Characters that no database and no model takes (NUL) are blanks.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return data.decode(encoding, errors="replace").replace("\0", " ")


def document_passages(name: str, text: str) -> tuple[Passage, ...]:
    """Return a document's passages, in order, at most `PASSAGES_MAX`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    cues = list(_cues(lines)) if name.lower().endswith(CUE_ENDINGS) else []
    return _first(cues or _blocks(lines))


def transcript_passages(transcript: HeardTranscript) -> tuple[Passage, ...]:
    """Return a passage for each sentence that was spoken."""
    return _first(
        Passage(
            text=sentence.text,
            start_seconds=sentence.start_seconds,
            end_seconds=sentence.end_seconds,
        )
        for sentence in transcript.sentences
    )


def _first(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    return tuple(islice(passages, PASSAGES_MAX))


def _blocks(lines: Sequence[str]) -> Iterator[Passage]:
    """Yield lines in blocks: a block ends at a blank line, or before it would be too long."""
    block: list[str] = []
    size = first = 0
    for number, line in enumerate(lines, start=1):
        if block and (not line.strip() or size + len(line) > PASSAGE_CHARS_MAX):
            yield Passage(text="\n".join(block), start_line=first, end_line=number - 1)
            block, size = [], 0
        if len(line) > PASSAGE_CHARS_MAX:
            for at in range(0, len(line), PASSAGE_CHARS_MAX):
                part = line[at : at + PASSAGE_CHARS_MAX]
                yield Passage(text=part, start_line=number, end_line=number)
        elif line.strip():
            first = first if block else number
            block.append(line)
            size += len(line) + 1
    if block:
        yield Passage(text="\n".join(block), start_line=first, end_line=first + len(block) - 1)


def _cues(lines: Sequence[str]) -> Iterator[Passage]:
    """Yield the cues of a SubRip or WebVTT text; settings, notes and tags are left out."""
    at = 0
    while at < len(lines):
        match = _TIMING.match(lines[at])
        at += 1
        if match is None:
            continue
        first = at
        while at < len(lines) and lines[at].strip() and not _TIMING.match(lines[at]):
            at += 1
        text = _TAG.sub("", "\n".join(lines[first:at])).strip()
        if text:
            start, end = _seconds(match.groups()[:4]), _seconds(match.groups()[4:])
            yield Passage(
                text=text[:PASSAGE_CHARS_MAX],
                start_line=first + 1,
                end_line=at,
                start_seconds=start,
                end_seconds=max(start, end),
            )


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = parts
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return whole + int((fraction or "0").ljust(3, "0")) / 1000
