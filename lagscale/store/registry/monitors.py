"""Monitors, the versions of their policies, and the targets that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from lagscale.domain.policy import Policy
from lagscale.domain.quotas import Quota
from lagscale.domain.tenancy import content_hash
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry import audit, quotas
from lagscale.store.registry.changes import Outcome, check_version, present
from lagscale.store.registry.database import Row, TenantWork
from lagscale.store.registry.pages import Page, Wanted, page
from lagscale.store.registry.tables import (
    cluster,
    lag_target,
    monitor,
    monitor_scope,
    monitor_target,
    monitor_version,
)
from lagscale.topic_scope import TopicScope


@dataclass(frozen=True, slots=True)
class MonitorSpec:
    """A monitor as it shall be.

    Attributes:
        topics: listed ones; with none the scraper looks them up.
        given: the policy keys as given, as texts.
        policy: the same with every default resolved.
        pattern, exclude: see `TopicScope`.
    """

    name: str
    cluster: str
    consumer_group: str
    topics: tuple[str, ...]
    given: Mapping[str, str]
    policy: Policy
    overridable: bool = False
    pattern: str | None = None
    exclude: tuple[str, ...] = ()

    @property
    def scope(self) -> TopicScope:
        """Which topics it means."""
        return TopicScope(self.topics, self.pattern, self.exclude)

    @property
    def content(self) -> str:
        """The hash by which inline triggers of the same content find it."""
        return content_hash(
            self.cluster, self.consumer_group, self.topics, self.given, pattern=self.pattern, exclude=self.exclude
        )

    @property
    def limitation(self) -> str:
        """`partitionLimitation` as given: it is a part of the target."""
        return self.given.get("partitionLimitation", "").strip()


def _live() -> sa.Select[Any]:
    joined = sa.select(monitor, cluster.c.name.label("cluster"))
    return joined.join(cluster, cluster.c.id == monitor.c.cluster_id).where(monitor.c.deleted_at.is_(None))


def _shown() -> sa.Select[Any]:
    """Live monitors with what they measure at present, and how looking up their topics went (`scope_*`)."""
    linked = sa.select(lag_target.c.topic).join(monitor_target, monitor_target.c.target_id == lag_target.c.id)
    linked = linked.where(monitor_target.c.monitor_id == monitor.c.id).order_by(lag_target.c.topic)
    looked_up = sa.and_(monitor_scope.c.monitor_id == monitor.c.id, monitor.c.topics.is_(None))
    states = [monitor_scope.c[name].label(f"scope_{name}") for name in ("code", "message", "since", "seen_at")]
    statement = _live().add_columns(sa.func.array(linked.scalar_subquery()).label("measured_topics"), *states)
    return statement.outerjoin(monitor_scope, looked_up)


async def listed(work: TenantWork, wanted: Wanted) -> Page:
    """The tenant's live monitors with their clusters' names and their topics at present."""
    return await page(work, _shown(), ["name"], wanted)


async def named(work: TenantWork, name: str) -> Row:
    """One live monitor with its cluster's name and its topics at present.

    Raises:
        NotFound: there is none.
    """
    return present(await work.find(_shown().where(monitor.c.name == name)))


async def create(work: TenantWork, spec: MonitorSpec) -> Outcome:
    """Create a monitor with its targets; those that other monitors measure already are shared.

    Raises:
        Conflict: the name is taken.
        InvalidInput: there is no such cluster.
        QuotaExceeded: the tenant has its greatest number of monitors, of such without a list, or of partitions.
    """
    await quotas.one_at_a_time(work)
    return await _create(work, spec)


async def put(work: TenantWork, spec: MonitorSpec, seen: int | None) -> Outcome:
    """Create the monitor or make it so; nothing changes when it is so already.

    Its history stays where the target stays: that belongs to cluster, group, topic and what else is measured.

    Raises:
        Conflict: it has changed since the version seen.
        InvalidInput, QuotaExceeded: as `create`.
    """
    await quotas.one_at_a_time(work)
    row = await work.find(_live().where(monitor.c.name == spec.name).with_for_update(of=monitor))
    if row is None:
        return await _create(work, spec)
    check_version(row, seen)
    wanted = _columns(spec) | {"cluster_id": await _cluster_id(work, spec.cluster)}
    if all(row[column] == value for column, value in wanted.items()):
        return Outcome(row)
    if row["topics"] is not None and not spec.scope.is_listed:
        await quotas.room_for(work, Quota.PATTERNS)
    version = int(row["version"]) + 1
    changing = sa.update(monitor).where(monitor.c.id == row["id"])
    # A person took it over: it is no longer removed when nobody asks for it.
    changing = changing.values(version=version, updated_at=sa.func.now(), auto_registered=False, **wanted)
    after = await work.one(changing.returning(monitor, sa.literal(spec.cluster).label("cluster")))
    if row["policy"] != wanted["policy"]:
        await _remember(work, after)
    await _link(work, after, spec)
    await audit.record(work, "monitor.update", f"monitor/{spec.name}", row, after)
    return Outcome(after, changed=True)


async def remove(work: TenantWork, name: str, seen: int | None) -> None:
    """Mark the monitor deleted; its targets are no longer polled for it, its name is free.

    Raises:
        NotFound: there is none.
        Conflict: it has changed since the version seen.
    """
    row = present(await work.find(_live().where(monitor.c.name == name).with_for_update(of=monitor)))
    check_version(row, seen)
    await work.run(sa.delete(monitor_target).where(monitor_target.c.monitor_id == row["id"]))
    deleting = sa.update(monitor).where(monitor.c.id == row["id"])
    await work.run(deleting.values(deleted_at=sa.func.now(), version=row["version"] + 1))
    await audit.record(work, "monitor.delete", f"monitor/{name}", row, None)


async def targets(work: TenantWork, monitor_id: int) -> list[Row]:
    """The monitor's targets, by topic."""
    statement = sa.select(lag_target).join(monitor_target, monitor_target.c.target_id == lag_target.c.id)
    return await work.every(statement.where(monitor_target.c.monitor_id == monitor_id).order_by(lag_target.c.topic))


