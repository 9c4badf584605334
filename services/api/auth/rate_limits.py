"""Rate limits of this replica: requests per key, failed attempts per address, and requests per tenant.

The limits of tenants are read in the background, so that no request needs one more statement for them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections.abc import Callable, Mapping

import structlog
from cachetools import TTLCache

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota, describe_excess
from lagscale.errors import LagscaleError, RateExceeded
from lagscale.rate_limit import RateLimiter, TokenBuckets
from lagscale.store.registry import quotas
from lagscale.store.registry.session import RegistryDatabase
from services.api import metrics

log = structlog.get_logger(__name__)

#: How long an authenticated caller is exempt from the limit of its address, seconds; and how many are remembered.
_SUCCESS_SECONDS = 600
_MAX_SUCCESSES = 10_000
#: How far a tenant may burst above its rate, seconds of it; and how often the limits are read, seconds.
_TENANT_BURST_SECONDS = 10.0
_TENANT_REFRESH_SECONDS = 5.0
#: Prefix length of the IPv6 network of one household or host.
_IPV6_BITS = 64


class AuthRateLimiter:
    """Limits requests per key and failed attempts per address; None in place of rates means no limit."""

    def __init__(self, key_rates: RateLimiter | None = None, failure_rates: RateLimiter | None = None) -> None:
        self._key_rates = key_rates
        self._failure_rates = failure_rates
        self._recent_successes: TTLCache[bytes, bool] = TTLCache(_MAX_SUCCESSES, _SUCCESS_SECONDS)

    def check_address(self, digest: bytes, address: str | None) -> None:
        """Refuse an address with too many failed attempts, before its key is looked up.

        A caller that authenticated a short while ago is exempt: else a stranger behind the same proxy could lock it out.

        Raises:
            RateExceeded: too many failed attempts from this address.
        """
        if self._failure_rates is None or digest in self._recent_successes:
            return
        wait = self._failure_rates.wait(_group_address(address))
        if wait > 0:
            metrics.RATE_LIMITED.labels("address").inc()
            raise _build_rate_error(
                "Too many failed authentication attempts from this address", wait, "Check the key that is sent."
            )

    def count(self, name: str) -> None:
        """Count a request of the key or subject of that name.

        Raises:
            RateExceeded: it exceeds its rate.
        """
        if self._key_rates is None:
            return
        wait = self._key_rates.take(name)
        if wait > 0:
            metrics.RATE_LIMITED.labels("key").inc()
            rate = f"{self._key_rates.per_second:g} requests/s, bursts of {self._key_rates.burst:g}"
            raise _build_rate_error(
                f"Rate limit exceeded for this API key ({rate})", wait, "LAGSCALE_API_RATE_LIMIT sets the limit."
            )

    def record_success(self, digest: bytes) -> None:
        """Remember that the key of this digest is valid."""
        self._recent_successes[digest] = True

    def record_failure(self, digest: bytes | None, address: str | None, reason: str) -> None:
        """Count a failed attempt with the key of this digest; None: no key was sent, which counts for no address."""
        metrics.FAILED_ATTEMPTS.labels(reason).inc()
        log.info("authentication_failed", reason=reason, client=address)
        if digest is None:
            return
        self._recent_successes.pop(digest, None)
        if self._failure_rates is not None:
            self._failure_rates.take(_group_address(address))


def _build_rate_error(what: str, wait: float, remediation: str) -> RateExceeded:
    seconds = max(1, math.ceil(wait))
    return RateExceeded(f"{what}; retry after {seconds} s. {remediation}", retry_after_seconds=seconds)


def _group_address(address: str | None) -> str:
    """The address, or the network of an IPv6 address."""
    if address is None or ":" not in address:
        return address or "none"
    return str(ipaddress.ip_network((address, _IPV6_BITS), strict=False))


class TenantRateLimiter:
    """Limits the requests of each tenant's keys."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits: Mapping[int, int] = {}
        self._buckets = TokenBuckets(clock)

    def count(self, tenant_id: int | None) -> None:
        """Count a request of a tenant's key; None is the platform's, which has no quota.

        Raises:
            RateExceeded: over the tenant's rate; the fact `retry_after_seconds` is when the next one is served.
        """
        if tenant_id is None:
            return
        # A tenant that was created in the last seconds has the default.
        limit = self._limits.get(tenant_id, DEFAULT_QUOTAS[Quota.REQUESTS])
        wait = self._buckets.take(tenant_id, limit, limit * _TENANT_BURST_SECONDS)
        if wait > 0.0:
            metrics.TENANT_RATE_LIMITED.inc()
            raise RateExceeded(
                describe_excess(Quota.REQUESTS, limit), quota=Quota.REQUESTS.value, retry_after_seconds=math.ceil(wait)
            )

    async def read(self, database: RegistryDatabase) -> None:
        """Read the stored limits.

        Raises:
            StoreUnavailable: the store did not answer; the previous limits stay in force.
        """
        async with database.platform("quotas") as session:
            self._limits = await quotas.read_request_rates(session)

    async def run(self, database: RegistryDatabase) -> None:
        """Refresh the limits until cancelled."""
        while True:
            try:
                await self.read(database)
            except LagscaleError as error:
                log.info("quota_refresh_failed", error=type(error).__name__)
            except Exception:
                # The loop must go on; a half-migrated schema fails like this too.
                log.exception("quota_refresh_failed")
            await asyncio.sleep(_TENANT_REFRESH_SECONDS)
