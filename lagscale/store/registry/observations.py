"""What the scraper saw: states of clusters and targets, ages of newest samples, and the samples of a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lagscale.store.registry.session import Row, TenantSession
from lagscale.store.registry.tables import cluster, lag_target, monitor, monitor_target, target_state
from lagscale.store.registry.tables import tenant_lag_sample as sample


@dataclass(frozen=True, slots=True)
class SampleRange:
    """Which samples: at most `limit` rounds in [begin, end), the newest first, from just after a position on.

    `after` is (time, target id) of the last round of the page before.
    """

    limit: int
    begin: datetime | None = None
    end: datetime | None = None
    after: tuple[datetime, int] | None = None


async def read_target_states(session: TenantSession, monitor_id: int | None = None) -> list[Row]:
    """Every polled target of the tenant, or of one monitor, with its state and the time of its newest sample."""
    newest = (
        sa.select(sample.c.ts, sa.func.cardinality(sample.c.lags).label("partitions"))
        .where(sample.c.target_id == lag_target.c.id)
        .order_by(sample.c.ts.desc())
        .limit(1)
        .lateral("newest")
    )
    live = sa.select(sa.literal(1)).select_from(
        monitor_target.join(monitor, monitor.c.id == monitor_target.c.monitor_id)
    )
    live = live.where(monitor_target.c.target_id == lag_target.c.id, monitor.c.deleted_at.is_(None))
    if monitor_id is not None:
        live = live.where(monitor.c.id == monitor_id)
    statement = (
        sa.select(
            lag_target.c.id,
            lag_target.c.topic,
            lag_target.c.consumer_group,
            cluster.c.name.label("cluster"),
            target_state.c.code,
            target_state.c.message,
            target_state.c.since,
            target_state.c.seen_at,
            newest.c.ts.label("newest_at"),
            newest.c.partitions,
            sa.func.clock_timestamp().label("present"),
        )
        .select_from(lag_target)
        .join(cluster, cluster.c.id == lag_target.c.cluster_id)
        .outerjoin(target_state, target_state.c.target_id == lag_target.c.id)
        .outerjoin(newest, sa.true())
        .where(live.exists())
        .order_by(cluster.c.name, lag_target.c.consumer_group, lag_target.c.topic, lag_target.c.id)
    )
    return await session.fetch_all(statement)


async def samples(session: TenantSession, target_ids: Sequence[int], span: SampleRange) -> list[Row]:
    """Rounds of these targets, the newest first, one more than the limit where there are more."""
    statement: sa.Select[Any] = sa.select(sample).where(sample.c.target_id.in_(list(target_ids)))
    if span.begin is not None:
        statement = statement.where(sample.c.ts >= span.begin)
    if span.end is not None:
        statement = statement.where(sample.c.ts < span.end)
    if span.after is not None:
        statement = statement.where(
            sa.tuple_(sample.c.ts, sample.c.target_id) < sa.tuple_(*map(sa.literal, span.after))
        )
    newest_first = (sample.c.ts.desc(), sample.c.target_id.desc())
    return await session.fetch_all(statement.order_by(*newest_first).limit(span.limit + 1))
