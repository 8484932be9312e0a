"""A project index in this process's memory: the twin of the one in SQLite, for tests and dry runs.

Ranks as FTS5's bm25 does, in plain Python, so that both give one order. Extend
tests/integration/test_project_index_contract.py, which all indexes pass.

Source: specification W8.
"""

import math
import threading
from collections import Counter
from collections.abc import Sequence

from reprise.context.search_words import query_terms, snippet, words
from reprise.model.search import (
    HITS_MAX,
    IndexedFile,
    IndexRow,
    Passage,
    SearchAnswer,
    SearchHit,
    index_revision,
)

_K1, _B = 1.2, 0.75
_IDF_MIN = 1e-6


class MemoryProjectIndex:
    """A `ProjectIndex` in memory; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._projects: dict[str, dict[str, IndexedFile]] = {}

    def put(self, project_id: str, file: IndexedFile) -> None:
        """Take a file in; see `ProjectIndex`."""
        file.digest  # noqa: B018 - Refuses what no index could keep, before it is kept.
        with self._lock:
            self._projects.setdefault(project_id, {})[file.name] = file

    def remove(self, project_id: str, name: str) -> bool:
        """Forget a file; see `ProjectIndex`."""
        with self._lock:
            return self._projects.get(project_id, {}).pop(name, None) is not None

    def remove_project(self, project_id: str) -> None:
        """Forget a project; see `ProjectIndex`."""
        with self._lock:
            self._projects.pop(project_id, None)

    def file(self, project_id: str, name: str) -> IndexedFile | None:
        """Return what is known of a file; see `ProjectIndex`."""
        with self._lock:
            return self._projects.get(project_id, {}).get(name)

    def rows(self, project_id: str) -> Sequence[IndexRow]:
        """Return what is known of each file, by name; see `ProjectIndex`."""
        return [
            IndexRow(
                name=file.name,
                content_digest=file.content_digest,
                digest=file.digest,
                passage_count=len(file.passages),
                summary=file.summary,
                note=file.note,
            )
            for file in self._files(project_id)
        ]

    def revision(self, project_id: str) -> str:
        """Return a digest of the project's state; see `ProjectSearch`."""
        return index_revision({file.name: file.digest for file in self._files(project_id)})

    def search(self, project_id: str, query: str, *, limit: int) -> SearchAnswer:
        """Return the passages that hold words of a query; see `ProjectSearch`."""
        files = self._files(project_id)
        terms = query_terms(query)
        passages = [(file, passage) for file in files for passage in file.passages]
        counts = [Counter(words(passage.text)) for _, passage in passages]
        scores = _scores(terms, counts)
        # Sorting is stable, and passages are in order of file name and place.
        found = sorted(scores, key=lambda at: -scores[at])
        return SearchAnswer(
            hits=tuple(_hit(*passages[at], terms) for at in found[: max(1, min(limit, HITS_MAX))]),
            total=len(found),
            revision=index_revision({file.name: file.digest for file in files}),
        )

    def _files(self, project_id: str) -> list[IndexedFile]:
        with self._lock:
            files = list(self._projects.get(project_id, {}).values())
        return sorted(files, key=lambda file: file.name)


def _scores(terms: Sequence[str], counts: Sequence[Counter[str]]) -> dict[int, float]:
    """Return bm25 by index, of those that hold a term."""
    mean = sum(map(Counter.total, counts)) / len(counts) if counts else 1.0
    scores: dict[int, float] = {}
    for term in terms:
        holding = [at for at, count in enumerate(counts) if term in count]
        share = (len(counts) - len(holding) + 0.5) / (len(holding) + 0.5)
        weight = max(math.log(share), _IDF_MIN)
        for at in holding:
            times = counts[at][term]
            length = _K1 * (1 - _B + _B * counts[at].total() / mean)
            scores[at] = scores.get(at, 0.0) + weight * times * (_K1 + 1) / (times + length)
    return scores


def _hit(file: IndexedFile, passage: Passage, terms: Sequence[str]) -> SearchHit:
    places = passage.model_dump(exclude={"text"})
    return SearchHit(
        name=file.name,
        content_digest=file.content_digest,
        snippet=snippet(passage.text, terms),
        **places,
    )
