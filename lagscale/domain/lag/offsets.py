"""Offsets as a cluster answered them, checked before they are subtracted and summed.

The scraper and the probe build `Offsets` here only, whatever a broker, a proxy or a commit says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lagscale.domain.lag.samples import Offsets

#: The greatest offset: JSON and double precision carry it exactly, and a partition with a million messages per second
#: takes 285 years to get there.
MAX_OFFSET: Final = 2**53
#: The greatest lag of a topic: that of 10,000 topics of a monitor still fits into a bigint.
MAX_TOPIC_LAG: Final = 2**49


class OffsetInvalid(ValueError):
    """An offset that no partition can have; the text names it."""


def build_offsets(partition: int, start: int, end: int, committed: int | None, high: int) -> Offsets:
    """One partition's offsets.

    Raises:
        OffsetInvalid: one of them is negative, or above the greatest.
    """
    named = (("log start", start), ("end", end), ("committed", committed), ("high watermark", high))
    for name, offset in named:
        if offset is not None and not 0 <= offset <= MAX_OFFSET:
            raise OffsetInvalid(f"partition {partition}: {name} offset {offset}")
    return Offsets(start, end, committed, high)


def sum_topic_lag(lags: Iterable[int]) -> int:
    """The lag of a topic's partitions together.

    Raises:
        OffsetInvalid: it is above the greatest.
    """
    total = sum(lags)
    if total > MAX_TOPIC_LAG:
        raise OffsetInvalid(f"total lag {total}")
    return total
