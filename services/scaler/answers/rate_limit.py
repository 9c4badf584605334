"""How many calls a tenant's ScaledObjects may make: counted for each replica and monitor, by a bucket per tenant."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from typing import Final

from lagscale.domain.quotas import DEFAULTS, Quota, over_quota
from lagscale.errors import LagscaleError, RateExceeded
from lagscale.rate_limit import Buckets
from services.scaler.triggers.directory import Asked, Subject

#: KEDA asks without jitter: all of a tenant's monitors come in one moment of its `pollingInterval` of 30 s.
_BURST_SECONDS: Final = 30.0


class Rates:
    """The tenants' calls in this replica."""

    def __init__(self, limit_of: Callable[[int], int | None], clock: Callable[[], float] = time.monotonic) -> None:
        """`limit_of` is a tenant's quota by its number; None while it is not known."""
        self._limit_of = limit_of
        self._buckets = Buckets(clock)

    def over(self, subject: Subject, calls: int = 1) -> RateExceeded | None:
        """Count calls; the error where they are too many."""
        limit = self._limit_of(subject.tenant_id) or DEFAULTS[Quota.CALLS]
        wait = self._buckets.take(subject.tenant_id, limit, limit * _BURST_SECONDS, calls)
        if wait == 0.0:
            return None
        return RateExceeded(over_quota(Quota.CALLS, limit), quota=Quota.CALLS.value, retry_after_seconds=ceil(wait))

    def opens(self, asked: Asked) -> None:
        """Count the opening of a stream; what it looks at later is no call.

        Raises:
            LagscaleError: the tenant makes too many calls, or no monitor is there at all.
        """
        found = [entry for entry in asked.entries if isinstance(entry, Subject)]
        if not found:
            list(asked.subjects())
        error: LagscaleError | None = self.over(found[0], len(found)) if found else None
        if error is not None:
            raise error
