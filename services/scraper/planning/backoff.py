"""Which of the clusters that do not answer, or never did, are polled at a tick. Pure; the planner calls it.

Polling a dead cluster costs a client, threads and time, so few are polled at once, each less and less often, and the
tenants take turns: a tenant with hundreds of dead clusters does not delay another tenant's cluster. Apart from the
planner, because it has a state of its own, which tests run over hundreds of ticks.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping

from services.scraper.deadlines import BACKOFF_JITTER, IMMEDIATE_POLLS, MAX_BACKOFF_SECONDS, MAX_PROBES
from services.scraper.planning.quotas import interleave


class ClusterBackoff:
    """Counts the failed polls of each cluster and computes when it is polled next.

    No library fits: the pauses are counted in ticks, and the tenants share the probes of a tick.
    """

    def __init__(self, tick_ms: int, probes: int = MAX_PROBES) -> None:
        self._max_pause = max(1, MAX_BACKOFF_SECONDS * 1000 // tick_ms)
        self._probes = probes
        self._failures: dict[int, tuple[int, int]] = {}
        self._probed: set[int] = set()
        self._served: dict[int, int] = {}

    def select_clusters(self, waiting: Mapping[int, int], unresponsive: Collection[int], tick: int) -> list[int]:
        """The clusters to poll.

        Args:
            waiting: unresponsive clusters with due groups, and the tenant of each.
            unresponsive: all clusters whose last poll failed, or that were never polled.
            tick: number of the current tick.
        """
        answered = len(self._probed.difference(unresponsive))
        self._failures = {cluster: of for cluster, of in self._failures.items() if cluster in unresponsive}
        due = [cluster for cluster in waiting if self._next_tick(cluster) <= tick]
        # The cluster of a tenant that waited longest, and the tenant that was served longest ago.
        due.sort(key=lambda one: (self._served.get(waiting[one], -1), self._next_tick(one), one))
        probed = interleave(due, waiting.__getitem__)[: max(self._probes, 2 * answered)]
        for cluster in probed:
            self._served[waiting[cluster]] = tick
            polls = self._failures.get(cluster, (0, 0))[0]
            self._failures[cluster] = (min(polls + 1, 30), tick + self._compute_pause(cluster, polls))
        self._served = {tenant: at for tenant, at in self._served.items() if tick - at <= self._max_pause}
        self._probed = set(probed)
        return probed

    def _next_tick(self, cluster: int) -> int:
        return self._failures.get(cluster, (0, -1))[1]

    def _compute_pause(self, cluster: int, polls: int) -> int:
        pause: int = min(2 ** max(0, polls - IMMEDIATE_POLLS), self._max_pause)
        chance = zlib.crc32(f"{cluster}/{polls}/{self._failures.get(cluster, (0, 0))[1]}".encode()) / 2**32
        return max(1, int(pause * (1 - BACKOFF_JITTER * chance) + 0.5))
