"""The background poller: polls oversized groups out of band, one after the other.

A round of 100,000 partitions may take longer than a tick. Runs in a thread beside the planner, with clients of its own;
costly modules are imported with the first group.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from lagscale.errors import LagscaleError
from lagscale.store.connection import ScraperDatabase
from lagscale.store.scraping.leases import Lease
from services.scraper import deadlines
from services.scraper.engine.options import EngineOptions
from services.scraper.planning.plan import ClusterPlan, GroupPlan, Slot
from services.scraper.polling.poll import ClientOpener, DatabaseClock, PollClient, poll_slot
from services.scraper.worker_reports import send_report

log = structlog.get_logger(__name__)

_LargeKey = tuple[int, str]


class LargeGroupPoller(threading.Thread):
    """Polls oversized groups and writes their rows while this scraper leads, that is while `lease` returns one.

    The connection to the database is its own; the clock returns seconds.
    """

    def __init__(
        self,
        options: EngineOptions,
        database: ScraperDatabase,
        opener: ClientOpener[PollClient],
        lease: Callable[[], Lease | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="large-groups", daemon=True)
        self._options, self._database, self._opener, self._lease, self._clock = options, database, opener, lease, clock
        self._plans: Sequence[ClusterPlan] = ()
        #: When each group is due, and when its last round started.
        self._due_at: dict[_LargeKey, float] = {}
        self._started_at: dict[_LargeKey, float] = {}
        self._served_at: dict[int, float] = {}
        self._stop_asked = threading.Event()

    def stop(self) -> None:
        """Stop after the current round, without waiting for it."""
        self._stop_asked.set()

    def set_plans(self, plans: Sequence[ClusterPlan]) -> None:
        """Replace the oversized groups that are polled."""
        self._plans = plans

    def run_once(self) -> bool:
        """Poll one due group, of the tenant that was served longest ago; whether there was one."""
        now = self._clock()
        plans = [(plan, group) for plan in self._plans for group in plan.groups]
        keys = {_build_key(plan, group) for plan, group in plans}
        self._due_at = {key: at for key, at in self._due_at.items() if key in keys}
        self._started_at = {key: at for key, at in self._started_at.items() if key in keys}
        waiting = [one for one in plans if self._due_at.get(_build_key(*one), now) <= now]
        lease = self._lease()
        if not waiting or lease is None:
            return False

        def rank(one: tuple[ClusterPlan, GroupPlan]) -> tuple[float, float]:
            return self._served_at.get(one[0].cluster.tenant_id, 0.0), self._due_at.get(_build_key(*one), 0.0)

        plan, group = min(waiting, key=rank)
        tenants = {one.cluster.tenant_id for one in self._plans}
        self._served_at = {tenant: self._served_at.get(tenant, 0.0) for tenant in tenants} | {
            plan.cluster.tenant_id: now
        }
        key = _build_key(plan, group)
        real_ms = int((now - self._started_at.get(key, now)) * 1000)
        self._started_at[key] = now
        self._poll_round(replace(plan, groups=(replace(group, interval_ms=max(group.interval_ms, real_ms)),)), lease)
        elapsed = self._clock() - now
        self._due_at[key] = now + max(group.interval_ms / 1000, (1 + deadlines.LARGE_PAUSE_FACTOR) * elapsed)
        return True

    def _poll_round(self, plan: ClusterPlan, lease: Lease) -> None:
        from services.scraper.engine.rows import build_rows
        from services.scraper.engine.write import write_rows

        started_at = time.monotonic()
        clock = DatabaseClock.learn(self._database)
        results = poll_slot(Slot((plan,), deadlines.LARGE_ROUND_SECONDS), self._opener, clock)
        part = write_rows(self._options.holder, build_rows(results, lease.epoch, clock.now_ms()), self._database)
        if part.store_error or part.lost_lease:
            log.warning("large_group_write_failed", reason=part.store_error or "lease lost")
        facts = {"stored": part.stored, "samples": part.samples, "codes": part.codes}
        send_report(self._options.reports, "large", seconds=time.monotonic() - started_at, **facts)

    def run(self) -> None:
        """Poll until `stop`."""
        pause = deadlines.LARGE_IDLE_SECONDS
        while not self._stop_asked.wait(pause):
            started_at, polled = time.monotonic(), False
            try:
                polled = self.run_once()
            except LagscaleError as error:
                log.info("large_group_poll_failed", reason=error.message)
            except Exception:
                # Without this thread oversized groups are never polled.
                log.exception("large_group_poll_failed")
            elapsed = time.monotonic() - started_at
            pause = deadlines.LARGE_PAUSE_FACTOR * elapsed if polled else deadlines.LARGE_IDLE_SECONDS
        self._database.close()


def _build_key(plan: ClusterPlan, group: GroupPlan) -> _LargeKey:
    return plan.cluster.cluster_id, group.name
