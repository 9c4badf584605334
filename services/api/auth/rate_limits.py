"""Limits before work is done: how often one key may ask, and how often one address may fail. For this replica."""

from __future__ import annotations

import ipaddress
import math

import structlog
from cachetools import TTLCache
from prometheus_client import Counter

from lagscale.errors import RateExceeded
from lagscale.rate_limit import RateLimiter

log = structlog.get_logger(__name__)

FAILED_ATTEMPTS = Counter(
    "lagscale_api_failed_attempts", "Attempts to authenticate that failed, by reason.", ["reason"]
)
RATE_LIMITED = Counter(
    "lagscale_api_rate_limited", "Requests refused because too many came: of one `key`, or failures of an `address`.",
    ["of"],
)  # fmt: skip
#: For so long a caller that proved itself is not refused for its address, seconds; and how many are remembered.
_SUCCESS_SECONDS = 600
_MAX_SUCCESSES = 10_000
#: A household or a host has so many bits of IPv6 addresses to itself.
_IPV6_BITS = 64


class AuthRateLimiter:
    """Counts, and refuses what is too much. None in place of rates means no limit."""

    def __init__(self, key_rates: RateLimiter | None = None, failure_rates: RateLimiter | None = None) -> None:
        self._key_rates = key_rates
        self._failure_rates = failure_rates
        self._recent_successes: TTLCache[bytes, bool] = TTLCache(_MAX_SUCCESSES, _SUCCESS_SECONDS)

    def check_address(self, digest: bytes, address: str | None) -> None:
        """Before a key is looked up: may this address try at all?

        Whoever proved itself a short while ago may: else a stranger behind the same proxy could keep it out.

        Raises:
            RateExceeded: too many attempts from there have failed.
        """
        if self._failure_rates is None or digest in self._recent_successes:
            return
        wait = self._failure_rates.wait(_group_address(address))
        if wait > 0:
            RATE_LIMITED.labels("address").inc()
            raise _build_rate_error(
                "Too many attempts from this address have failed", "check the key that is sent", wait
            )

    def count(self, name: str) -> None:
        """One request of the key or subject of that name.

        Raises:
            RateExceeded: it asks too often.
        """
        if self._key_rates is None:
            return
        wait = self._key_rates.take(name)
        if wait > 0:
            RATE_LIMITED.labels("key").inc()
            rate = f"This key may ask {self._key_rates.per_second:g} times a second, {self._key_rates.burst:g} at once"
            raise _build_rate_error(rate, "go on more slowly, or ask for a higher LAGSCALE_API_RATE_LIMIT", wait)

    def record_success(self, digest: bytes) -> None:
        """What has this digest is valid."""
        self._recent_successes[digest] = True

    def record_failure(self, digest: bytes | None, address: str | None, reason: str) -> None:
        """What has this digest is not valid; None where nothing was sent, which costs nobody anything."""
        FAILED_ATTEMPTS.labels(reason).inc()
        log.info("attempt_failed", reason=reason, client=address)
        if digest is None:
            return
        self._recent_successes.pop(digest, None)
        if self._failure_rates is not None:
            self._failure_rates.take(_group_address(address))


def _build_rate_error(what: str, remediation: str, wait: float) -> RateExceeded:
    seconds = max(1, math.ceil(wait))
    return RateExceeded(f"{what}; retry after {seconds} s, {remediation}.", retry_after_seconds=seconds)


def _group_address(address: str | None) -> str:
    """Whom an address stands for: itself, or all of its IPv6 network."""
    if address is None or ":" not in address:
        return address or "none"
    return str(ipaddress.ip_network((address, _IPV6_BITS), strict=False))
