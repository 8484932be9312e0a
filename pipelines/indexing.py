"""Indexing a project: texts and transcripts into the search index, a summary of each file.

Each file is done on its own and says how far it is in its two statuses, so that indexing can be
stopped and started again at any point, by any number of processes; done again it changes nothing.
What a workflow's VideoAnalyze step hears it puts into the index itself; here earlier analyses are
found in the history, for an index that was lost.

Source: specification W8.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from pipelines.project_files import ProjectFiles, why_no_text
from reprise.agents.file_summarizer import summary_task
from reprise.agents.loop import run_agent, usage_of
from reprise.context.bodies import Bodies
from reprise.context.document_text import why_unread
from reprise.errors import Cancelled, RepriseError, StoreError
from reprise.model.agent import LoopLimits
from reprise.model.base import Value
from reprise.model.heard import HeardAnalysis, HeardSource
from reprise.model.project import FileStatus, MediaKind, Project, ProjectFile
from reprise.model.result import Usage
from reprise.model.search import IndexedFile
from reprise.model.workflow import StepType, Workflow
from reprise.ports import Cancelled as IsCancelled
from reprise.ports import Clock, HistoryStore, ModelProvider

logger = logging.getLogger(__name__)


class Indexed(StrEnum):
    """What became of a file."""

    DONE = "indexed"
    WAITS = "waits"
    """What is said in it is not known yet, or it changed meanwhile."""
    FAILED = "failed"


class IndexedOutcome(Value):
    """What became of a file, and why."""

    name: str
    """The file."""
    indexed: Indexed
    """What became of it."""
    note: str = ""
    """Why, or what is left out; empty when there is nothing to say."""
    usage: Usage = Usage()
    """What its summary took."""


Report = Callable[[IndexedOutcome], None]


def _unheard(_outcome: IndexedOutcome) -> None:
    """Take a report that nobody reads."""


@dataclass(frozen=True)
class ProjectIndexing:
    """Takes projects into the search index."""

    files: ProjectFiles
    history: HistoryStore
    bodies: Bodies
    workflows: Callable[[], Mapping[str, Workflow]]
    """The workflows whose analyses count."""
    provider: Callable[[], ModelProvider]
    """Who writes summaries."""
    limits: LoopLimits
    """Bounds of every agent's loop, on money too."""
    loop_clock: Clock
    """Time in an agent's loop."""

    def index_project(
        self,
        project: Project,
        report: Report = _unheard,
        *,
        again: bool = False,
        footage: bool = True,
        cancelled: IsCancelled = lambda: False,
    ) -> list[IndexedOutcome]:
        """Index what is not indexed; return what became of each file that was looked at.

        A file that nothing here reads is looked at once: it fails until it is another.

        Args:
            project: The project.
            report: Called after each file.
            again: Make all of it anew, summaries too.
            footage: Look at footage too: what its analyses heard, and a summary of that.
            cancelled: Asked before each file and by the summaries.

        Raises:
            Cancelled: The run is being stopped; what is done stays.
            StoreError: The registry or the index failed.
        """
        rows = {file.name: file for file in self.files.registry.files(project.id)}
        known = {row.name: row for row in self.files.index.rows(project.id)}
        for name in known.keys() - rows.keys():
            self.files.index.remove(project.id, name)
        heard = self._analyses(project.id) if footage else {}
        outcomes = []
        for name, file in rows.items():
            row = known.get(name)
            fresh = row is not None and row.content_digest == file.content_digest
            if _is_footage(file) and not footage:
                continue
            if not again and _is_settled(file, fresh):
                continue
            if cancelled():
                message = f"indexing of project {project.name!r} was stopped"
                raise Cancelled(message)
            outcome = self._index(file, heard, again, cancelled)
            outcomes.append(outcome)
            report(outcome)
        return outcomes

    def _index(
        self,
        file: ProjectFile,
        heard: Mapping[str, HeardSource],
        again: bool,
        cancelled: IsCancelled,
    ) -> IndexedOutcome:
        registry = self.files.registry
        if not _has_text(file) or why_unread(file) is not None:
            return self._leave(file)
        try:
            found = self._text_of(file, heard)
        except StoreError as error:
            registry.set_status(file, indexing=FileStatus.FAILED)
            return IndexedOutcome(name=file.name, indexed=Indexed.FAILED, note=str(error))
        if found is None:
            return IndexedOutcome(name=file.name, indexed=Indexed.WAITS, note=why_no_text(file))
        if not registry.set_status(file, indexing=FileStatus.DONE):
            return _moved(file)
        if not found.passages or (found.summary and not again):
            registry.set_status(file, summary=FileStatus.DONE)
            return IndexedOutcome(name=file.name, indexed=Indexed.DONE, note=found.note)
        return self._summarise(file, found, cancelled)

    def _leave(self, file: ProjectFile) -> IndexedOutcome:
        """Return why a file has nothing to index, and what it had under this name goes."""
        failed = why_unread(file) is not None
        status = FileStatus.FAILED if failed else FileStatus.DONE
        if not self.files.registry.set_status(file, indexing=status, summary=status):
            return _moved(file)
        self.files.index.remove(file.project_id, file.name)
        indexed = Indexed.FAILED if failed else Indexed.DONE
        return IndexedOutcome(name=file.name, indexed=indexed, note=why_no_text(file))

    def _text_of(self, file: ProjectFile, heard: Mapping[str, HeardSource]) -> IndexedFile | None:
        """Return what the index knows of a file now; None when it waits for an analysis."""
        if not _is_footage(file):
            self.files.registry.set_status(file, indexing=FileStatus.RUNNING)
            return self.files.index_document(file)
        source = heard.get(file.id)
        if source is not None and source.content_digest == file.content_digest:
            self.files.take_transcript(file, source)
        found = self.files.index.file(file.project_id, file.name)
        return found if found and found.content_digest == file.content_digest else None

    def _summarise(
        self, file: ProjectFile, found: IndexedFile, cancelled: IsCancelled
    ) -> IndexedOutcome:
        registry = self.files.registry
        registry.set_status(file, summary=FileStatus.RUNNING)
        text = "\n".join(passage.text for passage in found.passages)
        try:
            task = summary_task(file.name, text, self.limits)
            answer = run_agent(task, self.provider(), cancelled=cancelled, clock=self.loop_clock)
        except RepriseError as error:
            if isinstance(error, Cancelled):
                registry.set_status(file, summary=FileStatus.PENDING)
                raise
            logger.warning("%s of %s has no summary: %s", file.name, file.project_id, error)
            registry.set_status(file, summary=FileStatus.FAILED)
            note = f"no summary: {error}"
            return IndexedOutcome(
                name=file.name, indexed=Indexed.FAILED, note=note, usage=usage_of(error)
            )
        except BaseException:
            # A stop leaves nothing that seems to be at work.
            registry.set_status(file, summary=FileStatus.PENDING)
            raise
        said = answer.output.get("summary") if isinstance(answer.output, dict) else None
        summary = str(said).encode(errors="replace").decode()
        if not self._keep_summary(file, found, summary):
            return _moved(file, answer.usage)
        return IndexedOutcome(
            name=file.name, indexed=Indexed.DONE, note=found.note, usage=answer.usage
        )

    def _keep_summary(self, file: ProjectFile, found: IndexedFile, summary: str) -> bool:
        """Keep a summary unless its file or what is said in it is another by now."""
        known = self.files.index.file(file.project_id, file.name)
        fresh = known is not None and known.content_digest == file.content_digest
        if known is not None and fresh and known.passages != found.passages:
            # A later analysis heard it anew.
            self.files.registry.set_status(file, summary=FileStatus.PENDING)
            return False
        if not self.files.keep(file, found.model_copy(update={"summary": summary})):
            return False
        return self.files.registry.set_status(file, summary=FileStatus.DONE)

    def _analyses(self, project_id: str) -> dict[str, HeardSource]:
        """Return the newest analysis of each file, by file id."""
        found: dict[str, HeardSource] = {}
        for analysis in self._of_history(project_id):
            found |= {source.file_id: source for source in analysis.sources}
        return found

    def _of_history(self, project_id: str) -> Iterator[HeardAnalysis]:
        """Yield the latest analysis of each VideoAnalyze step, the newest last."""
        records = [
            record
            for workflow in self.workflows().values()
            for step in workflow.steps
            if step.type is StepType.VIDEO_ANALYZE
            and (record := self.history.of_step(workflow.id, project_id, step.name, run_id=None))
        ]
        for record in sorted(records, key=lambda record: record.finished_at):
            if record.reference is None:
                continue
            try:
                body = self.bodies.get(project_id, record.reference.seen.body_digest)
                yield HeardAnalysis.model_validate(body)
            except (StoreError, ValidationError) as error:
                logger.warning("an analysis of %s is not indexed: %s", project_id, error)


def _moved(file: ProjectFile, usage: Usage = Usage()) -> IndexedOutcome:  # noqa: B008 - A value.
    note = "it was replaced, removed or heard anew meanwhile; index the project again"
    return IndexedOutcome(name=file.name, indexed=Indexed.WAITS, note=note, usage=usage)


def _is_done(file: ProjectFile) -> bool:
    return file.indexing_status is FileStatus.DONE and file.summary_status is FileStatus.DONE


def _is_settled(file: ProjectFile, fresh: bool) -> bool:
    """Answer whether a file stays as it is, given whether the index has it as it is now."""
    if why_unread(file) is not None:
        return FileStatus.FAILED is file.indexing_status is file.summary_status
    return _is_done(file) and (fresh or not _has_text(file))


def _is_footage(file: ProjectFile) -> bool:
    return file.media_kind in (MediaKind.VIDEO, MediaKind.AUDIO)


def _has_text(file: ProjectFile) -> bool:
    return _is_footage(file) or file.media_kind is MediaKind.DOCUMENT
