"""Token buckets: an average rate and a burst size. In the memory of this process, so limits apply per replica.

Own code because no library among the dependencies has buckets whose rate the caller gives, and may change, per call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cachetools import LRUCache

#: Maximum number of buckets, so that unknown callers cannot fill the memory. An evicted bucket is full again.
_MAX_BUCKETS = 50_000
#: A wait is rounded to microseconds, so that rounding errors do not count as a wait.
_DIGITS = 6


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """One bucket per key; the caller gives the rate at each call. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._by_key: LRUCache[Hashable, _TokenBucket] = LRUCache(_MAX_BUCKETS)

    def take(self, key: Hashable, per_second: float, burst: float, tokens: float = 1.0) -> float:
        """Take tokens and return 0, or take none and return the seconds until they are available.

        Args:
            key: of the bucket.
            per_second: above 0. A changed rate applies from now on, to an existing bucket too.
            burst: capacity; a request for more tokens needs a full bucket.
            tokens: number of tokens.
        """
        wait, bucket = self._refill(key, per_second, burst, tokens)
        if wait == 0.0:
            bucket.tokens -= tokens
            self._by_key[key] = bucket
        return wait

    def wait(self, key: Hashable, per_second: float, burst: float, tokens: float = 1.0) -> float:
        """Seconds until the tokens are available, 0 if they are; takes none."""
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
        burst: capacity, at least 1.
        clock: see `TokenBuckets`.
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._buckets = TokenBuckets(clock)

    def take(self, name: str) -> float:
        """Take one token and return 0, or take none and return the seconds until one is available."""
        return self._buckets.take(name, self.per_second, self.burst)

    def wait(self, name: str) -> float:
        """Seconds until a token is available, 0 if one is; takes none."""
        return self._buckets.wait(name, self.per_second, self.burst)
