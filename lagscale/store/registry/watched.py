"""What of a cluster the tenant's monitors watch, and what is measured of it already; for looks at the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from lagscale.store.registry.session import Row, TenantSession
from lagscale.store.registry.tables import cluster, lag_target, monitor, monitor_target


async def find_cluster(session: TenantSession, name: str) -> Row | None:
    """One cluster with its sealed secrets; None where there is none."""
    return await session.fetch_optional(sa.select(cluster).where(cluster.c.name == name))


async def watched(session: TenantSession, cluster_id: int) -> dict[str, tuple[str, ...]]:
    """Groups of the cluster's live monitors, each with the topics that are measured of it; none where none are yet."""
    statement = (
        sa.select(monitor.c.consumer_group, lag_target.c.topic)
        .outerjoin(monitor_target, monitor_target.c.monitor_id == monitor.c.id)
        .outerjoin(lag_target, lag_target.c.id == monitor_target.c.target_id)
        .where(monitor.c.cluster_id == cluster_id, monitor.c.deleted_at.is_(None))
        .distinct()
        .order_by(monitor.c.consumer_group, lag_target.c.topic)
    )
    found: dict[str, tuple[str, ...]] = {}
    for row in await session.fetch_all(statement):
        topics = found.setdefault(row["consumer_group"], ())
        found[row["consumer_group"]] = topics if row["topic"] is None else (*topics, row["topic"])
    return found


async def measured(
    session: TenantSession, cluster_id: int, group: str, *, topics: Sequence[str], isolation: str, limitation: str
) -> dict[int, str]:
    """Targets that measure just this already, for whichever monitors: number -> topic."""
    statement = sa.select(lag_target.c.id, lag_target.c.topic).where(
        lag_target.c.cluster_id == cluster_id,
        lag_target.c.consumer_group == group,
        lag_target.c.topic.in_(list(topics)),
        lag_target.c.isolation_level == isolation,
        lag_target.c.partition_limitation == limitation,
    )
    return {int(row["id"]): str(row["topic"]) for row in await session.fetch_all(statement)}
