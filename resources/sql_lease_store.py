"""Leases in an SQL database: each call one statement, on the database's own clock.

No advisory locks: they belong to a session, are lost on a pooler and stay with a frozen client. A
lease that says it was taken in the future is void: the clock of its host was set back since.

Extend tests/integration/test_lease_store_contract.py, which all lease stores pass.

Source: specification C14.
"""

from reprise.model.cache import Lease
from resources.sql_database import SqlDatabase

CLOCK_SLACK_SECONDS = 2.0
"""How far in the future a lease may claim to have been taken."""

_MICROS = 1_000_000
_MINE = "project_id = ? AND cache_key = ? AND holder = ? AND fence = ?"


class SqlLeaseStore:
    """A `LeaseStore` in an SQL database, in the file or schema of the entries.

    Args:
        database: The database, its tables made by it on first use.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        now = database.dialect.now_micros
        self._acquire = f"""
            INSERT INTO lease (project_id, cache_key, holder, fence, renewed_at, expires_at)
            VALUES (?, ?, ?, 1, {now}, {now} + ?)
            ON CONFLICT (project_id, cache_key) DO UPDATE SET
                holder = excluded.holder, fence = lease.fence + 1,
                renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
            WHERE lease.expires_at <= {now} OR lease.renewed_at > {now} + ?
                OR lease.holder = excluded.holder
            RETURNING fence
        """
        self._renew = f"""
            UPDATE lease SET renewed_at = {now}, expires_at = {now} + ? WHERE {_MINE}
        """
        self._remaining = f"""
            SELECT expires_at - {now} FROM lease WHERE project_id = ? AND cache_key = ?
        """

    def acquire(
        self, project_id: str, cache_key: str, *, holder: str, seconds: float
    ) -> Lease | None:
        """Take the lease for so long; None while another holder has it; see `LeaseStore`."""
        slack = int(CLOCK_SLACK_SECONDS * _MICROS)
        values = (project_id, cache_key, holder, int(seconds * _MICROS), slack)
        rows = self._database.rows(self._acquire, values, write=True)
        if not rows:
            return None
        return Lease(
            project_id=project_id, cache_key=cache_key, holder=holder, fence=int(rows[0][0])
        )

    def renew(self, lease: Lease, *, seconds: float) -> bool:
        """Have it for so long from now; False when it was lost; see `LeaseStore`."""
        return self._database.count(self._renew, (int(seconds * _MICROS), *_values(lease))) > 0

    def release(self, lease: Lease) -> None:
        """Give it up; see `LeaseStore`."""
        # The row stays, so that the next holder's fence is a higher one; without its holder, or a
        # heartbeat that is under way would bring it back.
        statement = f"UPDATE lease SET holder = '', renewed_at = 0, expires_at = 0 WHERE {_MINE}"
        self._database.count(statement, _values(lease))

    def remaining_seconds(self, project_id: str, cache_key: str) -> float:
        """Return how long the present holder still has it; see `LeaseStore`."""
        rows = self._database.rows(self._remaining, (project_id, cache_key))
        return max(0.0, float(rows[0][0]) / _MICROS) if rows else 0.0

    def holds(self, lease: Lease) -> bool:
        """Answer whether nobody took it since; see `LeaseStore`."""
        return bool(self._database.rows(f"SELECT 1 FROM lease WHERE {_MINE}", _values(lease)))

    def close(self) -> None:
        """Close idle connections; the next call opens new ones."""
        self._database.close()


def _values(lease: Lease) -> tuple[object, ...]:
    return (lease.project_id, lease.cache_key, lease.holder, lease.fence)
