"""States of groups and partitions: of one tenant's monitor for the API's callers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from lagscale.clock import to_datetime
from lagscale.domain.group_status.rules import (
    SEVERITY_ORDER,
    PartitionStatus,
    Status,
    compute_lookback_ms,
    compute_stuck_ms,
    evaluate_group_status,
    find_worst_status,
)
from lagscale.domain.group_status.window import compute_window_ms
from lagscale.domain.wording.group_status import describe_group, describe_partition
from lagscale.store.registry import monitors
from lagscale.store.registry.session import AccessScope, RegistryDatabase
from lagscale.store.samples.read import RoundsRequest, RoundsResult
from services.api.group_status.schemas import GroupStatusOut, PartitionStatusOut
from services.api.monitors.policies import read_policy

#: The state of a monitor's scope that means more topics than it may measure.
_TOO_MANY_TOPICS = "too_many_topics"


class RecentRoundSource(Protocol):
    """The part of the store of recent rounds that is used here."""

    async def read(self, requests: Sequence[RoundsRequest]) -> RoundsResult: ...


class GroupStatusReader:
    """Tells the state of a monitor's group."""

    def __init__(self, database: RegistryDatabase, rounds: RecentRoundSource) -> None:
        """Take the registry, and the recent rounds in the scaler's role.

        That role sees every tenant's samples; so only targets that were just found behind the caller's wall are asked
        for, and the statement names their tenant again.
        """
        self._database = database
        self._rounds = rounds

    async def read(self, scope: AccessScope, tenant: str, name: str) -> GroupStatusOut:
        """The state of the monitor's group now, with the numbers behind it.

        Raises:
            NotFound: no such monitor for this caller.
            StoreUnavailable: the store did not answer.
        """
        async with self._database.tenant(scope, tenant) as session:
            row = await monitors.read_by_name(session, name)
            targets = await monitors.read_targets(session, row["id"])
        policy = read_policy(row, int(session.tenant["min_sampling_seconds"]))
        topics = {int(target["id"]): str(target["topic"]) for target in targets}
        recent = await self._rounds.read(
            [RoundsRequest(session.tenant_id, target, compute_lookback_ms(policy)) for target in topics]
        )
        rounds = {target: recent.rounds.get(target, ()) for target in topics}
        # In a thread, because a thousand partitions take a while in which other requests must be answered.
        group = await asyncio.to_thread(evaluate_group_status, rounds, policy, recent.now_ms)
        partial = str(row["scope_message"]) if row["scope_code"] == _TOO_MANY_TOPICS else None
        # Of a part of the topics only what is bad is proven.
        status = group.status if partial is None else find_worst_status((group.status, Status.UNKNOWN))
        partitions_by_severity = sorted(
            group.partitions, key=lambda one: (-SEVERITY_ORDER.index(one.status), topics[one.target_id])
        )
        return GroupStatusOut(
            monitor=name,
            consumer_group=str(row["consumer_group"]),
            status=status.value,
            sentence=describe_group(group),
            counts=dict(Counter(one.status.value for one in partitions_by_severity)),
            window_seconds=compute_window_ms(policy) / 1000,
            stuck_after_seconds=compute_stuck_ms(policy) / 1000,
            stuck_excluded=policy.stuck_after_ms > 0,
            members=group.members,
            newest_round_at=_to_time(group.at_ms),
            evaluated_at=to_datetime(recent.now_ms),
            unmeasured_topics=[topics[target] for target in group.unmeasured],
            scope=partial,
            partitions=[_serialize_partition(one, topics) for one in partitions_by_severity],
        )


def _serialize_partition(one: PartitionStatus, topics: Mapping[int, str]) -> PartitionStatusOut:
    return PartitionStatusOut(
        topic=topics[one.target_id],
        partition=one.partition,
        status=one.status.value,
        rule=one.rule.value,
        sentence=describe_partition(one),
        at=_to_time(one.at_ms),
        lag=one.lag,
        position=one.position,
        window_start=_to_time(one.start_ms),
        start_lag=one.start_lag,
        commit_delta=one.commit_delta,
        advance_count=one.advance_count,
        unchanged_since=_to_time(one.stalled_since_ms),
        possibly_unchanged_earlier=one.may_have_stalled_before,
        uncommitted=one.uncommitted,
        lost=one.lost,
        stuck=one.stuck,
        hot=one.hot,
    )


def _to_time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else to_datetime(milliseconds)
