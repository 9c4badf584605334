"""Encrypts every stored secret again with the first key; `lagscale secrets rotate` calls it.

Each batch is a transaction of its own with its audit row, and secrets of the first key are skipped: the run may be
interrupted, repeated, and run twice at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import func, select, update

from lagscale.errors import SecretsUnreadable
from lagscale.store.encryption import Keyring
from lagscale.store.registry import audit
from lagscale.store.registry.session import RegistryDatabase, RegistrySession, Row
from lagscale.store.registry.tables import cluster, tenant

ACTOR = "lagscale secrets rotate"
_BATCH = 100


@dataclass(slots=True)
class ReencryptionProgress:
    """Progress of a run.

    Attributes:
        total: clusters with stored secrets, counted at the beginning.
        reencrypted: clusters whose secrets this run has encrypted again.
        current: clusters whose secrets the first key had encrypted before.
        unreadable: `tenant/cluster` of secrets that no configured key decrypts; they are not changed.
    """

    total: int = 0
    reencrypted: int = 0
    current: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def processed(self) -> int:
        """How many clusters are processed."""
        return self.reencrypted + self.current + len(self.unreadable)


async def reencrypt_all(
    database: RegistryDatabase, keyring: Keyring, progress: Callable[[ReencryptionProgress], None] = lambda done: None
) -> ReencryptionProgress:
    """Encrypt again what an older key has encrypted.

    Args:
        database: the registry.
        keyring: all keys that any secret was encrypted with; the first one encrypts.
        progress: called after every batch, and once before the first.

    Raises:
        SettingsInvalid: there is no key.
        StoreUnavailable: the store does not answer; batches until then are committed.
    """
    keyring.encrypt({})
    done = ReencryptionProgress()
    async with database.platform(ACTOR) as session:
        counting = select(func.count()).select_from(cluster).where(cluster.c.secrets.is_not(None))
        done.total = int((await session.execute(counting)).scalar_one())
    progress(done)
    last = 0
    while True:
        # Every tenant's rows: this is the platform's own task, and no caller gets them.
        async with database.platform(ACTOR) as session:
            rows = await _lock_batch(session, last)
            await _reencrypt_batch(session, rows, keyring, done)
        if not rows:
            return done
        last = int(rows[-1]["id"])
        progress(done)


async def _lock_batch(session: RegistrySession, last: int) -> list[Row]:
    statement = (
        select(cluster.c.id, cluster.c.name, cluster.c.secrets, tenant.c.name.label("tenant"))
        .join(tenant, tenant.c.id == cluster.c.tenant_id)
        .where(cluster.c.secrets.is_not(None), cluster.c.id > last)
        .order_by(cluster.c.id)
        .limit(_BATCH)
        # Secrets that are stored meanwhile must not be overwritten by older ones.
        .with_for_update(of=cluster)
    )
    return await session.fetch_all(statement)


async def _reencrypt_batch(
    session: RegistrySession, rows: list[Row], keyring: Keyring, done: ReencryptionProgress
) -> None:
    changed = []
    for row in rows:
        name = f"{row['tenant']}/{row['name']}"
        if keyring.uses_first_key(row["secrets"]):
            done.current += 1
            continue
        try:
            reencrypted = keyring.reencrypt(row["secrets"])
        except SecretsUnreadable:
            done.unreadable.append(name)
            continue
        # The version stays: the secrets are the same, and the scraper need not reconnect.
        await session.execute(update(cluster).where(cluster.c.id == row["id"]).values(secrets=reencrypted))
        changed.append(name)
    if changed:
        await audit.record(session, "secrets.rotate", "secrets", None, {"clusters": changed})
    done.reencrypted += len(changed)
