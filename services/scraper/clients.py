"""Clients of clusters, kept per process with an upper bound."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from lagscale.kafka.addresses import ANYWHERE, AddressRules
from services.scraper.kafka import LEAST_LIFE, KafkaCluster

_GREATEST_LIFE = 60.0
#: Longer than any request of it is under way.
_RETIRED_SECONDS = 30.0


class Clients:
    """Clients of one process, the latest used ones; each costs four threads, and keeps to the rules of addresses."""

    def __init__(self, limit: int = 64, rules: AddressRules = ANYWHERE) -> None:
        self._limit = limit
        self._rules = rules
        self._kept: OrderedDict[tuple[int, Hashable], KafkaCluster] = OrderedDict()
        # A client with requests under way must not be destroyed: the library crashes. They end by themselves.
        self._retired: list[tuple[float, KafkaCluster]] = []

    def get(self, cluster_id: int, version: Hashable, config: Callable[[], Mapping[str, Any]]) -> KafkaCluster:
        """The cluster's client at this version of its settings and secrets.

        Raises:
            ValueError: the client refuses the settings, or `config` does.
        """
        key = (cluster_id, version)
        client: KafkaCluster | None = self._kept.pop(key, None)
        now = time.monotonic()
        self._retired = [(at, old) for at, old in self._retired if now - at < _RETIRED_SECONDS]
        if client is not None and client.is_spent:
            self._retired.append((now, client))
            # What stays silent, as a lost coordinator may for hours, gets another one less and less often.
            client = KafkaCluster(config(), min(2 * client.life_seconds, _GREATEST_LIFE), self._rules)
        client = client or KafkaCluster(config(), LEAST_LIFE, self._rules)
        for stale in [other for other in self._kept if other[0] == cluster_id]:
            del self._kept[stale]
        self._kept[key] = client
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return client

    def close(self) -> None:
        """Let all clients go; they end with their last reference."""
        self._kept.clear()
