"""Whether a backlog is going by itself: the line through its samples, and when that reaches the threshold.

Part of the reference of the verdict. Least squares in whole numbers, so that every engine draws the same line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: Fewer samples make no line.
MIN_SAMPLES: Final = 3


def will_recover(samples: Sequence[tuple[int, int]], at_ms: int, level: int, within_ms: int) -> bool:
    """Whether the least-squares line falls and is at the level, or below it, `within_ms` after `at_ms`.

    Args:
        samples: (time in milliseconds, messages), at least `MIN_SAMPLES` of them, or it cannot be told.
        at_ms: T.
        level: messages.
        within_ms: `drainSeconds`.
    """
    count = len(samples)
    if count < MIN_SAMPLES:
        return False
    times = [time_ms - at_ms for time_ms, _ in samples]
    lags = [lag for _, lag in samples]
    sum_t, sum_lag = sum(times), sum(lags)
    # Slope and height as fractions over one positive denominator.
    spread = count * sum(t * t for t in times) - sum_t * sum_t
    slope = count * sum(t * lag for t, lag in zip(times, lags, strict=True)) - sum_t * sum_lag
    return slope < 0 and sum_lag * spread + slope * (count * within_ms - sum_t) <= level * count * spread
