"""Token buckets: so many calls a second on average, and a burst at once. In this process's memory only.

For the scaler and the API: each replica counts by itself, so a limit holds for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cachetools import LRUCache

#: Buckets that are remembered; a forgotten one is full again, so that strangers cannot fill the memory.
_MAX_BUCKETS = 50_000
#: A wait is told to the microsecond, so that what arithmetic leaves over is none.
_DIGITS = 6


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """One bucket for each key; whoever takes says at what rate it is filled. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds and never goes back."""
        self._clock = clock
        self._by_key: LRUCache[Hashable, _TokenBucket] = LRUCache(_MAX_BUCKETS)

    def take(self, key: Hashable, per_second: float, burst: float, tokens: float = 1.0) -> float:
        """Take tokens if they are there: 0 then, else the seconds until they will be, and nothing is taken.

        Args:
            key: whose bucket.
            per_second: above 0. A rate that was changed counts from now on, also for what is in the bucket.
            burst: how many it holds at most; more are given at once only where more are asked for, and it is full.
            tokens: how many.
        """
        wait, bucket = self._refill(key, per_second, burst, tokens)
        if wait == 0.0:
            bucket.tokens -= tokens
            self._by_key[key] = bucket
        return wait

    def wait(self, key: Hashable, per_second: float, burst: float, tokens: float = 1.0) -> float:
        """Seconds until they can be taken; 0 for now. Takes nothing."""
        return self._refill(key, per_second, burst, tokens)[0]

    def _refill(self, key: Hashable, per_second: float, burst: float, tokens: float) -> tuple[float, _TokenBucket]:
        now = self._clock()
        capacity = max(burst, tokens)
        bucket = self._by_key.get(key)
        if bucket is None:
            bucket = _TokenBucket(capacity, now)
        bucket.tokens = min(bucket.tokens + max(now - bucket.filled_at, 0.0) * per_second, capacity)
        bucket.filled_at = now
        return max(0.0, round((tokens - bucket.tokens) / per_second, _DIGITS)), bucket


class RateLimiter:
    """Buckets of one rate, by name.

    Args:
        per_second: above 0.
        burst: at least 1; how many may come at once after a rest.
        clock: as of `TokenBuckets`.
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._buckets = TokenBuckets(clock)

    def take(self, name: str) -> float:
        """Take one if there is one: 0 then, else the seconds until there is one, and nothing is taken."""
        return self._buckets.take(name, self.per_second, self.burst)

    def wait(self, name: str) -> float:
        """Seconds until one can be taken; 0 for now. Takes nothing."""
        return self._buckets.wait(name, self.per_second, self.burst)
