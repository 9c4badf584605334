"""Token buckets: so many calls a second on average, and a burst at once. In this process's memory only.

For the scaler and the API: each replica counts by itself, so a limit holds for each of them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

#: Buckets that are remembered; the longest unused one is full again long before it is forgotten.
_MOST = 50_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Buckets:
    """One bucket for each key. Not for several threads."""

    def __init__(self, burst_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """A bucket holds what its rate gives in so many seconds."""
        self._burst = burst_seconds
        self._clock = clock
        self._kept: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def take(self, key: Hashable, per_second: float, tokens: float = 1.0) -> float:
        """Take tokens; 0 when they were there, else after how many seconds they will be."""
        now = self._clock()
        greatest = max(per_second * self._burst, tokens)
        bucket = self._kept.get(key)
        if bucket is None:
            bucket = self._kept[key] = _Bucket(greatest, now)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        # A rate that was changed counts from now on, also for what is in the bucket.
        bucket.tokens = min(bucket.tokens + max(now - bucket.at, 0.0) * per_second, greatest)
        bucket.at = now
        if bucket.tokens < tokens:
            return (tokens - bucket.tokens) / per_second
        bucket.tokens -= tokens
        return 0.0
