"""One replica of the API in this process, with the identification that a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from lagscale.kafka.addresses import ANYWHERE, AddressRules
from lagscale.kafka.probe.runner import Looks
from lagscale.kafka.secrets import Outside
from lagscale.store import connection as silence
from lagscale.store.connection import open_pool
from lagscale.store.encryption import SecretBox, generate_key
from lagscale.store.registry.session import RegistryDatabase
from lagscale.store.samples.read import RecentRounds
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.api.app import Parts, create_app
from services.api.auth.access import Access
from services.api.auth.id_tokens import Tokens
from services.api.auth.limits import Guard
from services.api.explain.explanation import Explanations
from services.api.group_status.group_status import Conditions
from services.api.operations import Operations
from services.api.preflight.preflight import Preflights
from services.api.validation.validation import Validation
from services.api.verdicts.evidence import Evidence

ADMIN = "bootstrap-key-of-this-test"
SECRET_KEY = generate_key()
PEER = "198.51.100.7"
#: How clusters are looked at: not at all, because those of most tests are nowhere.
NO_LOOKS = (ANYWHERE, Looks(seconds=0))


@asynccontextmanager
async def serving(
    url: str,
    *,
    tokens: Tokens | None = None,
    guard: Guard | None = None,
    proxies: tuple[str, ...] = (),
    looks: tuple[AddressRules, Looks] = NO_LOOKS,
    peer: str = PEER,
    outside: Outside = Outside(),  # noqa: B008 - it never changes
) -> AsyncIterator[httpx.AsyncClient]:
    """A client without any key, whose address is `peer`."""
    # More patient than a service: the machine may be slow.
    patience = pytest.MonkeyPatch()
    patience.setattr(silence, "SILENCE_SECONDS", 10.0)
    database = RegistryDatabase(url, size=4, seconds=8)
    pool = open_pool(url, "lagscale_scaler", 1, application="test")
    await pool.open(wait=True)
    access = Access(database, ADMIN, tokens=tokens, guard=guard)
    verdicts = PostgresVerdicts(pool)
    operations = Operations(database, SecretBox(SECRET_KEY), tick_seconds=1.0)
    preflights = Preflights(database, SecretBox(SECRET_KEY), *looks, outside)
    parts = Parts(
        database,
        access,
        operations,
        Evidence(database, verdicts),
        Explanations(database, verdicts),
        Conditions(database, RecentRounds(pool)),
        preflights,
        Validation(database, operations, preflights, verdicts),
        trusted_proxies=proxies,
    )
    transport = httpx.ASGITransport(create_app(parts), raise_app_exceptions=False, client=(peer, 4711))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            yield client
    finally:
        await access.close()
        await pool.close()
        await database.close()
        patience.undo()


def bearer(text: str) -> dict[str, str]:
    """The header of a key or token."""
    return {"Authorization": f"Bearer {text}"}
