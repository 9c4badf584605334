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

from lagscale.domain.group_status.rules import Condition, GroupConditions, group_conditions, reach_ms, worst
from lagscale.errors import LagscaleError
from lagscale.store.records import Registration, Registrations
from lagscale.store.samples.read import Newest, Recent, Wanted

log = structlog.get_logger(__name__)

GROUPS = Gauge("lagscale_api_groups", "Monitors by the state of their group, when last counted.", ["state"])
PARTITIONS = Gauge("lagscale_api_partitions", "Partitions of monitors by state, when last counted.", ["state"])
MARKED = Gauge(
    "lagscale_api_marked_partitions", "Partitions of monitors that are stuck, or hot, when last counted.", ["mark"]
)

#: Monitors whose rounds are read by one statement.
_A_SLICE: Final = 50


class RegistrationSource(Protocol):
    """The part of the store of registrations that is used here."""

    async def load(self) -> Registrations: ...


class RoundSource(Protocol):
    """The part of the store of recent rounds that is used here."""

    async def read(self, wanted: Sequence[Wanted]) -> Recent: ...

    async def newest(self, wanted: Sequence[Wanted]) -> dict[int, Newest]: ...


@dataclass(slots=True)
class Counts:
    """What is counted: monitors and partitions by state, and marked partitions by mark."""

    groups: Counter[Condition] = field(default_factory=Counter)
    partitions: Counter[Condition] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, found: GroupConditions, quiet: int, *, partial: bool) -> None:
        """Count one monitor: its targets in which something waits, and the number of partitions of the others."""
        states = [found.condition] if found.partitions or found.unmeasured else []
        states += [Condition.OK] * bool(quiet) + [Condition.UNKNOWN] * partial
        self.groups[worst(states)] += 1
        self.partitions[Condition.OK] += quiet
        for one in found.partitions:
            self.partitions[one.condition] += 1
            self.marks["stuck"] += one.stuck
            self.marks["hot"] += one.hot


class StateCounts:
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
        except LagscaleError as away:
            if not self._failed:
                log.warning("states_not_counted", error=away.message)
            self._forget()
            return
        except Exception:
            # The numbers must not stay as they were, and the next counting may go well.
            log.exception("states_not_counted")
            self._forget()
            return
        self._failed = False
        for state in Condition:
            GROUPS.labels(state.value).set(counts.groups[state])
            PARTITIONS.labels(state.value).set(counts.partitions[state])
        for mark in ("stuck", "hot"):
            MARKED.labels(mark).set(counts.marks[mark])

    def _forget(self) -> None:
        self._failed = True
        for family in (GROUPS, PARTITIONS, MARKED):
            family.clear()

    async def count(self) -> Counts:
        """The states of all monitors of all tenants.

        Only where something waits, or a sample is missing, are rounds read: the newest one tells the rest.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        monitors = (await self._registrations.load()).monitors
        counts = Counts()
        for begin in range(0, len(monitors), _A_SLICE):
            await self._count(monitors[begin : begin + _A_SLICE], counts)
        return counts

    async def _count(self, monitors: Sequence[Registration], counts: Counts) -> None:
        newest = await self._rounds.newest(
            [Wanted(one.tenant_id, target, 0) for one in monitors for target in one.target_ids]
        )
        loud = {one.monitor_id: _loud(one, newest) for one in monitors}
        # A target of several monitors is read once, as far back as one of them needs.
        reaches: dict[tuple[int, int], int] = {}
        for one in monitors:
            for target in loud[one.monitor_id]:
                key = one.tenant_id, target
                reaches[key] = max(reaches.get(key, 0), reach_ms(one.policy))
        wanted = [Wanted(tenant, target, reach) for (tenant, target), reach in reaches.items()]
        recent = await self._rounds.read(wanted)
        for one in monitors:
            mine = {target: recent.rounds.get(target, ()) for target in loud[one.monitor_id]}
            quiet = sum(newest[target].partitions for target in one.target_ids if target not in mine)
            # In a thread, because a thousand partitions take a while in which requests must be answered.
            found = await asyncio.to_thread(group_conditions, mine, one.policy, recent.now_ms)
            counts.add(found, quiet, partial=bool(one.partial))


def _loud(monitor: Registration, newest: Mapping[int, Newest]) -> list[int]:
    """The monitor's targets whose newest round does not prove that all is well."""
    return [
        target
        for target in monitor.target_ids
        if target not in newest or not newest[target].quiet or newest[target].age_ms > monitor.policy.stale_after_ms
    ]
