"""For how long the oldest message that nobody has read has waited: from stored end offsets, in milliseconds.

Part of the reference of the verdict. The moment at which a message came lies between two neighbouring stored ends, of
which only the newer one counts it; so it needs no message to be read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from lagscale.domain.measured import Point
from lagscale.domain.signal import TimeLag

NONE = TimeLag(0, 0, 0)


def time_lags(points: Sequence[Point], lag: Callable[[Point], int]) -> list[TimeLag]:
    """The time lag at each sample of a partition.

    1. Without lag it is 0.
    2. Only ends under the sample's own topic id count, and none from before the end last fell.
    3. The message came after the last end that is not above the position, and no later than the next one.

    Args:
        points: the partition's samples, oldest first, none before its birth.
        lag: messages that count at a sample.
    """
    found: list[TimeLag] = []
    course: list[Point] = []
    for point in points:
        if course and (point.epoch != course[-1].epoch or point.sample.end < course[-1].sample.end):
            course.clear()
        course.append(point)
        found.append(_passed(course, point) if lag(point) > 0 else NONE)
    return found


def _passed(course: Sequence[Point], point: Point) -> TimeLag:
    position = point.sample.position
    first = bisect_right(course, position, key=lambda one: one.sample.end)
    passed = course[first]
    lower = point.at_ms - passed.at_ms
    if first == 0:
        return TimeLag(lower, lower, None)
    before = course[first - 1]
    produced = passed.sample.end - before.sample.end
    # In whole numbers, so that every engine says the same.
    crossed = before.at_ms + (position - before.sample.end) * (passed.at_ms - before.at_ms) // produced
    return TimeLag(lower, point.at_ms - crossed, point.at_ms - before.at_ms)
