"""Of each step of a span the newest round of each target: enough to see what somebody who asked then has seen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from lagscale.domain.lag.rounds import TargetRound
from lagscale.store.registry.session import TenantSession
from lagscale.store.registry.tables import tenant_lag_sample as sample
from lagscale.store.samples.columns import read_row

_MICROSECOND = timedelta(microseconds=1)


async def read_stepped_rounds(
    session: TenantSession, target_ids: Sequence[int], since: datetime, until: datetime, step: timedelta
) -> dict[int, list[TargetRound]]:
    """Target id -> the last round of each step that has one, the oldest first.

    A step ends with `since` plus a multiple of `step`, that instant included; one more step before `since` is read.
    """
    at_ms = sa.cast(sa.func.extract("epoch", sample.c.ts) * 1000, sa.BigInteger).label("at_ms")
    within = sa.func.date_bin(step, sample.c.ts - _MICROSECOND, since)
    place = sa.func.row_number().over(partition_by=(sample.c.target_id, within), order_by=sample.c.ts.desc())
    ranked = (
        sa.select(sample, at_ms, place.label("place"))
        .where(sample.c.target_id.in_(list(target_ids)), sample.c.ts > since - step, sample.c.ts <= until)
        .subquery()
    )
    statement = sa.select(ranked).where(ranked.c.place == 1).order_by(ranked.c.target_id, ranked.c.ts)
    found: dict[int, list[TargetRound]] = {target: [] for target in target_ids}
    for row in await session.fetch_all(statement):
        found[row["target_id"]].append(read_row(row).round)
    return found


async def count_partitions(session: TenantSession, target_ids: Sequence[int], until: datetime) -> int:
    """Partitions of the newest rounds of these targets together."""
    total = 0
    for target in target_ids:
        newest = sa.select(sa.func.cardinality(sample.c.lags).label("parts")).where(
            sample.c.target_id == target, sample.c.ts <= until
        )
        row = await session.fetch_optional(newest.order_by(sample.c.ts.desc()).limit(1))
        total += 0 if row is None else int(row["parts"])
    return total
