"""A clock that moves a second each time it is asked."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Answers the time; aware, UTC."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now
