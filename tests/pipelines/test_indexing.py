"""Indexing of projects: statuses, summaries, restarts, stops; the job and its sensor."""

import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from pipelines.index_job import INDEX_JOB, index_sensor
from pipelines.indexing import Indexed, IndexedOutcome
from reprise.errors import Cancelled, ProviderError
from reprise.model.conversation import ModelReply
from reprise.model.heard import HeardAnalysis
from reprise.model.media import VideoAnalysis
from reprise.model.project import FileStatus, ProjectFile
from resources.heuristic_provider import HeuristicProvider
from resources.scripted_provider import ScriptedProvider
from tests.analyses import talk
from tests.pipelines.engine import Engine

PENDING, RUNNING, DONE, FAILED = FileStatus

TEXT = """# Butterflies

Butterflies are insects with large wings. The wings of butterflies are covered with scales.

It rained.
"""


def add(engine: Engine, name: str, data: bytes) -> None:
    path = engine.root / "material" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    engine.ingest.add("p", [path], lambda _name, _change: None)


def index(engine: Engine, **options: Any) -> dict[str, IndexedOutcome]:
    project = engine.wiring.ingest.require("p")
    return {each.name: each for each in engine.wiring.indexing.index_project(project, **options)}


def statuses(engine: Engine) -> dict[str, tuple[FileStatus, FileStatus]]:
    rows = engine.wiring.projects.files("p")
    return {row.name: (row.indexing_status, row.summary_status) for row in rows}


def summary(engine: Engine, name: str) -> str:
    known = engine.wiring.index.file("p", name)
    assert known is not None
    return known.summary


@pytest.fixture
def project(engine: Engine) -> Engine:
    """Three kinds of files, and the provider that needs no model."""
    engine.wiring.use_provider("rule", HeuristicProvider())
    add(engine, "brief.md", TEXT.encode())
    add(engine, "talk.mp4", b"\0\0\0 ftypisom one")
    add(engine, "paper.pdf", b"%PDF-1.7")
    add(engine, "logo.png", b"\x89PNG\r\n\x1a\n")
    return engine


def test_each_file_is_indexed_waits_or_says_why_not(project: Engine) -> None:
    assert set(statuses(project).values()) == {(PENDING, PENDING)}
    outcomes = index(project)
    assert {name: (each.indexed, each.note) for name, each in outcomes.items()} == {
        "brief.md": (Indexed.DONE, ""),
        "logo.png": (Indexed.DONE, "it holds no text"),
        "paper.pdf": (
            Indexed.FAILED,
            "nothing here reads application/pdf; add its text as .md or .txt",
        ),
        "talk.mp4": (
            Indexed.WAITS,
            "what is said in it is known once a VideoAnalyze step has analysed it",
        ),
    }
    assert statuses(project) == {
        "brief.md": (DONE, DONE),
        "logo.png": (DONE, DONE),
        "paper.pdf": (FAILED, FAILED),
        "talk.mp4": (PENDING, PENDING),
    }


TOO_LARGE = "it is larger than 16 MiB; add it in parts"


def test_a_document_over_the_limit_fails_and_is_taken_up_again_once_it_changed(
    project: Engine,
) -> None:
    add(project, "notes.txt", b"About moths.")
    index(project)
    add(project, "notes.txt", b"moths\n" * 2_800_000)
    outcome = index(project)["notes.txt"]
    assert (outcome.indexed, outcome.note) == (Indexed.FAILED, TOO_LARGE)
    assert statuses(project)["notes.txt"] == (FAILED, FAILED)
    assert project.wiring.index.file("p", "notes.txt") is None
    assert set(index(project)) == {"talk.mp4"}
    assert index(project, again=True)["notes.txt"].note == TOO_LARGE
    add(project, "notes.txt", b"Few moths.")
    assert index(project)["notes.txt"].indexed is Indexed.DONE
    assert statuses(project)["notes.txt"] == (DONE, DONE)


def test_a_document_of_a_kind_that_nothing_reads_is_taken_up_once(project: Engine) -> None:
    add(project, "brief.docx", b"PK\3\4\24\0\0\0\10\0word/document.xml")
    assert index(project)["brief.docx"].indexed is Indexed.FAILED
    assert set(index(project)) == {"talk.mp4"}
    assert set(index(project, again=True)) == set(statuses(project))


def test_a_summary_never_outlives_a_file_that_grew_over_the_limit(engine: Engine) -> None:
    add(engine, "brief.md", TEXT.encode())
    grown = Meanwhile(lambda: add(engine, "brief.md", b"moths\n" * 2_800_000))
    engine.wiring.use_provider("rule", grown)
    assert index(engine)["brief.md"].indexed is Indexed.WAITS
    assert index(engine)["brief.md"].note == TOO_LARGE
    assert engine.wiring.index.rows("p") == []


