"""How many calls a tenant's ScaledObjects may make: counted for each replica and monitor, by a bucket per tenant."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from typing import Final

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota, describe_excess
from lagscale.errors import LagscaleError, RateExceeded
from lagscale.rate_limit import TokenBuckets
from services.scaler.triggers.directory import ResolvedMonitor, ResolvedTrigger

#: KEDA asks without jitter: all of a tenant's monitors come in one moment of its `pollingInterval` of 30 s.
_BURST_SECONDS: Final = 30.0


class CallRateLimiter:
    """The tenants' calls in this replica."""

    def __init__(self, limit_of: Callable[[int], int | None], clock: Callable[[], float] = time.monotonic) -> None:
        """`limit_of` is a tenant's quota by its number; None while it is not known."""
        self._limit_of = limit_of
        self._buckets = TokenBuckets(clock)

    def count_calls(self, monitor: ResolvedMonitor, calls: int = 1) -> RateExceeded | None:
        """Count calls; the error where they are too many."""
        limit = self._limit_of(monitor.tenant_id) or DEFAULT_QUOTAS[Quota.CALLS]
        wait = self._buckets.take(monitor.tenant_id, limit, limit * _BURST_SECONDS, calls)
        if wait == 0.0:
            return None
        return RateExceeded(
            describe_excess(Quota.CALLS, limit), quota=Quota.CALLS.value, retry_after_seconds=ceil(wait)
        )

    def admit_stream(self, resolved: ResolvedTrigger) -> None:
        """Count the opening of a stream; what it looks at later is no call.

        Raises:
            LagscaleError: the tenant makes too many calls, or no monitor is there at all.
        """
        monitors = [entry for entry in resolved.entries if isinstance(entry, ResolvedMonitor)]
        if not monitors:
            list(resolved.iter_monitors())
        error: LagscaleError | None = self.count_calls(monitors[0], len(monitors)) if monitors else None
        if error is not None:
            raise error
