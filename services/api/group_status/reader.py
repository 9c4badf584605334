"""Status of a monitor's group and its partitions at present."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

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
from lagscale.domain.group_status.transactions import list_open_transactions
from lagscale.domain.policy.policy import Policy
from lagscale.domain.wording.group_status import describe_group, describe_open_transaction, describe_partition
from lagscale.store.registry import monitors
from lagscale.store.registry.session import Row
from lagscale.store.samples.read import NewestRound, RoundsRequest, RoundsResult
from services.api.deps import TenantAccess
from services.api.group_status.schemas import GroupStatusOut, OpenTransactionOut, PartitionStatusOut
from services.api.monitors.drafts import find_partial_reason, read_policy
from services.api.schemas import format_time, to_optional_datetime

#: Open transactions that the sentence of a group names.
_MAX_NAMED = 3


class RoundSource(Protocol):
    """The part of the store of recent rounds that the API uses; in the scaler's role, as `VerdictStore`."""

    async def read(self, requests: Sequence[RoundsRequest]) -> RoundsResult: ...

    async def newest(self, requests: Sequence[RoundsRequest]) -> dict[int, NewestRound]: ...


async def read_group_status(tenant: TenantAccess, rounds: RoundSource, name: str) -> GroupStatusOut:
    """The status of the monitor's group, with the numbers behind it.

    Raises:
        NotFound: no such monitor for this caller.
        StoreUnavailable: the store did not answer.
    """
    async with tenant.session() as session:
        row = await monitors.read_by_name(session, name)
        targets = await monitors.read_targets(session, row["id"])
    policy = read_policy(row["policy"], int(session.tenant["min_sampling_seconds"]))
    topics = {int(target["id"]): str(target["topic"]) for target in targets}
    recent = await rounds.read(
        [RoundsRequest(session.tenant_id, target, compute_lookback_ms(policy)) for target in topics]
    )
    rounds_by_target = {target: recent.rounds.get(target, ()) for target in topics}
    # In a thread, because a thousand partitions take a while, and other requests have to be served.
    group = await asyncio.to_thread(evaluate_group_status, rounds_by_target, policy, recent.now_ms)
    partial_reason = find_partial_reason(row)
    transactions = serialize_open_transactions(targets, policy)
    # Of a part of the topics only a bad status is proven.
    status = group.status if not partial_reason else find_worst_status((group.status, Status.UNKNOWN))
    partitions_by_severity = sorted(
        group.partitions, key=lambda one: (-SEVERITY_ORDER.index(one.status), topics[one.target_id])
    )
    return GroupStatusOut(
        monitor=name,
        consumer_group=str(row["consumer_group"]),
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


def serialize_open_transactions(targets: Sequence[Row], policy: Policy) -> list[OpenTransactionOut]:
    """Of the partitions in scope of a monitor's targets, those with the most messages first."""
    excluded = policy.partition_limitation
    found = [
        one
        for target in targets
        for one in list_open_transactions(str(target["topic"]), target["unstable"])
        if not excluded or any(low <= one.partition <= high for low, high in excluded)
    ]
    return [
        OpenTransactionOut(
            topic=one.topic,
            partition=one.partition,
            messages=one.messages,
            stable_offset=one.stable_offset,
            since=to_datetime(one.since_ms),
            read_at=to_datetime(one.read_ms),
            sentence=describe_open_transaction(
                one, format_time(one.since_ms), format_time(one.read_ms), policy.isolation_level
            ),
        )
        for one in sorted(found, key=lambda one: (-one.messages, one.topic, one.partition))
    ]


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
