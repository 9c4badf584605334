"""Offsets as a cluster answers them: what no partition can have is refused, and named."""

from __future__ import annotations

import pytest

from lagscale.domain.lag.offsets import MAX_OFFSET, MAX_TOPIC_LAG, OffsetInvalid, build_offsets, sum_topic_lag
from lagscale.domain.lag.samples import Offsets


@pytest.mark.parametrize(
    ("start", "end", "committed", "high", "named"),
    [
        (-1, 5, 3, 5, "log start offset -1"),
        (0, 2**62, 3, 5, f"end offset {2**62}"),
        (0, 5, -2, 5, "committed offset -2"),
        (0, 5, MAX_OFFSET + 1, 5, f"committed offset {MAX_OFFSET + 1}"),
        (0, 5, 3, 2**63 - 1, f"high watermark offset {2**63 - 1}"),
    ],
)
def test_an_offset_that_no_partition_has_is_refused_by_name(
    start: int, end: int, committed: int, high: int, named: str
) -> None:
    with pytest.raises(OffsetInvalid, match=f"^partition 7: {named}$"):
        build_offsets(7, start, end, committed, high)


def test_the_greatest_offset_and_no_commit_are_fine() -> None:
    assert build_offsets(0, 0, MAX_OFFSET, None, MAX_OFFSET) == Offsets(0, MAX_OFFSET, None, MAX_OFFSET)


def test_the_lags_of_a_topic_have_a_greatest_sum() -> None:
    assert sum_topic_lag([MAX_TOPIC_LAG - 1, 1]) == MAX_TOPIC_LAG
    with pytest.raises(OffsetInvalid, match=f"^total lag {MAX_TOPIC_LAG + 1}$"):
        sum_topic_lag([MAX_TOPIC_LAG, 1])


def test_a_bigint_carries_ten_thousand_topics() -> None:
    assert 10_000 * MAX_TOPIC_LAG < 2**63
