"""The job `reprise_project_index`: a project's files into the search index, with summaries.

`reprise project add` and `reprise project index` do the same without a run. The sensor, off until
somebody turns it on, launches the job for projects that got files in another way.

Source: specification W8, D13.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence

import dagster as dg

from pipelines.cancellation import cancellation
from pipelines.indexing import Indexed, IndexedOutcome, ProjectIndexing
from pipelines.partitions import PROJECTS
from reprise.context.document_text import why_unread
from reprise.errors import RepriseError, StoreError, UnknownName
from reprise.model.project import FileStatus, MediaKind, ProjectFile
from reprise.ports import ProjectIndex, ProjectRegistry

logger = logging.getLogger(__name__)

INDEX_JOB = "reprise_project_index"


class IndexConfig(dg.Config):
    """What a run of the job is told."""

    again: bool = False
    """Make all of it anew, summaries too."""


def index_job(indexing: Callable[[], ProjectIndexing]) -> dg.JobDefinition:
    """Return the job; its partitions are the projects."""

    @dg.op(name="index", description="Take the project's texts and transcripts into the index.")
    def index(context: dg.OpExecutionContext, config: IndexConfig) -> None:
        def report(outcome: IndexedOutcome) -> None:
            text = f"{outcome.indexed.value}  {outcome.name}"
            context.log.info("%s", f"{text}: {outcome.note}" if outcome.note else text)

        its = indexing()
        project = its.files.registry.project(context.partition_key)
        try:
            if project is None:
                message = f"there is no project {context.partition_key!r}"
                raise UnknownName(message)
            stop = cancellation(context.run.run_id)
            outcomes = its.index_project(project, report, again=config.again, cancelled=stop.is_set)
        except RepriseError as error:
            raise dg.Failure(description=str(error), allow_retries=error.transient) from error
        context.add_output_metadata({kind.value: _count(outcomes, kind) for kind in Indexed})

    @dg.job(
        name=INDEX_JOB,
        partitions_def=PROJECTS,
        description="Index a project's documents and transcripts for search, and summarise them.",
    )
    def job() -> None:
        index()

    return job


def index_sensor(
    job: dg.JobDefinition,
    registry: Callable[[], ProjectRegistry],
    index: Callable[[], ProjectIndex],
) -> dg.SensorDefinition:
    """Return the sensor that launches the job where files wait for it; off by default."""

    @dg.sensor(
        name="project_index",
        job=job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Indexes the files of projects that are not indexed yet.",
    )
    def project_index(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        present = set(context.instance.get_dynamic_partitions("projects"))
        requests = []
        for project in registry().projects():
            if project.name not in present:
                continue
            files = registry().files(project.id)
            lost = _lost(index(), project.id, files)
            due = [file for file in files if file in lost or _is_due(file)]
            last = _last_run(context.instance, project.name) if lost else None
            if last is not None and not last.is_finished:
                continue
            if due:
                requests.append(
                    dg.RunRequest(
                        run_key=f"{project.name}-{_digest(due, last)}",
                        partition_key=project.name,
                        tags={"reprise/project": project.name, "reprise/launched_by": "sensor"},
                    )
                )
        skipped = None if requests else dg.SkipReason("every file is indexed")
        return dg.SensorResult(run_requests=requests, skip_reason=skipped)

    return project_index


def _count(outcomes: Sequence[IndexedOutcome], kind: Indexed) -> int:
    return sum(outcome.indexed is kind for outcome in outcomes)


def _is_due(file: ProjectFile) -> bool:
    """Answer whether indexing would do something; footage waits for an analysis, a fault stays."""
    waits = file.media_kind in (MediaKind.VIDEO, MediaKind.AUDIO)
    open_states = (FileStatus.PENDING, FileStatus.RUNNING)
    if file.indexing_status is FileStatus.DONE:
        return file.summary_status in open_states
    return not waits and file.indexing_status in open_states


def _lost(index: ProjectIndex, project_id: str, files: Sequence[ProjectFile]) -> list[ProjectFile]:
    """Return the documents that the index should hold and does not, as after its loss."""
    try:
        held = {row.name: row.content_digest for row in index.rows(project_id)}
    except StoreError as error:
        logger.warning("whether the index holds project %s cannot be told: %s", project_id, error)
        return []
    return [
        file
        for file in files
        if file.media_kind is MediaKind.DOCUMENT
        and why_unread(file) is None
        and file.indexing_status is FileStatus.DONE
        and held.get(file.name) != file.content_digest
    ]


def _last_run(instance: dg.DagsterInstance, project: str) -> dg.DagsterRun | None:
    """Return the newest run of the job for a project."""
    tags = {"dagster/partition": project}
    runs = instance.get_runs(dg.RunsFilter(job_name=INDEX_JOB, tags=tags), limit=1)
    return runs[0] if runs else None


def _digest(files: Sequence[ProjectFile], last: dg.DagsterRun | None) -> str:
    text = "\n".join(f"{file.id} {file.content_digest} {file.uploaded_at}" for file in files)
    # An index that is lost a second time is made again too; a run that failed is not repeated.
    after = last.run_id if last is not None and last.is_success else ""
    return hashlib.sha256(f"{text}{after}".encode()).hexdigest()[:16]
