"""Milliseconds and datetimes are the same times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from lagscale.clock import to_datetime, to_ms


@given(st.integers(min_value=-(10**12), max_value=4 * 10**12))
def test_a_time_comes_back_exactly(at_ms: int) -> None:
    assert to_ms(to_datetime(at_ms)) == at_ms


def test_a_time_zone_is_respected() -> None:
    assert to_ms(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
    assert to_datetime(1_500).tzinfo is UTC


def test_microseconds_round_down() -> None:
    assert to_ms(datetime(1970, 1, 1, microsecond=1_999, tzinfo=UTC)) == 1
