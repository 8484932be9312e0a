"""What every run did, one row a record, in a SQLite file: rows are added and never changed.

The record itself is one JSON column; the other columns are what it is found by. May share its file
with the project registry.

Source: specification W5, W9, C9.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from reprise.errors import StoreUnusable
from reprise.model.result import StepRecord
from reprise.model.savings import Savings, SavingsBy
from resources.sqlite import METADATA_APPLICATION_ID, SqliteFile, SqliteSchema

BUSY_SECONDS = 15.0
"""A record that is lost cannot be made again, so a writer waits rather than fails."""

_GAVE_A_RESULT = "status IN ('succeeded', 'skipped')"

_SCHEMA = SqliteSchema(
    component="history",
    application_id=METADATA_APPLICATION_ID,
    rebuildable=False,
    migrations=(
        (
            # AUTOINCREMENT: a number is never used twice, also after old runs are pruned.
            """
            CREATE TABLE record (
                seq INTEGER PRIMARY KEY AUTOINCREMENT,
                run_id TEXT NOT NULL,
                workflow_id TEXT NOT NULL,
                project_id TEXT NOT NULL,
                step_order INTEGER NOT NULL,
                name TEXT NOT NULL,
                status TEXT NOT NULL,
                body TEXT NOT NULL
            ) STRICT
            """,
            "CREATE INDEX record_by_run ON record (run_id, name, seq)",
            f"""
            CREATE INDEX record_by_step ON record (workflow_id, project_id, name, seq)
                WHERE {_GAVE_A_RESULT}
            """,
            f"""
            CREATE INDEX record_by_project ON record (workflow_id, project_id, seq)
                WHERE {_GAVE_A_RESULT} AND step_order > 0
            """,
        ),
    ),
)

_INSERT = """
    INSERT INTO record (run_id, workflow_id, project_id, step_order, name, status, body)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_OF_RUN = """
    SELECT seq, body FROM record
    WHERE seq IN (SELECT max(seq) FROM record WHERE run_id = ? GROUP BY name)
    ORDER BY step_order, seq
"""
_OF_STEP = f"""
    SELECT seq, body FROM record
    WHERE workflow_id = ? AND project_id = ? AND name = ? AND {_GAVE_A_RESULT}
    ORDER BY seq DESC LIMIT 1
"""
_OF_STEP_IN_RUN = f"""
    SELECT seq, body FROM record
    WHERE run_id = ? AND name = ? AND workflow_id = ? AND project_id = ? AND {_GAVE_A_RESULT}
    ORDER BY seq DESC LIMIT 1
"""
_LATEST_RUN = f"""
    SELECT run_id FROM record
    WHERE workflow_id = ? AND project_id = ? AND {_GAVE_A_RESULT} AND step_order > 0
    ORDER BY seq DESC LIMIT 1
"""
_RUNS_LIKE = """
    SELECT run_id, max(seq) AS newest FROM record WHERE run_id >= ? AND run_id < ?
    GROUP BY run_id ORDER BY newest DESC LIMIT 20
"""
_DAY = "substr(json_extract(body, '$.finished_at'), 1, 10)"
_GROUPS: Mapping[SavingsBy, str] = {
    SavingsBy.WORKFLOW: "workflow_id",
    SavingsBy.PROJECT: "project_id",
    SavingsBy.DAY: _DAY,
}
_SAVINGS = """
    SELECT {group}, count(*), sum(json_extract(body, '$.from_cache')),
        sum(json_extract(body, '$.usage.input_uncached')
            + json_extract(body, '$.usage.cache_read')
            + json_extract(body, '$.usage.cache_write')
            + json_extract(body, '$.usage.output')),
        sum(json_extract(body, '$.cached_tokens_saved')),
        coalesce(sum(json_extract(body, '$.usage.cost_micros')), 0),
        coalesce(sum(json_extract(body, '$.cached_cost_micros_saved')), 0),
        sum(json_extract(body, '$.usage.cost_micros') IS NULL
            OR json_extract(body, '$.cached_cost_micros_saved') IS NULL),
        sum(json_extract(body, '$.seconds')),
        sum(json_extract(body, '$.cached_seconds_saved'))
    FROM record WHERE step_order > 0 AND status = 'succeeded'
    GROUP BY 1 ORDER BY 1
"""


