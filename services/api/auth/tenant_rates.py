"""How many requests a tenant's keys may make, counted in this replica. The limits are read beside the requests.

So no request runs one statement more for it, whoever asks and whatever is there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import Final

import structlog

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota, describe_excess
from lagscale.errors import LagscaleError, RateExceeded
from lagscale.rate_limit import TokenBuckets
from lagscale.store.registry import quotas
from lagscale.store.registry.session import RegistryDatabase
from services.api import metrics

log = structlog.get_logger(__name__)

_BURST_SECONDS: Final = 10.0
_REFRESH_SECONDS: Final = 5.0


class TenantRateLimiter:
    """The tenants' requests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits: Mapping[int, int] = {}
        self._buckets = TokenBuckets(clock)

    def count(self, tenant_id: int | None) -> None:
        """Count a request of a tenant's key; None is the platform's, which has no quota.

        Raises:
            RateExceeded: too many in a short time; `retry_after_seconds` of its facts says after how many seconds one more is served.
        """
        if tenant_id is None:
            return
        # A tenant of the last seconds has what every new tenant has.
        limit = self._limits.get(tenant_id, DEFAULT_QUOTAS[Quota.REQUESTS])
        wait = self._buckets.take(tenant_id, limit, limit * _BURST_SECONDS)
        if wait > 0.0:
            metrics.TENANT_RATE_LIMITED.inc()
            raise RateExceeded(
                describe_excess(Quota.REQUESTS, limit), quota=Quota.REQUESTS.value, retry_after_seconds=ceil(wait)
            )

    async def read(self, database: RegistryDatabase) -> None:
        """Take the limits as they are stored now.

        Raises:
            StoreUnavailable: the store did not answer; the former limits hold.
        """
        async with database.platform("quotas") as session:
            self._limits = await quotas.read_request_rates(session)

    async def run(self, database: RegistryDatabase) -> None:
        """Follow the stored limits, for ever."""
        while True:
            try:
                await self.read(database)
            except LagscaleError as error:
                log.info("quotas_not_read", error=type(error).__name__)
            except Exception:
                # The loop must go on; this is also what a half-migrated schema looks like.
                log.exception("quotas_not_read")
            await asyncio.sleep(_REFRESH_SECONDS)
