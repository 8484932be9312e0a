"""What every index of projects' files promises, run on each."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.canonical import NotCanonical
from reprise.errors import StoreUnusable
from reprise.model.search import HITS_MAX, IndexedFile, Passage, SearchHit
from reprise.ports import ProjectIndex
from resources.memory_project_index import MemoryProjectIndex
from resources.sqlite_project_index import SqliteProjectIndex
from tests.child_process import start_python

INDEXES: dict[str, Callable[[Path], ProjectIndex]] = {
    "memory": lambda _: MemoryProjectIndex(),
    "sqlite": lambda folder: SqliteProjectIndex(folder / "new" / "index.db"),
}


@pytest.fixture(params=INDEXES)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> ProjectIndex:
    return INDEXES[request.param](tmp_path)


def brief(*texts: str, name: str = "brief.md", summary: str = "") -> IndexedFile:
    passages = tuple(
        Passage(text=text, start_line=at, end_line=at) for at, text in enumerate(texts, start=1)
    )
    return IndexedFile(name=name, content_digest="a" * 64, passages=passages, summary=summary)


TALK = IndexedFile(
    name="talk é.mp4",
    content_digest="b" * 64,
    passages=(
        Passage(text="Butterflies are free.", start_seconds=0.5, end_seconds=2.25),
        Passage(text="So is our film.", start_seconds=2.25, end_seconds=4.0),
    ),
    summary="A talk about butterflies.",
    note="",
)


def names(index: ProjectIndex, query: str, project_id: str = "p1") -> list[str]:
    return [hit.name for hit in index.search(project_id, query, limit=10).hits]


def test_a_new_index_knows_nothing(index: ProjectIndex) -> None:
    answer = index.search("p1", "anything", limit=10)
    assert (answer.hits, answer.total, answer.cut) == ((), 0, False)
    assert answer.revision == index.revision("p1")
    assert index.file("p1", "brief.md") is None
    assert list(index.rows("p1")) == []
    assert index.remove("p1", "brief.md") is False
    index.remove_project("p1")


def test_a_file_comes_back_field_by_field(index: ProjectIndex) -> None:
    index.put("p1", TALK)
    index.put("p1", brief("One.", "Two."))
    assert index.file("p1", "talk é.mp4") == TALK
    assert [(row.name, row.passage_count, row.summary) for row in index.rows("p1")] == [
        ("brief.md", 2, ""),
        ("talk é.mp4", 2, "A talk about butterflies."),
    ]
    assert index.rows("p1")[1].digest == TALK.digest
    assert index.rows("p1")[1].content_digest == "b" * 64


def test_a_hit_says_file_place_and_text(index: ProjectIndex) -> None:
    index.put("p1", TALK)
    index.put("p1", brief("About us.", "A film of butterflies."))
    assert index.search("p1", "FILM", limit=10).hits == (
        SearchHit(
            name="brief.md",
            content_digest="a" * 64,
            snippet="A film of butterflies.",
            start_line=2,
            end_line=2,
        ),
        SearchHit(
            name="talk é.mp4",
            content_digest="b" * 64,
            snippet="So is our film.",
            start_seconds=2.25,
            end_seconds=4.0,
        ),
    )


def test_more_words_of_the_query_rank_higher(index: ProjectIndex) -> None:
    index.put("p1", brief("a red house", name="a.md"))
    index.put("p1", brief("a blue bird on a red house", name="b.md"))
    index.put("p1", brief("nothing of it", name="c.md"))
    assert names(index, "red bird") == ["b.md", "a.md"]


def test_equal_hits_are_by_name_and_place(index: ProjectIndex) -> None:
    for name in ("b.md", "a.md", "B.md"):
        index.put("p1", brief("same words", "same words", name=name))
    hits = index.search("p1", "words", limit=10).hits
    assert [(hit.name, hit.start_line) for hit in hits] == [
        (name, line) for name in ("B.md", "a.md", "b.md") for line in (1, 2)
    ]


def test_case_and_accents_do_not_count(index: ProjectIndex) -> None:
    index.put("p1", brief("Café ÜBER naïve", "cafe\u0301s"))
    for query in ("cafe", "CAFÉ", "cafe\u0301", "uber", "NAIVE"):
        assert names(index, query) == ["brief.md"], query
    assert index.search("p1", "cafés", limit=1).hits[0].start_line == 2


@pytest.mark.parametrize(
    "query",
    [
        "", " ", '"', '""', "film\"", "'", "*", "film*", "^film", "(film", "film)", "text:film",
        "NOT film", "film AND", "OR", "NEAR(film, 2)", "-film", "film;--", "{film}", "\0film",
        "film\0", "\ud800film", "+", ":", "a" * 100_000, "film " * 10_000, "%", "_", "\\", "🎬",
        "\u017f", "İ", "'; DROP TABLE passage; --", "words_1", "rank", "\u0301", "№ ½ Ⅻ", "क्षि",
    ],
)  # fmt: skip
def test_no_query_is_an_error(index: ProjectIndex, query: str) -> None:
    index.put("p1", brief("our film"))
    index.search("p1", query, limit=10)
    assert names(index, "film") == ["brief.md"]


def test_a_query_is_words_and_no_syntax(index: ProjectIndex) -> None:
    index.put("p1", brief("film", "and", "not"))
    assert index.search("p1", "film AND NOT", limit=10).total == 3
    assert index.search("p1", "fil*", limit=10).total == 0


def test_a_cut_answer_says_how_many_there_are(index: ProjectIndex) -> None:
    index.put("p1", brief(*["film"] * 60))
    cut = index.search("p1", "film", limit=2)
    assert ([hit.start_line for hit in cut.hits], cut.total, cut.cut) == ([1, 2], 60, True)
    assert len(index.search("p1", "film", limit=1_000).hits) == HITS_MAX
    assert len(index.search("p1", "film", limit=-5).hits) == 1


def test_a_long_passage_is_shown_around_the_word(index: ProjectIndex) -> None:
    index.put("p1", brief("x " * 2000 + "needle " + "y " * 2000))
    snippet = index.search("p1", "needle", limit=1).hits[0].snippet
    assert "x needle y" in snippet
    assert len(snippet) < 330
    assert (snippet[0], snippet[-1]) == ("…", "…")


def test_a_file_put_again_replaces_what_was_known(index: ProjectIndex) -> None:
    index.put("p1", brief("old words", "more old words"))
    index.put("p1", brief("new words"))
    assert names(index, "old") == []
    assert index.search("p1", "words", limit=10).total == 1


def test_a_removed_file_is_not_found(index: ProjectIndex) -> None:
    index.put("p1", brief("film", name="a.md"))
    index.put("p1", brief("film", name="b.md"))
    assert index.remove("p1", "a.md") is True
    assert index.remove("p1", "a.md") is False
    assert names(index, "film") == ["b.md"]


def test_projects_neither_see_nor_move_each_other(index: ProjectIndex) -> None:
    index.put("p1", brief("rare common", name="a.md"))
    index.put("p1", brief("common common rare word", name="b.md"))
    index.put("p1", brief("other", name="c.md"))
    before = index.search("p1", "rare common", limit=10)
    for at in range(30):
        index.put("p2", brief("rare " * 9, name=f"{at}.md"))
    assert index.search("p1", "rare common", limit=10) == before
    index.remove_project("p2")
    assert index.search("p1", "rare common", limit=10) == before
    assert names(index, "rare", "p2") == []
    index.put("p2", brief("rare"))
    assert names(index, "rare", "p2") == ["brief.md"]


def test_the_revision_follows_what_is_known(index: ProjectIndex) -> None:
    seen = [index.revision("p1")]
    for file in (
        brief("film"),
        brief("film", summary="About a film."),
        brief("film", name="other.md"),
    ):
        index.put("p1", file)
        seen.append(index.revision("p1"))
    assert len(set(seen)) == 4
    assert index.search("p1", "film", limit=1).revision == seen[-1]
    index.remove("p1", "other.md")
    assert index.revision("p1") == seen[2]
    index.put("p2", brief("film"))
    assert index.revision("p1") == seen[2]
    index.remove_project("p1")
    assert index.revision("p1") == seen[0]


def test_a_text_that_is_no_unicode_is_refused(index: ProjectIndex) -> None:
    with pytest.raises(NotCanonical):
        index.put("p1", brief("\ud800"))
    assert list(index.rows("p1")) == []


def test_threads_lose_nothing(index: ProjectIndex) -> None:
    def work(at: int) -> None:
        index.put(f"p{at % 2}", brief("film", name=f"{at:03}.md"))
        index.search("p0", "film", limit=5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(60)))
    assert [len(index.rows(f"p{project}")) for project in (0, 1)] == [30, 30]
    assert index.search("p0", "film", limit=1).total == 30


_TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "C", "dé", "e-f", "ö"]), max_size=6).map(" ".join),
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(files=st.lists(_TEXTS, max_size=4), query=st.text(alphabet="abcdefö -é", max_size=8))
def test_both_indexes_give_one_answer(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], query: str
) -> None:
    indexes = [made(tmp_path_factory.mktemp("index")) for made in INDEXES.values()]
    for index in indexes:
        for at, texts in enumerate(files):
            index.put("p1", brief("a b", "dropped", name=f"{at}.md"))
            index.put("p1", brief(*texts, name=f"{at}.md"))
    first, second = (index.search("p1", query, limit=10) for index in indexes)
    assert first == second


PUTS = """
    import sys
    from pathlib import Path
    from reprise.model.search import IndexedFile, Passage
    from resources.sqlite_project_index import SqliteProjectIndex

    index = SqliteProjectIndex(Path(sys.argv[1]))
    for at in range(20):
        passages = (Passage(text=f"film {sys.argv[2]}"),)
        name = f"{sys.argv[2]}-{at}.md"
        index.put("p1", IndexedFile(name=name, content_digest="a", passages=passages))
        assert index.search("p1", "film", limit=1).total >= at + 1
"""


def test_processes_that_put_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    processes = [start_python(PUTS, str(path), name) for name in ("one", "two", "three")]
    for process in processes:
        _, told = process.communicate(timeout=120)
        assert process.returncode == 0, told
    index = SqliteProjectIndex(path)
    assert len(index.rows("p1")) == 60
    assert index.search("p1", "two", limit=50).total == 20


def test_an_index_opened_again_knows_what_was_put(tmp_path: Path) -> None:
    first = SqliteProjectIndex(tmp_path / "index.db")
    first.put("p1", TALK)
    first.close()
    assert SqliteProjectIndex(tmp_path / "index.db").file("p1", TALK.name) == TALK
    with sqlite3.connect(tmp_path / "index.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_damaged_index_is_set_aside_and_started_afresh(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    first = SqliteProjectIndex(path)
    first.put("p1", brief(*["film"] * 2000))
    first.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    again = SqliteProjectIndex(path)
    again.put("p1", TALK)
    assert [row.name for row in again.rows("p1")] == [TALK.name]


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(b"not a database, and not ours either" * 100)
    index = SqliteProjectIndex(tmp_path / "index.db")
    with pytest.raises(StoreUnusable, match="not one that this store made"):
        index.search("p1", "film", limit=1)
