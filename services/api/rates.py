"""How often something may happen by name: token buckets in the memory of this replica. Whoever limits calls uses them."""

from __future__ import annotations

import time
from collections.abc import Callable

from cachetools import LRUCache

#: Names remembered; a forgotten one has a full bucket again, so that strangers cannot fill the memory.
_MOST_NAMES = 20_000


class Rates:
    """A bucket for each name: it holds `burst` at most and is filled with `per_second`.

    Args:
        per_second: above 0.
        burst: at least 1; how many may come at once after a rest.
        clock: seconds, monotonic.
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._clock = clock
        # When the bucket will be full again: one number tells all of it. A time in the past means full.
        self._full_at: LRUCache[str, float] = LRUCache(_MOST_NAMES)

    def take(self, name: str) -> float:
        """Take one if there is one: 0 then, else the seconds until there is one, and nothing is taken."""
        wait = self.wait(name)
        if wait == 0:
            self._full_at[name] = max(self._full_at.get(name, 0.0), self._clock()) + 1 / self.per_second
        return wait

    def wait(self, name: str) -> float:
        """Seconds until one can be taken; 0 for now. Takes nothing."""
        full_in = self._full_at.get(name, 0.0) - self._clock()
        # Taking one makes it full 1/rate later; an empty bucket needs burst/rate. Rounded, so that 0 is 0.
        return max(0.0, round(full_in - (self.burst - 1) / self.per_second, 6))
