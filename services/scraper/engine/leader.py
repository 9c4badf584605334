"""The leader: renews the lease and plans each tick. Runs in Spark's planning process, beside the driver."""

from __future__ import annotations

from typing import Any

import structlog

from lagscale.errors import LagscaleError
from lagscale.store.connection import ScraperDatabase
from lagscale.store.scraping import leases, targets
from lagscale.store.scraping.leases import Lease
from services.scraper import deadlines
from services.scraper.engine.large_groups import LargeGroupPoller
from services.scraper.engine.options import EngineOptions
from services.scraper.kafka.open import ClusterOpener, build_opener
from services.scraper.planning.plan import Slot
from services.scraper.planning.planner import PollPlanner
from services.scraper.topics.discovery import DiscoveryLimits, TopicDiscovery
from services.scraper.worker_reports import send_report

log = structlog.get_logger(__name__)


class Leader:
    """Renews the lease at each tick, so that a scraper whose query hangs loses it."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._database = ScraperDatabase(options.database_url, application="lagscale-scraper-plan")
        # Unresponsive clusters polled at one tick: as many as have a client reserved.
        probes = min(deadlines.MAX_PROBES, options.clients_limit // deadlines.RESERVED_CLIENTS_DIVISOR)
        self._planner = PollPlanner(options.tick_ms, options.slots, options.tenant_partitions, probes)
        self._polling = targets.PollInventory(-1)
        self.lease: Lease | None = None
        limits = DiscoveryLimits(options.topics_seconds, options.topics_limit)
        database, opener = _build_background(options, "topics")
        self._discovery = TopicDiscovery(
            database,
            opener,
            limits,
            lambda: self.lease,
            on_pass=lambda counts: send_report(options.reports, "topics", counts=dict(counts)),
        )
        self._discovery.start()
        database, opener = _build_background(options, "large")
        self._large_poller = LargeGroupPoller(options, database, opener, lambda: self.lease)
        self._large_poller.start()

    def keep_lease(self) -> bool:
        """Renew the lease, or take it if it is free; whether this scraper leads."""
        seconds = deadlines.compute_lease_seconds(self._options.tick_ms / 1000)
        try:
            self.lease = leases.acquire(self._database, self._options.holder, seconds)
        except LagscaleError as error:
            # Whether the lease is still valid is unknown; the sink checks it again before it writes.
            self._report(store=False, reason=error.message)
            return False
        self._report(store=True)
        return self.lease is not None

    def plan(self) -> tuple[list[Slot], float]:
        """The slots of this tick, and its time by the database's clock; no slots while the store is unavailable."""
        try:
            at_ms, version = self._database.now_ms()
            if version != self._polling.version:
                self._polling = targets.read_inventory(self._database)
            failed = targets.failed_clusters(self._database)
        except LagscaleError as error:
            self._report(store=False, reason=error.message)
            return [], 0.0
        slots = self._planner.plan(self._polling, failed, at_ms)
        self._large_poller.set_plans(self._planner.large)
        self._report(store=True, targets=len(self._polling.targets), clusters=len(self._polling.clusters))
        return slots, at_ms

    def stop(self) -> None:
        """Release the lease, so that a standby takes over at once."""
        self._large_poller.stop()
        self._discovery.stop()
        if self.lease is not None:
            try:
                leases.release(self._database, self._options.holder)
            except LagscaleError as error:
                log.warning("lease_release_failed", reason=error.message)
        self._database.close()

    def _report(self, **facts: Any) -> None:
        epoch = 0 if self.lease is None else self.lease.epoch
        send_report(self._options.reports, "plan", leading=self.lease is not None, epoch=epoch, **facts)


def _build_background(options: EngineOptions, name: str) -> tuple[ScraperDatabase, ClusterOpener]:
    """A connection and an opener of its own for a background thread."""
    clients = max(options.clients_limit // deadlines.BACKGROUND_CLIENTS_DIVISOR, deadlines.MIN_BACKGROUND_CLIENTS)
    database = ScraperDatabase(options.database_url, application=f"lagscale-scraper-{name}")
    return database, build_opener(options, clients)
