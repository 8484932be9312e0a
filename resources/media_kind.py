"""What a file is, by its first bytes, else by its name.

Source: specification W7, V15.
"""

import codecs
import mimetypes
from pathlib import Path

from reprise.model.project import MediaKind

HEAD_BYTES = 4096

_SIGNATURES: tuple[tuple[int, bytes, MediaKind, str], ...] = (
    (4, b"ftyp", MediaKind.VIDEO, "video/mp4"),
    (4, b"moov", MediaKind.VIDEO, "video/quicktime"),
    (0, b"\x1aE\xdf\xa3", MediaKind.VIDEO, "video/x-matroska"),
    (8, b"AVI ", MediaKind.VIDEO, "video/x-msvideo"),
    (8, b"WAVE", MediaKind.AUDIO, "audio/wav"),
    (0, b"fLaC", MediaKind.AUDIO, "audio/flac"),
    (0, b"OggS", MediaKind.AUDIO, "audio/ogg"),
    (0, b"ID3", MediaKind.AUDIO, "audio/mpeg"),
    (0, b"\x89PNG\r\n\x1a\n", MediaKind.IMAGE, "image/png"),
    (0, b"\xff\xd8\xff", MediaKind.IMAGE, "image/jpeg"),
    (0, b"GIF8", MediaKind.IMAGE, "image/gif"),
    (8, b"WEBP", MediaKind.IMAGE, "image/webp"),
    (0, b"%PDF-", MediaKind.OTHER, "application/pdf"),
)
"""Offset, bytes, kind, media type."""

_AUDIO_ONLY = (".m4a", ".m4b", ".oga", ".mka", ".weba")
"""Names of containers that look like video by their first bytes."""

_VIDEO_NAMES = (".ts", ".mts", ".m2ts", ".mpg", ".mpeg", ".flv", ".wmv", ".mxf", ".ogv")
_TEXT_NAMES = (".md", ".txt", ".markdown", ".rst", ".csv", ".json", ".yaml", ".yml", ".srt", ".vtt")


def media_kind(path: Path, name: str) -> tuple[MediaKind, str]:
    """Return a file's kind and internet media type.

    Args:
        path: The file.
        name: Its name in the project; its ending decides where the bytes do not.
    """
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    ending = Path(name).suffix.lower()
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    for offset, signature, kind, media_type in _SIGNATURES:
        if head[offset : offset + len(signature)] == signature:
            if kind is MediaKind.VIDEO and ending in _AUDIO_ONLY:
                return MediaKind.AUDIO, guessed
            if ending == ".ogv":
                return MediaKind.VIDEO, "video/ogg"
            return kind, media_type
    if ending in _TEXT_NAMES:
        return MediaKind.DOCUMENT, guessed if guessed.startswith("text/") else "text/plain"
    for prefix, kind in (("video/", MediaKind.VIDEO), ("audio/", MediaKind.AUDIO)):
        if guessed.startswith(prefix) or (kind is MediaKind.VIDEO and ending in _VIDEO_NAMES):
            return kind, guessed
    if _is_text(head):
        return MediaKind.DOCUMENT, "text/plain"
    return MediaKind.OTHER, guessed


def _is_text(head: bytes) -> bool:
    if not head or b"\0" in head:
        return False
    # The head may end inside a character; a decoder that may go on forgives that.
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return False
    return True
