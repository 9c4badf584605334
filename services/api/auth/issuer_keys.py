"""Public keys of the token issuer by OpenID discovery: refreshed in the background, cached while it is unavailable."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import structlog

from lagscale.errors import IssuerUnavailable, LagscaleError
from lagscale.rate_limit import RateLimiter

log = structlog.get_logger(__name__)

#: Timeout of a fetch, seconds.
_FETCH_SECONDS = 3.0
#: Age at which keys are refreshed in the background, seconds.
_FRESH_SECONDS = 300.0
#: Age at which cached keys expire while the issuer is unavailable, seconds; else a revoked key would never expire.
_USABLE_SECONDS = 3600.0
#: Pause after a failed fetch, seconds.
_PAUSE_SECONDS = 2.0
#: Unknown key ids cause a fetch, since the issuer may have rotated its keys; limited, since anyone can send such ids.
_REFETCHES_PER_SECOND, _REFETCH_BURST = 0.2, 3.0
_KEY_TYPES = frozenset({"RSA", "EC", "OKP"})
_PATH = "/.well-known/openid-configuration"

IssuerKey = Mapping[str, Any]


class IssuerKeys:
    """Finds keys by their ids.

    Args:
        issuer: URL of the issuer; discovery must return the same.
        ca_file: PEM file of its certificate authorities; None for the public ones.
        transport: for tests.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        issuer: str,
        ca_file: Path | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        verify = True if ca_file is None else ssl.create_default_context(cafile=str(ca_file))
        self._issuer = issuer
        self._http = httpx.AsyncClient(timeout=_FETCH_SECONDS, transport=transport, verify=verify)
        self._clock = clock
        self._refetch_rates = RateLimiter(_REFETCHES_PER_SECOND, _REFETCH_BURST, clock=clock)
        self._keys: dict[str, IssuerKey] = {}
        self._read_at = float("-inf")
        self._failed_at = float("-inf")
        self._fetch: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Cancel a fetch, and close the connections."""
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.gather(self._fetch, return_exceptions=True)
        await self._http.aclose()

    async def find(self, kid: str | None) -> IssuerKey | None:
        """The key of this id, or the only key where a token has no key id; None if the issuer has no such key.

        Raises:
            IssuerUnavailable: it is not cached, and the issuer does not answer.
        """
        age = self._clock() - self._read_at
        if age > _USABLE_SECONDS:
            await self._await_fetch()
        elif age > _FRESH_SECONDS and not self._is_paused():
            self._start_fetch()
        key = self._find_cached(kid)
        if key is None and age <= _USABLE_SECONDS and self._refetch_rates.take("unknown") == 0:
            await self._await_fetch()
            key = self._find_cached(kid)
        return key

    def _find_cached(self, kid: str | None) -> IssuerKey | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    def _is_paused(self) -> bool:
        return self._clock() - self._failed_at < _PAUSE_SECONDS

    async def _await_fetch(self) -> None:
        """Wait for a fetch, which all callers share."""
        if self._is_paused():
            raise IssuerUnavailable
        # Shielded, because a caller that disconnects must not cancel it for the others.
        await asyncio.shield(self._start_fetch())
        if self._is_paused():
            raise IssuerUnavailable

    def _start_fetch(self) -> asyncio.Task[None]:
        if self._fetch is None or self._fetch.done():
            self._fetch = asyncio.create_task(self._fetch_once(), name="issuer-keys")
        return self._fetch

    async def _fetch_once(self) -> None:
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                self._keys = await self._read()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError, LagscaleError) as error:
            self._failed_at = self._clock()
            log.warning(
                "issuer_keys_refresh_failed", issuer=self._issuer, error=type(error).__name__, reason=str(error)
            )
        else:
            self._read_at, self._failed_at = self._clock(), float("-inf")
            log.info("issuer_keys_read", issuer=self._issuer, ids=sorted(self._keys))

    async def _read(self) -> dict[str, IssuerKey]:
        found = await self._get(self._issuer.rstrip("/") + _PATH)
        address = found.get("jwks_uri")
        # Else one issuer could sign for another.
        if found.get("issuer") != self._issuer or not isinstance(address, str):
            raise LagscaleError("Discovery returned another issuer than LAGSCALE_API_OIDC_ISSUER, or no jwks_uri.")
        if self._issuer.startswith("https://") and not address.startswith("https://"):
            raise LagscaleError("Discovery of an https issuer returned a jwks_uri without https.")
        keys = (await self._get(address)).get("keys")
        usable = [key for key in keys if _is_usable(key)] if isinstance(keys, list) else []
        if not usable:
            raise LagscaleError("The issuer publishes no public key for signatures.")
        return {str(key.get("kid", "")): key for key in usable}

    async def _get(self, url: str) -> dict[str, Any]:
        answer = await self._http.get(url)
        answer.raise_for_status()
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise LagscaleError("The issuer's response is not a JSON object.")
        return content


def _is_usable(key: object) -> bool:
    # A published symmetric key would let everybody who reads it sign.
    return isinstance(key, dict) and key.get("kty") in _KEY_TYPES and key.get("use", "sig") == "sig"