def test_the_heuristic_summary_is_an_extract(project: Engine) -> None:
    index(project)
    assert summary(project, "brief.md") == (
        "Butterflies Butterflies are insects with large wings. "
        "The wings of butterflies are covered with scales. It rained."
    )


def test_indexing_again_changes_nothing(project: Engine) -> None:
    index(project)
    before = (project.wiring.projects.files("p"), project.wiring.index.revision("p"))
    assert "brief.md" not in index(project)
    index(project, again=True)
    assert (project.wiring.projects.files("p"), project.wiring.index.revision("p")) == before


def test_a_replaced_file_is_indexed_anew_and_a_removed_one_forgotten(project: Engine) -> None:
    index(project)
    add(project, "brief.md", b"About moths.")
    assert statuses(project)["brief.md"] == (PENDING, PENDING)
    index(project)
    search = project.wiring.index.search
    assert search("p", "butterflies", limit=5).total == 0
    assert search("p", "moths", limit=5).total == 1
    project.wiring.projects.remove_file("p", "brief.md")
    index(project)
    assert project.wiring.index.file("p", "brief.md") is None


def test_a_lost_index_is_made_again_with_the_same_digest(project: Engine) -> None:
    index(project)
    before = (project.wiring.projects.files("p"), project.wiring.index.revision("p"))
    project.wiring.index.remove_project("p")
    assert index(project)["brief.md"].indexed is Indexed.DONE
    assert (project.wiring.projects.files("p"), project.wiring.index.revision("p")) == before


def heard(analysis: VideoAnalysis) -> HeardAnalysis:
    return HeardAnalysis.model_validate(analysis.model_dump(mode="json"))


def hear(engine: Engine) -> None:
    [row] = [file for file in engine.wiring.projects.files("p") if file.name == "talk.mp4"]
    source = (
        talk()
        .sources[0]
        .model_copy(update={"file_id": row.id, "content_digest": row.content_digest})
    )
    analysis = talk().model_copy(update={"sources": (source,)})
    engine.wiring.services.project_files.take_analysis("p", heard(analysis))


def test_footage_is_summarised_once_it_was_heard_and_asked_for(project: Engine) -> None:
    hear(project)
    assert statuses(project)["talk.mp4"] == (DONE, PENDING)
    assert "talk.mp4" not in index(project, footage=False)
    assert index(project)["talk.mp4"].indexed is Indexed.DONE
    assert statuses(project)["talk.mp4"] == (DONE, DONE)
    assert "Seven artists in Amsterdam" in summary(project, "talk.mp4")
    assert "microphone" not in summary(project, "talk.mp4")


def answer(text: str) -> str:
    return json.dumps({"summary": text})


def test_a_summary_that_fails_is_said_and_made_the_next_time(engine: Engine) -> None:
    add(engine, "brief.md", TEXT.encode())
    engine.wiring.use_provider("rule", ScriptedProvider([ProviderError("out of order")]))
    outcome = index(engine)["brief.md"]
    assert (outcome.indexed, outcome.note) == (Indexed.FAILED, "no summary: out of order")
    assert statuses(engine)["brief.md"] == (DONE, FAILED)
    assert engine.wiring.index.search("p", "butterflies", limit=5).total == 2

    engine.wiring.use_provider("rule", ScriptedProvider([answer("It is about butterflies.")]))
    outcome = index(engine)["brief.md"]
    assert (outcome.indexed, outcome.usage.tokens) == (Indexed.DONE, 15)
    assert summary(engine, "brief.md") == "It is about butterflies."


