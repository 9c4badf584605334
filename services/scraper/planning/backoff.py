"""Which of the clusters that do not answer, or never did, are asked at a tick. Pure planning, for `targets`.

Asking a dead cluster costs a client, threads and time, so few are asked at once, each less and less often, and the
tenants take turns: who has hundreds of dead clusters makes no other tenant's cluster wait.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping

from services.scraper.planning.round_robin import interleave

#: A cluster that failed is polled at once again so many times, then less and less often.
_IMMEDIATE_POLLS = 3
_MAX_PAUSE_SECONDS = 15
#: So much of a pause may be left out, by chance: clusters that failed together shall not come back together.
_JITTER = 0.25
#: Clusters asked at one tick; more when those of the tick before answered, as they do after an outage of all.
PROBE_LIMIT = 16


class ClusterBackoff:
    """Remembers how often each cluster has failed, and when its next turn is."""

    def __init__(self, tick_ms: int, probes: int = PROBE_LIMIT) -> None:
        self._max_pause = max(1, _MAX_PAUSE_SECONDS * 1000 // tick_ms)
        self._probes = probes
        self._failures: dict[int, tuple[int, int]] = {}
        self._asked: set[int] = set()
        self._served: dict[int, int] = {}

    def select_clusters(self, waiting: Mapping[int, int], unresponsive: Collection[int], tick: int) -> list[int]:
        """The clusters to ask.

        Args:
            waiting: unproven clusters with something to poll, and the tenant of each.
            unresponsive: all clusters whose last poll failed, or that were never polled.
            tick: the present one.
        """
        answered = len(self._asked.difference(unresponsive))
        self._failures = {cluster: of for cluster, of in self._failures.items() if cluster in unresponsive}
        due = [cluster for cluster in waiting if self._next_tick(cluster) <= tick]
        # The longest waiting one of a tenant, and the tenant that was served the longest ago.
        due.sort(key=lambda one: (self._served.get(waiting[one], -1), self._next_tick(one), one))
        asked = interleave(due, waiting.__getitem__)[: max(self._probes, 2 * answered)]
        for cluster in asked:
            self._served[waiting[cluster]] = tick
            polls = self._failures.get(cluster, (0, 0))[0]
            self._failures[cluster] = (min(polls + 1, 30), tick + self._compute_pause(cluster, polls))
        self._served = {tenant: at for tenant, at in self._served.items() if tick - at <= self._max_pause}
        self._asked = set(asked)
        return asked

    def _next_tick(self, cluster: int) -> int:
        return self._failures.get(cluster, (0, -1))[1]

    def _compute_pause(self, cluster: int, polls: int) -> int:
        pause: int = min(2 ** max(0, polls - _IMMEDIATE_POLLS), self._max_pause)
        chance = zlib.crc32(f"{cluster}/{polls}/{self._failures.get(cluster, (0, 0))[1]}".encode()) / 2**32
        return max(1, int(pause * (1 - _JITTER * chance) + 0.5))
