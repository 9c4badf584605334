"""One replica of the API in this process, with the identification that a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.probe.runner import ProbeRunner
from lagscale.kafka.secrets import SecretSources
from lagscale.store import connection as silence
from lagscale.store.connection import open_pool
from lagscale.store.encryption import Keyring, generate_key
from lagscale.store.registry.session import RegistryDatabase
from lagscale.store.samples.read import RoundReader
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.api.app import ApiParts, create_app
from services.api.auth.authenticator import Authenticator
from services.api.auth.rate_limits import AuthRateLimiter, TenantRateLimiter
from services.api.auth.tokens import TokenVerifier
from services.api.clusters.preflight import Preflights
from services.api.monitors.validator import MonitorValidator

ADMIN = "bootstrap-key-of-this-test"
SECRET_KEY = generate_key()
PEER = "198.51.100.7"
#: How clusters are looked at: not at all, because those of most tests are nowhere.
NO_PROBES = (ANY_ADDRESS, ProbeRunner(seconds=0))


@asynccontextmanager
async def serving(
    url: str,
    *,
    tokens: TokenVerifier | None = None,
    guard: AuthRateLimiter | None = None,
    proxies: tuple[str, ...] = (),
    probe_runner: tuple[AddressRules, ProbeRunner] = NO_PROBES,
    peer: str = PEER,
    secret_sources: SecretSources = SecretSources(),  # noqa: B008 - it never changes
) -> AsyncIterator[httpx.AsyncClient]:
    """A client without any key, whose address is `peer`."""
    # More patient than a service: the machine may be slow.
    patience = pytest.MonkeyPatch()
    patience.setattr(silence, "RESPONSE_TIMEOUT_SECONDS", 10.0)
    database = RegistryDatabase(url, size=4, seconds=8)
    pool = open_pool(url, "lagscale_scaler", 1, application="test")
    await pool.open(wait=True)
    authenticator = Authenticator(database, ADMIN, tokens=tokens, guard=guard)
    verdicts, keyring = PostgresVerdicts(pool), Keyring(SECRET_KEY)
    preflights = Preflights(keyring, *probe_runner, secret_sources)
    parts = ApiParts(
        database=database,
        authenticator=authenticator,
        tenant_rates=TenantRateLimiter(),
        keyring=keyring,
        verdicts=verdicts,
        rounds=RoundReader(pool),
        preflights=preflights,
        validator=MonitorValidator(preflights, verdicts, 1.0),
        tick_seconds=1.0,
        trusted_proxies=proxies,
    )
    transport = httpx.ASGITransport(create_app(parts), raise_app_exceptions=False, client=(peer, 4711))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            yield client
    finally:
        await authenticator.close()
        await pool.close()
        await database.close()
        patience.undo()


def bearer(text: str) -> dict[str, str]:
    """The header of a key or token."""
    return {"Authorization": f"Bearer {text}"}
