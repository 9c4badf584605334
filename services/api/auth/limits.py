"""Limits before work is done: how often one key may ask, and how often one address may fail. For this replica."""

from __future__ import annotations

import ipaddress
import math

import structlog
from cachetools import TTLCache
from prometheus_client import Counter

from lagscale.errors import RateExceeded
from lagscale.rate_limit import Rates

log = structlog.get_logger(__name__)

FAILED = Counter("lagscale_api_failed_attempts", "Attempts to authenticate that failed, by reason.", ["reason"])
LIMITED = Counter(
    "lagscale_api_rate_limited", "Requests refused because too many came: of one `key`, or failures of an `address`.",
    ["of"],
)  # fmt: skip
#: For so long a caller that proved itself is not refused for its address, seconds; and how many are remembered.
_PROVEN_SECONDS = 600
_MOST_PROVEN = 10_000
#: A household or a host has so many bits of IPv6 addresses to itself.
_IPV6_BITS = 64


class Guard:
    """Counts, and refuses what is too much. None in place of rates means no limit."""

    def __init__(self, of_keys: Rates | None = None, of_failures: Rates | None = None) -> None:
        self._keys = of_keys
        self._failures = of_failures
        self._proven: TTLCache[bytes, bool] = TTLCache(_MOST_PROVEN, _PROVEN_SECONDS)

    def admit(self, digest: bytes, address: str | None) -> None:
        """Before a key is looked up: may this address try at all?

        Whoever proved itself a short while ago may: else a stranger behind the same proxy could keep it out.

        Raises:
            RateExceeded: too many attempts from there have failed.
        """
        if self._failures is None or digest in self._proven:
            return
        wait = self._failures.wait(_neighbourhood(address))
        if wait > 0:
            LIMITED.labels("address").inc()
            raise _exceeded("Too many attempts from this address have failed", "check the key that is sent", wait)

    def count(self, name: str) -> None:
        """One request of the key or subject of that name.

        Raises:
            RateExceeded: it asks too often.
        """
        if self._keys is None:
            return
        wait = self._keys.take(name)
        if wait > 0:
            LIMITED.labels("key").inc()
            rate = f"This key may ask {self._keys.per_second:g} times a second, {self._keys.burst:g} at once"
            raise _exceeded(rate, "go on more slowly, or ask for a higher LAGSCALE_KEY_RATE", wait)

    def proved(self, digest: bytes) -> None:
        """What has this digest is valid."""
        self._proven[digest] = True

    def failed(self, digest: bytes | None, address: str | None, reason: str) -> None:
        """What has this digest is not valid; None where nothing was sent, which costs nobody anything."""
        FAILED.labels(reason).inc()
        log.info("attempt_failed", reason=reason, client=address)
        if digest is None:
            return
        self._proven.pop(digest, None)
        if self._failures is not None:
            self._failures.take(_neighbourhood(address))


def _exceeded(what: str, way_out: str, wait: float) -> RateExceeded:
    seconds = max(1, math.ceil(wait))
    return RateExceeded(f"{what}; retry after {seconds} s, {way_out}.", retry_after_seconds=seconds)


def _neighbourhood(address: str | None) -> str:
    """Whom an address stands for: itself, or all of its IPv6 network."""
    if address is None or ":" not in address:
        return address or "none"
    return str(ipaddress.ip_network((address, _IPV6_BITS), strict=False))