class Meanwhile(ScriptedProvider):
    """Answers after something happened."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__([answer("Of the text as it was.")])
        self._happens = happens

    def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
        self._happens()
        return super().complete(*args, **kwargs)


def test_a_summary_never_brings_back_a_replaced_text(engine: Engine) -> None:
    add(engine, "brief.md", TEXT.encode())
    files = engine.wiring.services.project_files
    replaced = Meanwhile(lambda: files.write_document("p", "brief.md", "About moths."))
    engine.wiring.use_provider("rule", replaced)
    assert index(engine)["brief.md"].indexed is Indexed.WAITS
    assert statuses(engine)["brief.md"] == (DONE, PENDING)
    assert engine.wiring.index.search("p", "butterflies", limit=5).total == 0
    assert engine.wiring.index.search("p", "moths", limit=5).total == 1


def test_a_summary_never_brings_back_a_removed_file(engine: Engine) -> None:
    add(engine, "brief.md", TEXT.encode())
    removed = Meanwhile(lambda: engine.ingest.remove_files("p", ["brief.md"]))
    engine.wiring.use_provider("rule", removed)
    assert index(engine)["brief.md"].indexed is Indexed.WAITS
    assert engine.wiring.index.rows("p") == []


def test_a_summary_never_brings_back_what_was_heard_before(project: Engine) -> None:
    hear(project)
    store = project.wiring.index
    known = store.file("p", "talk.mp4")
    assert known is not None
    anew = known.model_copy(update={"passages": known.passages[:1]})
    project.wiring.projects.remove_file("p", "brief.md")
    project.wiring.use_provider("rule", Meanwhile(lambda: store.put("p", anew)))
    assert index(project)["talk.mp4"].indexed is Indexed.WAITS
    assert store.file("p", "talk.mp4") == anew


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Cancelled("stopped")])
def test_a_stop_leaves_nothing_running_and_the_next_call_goes_on(
    engine: Engine, error: BaseException
) -> None:
    class Stopped(ScriptedProvider):
        def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
            raise error

    add(engine, "brief.md", TEXT.encode())
    engine.wiring.use_provider("rule", Stopped([]))
    with pytest.raises(type(error)):
        index(engine)
    assert statuses(engine)["brief.md"] == (DONE, PENDING)
    engine.wiring.use_provider("rule", HeuristicProvider())
    index(engine)
    assert statuses(engine)["brief.md"] == (DONE, DONE)


def test_a_crash_is_gone_over_the_next_time(project: Engine) -> None:
    for row in project.wiring.projects.files("p"):
        project.wiring.projects.set_status(row, indexing=RUNNING, summary=RUNNING)
    index(project)
    assert statuses(project)["brief.md"] == (DONE, DONE)


def test_a_stopped_run_ends_between_two_files(project: Engine) -> None:
    seen: list[ProjectFile] = []

    def cancelled() -> bool:
        return bool(seen)

    with pytest.raises(Cancelled, match="indexing of project 'p' was stopped"):
        index(project, report=seen.append, cancelled=cancelled)
    assert statuses(project)["brief.md"] == (DONE, DONE)
    assert statuses(project)["logo.png"] == (PENDING, PENDING)


def test_the_job_indexes_its_project(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p", brief=TEXT)
    job = engine.job_named(INDEX_JOB)
    run = engine.instance.create_run_for_job(job, tags={"dagster/partition": "p"})
    assert engine.execute(job, run).is_success, engine.failures
    assert statuses(engine)["brief.md"][0] is DONE


def asked(engine: Engine, job: dg.JobDefinition) -> list[tuple[str | None, str | None]]:
    """Return what the sensor asks for: partition and run key."""
    sensor = index_sensor(job, lambda: engine.wiring.projects, lambda: engine.wiring.index)
    with dg.build_sensor_context(instance=engine.instance) as context:
        result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    return [(each.partition_key, each.run_key) for each in result.run_requests or []]


def test_the_sensor_asks_once_for_what_waits(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p", brief=TEXT)
    add(engine, "talk.mp4", b"\0\0\0 ftypisom one")
    job = engine.job_named(INDEX_JOB)

    first = asked(engine, job)
    assert [partition for partition, _ in first] == ["p"]
    assert asked(engine, job) == first
    engine.wiring.use_provider("rule", HeuristicProvider())
    index(engine)
    assert asked(engine, job) == []


def test_the_sensor_asks_each_time_that_the_index_is_lost(engine: Engine) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p", brief=TEXT)
    job = engine.job_named(INDEX_JOB)
    engine.wiring.use_provider("rule", HeuristicProvider())
    index(engine)
    engine.wiring.index.remove_project("p")
    [first] = asked(engine, job)
    assert asked(engine, job) == [first]

    run = engine.instance.create_run_for_job(job, tags={"dagster/partition": "p"})
    assert asked(engine, job) == []
    assert engine.execute(job, run).is_success, engine.failures
    assert asked(engine, job) == []
    engine.wiring.index.remove_project("p")
    [second] = asked(engine, job)
    assert second[0] == "p"
    assert second != first


def test_an_index_that_cannot_be_used_stops_neither_runs_nor_files(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.agents_workflow({"a": []})
    engine.project("p", brief=TEXT)
    (engine.root / "home" / "search.db").write_bytes(b"not ours" * 1000)
    assert engine.run().is_success, engine.failures
    engine.fresh().ingest.remove_files("p", ["brief.md"])
    assert engine.wiring.projects.files("p") == []
    assert "may still be found by searches" in caplog.text


def test_an_agent_that_searches_a_broken_index_is_not_cached(engine: Engine) -> None:
    engine.agent("a", "You read.", tool_groups=["ProjectRead"])
    engine.agents_workflow({"a": []})
    engine.project("p", brief=TEXT)
    (engine.root / "home" / "search.db").write_bytes(b"not ours" * 1000)
    for _ in range(2):
        record = engine.records(engine.run())["a"]
        assert record.cache_key is None
        assert "the search index cannot be told" in record.cache_detail
