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
from services.scraper.engine.opening import build_opener
from services.scraper.engine.options import EngineOptions
from services.scraper.planning.planner import ClusterPlan, GroupPlan, Slot
from services.scraper.polling.poll import CloseClient, OpenClient
from services.scraper.worker_reports import report

log = structlog.get_logger(__name__)

_IDLE_SECONDS = 0.5
#: All requests of one round; they are many.
_ROUND_SECONDS = 20.0
#: For each second of a round so many others pass, so that it takes a part of one core only.
_PAUSE_FACTOR = 2.0
_LargeKey = tuple[int, str]


@dataclass(frozen=True, slots=True)
class ClientProvider:
    """How clusters are opened and closed, and the clock of what is due, in seconds."""

    open_cluster: OpenClient
    close_cluster: CloseClient
    clock: Callable[[], float] = time.monotonic


def build_provider(options: EngineOptions, limit: int) -> ClientProvider:
    """With so many clients at most."""
    opener = build_opener(options, limit)
    return ClientProvider(lambda plan: opener.open(plan.cluster, responsive=plan.responsive), opener.release)


class LargeGroupPoller:
    """Polls and writes while this scraper leads.

    Args:
        options: of the stream; the rows are written as those of the ticks are.
        database: a connection of its own.
        provider: to the clusters.
        lease: the present lease; None while another scraper leads.
    """

    def __init__(
        self,
        options: EngineOptions,
        database: ScraperDatabase,
        provider: ClientProvider,
        lease: Callable[[], Lease | None],
    ) -> None:
        self._options, self._database, self._provider, self._lease = options, database, provider, lease
        self._plans: Sequence[ClusterPlan] = ()
        #: When each group is due, and what its real interval was.
        self._due_at: dict[_LargeKey, float] = {}
        self._started_at: dict[_LargeKey, float] = {}
        self._served_at: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.run, name="large", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, not waiting for a round that is under way."""
        self._stop.set()

    def set_plans(self, plans: Sequence[ClusterPlan]) -> None:
        """All large groups there are, from now on."""
        self._plans = plans

    def run_once(self) -> bool:
        """Poll the group whose turn it is, of the tenant that was served the longest ago; whether there was one."""
        now = self._provider.clock()
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
        elapsed = self._provider.clock() - now
        self._due_at[key] = now + max(group.interval_ms / 1000, (1 + _PAUSE_FACTOR) * elapsed)
        return True

    def _poll_round(self, plan: ClusterPlan, lease: Lease) -> None:
        from services.scraper.engine import rows as wire
        from services.scraper.engine import worker, write
        from services.scraper.polling.poll import poll

        started_at = time.monotonic()
        clock = worker.DatabaseClock.learn(self._database)
        answers = poll(
            Slot((plan,), _ROUND_SECONDS),
            self._provider.open_cluster,
            clock,
            clock.error_ms,
            close_cluster=self._provider.close_cluster,
        )
        rows = [row for batch in wire.build_batches(answers, lease.epoch, clock()) for row in batch.to_pylist()]
        part = write.write(self._options, rows, self._database)
        if part.store_error or part.lost_lease:
            log.warning("large_round_not_stored", error=part.store_error or "lease lost")
        report(
            self._options.reports,
            "large",
            seconds=time.monotonic() - started_at,
            stored=part.stored,
            samples=part.samples,
            codes=part.codes,
        )

    def run(self) -> None:
        """Poll until it is stopped."""
        pause = _IDLE_SECONDS
        while not self._stop.wait(pause):
            started_at = time.monotonic()
            try:
                polled = self.run_once()
            except LagscaleError as error:
                polled = False
                log.info("large_group_not_polled", error=error.message)
            except Exception:
                # The thread must go on: without it large groups are never polled.
                polled = False
                log.exception("large_group_failed")
            pause = _PAUSE_FACTOR * (time.monotonic() - started_at) if polled else _IDLE_SECONDS
        self._database.close()


def _build_key(plan: ClusterPlan, group: GroupPlan) -> _LargeKey:
    return plan.cluster.cluster_id, group.name
