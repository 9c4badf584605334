"""The rate limit of calls: a token bucket per tenant in each replica; a call counts once per monitor."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota, describe_excess
from lagscale.errors import LagscaleError, RateExceeded
from lagscale.rate_limit import TokenBuckets
from services.scaler import deadlines
from services.scaler.triggers.directory import ResolvedMonitor, ResolvedTrigger


class CallRateLimiter:
    """Counts the calls of each tenant in this replica."""

    def __init__(self, limit_of: Callable[[int], int | None], clock: Callable[[], float] = time.monotonic) -> None:
        """`limit_of` returns a tenant's quota of calls per second by its id; None while it is unknown."""
        self._limit_of = limit_of
        self._buckets = TokenBuckets(clock)

    def count_calls(self, monitor: ResolvedMonitor, calls: int = 1) -> RateExceeded | None:
        """Count calls; returns the error if they exceed the quota."""
        limit = self._limit_of(monitor.tenant_id) or DEFAULT_QUOTAS[Quota.CALLS]
        wait = self._buckets.take(monitor.tenant_id, limit, limit * deadlines.CALL_BURST_SECONDS, calls)
        if wait == 0.0:
            return None
        return RateExceeded(
            describe_excess(Quota.CALLS, limit), quota=Quota.CALLS.value, retry_after_seconds=ceil(wait)
        )

    def admit_stream(self, resolved: ResolvedTrigger) -> None:
        """Count the opening of a stream; its later evaluations are not calls.

        Raises:
            LagscaleError: the tenant exceeds its call quota, or none of the monitors exists.
        """
        monitors = [entry for entry in resolved.entries if isinstance(entry, ResolvedMonitor)]
        if not monitors:
            list(resolved.iter_monitors())
        error: LagscaleError | None = self.count_calls(monitors[0], len(monitors)) if monitors else None
        if error is not None:
            raise error
