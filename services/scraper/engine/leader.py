"""Ticks: the lease that is kept, and the plan of each tick. Lives in the one process beside the driver that plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from lagscale.errors import LagscaleError
from lagscale.store.records import Lease
from lagscale.store.scraping import leases, targets
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.engine.large_groups import Lane, kafka_seam
from services.scraper.engine.opening import opening_of
from services.scraper.engine.options import Options
from services.scraper.planning.backoff import PROBES
from services.scraper.planning.planner import Planner, Slot
from services.scraper.topics.discovery import Limits, Resolver
from services.scraper.worker_reports import report

log = structlog.get_logger(__name__)

#: The lease lasts two ticks, and never less than this; seconds.
_LEAST_LEASE = 4.0


class Ticks:
    """Keeps the lease while ticks go on, so that a scraper whose query hangs loses it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._database = ScraperDatabase(options.database_url, application="lagscale-scraper-plan")
        self._planner = Planner(options.tick_ms, options.slots, options.tenant_partitions, _probes(options))
        self._polling = targets.Polling(-1)
        self.lease: Lease | None = None
        self._resolver = _resolver(options, lambda: self.lease)
        self._resolver.start()
        self._lane = Lane(
            options,
            ScraperDatabase(options.database_url, application="lagscale-scraper-large"),
            kafka_seam(options, _few(options)),
            lambda: self.lease,
        )
        self._lane.start()

    def keep_lease(self) -> bool:
        """Whether this scraper leads; takes the lease where it is free."""
        seconds = max(2 * self._options.tick_ms / 1000, _LEAST_LEASE)
        try:
            self.lease = leases.keep(self._database, self._options.holder, seconds)
        except LagscaleError as away:
            # Whether the lease still stands is not known; the sink will ask again before it writes.
            self._report(store=False, error=away.message)
            return False
        self._report(store=True)
        return self.lease is not None

    def plan(self) -> tuple[list[Slot], float]:
        """The slots of this tick, and when it was planned by the database's clock; none when the store is away."""
        try:
            at_ms, version = self._database.now_ms()
            if version != self._polling.version:
                self._polling = targets.read(self._database)
            failed = targets.failed_clusters(self._database)
        except LagscaleError as away:
            self._report(store=False, error=away.message)
            return [], 0.0
        slots = self._planner.plan(self._polling, failed, at_ms)
        self._lane.offer(self._planner.large)
        self._report(store=True, targets=len(self._polling.targets), clusters=len(self._polling.clusters))
        return slots, at_ms

    def stop(self) -> None:
        """Give the lease back, so that a standby takes over at once."""
        self._lane.stop()
        self._resolver.stop()
        if self.lease is not None:
            try:
                leases.release(self._database, self._options.holder)
            except LagscaleError as away:
                log.warning("lease_not_released", error=away.message)
        self._database.close()

    def _report(self, **facts: Any) -> None:
        epoch = 0 if self.lease is None else self.lease.epoch
        report(self._options.reports, "plan", leading=self.lease is not None, epoch=epoch, **facts)


def _probes(options: Options) -> int:
    """Clusters that do not answer, asked at one tick: as many as can count on a client."""
    return min(PROBES, options.clients_limit // 4)


def _few(options: Options) -> int:
    """Clients of those who work beside the ticks."""
    return max(options.clients_limit // 4, 8)


def _resolver(options: Options, lease: Callable[[], Lease | None]) -> Resolver:
    opening = opening_of(options, _few(options))

    def on_pass(counts: Mapping[str, int]) -> None:
        report(options.reports, "topics", counts=dict(counts))

    resolver = Resolver(
        ScraperDatabase(options.database_url, application="lagscale-scraper-topics"),
        lambda cluster: opening.open(cluster, proven=resolver.is_proven(cluster.cluster_id)),
        Limits(options.topics_seconds, options.topics_limit),
        lease,
        on_pass=on_pass,
        close_cluster=opening.rest,
    )
    return resolver
