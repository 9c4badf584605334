"""States of groups and partitions: of one tenant's monitor for the API's callers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from lagscale.domain.group_status.rules import (
    SEVERITY,
    Condition,
    PartitionCondition,
    group_conditions,
    reach_ms,
    stuck_ms,
    worst,
)
from lagscale.domain.group_status.window import window_ms
from lagscale.domain.wording.group_status import group_sentence, partition_sentence
from lagscale.store.registry import monitors
from lagscale.store.registry.session import RegistryDatabase, Scope
from lagscale.store.samples.read import Recent, Wanted
from services.api.group_status.schemas import MonitorState, PartitionState
from services.api.monitors.policies import policy_of

#: The state of a monitor's scope that means more topics than it may measure.
_TOO_MANY = "too_many_topics"


class Rounds(Protocol):
    """The part of the store of recent rounds that is used here."""

    async def read(self, wanted: Sequence[Wanted]) -> Recent: ...


class Conditions:
    """Tells the state of a monitor's group."""

    def __init__(self, database: RegistryDatabase, rounds: Rounds) -> None:
        """Take the registry, and the recent rounds in the scaler's role.

        That role sees every tenant's samples; so only targets that were just found behind the caller's wall are asked
        for, and the statement names their tenant again.
        """
        self._database = database
        self._rounds = rounds

    async def of(self, scope: Scope, tenant: str, name: str) -> MonitorState:
        """The state of the monitor's group now, with the numbers behind it.

        Raises:
            NotFound: no such monitor for this caller.
            StoreUnavailable: the store did not answer.
        """
        async with self._database.tenant(scope, tenant) as work:
            row = await monitors.named(work, name)
            targets = await monitors.targets(work, row["id"])
        policy = policy_of(row, int(work.tenant["min_sampling_seconds"]))
        topics = {int(target["id"]): str(target["topic"]) for target in targets}
        recent = await self._rounds.read([Wanted(work.tenant_id, target, reach_ms(policy)) for target in topics])
        rounds = {target: recent.rounds.get(target, ()) for target in topics}
        # In a thread, because a thousand partitions take a while in which other requests must be answered.
        found = await asyncio.to_thread(group_conditions, rounds, policy, recent.now_ms)
        partial = str(row["scope_message"]) if row["scope_code"] == _TOO_MANY else None
        # Of a part of the topics only what is bad is proven.
        state = found.condition if partial is None else worst((found.condition, Condition.UNKNOWN))
        ordered = sorted(found.partitions, key=lambda one: (-SEVERITY.index(one.condition), topics[one.target_id]))
        return MonitorState(
            monitor=name,
            consumer_group=str(row["consumer_group"]),
            state=state.value,
            sentence=group_sentence(found),
            counts=dict(Counter(one.condition.value for one in ordered)),
            window_seconds=window_ms(policy) / 1000,
            stuck_after_seconds=stuck_ms(policy) / 1000,
            stuck_is_left_out=policy.stuck_after_ms > 0,
            members=found.members,
            newest_at=_instant(found.at_ms),
            told_at=datetime.fromtimestamp(recent.now_ms / 1000, UTC),
            not_measured=[topics[target] for target in found.unmeasured],
            scope=partial,
            partitions=[_partition(one, topics) for one in ordered],
        )


def _partition(one: PartitionCondition, topics: Mapping[int, str]) -> PartitionState:
    return PartitionState(
        topic=topics[one.target_id],
        partition=one.partition,
        state=one.condition.value,
        why=one.why.value,
        sentence=partition_sentence(one),
        at=_instant(one.at_ms),
        lag=one.lag,
        position=one.position,
        then=_instant(one.then_ms),
        lag_then=one.lag_then,
        advanced=one.advanced,
        moves=one.moves,
        still_since=_instant(one.still_since_ms),
        still_since_earlier=one.since_earlier,
        uncommitted=one.uncommitted,
        lost=one.lost,
        stuck=one.stuck,
        hot=one.hot,
    )


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
