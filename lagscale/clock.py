"""Milliseconds since 1970, as the domain counts time, and datetimes, as the database and people do; for every room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def to_datetime(at_ms: int) -> datetime:
    """The time in UTC; exact, where a division by 1,000 would round."""
    return _EPOCH + at_ms * _MILLISECOND


def to_ms(at: datetime) -> int:
    """The whole milliseconds since 1970 of a time with a time zone, rounded down."""
    return (at - _EPOCH) // _MILLISECOND
