"""What a search over a project's files is answered from, and what it answers.

A file is indexed as passages: a few lines of a document, or a span of a transcript. An answer
names the state that it came from, so that a cached result never rests on another one.

Source: specification W8, C2, C23.
"""

from collections.abc import Mapping

from pydantic import Field

from reprise.canonical import digest_fields, json_digest
from reprise.model.base import Value

SEARCH_REVISION = "1"
"""Bump it when the same files would be searched otherwise: other hits, order or snippets."""

HITS_MAX = 50
"""Most hits in one answer; a larger limit is taken for this one."""


class Passage(Value):
    """A part of a file that is found as one."""

    text: str
    """What it says."""
    start_line: int | None = None
    """First line in the document, from 1; None where there are no lines."""
    end_line: int | None = None
    """Last line in the document."""
    start_seconds: float | None = None
    """When it begins to be said; None for what nobody says."""
    end_seconds: float | None = None
    """When it has been said."""


class IndexedFile(Value):
    """All that is known of one file for search."""

    name: str
    """The file's name in its project."""
    content_digest: str
    """Digest of the bytes that it was made from."""
    passages: tuple[Passage, ...] = ()
    """Its text, in order."""
    summary: str = ""
    """What it holds, in a few sentences; empty while there is none."""
    note: str = ""
    """Why there is no text or no summary, for people and models; empty when there is one."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything here, hexadecimal.

        Raises:
            NotCanonical: A text holds a lone surrogate.
        """
        return json_digest(self.model_dump(mode="json"))


class IndexRow(Value):
    """What is known of a file, without its passages."""

    name: str
    """The file's name in its project."""
    content_digest: str
    """As in `IndexedFile`."""
    digest: str
    """`IndexedFile.digest`."""
    passage_count: int = Field(ge=0)
    """How many passages it has."""
    summary: str = ""
    """As in `IndexedFile`."""
    note: str = ""
    """As in `IndexedFile`."""


class SearchHit(Value):
    """One passage that was found."""

    name: str
    """The file."""
    content_digest: str
    """Digest of the bytes that it was found in; another one than the file's is out of date."""
    snippet: str
    """The part of the passage around the first word that was found."""
    start_line: int | None = None
    """As in `Passage`."""
    end_line: int | None = None
    """As in `Passage`."""
    start_seconds: float | None = None
    """As in `Passage`."""
    end_seconds: float | None = None
    """As in `Passage`."""


class SearchAnswer(Value):
    """What a search found."""

    hits: tuple[SearchHit, ...] = ()
    """The best first; equals by file name and place."""
    total: int = Field(default=0, ge=0)
    """How many passages hold at least one word of the query."""
    revision: str
    """The state that this was answered from, as `ProjectSearch.revision` gives it."""

    @property
    def cut(self) -> bool:
        """True when there are more passages than these."""
        return self.total > len(self.hits)

    def within(self, digests: Mapping[str, str]) -> "SearchAnswer":
        """Return it without hits in files that were replaced or removed since.

        Args:
            digests: File name → content digest, of the files that there are.
        """
        hits = tuple(hit for hit in self.hits if digests.get(hit.name) == hit.content_digest)
        total = self.total - len(self.hits) + len(hits)
        return self.model_copy(update={"hits": hits, "total": total})


def index_revision(digests: Mapping[str, str]) -> str:
    """Return the state of a project's index, from file names and `IndexedFile.digest`.

    How it is searched is part of it.
    """
    return digest_fields({"files": digest_fields(digests), "search": SEARCH_REVISION})
