"""A project's files as objects, rows and passages: written by an agent, taken into the index.

What is searched follows from the registry's rows and from analyses of the footage. The order is
object, row, index, status, so that a crash leaves at most something that is done again.

Source: specification W7, W8; STYLE habit 10.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from reprise.context.document_text import (
    PASSAGES_MAX,
    document_passages,
    document_text,
    transcript_passages,
    why_unread,
)
from reprise.errors import BadInput
from reprise.model.heard import HeardAnalysis, HeardSource
from reprise.model.project import FileStatus, MediaKind, ProjectFile
from reprise.model.search import IndexedFile
from reprise.ports import ObjectStore, ProjectIndex, ProjectRegistry

_TEXT_TYPES = {".md": "text/markdown", ".csv": "text/csv", ".vtt": "text/vtt"}


class Unreadable(BadInput):
    """A file whose text cannot be had, with the reason."""


@dataclass(frozen=True)
class ProjectFiles:
    """Files of projects, with their rows and what the index knows of them."""

    registry: ProjectRegistry
    objects: ObjectStore
    index: ProjectIndex
    clock: Callable[[], datetime]

    def write_document(self, project_id: str, name: str, text: str) -> ProjectFile:
        """Create a document or replace it, and index it; the same text again changes nothing.

        Raises:
            BadInput: The name is that of a file which is no document, or the document was removed
                while it was written.
            UnknownName: There is no such project.
            StoreError: A store failed.
        """
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        known = self._row(project_id, name)
        if known is not None and known.media_kind is not MediaKind.DOCUMENT:
            message = f"{name!r} is {known.media_kind.value} of the project; write another name"
            raise BadInput(message)
        if known is None or known.content_digest != digest:
            self._put(project_id, name, data, digest)
            known = self._row(project_id, name)
        if known is None or known.content_digest != digest:
            message = f"{name!r} was removed or replaced while it was written; read the files again"
            raise BadInput(message)
        is_done = known.indexing_status is FileStatus.DONE and self._is_indexed(known)
        if not is_done and self.keep(known, indexed_document(known, data)):
            # The summary went with what the index knew.
            status = {"indexing": FileStatus.DONE, "summary": FileStatus.PENDING}
            self.registry.set_status(known, **status)
        return known

    def document_text(self, file: ProjectFile) -> str:
        """Return a document's text.

        Raises:
            Unreadable: It is no document, or too large.
            StoreError: The object store failed, or its bytes are gone.
        """
        return document_text(self._data(file))

    def index_document(self, file: ProjectFile) -> IndexedFile:
        """Take a document into the index, its summary kept; return what is known of it then.

        Raises:
            Unreadable: It holds no text that can be read.
            StoreError: A store failed.
        """
        found = indexed_document(file, self._data(file))
        known = self.index.file(file.project_id, file.name)
        if known is not None and known.content_digest == file.content_digest:
            found = found.model_copy(update={"summary": known.summary})
        self.keep(file, found)
        return found

    def keep(self, file: ProjectFile, found: IndexedFile) -> bool:
        """Put what was found of a file into the index; answer whether the file is still the same.

        Whoever replaces or removes the file meanwhile may have been at the index before this was
        put; so the row is looked at again, and the index follows it.

        Raises:
            StoreError: A store failed.
        """
        if not _same(self._row(file.project_id, file.name), file):
            return False
        self.index.put(file.project_id, found)
        row = self._row(file.project_id, file.name)
        if _same(row, file):
            return True
        known = self.index.file(file.project_id, file.name)
        if known is not None and known.content_digest == file.content_digest:
            self.index.remove(file.project_id, file.name)
        if row is not None and row.media_kind is MediaKind.DOCUMENT and why_unread(row) is None:
            self.index_document(row)
        return False

    def take_analysis(self, project_id: str, analysis: HeardAnalysis) -> None:
        """Take the transcripts of an analysis into the index, of files that are still the same.

        Raises:
            StoreError: A store failed.
        """
        files = {file.id: file for file in self.registry.files(project_id)}
        for source in analysis.sources:
            file = files.get(source.file_id)
            if file is not None and file.content_digest == source.content_digest:
                self.take_transcript(file, source)

    def take_transcript(self, file: ProjectFile, source: HeardSource) -> None:
        """Take what is said in a file into the index; an analysis without speech says nothing."""
        if source.transcript is None and source.has_audio:
            return
        passages = transcript_passages(source.transcript) if source.transcript else ()
        found = IndexedFile(
            name=file.name,
            content_digest=file.content_digest,
            passages=passages,
            note="" if passages else "nothing is said in it",
        )
        known = self.index.file(file.project_id, file.name)
        if known is None or known.model_copy(update={"summary": ""}) != found:
            if not self.keep(file, found):
                return
            self.registry.set_status(file, summary=FileStatus.PENDING)
        if file.indexing_status is not FileStatus.DONE:
            self.registry.set_status(file, indexing=FileStatus.DONE)

    def _is_indexed(self, file: ProjectFile) -> bool:
        known = self.index.file(file.project_id, file.name)
        return known is not None and known.content_digest == file.content_digest

    def _row(self, project_id: str, name: str) -> ProjectFile | None:
        files = self.registry.files(project_id)
        return next((file for file in files if file.name == name), None)

    def _put(self, project_id: str, name: str, data: bytes, digest: str) -> None:
        key = file_key(project_id, digest, name)
        media_type = _TEXT_TYPES.get(PurePosixPath(name).suffix.lower(), "text/plain")
        info = self.objects.head(key)
        if info is None or info.size_bytes != len(data):
            self.objects.put_bytes(key, data, media_type=media_type)
        self.registry.put_file(
            ProjectFile(
                id=file_id(project_id, name),
                project_id=project_id,
                name=name,
                storage_key=key,
                size_bytes=len(data),
                content_digest=digest,
                media_kind=MediaKind.DOCUMENT,
                media_type=media_type,
                uploaded_at=self.clock(),
            )
        )
        if self.objects.head(key) is None:
            # The same bytes were removed since they were found there; with the row they stay.
            self.objects.put_bytes(key, data, media_type=media_type)

    def _data(self, file: ProjectFile) -> bytes:
        if file.media_kind is not MediaKind.DOCUMENT or why_unread(file) is not None:
            raise Unreadable(why_no_text(file))
        return self.objects.get_bytes(file.storage_key)


def _same(row: ProjectFile | None, file: ProjectFile) -> bool:
    return row is not None and row.content_digest == file.content_digest


def indexed_document(file: ProjectFile, data: bytes) -> IndexedFile:
    """Return what there is to know of a document, its summary apart."""
    passages = document_passages(file.name, document_text(data))
    note = "it is empty" if not passages else ""
    if len(passages) == PASSAGES_MAX:
        note = f"only its first {PASSAGES_MAX} passages are found by a search"
    return IndexedFile(
        name=file.name, content_digest=file.content_digest, passages=passages, note=note
    )


def why_no_text(file: ProjectFile) -> str:
    """Return why a file has no text that could be indexed, for people and models."""
    if file.media_kind in (MediaKind.VIDEO, MediaKind.AUDIO):
        return "what is said in it is known once a VideoAnalyze step has analysed it"
    return why_unread(file) or "it holds no text"


def file_id(project_id: str, name: str) -> str:
    """Return the id of a file: the same for a name in a project, whatever its bytes."""
    return hashlib.sha256(f"{project_id}/{name}".encode()).hexdigest()[:16]


def file_key(project_id: str, digest: str, name: str) -> str:
    """Return the key of a file's bytes; the ending stays, for people who look at it."""
    suffix = PurePosixPath(name).suffix.lower()
    ending = "".join(c for c in suffix if c.isalnum() or c == ".")[:12]
    return f"projects/{project_id}/files/{digest[:2]}/{digest}{ending}"