async def _create(work: TenantWork, spec: MonitorSpec) -> Outcome:
    cluster_id = await _cluster_id(work, spec.cluster)
    await quotas.room_for(work, Quota.MONITORS)
    await quotas.room_for(work, Quota.PARTITIONS)
    if not spec.scope.is_listed:
        await quotas.room_for(work, Quota.PATTERNS)
    adding = sa.insert(monitor).values(
        tenant_id=work.tenant_id, name=spec.name, cluster_id=cluster_id, **_columns(spec)
    )
    row = await work.one(adding.returning(monitor, sa.literal(spec.cluster).label("cluster")))
    await _remember(work, row)
    await _link(work, row, spec)
    await audit.record(work, "monitor.create", f"monitor/{spec.name}", None, row)
    return Outcome(row, created=True, changed=True)


def _columns(spec: MonitorSpec) -> dict[str, Any]:
    return {
        "consumer_group": spec.consumer_group,
        # A list, or a pattern, or neither: then the group's topics are meant.
        "topics": list(spec.topics) or None,
        "topic_pattern": spec.pattern,
        "exclude_topics": list(spec.exclude),
        "isolation_level": spec.policy.isolation_level.value,
        "partition_limitation": spec.limitation,
        "policy": dict(spec.given),
        "sampling_ms": spec.policy.sampling_ms,
        "stale_after_ms": spec.policy.stale_after_ms,
        "overridable": spec.overridable,
        "content_hash": spec.content,
    }


async def _cluster_id(work: TenantWork, name: str) -> int:
    # Kept until the end, so that the cluster is not removed under a monitor that is just being made.
    statement = sa.select(cluster.c.id).where(cluster.c.name == name).with_for_update(read=True, key_share=True)
    row = await work.find(statement)
    if row is None:
        raise InvalidInput([Fault("cluster", "is no cluster of this tenant; register it first")])
    return int(row["id"])


async def _remember(work: TenantWork, row: Row) -> None:
    await work.run(
        sa.insert(monitor_version).values(
            monitor_id=row["id"], tenant_id=work.tenant_id, version=row["version"], policy=row["policy"]
        )
    )


async def _unlink_strays(work: TenantWork, row: Row, spec: MonitorSpec, measured: Mapping[str, Any]) -> None:
    """Take out what the monitor does not mean any more; the scraper links what it means, within some seconds."""
    mine = monitor_target.c.monitor_id == row["id"]
    linked = sa.select(lag_target).join(monitor_target, monitor_target.c.target_id == lag_target.c.id).where(mine)
    strays = [
        int(target["id"])
        for target in await work.every(linked)
        if any(target[column] != value for column, value in measured.items()) or not spec.scope.admits(target["topic"])
    ]
    if strays:
        await work.run(sa.delete(monitor_target).where(mine, monitor_target.c.target_id.in_(strays)))


async def _link(work: TenantWork, row: Row, spec: MonitorSpec) -> None:
    measured = {
        "tenant_id": work.tenant_id,
        "cluster_id": row["cluster_id"],
        "consumer_group": spec.consumer_group,
        "isolation_level": spec.policy.isolation_level.value,
        "partition_limitation": spec.limitation,
    }
    if not spec.scope.is_listed:
        await _unlink_strays(work, row, spec, measured)
        return
    adding = postgresql.insert(lag_target).values([{**measured, "topic": topic} for topic in spec.topics])
    await work.run(adding.on_conflict_do_nothing())
    same = [lag_target.c[column] == value for column, value in measured.items()]
    found = await work.every(sa.select(lag_target.c.id).where(*same, lag_target.c.topic.in_(spec.topics)))
    wanted = {int(target["id"]) for target in found}
    mine = monitor_target.c.monitor_id == row["id"]
    await work.run(sa.delete(monitor_target).where(mine, monitor_target.c.target_id.not_in(wanted)))
    links = [{"monitor_id": row["id"], "target_id": target, "tenant_id": work.tenant_id} for target in sorted(wanted)]
    await work.run(postgresql.insert(monitor_target).values(links).on_conflict_do_nothing())
