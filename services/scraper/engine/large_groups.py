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
from services.scraper.deadlines import LARGE_IDLE_SECONDS, LARGE_PAUSE_FACTOR, LARGE_ROUND_SECONDS
from services.scraper.engine.options import EngineOptions
from services.scraper.planning.plan import ClusterPlan, GroupPlan, Slot
from services.scraper.polling.poll import ClientOpener, PollClient
from services.scraper.worker_reports import send_report

log = structlog.get_logger(__name__)

_LargeKey = tuple[int, str]


class LargeGroupPoller(threading.Thread):
    """Polls oversized groups and writes their rows while this scraper leads.

    Args:
        options: of the stream.
        database: a connection of its own.
        opener: of the clusters' clients.
        lease: the current lease; None while another scraper leads.
        clock: seconds, for what is due.
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
        plan, group = min(
            waiting,
            key=lambda one: (
                self._served_at.get(one[0].cluster.tenant_id, 0.0),
                self._due_at.get(_build_key(*one), 0.0),
            ),
        )
        self._served_at = {
            one.cluster.tenant_id: self._served_at.get(one.cluster.tenant_id, 0.0) for one in self._plans
        }
        self._served_at[plan.cluster.tenant_id] = now
        key = _build_key(plan, group)
        real_ms = int((now - self._started_at.get(key, now)) * 1000)
        self._started_at[key] = now
        self._poll_round(replace(plan, groups=(replace(group, interval_ms=max(group.interval_ms, real_ms)),)), lease)
        elapsed = self._clock() - now
        self._due_at[key] = now + max(group.interval_ms / 1000, (1 + LARGE_PAUSE_FACTOR) * elapsed)
        return True

    def _poll_round(self, plan: ClusterPlan, lease: Lease) -> None:
        from services.scraper.engine.rows import build_rows
        from services.scraper.engine.worker import DatabaseClock
        from services.scraper.engine.write import write_rows
        from services.scraper.polling.poll import poll_slot

        started_at = time.monotonic()
        clock = DatabaseClock.learn(self._database)
        results = poll_slot(Slot((plan,), LARGE_ROUND_SECONDS), self._opener, clock, clock.error_ms)
        part = write_rows(self._options.holder, build_rows(results, lease.epoch, clock()), self._database)
        if part.store_error or part.lost_lease:
            log.warning("large_group_write_failed", reason=part.store_error or "lease lost")
        send_report(
            self._options.reports,
            "large",
            seconds=time.monotonic() - started_at,
            stored=part.stored,
            samples=part.samples,
            codes=part.codes,
        )

    def run(self) -> None:
        """Poll until `stop`."""
        pause = LARGE_IDLE_SECONDS
        while not self._stop_asked.wait(pause):
            started_at = time.monotonic()
            try:
                polled = self.run_once()
            except LagscaleError as error:
                polled = False
                log.info("large_group_poll_failed", reason=error.message)
            except Exception:
                # Without this thread oversized groups are never polled.
                polled = False
                log.exception("large_group_poll_failed")
            pause = LARGE_PAUSE_FACTOR * (time.monotonic() - started_at) if polled else LARGE_IDLE_SECONDS
        self._database.close()


def _build_key(plan: ClusterPlan, group: GroupPlan) -> _LargeKey:
    return plan.cluster.cluster_id, group.name
