"""Hits counted in memory and written down later: a touch costs more than the look-up itself.

A hit costs a dictionary entry. A row's uses become due when its `last_used_at` in the database is
an hour old; the store writes them in one statement when enough are due, and all of them when it is
flushed at the end of a run. A process that dies loses its own counts and nothing else.

Source: specification C16, C24.
"""

import os
import threading
from dataclasses import dataclass

TOUCH_MICROS = 3600 * 1_000_000
DUE_ROWS_MAX = 64
PENDING_ROWS_MAX = 4096
"""With so many rows waiting all are written, due or not."""


@dataclass
class Use:
    """Uses of one row that are not written down."""

    row_id: int
    hits: int
    last_used_at: int
    due: bool


class EntryUses:
    """Uses by row; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._uses: dict[int, Use] = {}
        self._due = 0

    def record(self, row_id: int, *, written_at: int, now: int) -> bool:
        """Count a use; answer whether it is time to write some down.

        Args:
            row_id: The row.
            written_at: Its `last_used_at` in the database, in microseconds.
            now: The moment of this use, in microseconds.
        """
        with self._lock:
            if self._process != os.getpid():
                # The parent writes its own counts.
                self._process, self._uses, self._due = os.getpid(), {}, 0
            use = self._uses.setdefault(row_id, Use(row_id, 0, now, due=False))
            use.hits += 1
            use.last_used_at = max(use.last_used_at, now)
            if not use.due and now - written_at >= TOUCH_MICROS:
                use.due = True
                self._due += 1
            return self._due >= DUE_ROWS_MAX or len(self._uses) >= PENDING_ROWS_MAX

    def take(self, *, due_only: bool = False) -> list[Use]:
        """Return uses to write down, by row, and forget them."""
        with self._lock:
            everything = not due_only or len(self._uses) >= PENDING_ROWS_MAX
            taken = [use for use in self._uses.values() if everything or use.due]
            for use in taken:
                del self._uses[use.row_id]
            self._due = 0
        return sorted(taken, key=lambda use: use.row_id)
