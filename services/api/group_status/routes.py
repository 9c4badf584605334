"""/v1/tenants/{tenant}/monitors/{monitor}/state: status of a monitor's group and its partitions at present."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter

from lagscale.clock import to_datetime
from lagscale.domain.group_status.rules import (
    SEVERITY_ORDER,
    PartitionStatus,
    Status,
    compute_lookback_ms,
    compute_stuck_ms,
    compute_window_ms,
    evaluate_group_status,
    find_worst_status,
)
from lagscale.domain.wording.group_status import describe_group, describe_partition
from lagscale.store.samples.read import RoundsRequest
from services.api.deps import Viewer, check_name, part
from services.api.group_status.counts import RoundSource
from services.api.group_status.schemas import GroupStatusOut, PartitionStatusOut
from services.api.group_status.transactions import serialize_open_transactions
from services.api.monitors.drafts import read_measured
from services.api.schemas import to_optional_datetime

#: Open transactions that the sentence of a group names.
_MAX_NAMED = 3

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])


@router.get("/{monitor}/state", summary="Show the status of a monitor's group and its partitions")
async def show_state(tenant: Viewer, rounds: Annotated[RoundSource, part("rounds")], monitor: str) -> GroupStatusOut:
    check_name(monitor)
    async with tenant.session() as session:
        measured = await read_measured(session, monitor)
    policy, topics, partial_reason = measured.policy, measured.topics, measured.partial_reason
    recent = await rounds.read(
        [RoundsRequest(session.tenant_id, target, compute_lookback_ms(policy)) for target in topics]
    )
    rounds_by_target = {target: recent.rounds.get(target, ()) for target in topics}
    # In a thread, because a thousand partitions take a while, and other requests have to be served.
    group = await asyncio.to_thread(evaluate_group_status, rounds_by_target, policy, recent.now_ms)
    transactions = serialize_open_transactions(measured.targets, policy)
    # Of a part of the topics only a bad status is proven.
    status = group.status if not partial_reason else find_worst_status((group.status, Status.UNKNOWN))
    partitions_by_severity = sorted(
        group.partitions, key=lambda one: (-SEVERITY_ORDER.index(one.status), topics[one.target_id])
    )
    return GroupStatusOut(
        monitor=monitor,
        consumer_group=str(measured.row["consumer_group"]),
        status=status.value,
        sentence=" ".join([describe_group(group), *(one.sentence for one in transactions[:_MAX_NAMED])]),
        counts=dict(Counter(one.status.value for one in partitions_by_severity)),
        window_seconds=compute_window_ms(policy) / 1000,
        stuck_after_seconds=compute_stuck_ms(policy) / 1000,
        stuck_excluded=policy.stuck_after_ms > 0,
        members=group.members,
        newest_round_at=to_optional_datetime(group.at_ms),
        evaluated_at=to_datetime(recent.now_ms),
        unmeasured_topics=[topics[target] for target in group.unmeasured],
        partial_reason=partial_reason or None,
        open_transactions=transactions,
        partitions=[_serialize_partition(one, topics) for one in partitions_by_severity],
    )


def _serialize_partition(one: PartitionStatus, topics: Mapping[int, str]) -> PartitionStatusOut:
    return PartitionStatusOut(
        topic=topics[one.target_id],
        partition=one.partition,
        status=one.status.value,
        rule=one.rule.value,
        sentence=describe_partition(one),
        at=to_optional_datetime(one.at_ms),
        lag=one.lag,
        position=one.position,
        window_start=to_optional_datetime(one.start_ms),
        start_lag=one.start_lag,
        commit_delta=one.commit_delta,
        advance_count=one.advance_count,
        unchanged_since=to_optional_datetime(one.stalled_since_ms),
        possibly_unchanged_earlier=one.may_have_stalled_before,
        uncommitted=one.uncommitted,
        lost=one.lost,
        stuck=one.stuck,
        hot=one.hot,
    )
