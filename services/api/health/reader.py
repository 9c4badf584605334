"""Health of a monitor and of a tenant: states of clusters and targets, and ages of newest samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from lagscale.domain.state_codes import StateCode
from lagscale.store.registry import clusters, history, monitors
from lagscale.store.registry.paging import MAX_PAGE_SIZE, PageRequest
from lagscale.store.registry.session import Row, TenantSession
from services.api.health.schemas import ClusterHealth, MonitorHealth, TargetHealth, TenantHealth
from services.api.schemas import serialize_state


async def read_monitor_health(session: TenantSession, name: str) -> MonitorHealth:
    """States and newest samples of a monitor's cluster and targets.

    Raises:
        NotFound: there is no such monitor.
    """
    row = await monitors.read_by_name(session, name)
    cluster = await clusters.read_by_name(session, row["cluster"])
    targets = await history.read_target_states(session, row["id"])
    return MonitorHealth(
        monitor=name,
        cluster_state=serialize_state(cluster, "state_"),
        topic_discovery=serialize_state(row, "scope_"),
        targets=[_serialize_target(target) for target in targets],
    )


async def read_tenant_health(session: TenantSession) -> TenantHealth:
    """All clusters of the tenant, with their targets counted by state."""
    rows = await _list_all_clusters(session)
    targets = await history.read_target_states(session)
    found = [
        _serialize_cluster(row, [target for target in targets if target["cluster"] == row["name"]]) for row in rows
    ]
    is_ok = all(
        (cluster.state is None or cluster.state.code == StateCode.OK) and set(cluster.targets_by_code) <= {StateCode.OK}
        for cluster in found
    )
    return TenantHealth(tenant=session.tenant["name"], ok=is_ok, clusters=found)


async def _list_all_clusters(session: TenantSession) -> list[Row]:
    rows: list[Row] = []
    after: str | None = None
    while True:
        page = await clusters.list_page(session, PageRequest(MAX_PAGE_SIZE, after))
        rows.extend(page.rows)
        after = page.after
        if after is None:
            return rows


def _serialize_target(row: Row) -> TargetHealth:
    return TargetHealth(
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        state=serialize_state(row, ""),
        newest_sample_at=row["newest_at"],
        newest_sample_age_seconds=_compute_age(row),
    )


def _compute_age(row: Row) -> float | None:
    newest: datetime | None = row["newest_at"]
    return None if newest is None else max(0.0, round((row["present"] - newest).total_seconds(), 3))


def _serialize_cluster(row: Row, targets: Sequence[Row]) -> ClusterHealth:
    ages = [age for target in targets if (age := _compute_age(target)) is not None]
    return ClusterHealth(
        cluster=row["name"],
        state=serialize_state(row, "state_"),
        targets=len(targets),
        targets_by_code=dict(Counter(str(target["code"] or "not_asked") for target in targets)),
        newest_sample_age_seconds=min(ages, default=None),
        stalest_target_age_seconds=max(ages) if ages and len(ages) == len(targets) else None,
    )
