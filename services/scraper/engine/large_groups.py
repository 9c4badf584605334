"""Polls large groups beside the ticks, one after the other: a round of 100,000 partitions may take longer than a tick.

Runs in a thread beside the planner, with clients of its own. What is costly to import is imported with the first group.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from lagscale.errors import LagscaleError
from lagscale.store.records import Lease
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.engine.opening import opening_of
from services.scraper.engine.options import Options
from services.scraper.planning.planner import ClusterPlan, GroupPlan, Slot
from services.scraper.polling.poll import Close, Open
from services.scraper.worker_reports import report

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.5
#: All requests of one round; they are many.
_ROUND_SECONDS = 20.0
#: For each second of a round so many others pass, so that it takes a part of one core only.
_REST = 2.0
_Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Seam:
    """How clusters are opened and closed, and the clock of what is due, in seconds."""

    open_cluster: Open
    close_cluster: Close
    clock: Callable[[], float] = time.monotonic


def kafka_seam(options: Options, limit: int) -> Seam:
    """With so many clients at most."""
    opening = opening_of(options, limit)
    return Seam(lambda plan: opening.open(plan.cluster, proven=plan.proven), opening.rest)


class Lane:
    """Polls and writes while this scraper leads.

    Args:
        options: of the stream; the rows are written as those of the ticks are.
        database: a connection of its own.
        seam: to the clusters.
        lease: the present lease; None while another scraper leads.
    """

    def __init__(
        self, options: Options, database: ScraperDatabase, seam: Seam, lease: Callable[[], Lease | None]
    ) -> None:
        self._options, self._database, self._seam, self._lease = options, database, seam, lease
        self._plans: Sequence[ClusterPlan] = ()
        #: When each group is due, and what its real interval was.
        self._due: dict[_Key, float] = {}
        self._began: dict[_Key, float] = {}
        self._served: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.run, name="large", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, not waiting for a round that is under way."""
        self._stop.set()

    def offer(self, plans: Sequence[ClusterPlan]) -> None:
        """All large groups there are, from now on."""
        self._plans = plans

    def once(self) -> bool:
        """Poll the group whose turn it is, of the tenant that was served the longest ago; whether there was one."""
        now = self._seam.clock()
        plans = [(plan, group) for plan in self._plans for group in plan.groups]
        keys = {_key(plan, group) for plan, group in plans}
        self._due = {key: at for key, at in self._due.items() if key in keys}
        self._began = {key: at for key, at in self._began.items() if key in keys}
        waiting = [one for one in plans if self._due.get(_key(*one), now) <= now]
        lease = self._lease()
        if not waiting or lease is None:
            return False
        plan, group = min(
            waiting,
            key=lambda one: (self._served.get(one[0].cluster.tenant_id, 0.0), self._due.get(_key(*one), 0.0)),
        )
        self._served = {one.cluster.tenant_id: self._served.get(one.cluster.tenant_id, 0.0) for one in self._plans}
        self._served[plan.cluster.tenant_id] = now
        key = _key(plan, group)
        real_ms = int((now - self._began.get(key, now)) * 1000)
        self._began[key] = now
        self._round(replace(plan, groups=(replace(group, interval_ms=max(group.interval_ms, real_ms)),)), lease)
        took = self._seam.clock() - now
        self._due[key] = now + max(group.interval_ms / 1000, (1 + _REST) * took)
        return True

    def _round(self, plan: ClusterPlan, lease: Lease) -> None:
        from services.scraper.engine import worker, write
        from services.scraper.polling.poll import poll
        from services.scraper.spark import rows as wire

        began = time.monotonic()
        clock = worker.Clock.learn(self._database)
        answers = poll(
            Slot((plan,), _ROUND_SECONDS),
            self._seam.open_cluster,
            clock,
            clock.error_ms,
            close_cluster=self._seam.close_cluster,
        )
        rows = [row for batch in wire.batches(answers, lease.epoch, clock()) for row in batch.to_pylist()]
        part = write.write(self._options, rows, self._database)
        if part.store_error or part.lost_lease:
            log.warning("large_round_not_stored", error=part.store_error or "lease lost")
        report(
            self._options.reports,
            "large",
            seconds=time.monotonic() - began,
            stored=part.stored,
            samples=part.samples,
            codes=part.codes,
        )

    def run(self) -> None:
        """Poll until it is stopped."""
        pause = _LOOK_SECONDS
        while not self._stop.wait(pause):
            began = time.monotonic()
            try:
                polled = self.once()
            except LagscaleError as away:
                polled = False
                log.info("large_group_not_polled", error=away.message)
            except Exception:
                # The thread must go on: without it large groups are never polled.
                polled = False
                log.exception("large_group_failed")
            pause = _REST * (time.monotonic() - began) if polled else _LOOK_SECONDS
        self._database.close()


def _key(plan: ClusterPlan, group: GroupPlan) -> _Key:
    return plan.cluster.cluster_id, group.name
