"""Kafka clusters of a tenant. Secrets come sealed and never leave this room again but to the scraper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, exists, func, insert, select, update

from lagscale.domain.quotas import Quota
from lagscale.errors import Conflict, Fault, InvalidInput, LagscaleError, NotAllowed, SecretsUnreadable
from lagscale.kafka.security import privileged, shown
from lagscale.store.encryption import SecretBox
from lagscale.store.registry import audit, quotas
from lagscale.store.registry.paging import Page, Wanted, page
from lagscale.store.registry.session import Row, TenantWork
from lagscale.store.registry.tables import cluster, cluster_state, monitor
from lagscale.store.registry.versions import Outcome, Seen, check_version, present


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster as it shall be.

    Attributes:
        bootstrap: `host:port` each.
        security: the canonical form, nothing secret in it.
        secrets: None keeps what is stored; an empty map removes it.
        references: where further secrets stand, in their stored form; None keeps what is stored.
        properties: of the Kafka client, by its names; None keeps what is stored.
        by_platform: whether a platform administrator, or the environment, wants it so.
    """

    name: str
    bootstrap: tuple[str, ...]
    security: Mapping[str, Any]
    secrets: Mapping[str, str] | None = None
    references: Mapping[str, Mapping[str, str]] | None = None
    properties: Mapping[str, Any] | None = None
    by_platform: bool = False


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
        secret_references=_plain(spec.references),
        properties=dict(spec.properties or {}),
    )
    row = await work.one(statement.returning(cluster))
    await audit.record(work, "cluster.create", f"cluster/{spec.name}", None, row)
    return Outcome(row, created=True, changed=True)


async def put(work: TenantWork, spec: ClusterSpec, box: SecretBox, seen: Seen | None) -> Outcome:
    """Create the cluster or make it so; nothing changes when it is so already.

    Raises:
        InvalidInput: what the kept secrets hold is given beside them too.
        NotAllowed: it has settings that only a platform administrator may choose, and none asks.
        PreconditionFailed: it is not as the caller has seen it.
        SettingsInvalid: it has secrets and there is no key to seal them with.
    """
    statement = select(cluster).where(cluster.c.name == spec.name).with_for_update()
    row = await work.find(statement)
    check_version(row, seen)
    if row is None:
        return await create(work, spec, box)
    lent = privileged(row["security"], row["properties"])
    if lent and not spec.by_platform:
        # What is lent to one address must not be sent to another by whoever was not lent it.
        raise NotAllowed(
            f"Only a platform administrator may change this cluster, because it has {', '.join(lent)}; ask one, or "
            "delete the cluster and create it without."
        )
    changes = _changes(row, spec, box)
    if not changes:
        return Outcome(row)
    changing = update(cluster).where(cluster.c.id == row["id"])
    changing = changing.values(version=row["version"] + 1, updated_at=func.now(), **changes)
    after = await work.one(changing.returning(cluster))
    await audit.record(work, "cluster.update", f"cluster/{spec.name}", row, after)
    return Outcome(after, changed=True)


def _changes(row: Row, spec: ClusterSpec, box: SecretBox) -> dict[str, Any]:
    if spec.secrets is None:
        stored = row["secret_references"].keys() | (_opened(row["secrets"], box) or {}).keys()
        twice = sorted(stored & dict(spec.security).keys())
        if twice:
            text = "is stored as a secret; leave it out here, and give `secrets` again to change it"
            raise InvalidInput([Fault(f"security.{shown(name)}", text) for name in twice])
    changes: dict[str, Any] = {}
    if list(row["bootstrap"]) != list(spec.bootstrap):
        changes["bootstrap"] = list(spec.bootstrap)
    if row["security"] != dict(spec.security):
        changes["security"] = dict(spec.security)
    if spec.secrets is not None and dict(spec.secrets) != _opened(row["secrets"], box):
        changes["secrets"] = box.seal(spec.secrets) if spec.secrets else None
    if spec.references is not None and _plain(spec.references) != row["secret_references"]:
        changes["secret_references"] = _plain(spec.references)
    if spec.properties is not None and dict(spec.properties) != row["properties"]:
        changes["properties"] = dict(spec.properties)
    return changes


def _plain(references: Mapping[str, Mapping[str, str]] | None) -> dict[str, dict[str, str]]:
    return {name: dict(reference) for name, reference in (references or {}).items()}


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
