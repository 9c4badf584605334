"""Counts of groups and partitions by state, over all tenants, for the metrics; renewed by a task of the service.

Three small families whatever the number of groups: who fares badly is asked of the API by name, which needs a key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog
from prometheus_client import Gauge

from lagscale.domain.group_status.rules import (
    GroupStatus,
    Status,
    compute_lookback_ms,
    evaluate_group_status,
    find_worst_status,
)
from lagscale.errors import LagscaleError
from lagscale.store.records import Registration, Registrations
from lagscale.store.samples.read import NewestRound, RoundsRequest, RoundsResult

log = structlog.get_logger(__name__)

GROUPS = Gauge("lagscale_api_groups", "Monitors by the state of their group, when last counted.", ["state"])
PARTITIONS = Gauge("lagscale_api_partitions", "Partitions of monitors by state, when last counted.", ["state"])
MARKED = Gauge(
    "lagscale_api_marked_partitions", "Partitions of monitors that are stuck, or hot, when last counted.", ["mark"]
)

#: Monitors whose rounds are read by one statement.
_BATCH_SIZE: Final = 50


class RegistrationSource(Protocol):
    """The part of the store of registrations that is used here."""

    async def load(self) -> Registrations: ...


class RoundSource(Protocol):
    """The part of the store of recent rounds that is used here."""

    async def read(self, requests: Sequence[RoundsRequest]) -> RoundsResult: ...

    async def newest(self, requests: Sequence[RoundsRequest]) -> dict[int, NewestRound]: ...


@dataclass(slots=True)
class StatusCounts:
    """What is counted: monitors and partitions by state, and marked partitions by mark."""

    groups: Counter[Status] = field(default_factory=Counter)
    partitions: Counter[Status] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, group: GroupStatus, quiet: int, *, partial: bool) -> None:
        """Count one monitor: its targets in which something waits, and the number of partitions of the others."""
        states = [group.status] if group.partitions or group.unmeasured else []
        states += [Status.OK] * bool(quiet) + [Status.UNKNOWN] * partial
        self.groups[find_worst_status(states)] += 1
        self.partitions[Status.OK] += quiet
        for one in group.partitions:
            self.partitions[one.status] += 1
            self.marks["stuck"] += one.stuck
            self.marks["hot"] += one.hot


class StatusCounter:
    """Counts the states every so often; what cannot be counted is shown by no number.

    Args:
        registrations: the monitors of all tenants.
        rounds: their samples.
        seconds: from one counting to the next.
    """

    def __init__(self, registrations: RegistrationSource, rounds: RoundSource, seconds: float) -> None:
        self._registrations = registrations
        self._rounds = rounds
        self._seconds = seconds
        self._failed = False

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.renew()
            await asyncio.sleep(self._seconds)

    async def renew(self) -> None:
        """Count once and show it."""
        try:
            counts = await self.count()
        except LagscaleError as error:
            if not self._failed:
                log.warning("states_not_counted", error=error.message)
            self._clear_gauges()
            return
        except Exception:
            # The numbers must not stay as they were, and the next counting may go well.
            log.exception("states_not_counted")
            self._clear_gauges()
            return
        self._failed = False
        for state in Status:
            GROUPS.labels(state.value).set(counts.groups[state])
            PARTITIONS.labels(state.value).set(counts.partitions[state])
        for mark in ("stuck", "hot"):
            MARKED.labels(mark).set(counts.marks[mark])

    def _clear_gauges(self) -> None:
        self._failed = True
        for family in (GROUPS, PARTITIONS, MARKED):
            family.clear()

    async def count(self) -> StatusCounts:
        """The states of all monitors of all tenants.

        Only where something waits, or a sample is missing, are rounds read: the newest one tells the rest.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        monitors = (await self._registrations.load()).monitors
        counts = StatusCounts()
        for begin in range(0, len(monitors), _BATCH_SIZE):
            await self._count(monitors[begin : begin + _BATCH_SIZE], counts)
        return counts

    async def _count(self, monitors: Sequence[Registration], counts: StatusCounts) -> None:
        newest = await self._rounds.newest(
            [RoundsRequest(one.tenant_id, target, 0) for one in monitors for target in one.target_ids]
        )
        lagging_targets = {one.monitor_id: _find_lagging_targets(one, newest) for one in monitors}
        # A target of several monitors is read once, as far back as one of them needs.
        reaches: dict[tuple[int, int], int] = {}
        for one in monitors:
            for target in lagging_targets[one.monitor_id]:
                key = one.tenant_id, target
                reaches[key] = max(reaches.get(key, 0), compute_lookback_ms(one.policy))
        requests = [RoundsRequest(tenant, target, reach) for (tenant, target), reach in reaches.items()]
        recent = await self._rounds.read(requests)
        for one in monitors:
            rounds_by_target = {target: recent.rounds.get(target, ()) for target in lagging_targets[one.monitor_id]}
            quiet = sum(newest[target].partitions for target in one.target_ids if target not in rounds_by_target)
            # In a thread, because a thousand partitions take a while in which requests must be answered.
            group = await asyncio.to_thread(evaluate_group_status, rounds_by_target, one.policy, recent.now_ms)
            counts.add(group, quiet, partial=bool(one.partial_reason))


def _find_lagging_targets(monitor: Registration, newest: Mapping[int, NewestRound]) -> list[int]:
    """The monitor's targets whose newest round does not prove that all is well."""
    return [
        target
        for target in monitor.target_ids
        if target not in newest or not newest[target].is_quiet or newest[target].age_ms > monitor.policy.stale_after_ms
    ]
