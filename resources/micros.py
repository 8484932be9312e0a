"""Moments as whole microseconds since 1970, which is how the databases keep them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Return microseconds since 1970, exactly.

    Raises:
        ValueError: The moment has no time zone.
    """
    if moment.tzinfo is None:
        message = f"{moment!r} has no time zone; give an aware time, such as datetime.now(UTC)"
        raise ValueError(message)
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment, aware, UTC."""
    return _EPOCH + timedelta(microseconds=micros)