class SqliteHistory:
    """A `HistoryStore` in a SQLite file.

    Args:
        path: The file; made on the first write.
        busy_seconds: How long a write waits for another writer.

    Raises:
        StoreUnusable: The path is a folder, or a file that is not ours.
    """

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._file = SqliteFile(path, _SCHEMA, busy_seconds=busy_seconds)

    def append(self, record: StepRecord) -> None:
        """Add a record; see `HistoryStore`."""
        row = (
            record.run_id,
            record.workflow_id,
            record.project_id,
            record.order,
            record.name,
            record.status.value,
            record.model_dump_json(),
        )
        self._file.run(lambda c: c.execute(_INSERT, row))

    def of_run(self, run_id: str) -> Sequence[StepRecord]:
        """Return a run's records, the newest of each step, by order; see `HistoryStore`."""
        return self._select(_OF_RUN, (run_id,))

    def of_step(
        self, workflow_id: str, project_id: str, name: str, *, run_id: str | None
    ) -> StepRecord | None:
        """Return a step's newest record that gave a result; see `HistoryStore`."""
        if run_id is None:
            found = self._select(_OF_STEP, (workflow_id, project_id, name))
        else:
            found = self._select(_OF_STEP_IN_RUN, (run_id, name, workflow_id, project_id))
        return found[0] if found else None

    def runs_like(self, prefix: str) -> Sequence[str]:
        """Return the ids of runs that begin with a text, newest first; see `HistoryStore`."""
        span = (prefix, prefix + "\U0010ffff")
        no_rows: list[tuple[str, int]] = []
        rows = self._file.run_if_present(
            lambda c: c.execute(_RUNS_LIKE, span).fetchall(), absent=no_rows
        )
        return [str(run_id) for run_id, _ in rows]

    def latest_run(self, workflow_id: str, project_id: str) -> str | None:
        """Return the run that last gave this project a result; see `HistoryStore`.

        The request alone, order 0, is no result.
        """

        def work(connection: sqlite3.Connection) -> str | None:
            rows = connection.execute(_LATEST_RUN, (workflow_id, project_id)).fetchall()
            return str(rows[0][0]) if rows else None

        return self._file.run_if_present(work, absent=None)

    def savings(self, by: SavingsBy) -> Sequence[Savings]:
        """Return what the cache saved, by group; see `HistoryStore`."""
        statement = _SAVINGS.format(group=_GROUPS[by])
        no_rows: list[tuple[object, ...]] = []
        rows = self._file.run_if_present(lambda c: c.execute(statement).fetchall(), absent=no_rows)
        names = list(Savings.model_fields)
        return [Savings.model_validate(dict(zip(names, row, strict=True))) for row in rows]

    def close(self) -> None:
        """Close idle connections; the next call opens the file again."""
        self._file.close()

    def _select(self, statement: str, arguments: tuple[str, ...]) -> list[StepRecord]:
        no_rows: list[tuple[int, str]] = []
        rows = self._file.run_if_present(
            lambda c: c.execute(statement, arguments).fetchall(), absent=no_rows
        )
        return [self._record(seq, body) for seq, body in rows]

    def _record(self, seq: int, body: str) -> StepRecord:
        try:
            return StepRecord.model_validate_json(body)
        except ValidationError as error:
            message = (
                f"history store {str(self._file.path)!r}: record {seq} is not what this version "
                "reads; upgrade Reprise, or remove that row"
            )
            raise StoreUnusable(message) from error
