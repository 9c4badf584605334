"""Kafka clusters of a tenant. Secrets come sealed and never leave this room again but to the scraper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, exists, func, insert, select, update

from lagscale.domain.quotas import Quota
from lagscale.errors import Conflict, LagscaleError, SecretsUnreadable
from lagscale.store.registry import audit, quotas
from lagscale.store.registry.changes import Outcome, Seen, check_version, present
from lagscale.store.registry.database import Row, TenantWork
from lagscale.store.registry.pages import Page, Wanted, page
from lagscale.store.registry.tables import cluster, cluster_state, monitor
from lagscale.store.secrets import SecretBox


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster as it shall be.

    Attributes:
        bootstrap: `host:port` each.
        security: the canonical form, nothing secret in it.
        secrets: None keeps what is stored; an empty map removes it.
    """

    name: str
    bootstrap: tuple[str, ...]
    security: Mapping[str, Any]
    secrets: Mapping[str, str] | None = None


def _all() -> Select[Any]:
    state = [cluster_state.c[name].label(f"state_{name}") for name in ("code", "message", "since", "seen_at")]
    return select(cluster, *state).outerjoin(cluster_state, cluster_state.c.cluster_id == cluster.c.id)


async def listed(work: TenantWork, wanted: Wanted) -> Page:
    """The tenant's clusters with their states."""
    return await page(work, _all(), ["name"], wanted)


async def named(work: TenantWork, name: str) -> Row:
    """One cluster with its state.

    Raises:
        NotFound: there is none.
    """
    return present(await work.find(_all().where(cluster.c.name == name)))


async def create(work: TenantWork, spec: ClusterSpec, box: SecretBox) -> Outcome:
    """Create a cluster.

    Raises:
        Conflict: the name is taken.
        QuotaExceeded: the tenant has its greatest number of clusters.
        SettingsInvalid: it has secrets and there is no key to seal them with.
    """
    await quotas.one_at_a_time(work)
    # Before the quota: who registers a second time is told of the first, also when no room is left.
    if (await work.run(select(exists().where(cluster.c.name == spec.name)))).scalar_one():
        raise Conflict("A cluster with this name exists already.")
    await quotas.room_for(work, Quota.CLUSTERS)
    statement = insert(cluster).values(
        tenant_id=work.tenant_id,
        name=spec.name,
        bootstrap=list(spec.bootstrap),
        security=dict(spec.security),
        secrets=box.seal(spec.secrets) if spec.secrets else None,
    )
    row = await work.one(statement.returning(cluster))
    await audit.record(work, "cluster.create", f"cluster/{spec.name}", None, row)
    return Outcome(row, created=True, changed=True)


async def put(work: TenantWork, spec: ClusterSpec, box: SecretBox, seen: Seen | None) -> Outcome:
    """Create the cluster or make it so; nothing changes when it is so already.

    Raises:
        PreconditionFailed: it is not as the caller has seen it.
        SettingsInvalid: it has secrets and there is no key to seal them with.
    """
    statement = select(cluster).where(cluster.c.name == spec.name).with_for_update()
    row = await work.find(statement)
    check_version(row, seen)
    if row is None:
        return await create(work, spec, box)
    changes: dict[str, Any] = {}
    if list(row["bootstrap"]) != list(spec.bootstrap):
        changes["bootstrap"] = list(spec.bootstrap)
    if row["security"] != dict(spec.security):
        changes["security"] = dict(spec.security)
    if spec.secrets is not None and dict(spec.secrets) != _opened(row["secrets"], box):
        changes["secrets"] = box.seal(spec.secrets) if spec.secrets else None
    if not changes:
        return Outcome(row)
    changing = update(cluster).where(cluster.c.id == row["id"])
    changing = changing.values(version=row["version"] + 1, updated_at=func.now(), **changes)
    after = await work.one(changing.returning(cluster))
    await audit.record(work, "cluster.update", f"cluster/{spec.name}", row, after)
    return Outcome(after, changed=True)


def _opened(sealed: bytes | None, box: SecretBox) -> dict[str, str] | None:
    try:
        return {} if sealed is None else box.open(sealed)
    except SecretsUnreadable:
        # Written with keys that are gone: nothing equals it, so the given secrets replace it.
        return None


async def remove(work: TenantWork, name: str, seen: Seen | None) -> None:
    """Remove a cluster that no live monitor uses, and with it its targets.

    Raises:
        NotFound: there is none.
        Conflict: monitors use it.
        PreconditionFailed: it is not as the caller has seen it.
    """
    statement = select(cluster).where(cluster.c.name == name).with_for_update()
    row = present(await work.find(statement))
    check_version(row, seen)
    of_cluster = monitor.c.cluster_id == row["id"]
    live = select(monitor.c.name).where(of_cluster, monitor.c.deleted_at.is_(None)).order_by(monitor.c.name).limit(4)
    users = list((await work.run(live)).scalars())
    if users:
        raise _in_use(users)
    # Monitors deleted earlier still point here; what they were is in the audit.
    await work.run(delete(monitor).where(of_cluster))
    await work.run(delete(cluster).where(cluster.c.id == row["id"]))
    await audit.record(work, "cluster.delete", f"cluster/{name}", row, None)


def _in_use(users: list[str]) -> LagscaleError:
    named_ones = ", ".join(users[:3]) + (" and more" if len(users) > 3 else "")
    return Conflict(f"Monitors use this cluster; delete them first: {named_ones}.")
