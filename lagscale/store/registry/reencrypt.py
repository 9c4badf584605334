"""Seals every stored secret anew with the first key; `lagscale secrets rotate` calls it.

Each batch is a transaction of its own with its audit row, and what the first key has sealed already is left alone: so
the run may be interrupted, repeated, and made by two at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import func, select, update

from lagscale.errors import SecretsUnreadable
from lagscale.store.encryption import SecretBox
from lagscale.store.registry import audit
from lagscale.store.registry.session import RegistryDatabase, Row, Work
from lagscale.store.registry.tables import cluster, tenant

ACTOR = "lagscale secrets rotate"
_BATCH = 100


@dataclass(slots=True)
class Rotated:
    """How far a run has come.

    Attributes:
        total: clusters with stored secrets, as counted at the beginning.
        sealed: those that this run has sealed anew.
        fresh: those that the first key had sealed already.
        unreadable: `tenant/cluster` of those that no key of the set opens; they are left as they are.
    """

    total: int = 0
    sealed: int = 0
    fresh: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """How many have been looked at."""
        return self.sealed + self.fresh + len(self.unreadable)


async def rotate(
    database: RegistryDatabase, box: SecretBox, progress: Callable[[Rotated], None] = lambda done: None
) -> Rotated:
    """Seal what an older key has sealed.

    Args:
        database: the registry.
        box: all keys that any secret was sealed with; the first one seals.
        progress: hears of every batch, and once before the first.

    Raises:
        SettingsInvalid: there is no key.
        StoreUnavailable: the store does not answer; batches until then are done.
    """
    box.seal({})
    done = Rotated()
    async with database.platform(ACTOR) as work:
        counting = select(func.count()).select_from(cluster).where(cluster.c.secrets.is_not(None))
        done.total = int((await work.run(counting)).scalar_one())
    progress(done)
    last = 0
    while True:
        # Every tenant's rows: this is the platform's own work, and no caller sees them.
        async with database.platform(ACTOR) as work:
            rows = await _batch(work, last)
            await _seal(work, rows, box, done)
        if not rows:
            return done
        last = int(rows[-1]["id"])
        progress(done)


async def _batch(work: Work, last: int) -> list[Row]:
    wanted = (
        select(cluster.c.id, cluster.c.name, cluster.c.secrets, tenant.c.name.label("tenant"))
        .join(tenant, tenant.c.id == cluster.c.tenant_id)
        .where(cluster.c.secrets.is_not(None), cluster.c.id > last)
        .order_by(cluster.c.id)
        .limit(_BATCH)
        # What somebody stores meanwhile must not be overwritten by what was there before.
        .with_for_update(of=cluster)
    )
    return await work.every(wanted)


async def _seal(work: Work, rows: list[Row], box: SecretBox, done: Rotated) -> None:
    changed = []
    for row in rows:
        name = f"{row['tenant']}/{row['name']}"
        if box.is_newest(row["secrets"]):
            done.fresh += 1
            continue
        try:
            sealed = box.reseal(row["secrets"])
        except SecretsUnreadable:
            done.unreadable.append(name)
            continue
        # No other version: the secrets are the same, and the scraper need not connect anew.
        await work.run(update(cluster).where(cluster.c.id == row["id"]).values(secrets=sealed))
        changed.append(name)
    if changed:
        await audit.record(work, "secrets.rotate", "secrets", None, {"clusters": changed})
    done.sealed += len(changed)
