"""Counts of groups and partitions by status over all tenants, for the metrics; a background task refreshes them.

Three small families whatever the number of groups: the status of a single group is available from the API, with a key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from lagscale.domain.group_status.rules import (
    GroupStatus,
    Status,
    compute_lookback_ms,
    evaluate_group_status,
    find_worst_status,
)
from lagscale.errors import LagscaleError
from lagscale.store.registrations.load import Registration, Registrations
from lagscale.store.samples.read import NewestRound, RoundsRequest, RoundsResult
from services.api.metrics import GROUPS, MARKED, PARTITIONS

log = structlog.get_logger(__name__)

#: Monitors whose rounds one statement reads.
_BATCH_SIZE: Final = 50


class RegistrationSource(Protocol):
    """The part of the store of registrations that is used here."""

    async def load(self) -> Registrations: ...


class RoundSource(Protocol):
    """The part of the store of recent rounds that the API uses; in the scaler's role, as `VerdictStore`."""

    async def read(self, requests: Sequence[RoundsRequest]) -> RoundsResult: ...

    async def newest(self, requests: Sequence[RoundsRequest]) -> dict[int, NewestRound]: ...


@dataclass(slots=True)
class StatusCounts:
    """Monitors and partitions by status, and marked partitions by mark."""

    groups: Counter[Status] = field(default_factory=Counter)
    partitions: Counter[Status] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, group: GroupStatus, quiet: int, *, partial: bool) -> None:
        """Count one monitor: its lagging targets, and the number of partitions of its other targets."""
        states = [group.status] if group.partitions or group.unmeasured else []
        states += [Status.OK] * bool(quiet) + [Status.UNKNOWN] * partial
        self.groups[find_worst_status(states)] += 1
        self.partitions[Status.OK] += quiet
        for one in group.partitions:
            self.partitions[one.status] += 1
            self.marks["stuck"] += one.stuck
            self.marks["hot"] += one.hot


class StatusCounter:
    """Counts statuses periodically; while they cannot be counted, the metrics have no samples.

    Args:
        registrations: the monitors of all tenants.
        rounds: their samples.
        seconds: interval between counts.
    """

    def __init__(self, registrations: RegistrationSource, rounds: RoundSource, seconds: float) -> None:
        self._registrations = registrations
        self._rounds = rounds
        self._seconds = seconds
        self._failed = False

    async def run(self) -> None:
        """Refresh until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._seconds)

    async def refresh(self) -> None:
        """Count once and set the metrics."""
        try:
            counts = await self.count()
        except LagscaleError as error:
            if not self._failed:
                log.warning("group_status_count_failed", reason=error.message)
            self._clear_gauges()
            return
        except Exception:
            # Stale numbers must not stay, and the next count may succeed.
            log.exception("group_status_count_failed")
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
        """The statuses of all monitors of all tenants.

        Rounds are read of lagging targets only, and where a sample is missing; of others the newest round suffices.

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
        # A target of several monitors is read once, over the longest lookback among them.
        lookbacks: dict[tuple[int, int], int] = {}
        for one in monitors:
            for target in lagging_targets[one.monitor_id]:
                key = one.tenant_id, target
                lookbacks[key] = max(lookbacks.get(key, 0), compute_lookback_ms(one.policy))
        requests = [RoundsRequest(tenant, target, lookback) for (tenant, target), lookback in lookbacks.items()]
        recent = await self._rounds.read(requests)
        for one in monitors:
            rounds_by_target = {target: recent.rounds.get(target, ()) for target in lagging_targets[one.monitor_id]}
            quiet = sum(newest[target].partitions for target in one.target_ids if target not in rounds_by_target)
            # In a thread, because a thousand partitions take a while, and requests have to be served.
            group = await asyncio.to_thread(evaluate_group_status, rounds_by_target, one.policy, recent.now_ms)
            counts.add(group, quiet, partial=bool(one.partial_reason))


def _find_lagging_targets(monitor: Registration, newest: Mapping[int, NewestRound]) -> list[int]:
    """The monitor's targets whose newest round does not prove the status `ok`."""
    return [
        target
        for target in monitor.target_ids
        if target not in newest or not newest[target].is_quiet or newest[target].age_ms > monitor.policy.stale_after_ms
    ]
