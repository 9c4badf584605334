"""Clients of clusters, kept per process with an upper bound."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lagscale.kafka.addresses import ANYWHERE, AddressRules
from services.scraper.kafka import LEAST_LIFE, KafkaCluster

_GREATEST_LIFE = 60.0
#: Longer than any request of it is under way.
_RETIRED_SECONDS = 30.0
_THREADS = 8
Key = tuple[int, Hashable]


class Beside:
    """Opens clients in threads: one that needs a token makes whoever opens it wait for a second, and perhaps for ten."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._opening: dict[Key, Future[KafkaCluster]] = {}

    def open(self, key: Key, make: Callable[[], KafkaCluster]) -> KafkaCluster | None:
        """The client that was asked for earlier; None while it is being opened.

        Raises:
            ValueError: from `make`.
        """
        for other in [other for other in self._opening if other[0] == key[0] and other != key]:
            self._opening.pop(other).cancel()
        asked = self._opening.get(key)
        if asked is None:
            self._threads = self._threads or ThreadPoolExecutor(_THREADS, "opening")
            self._opening[key] = self._threads.submit(make)
            return None
        if not asked.done():
            return None
        return self._opening.pop(key).result()

    def close(self) -> None:
        """Open nothing more."""
        self._opening.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A client, and the token's number with which it was opened."""

    client: KafkaCluster
    token: int | None


class Clients:
    """Clients of one process, the latest used ones; each costs four threads, and keeps to the rules of addresses."""

    def __init__(self, limit: int = 64, rules: AddressRules = ANYWHERE) -> None:
        self._limit = limit
        self._rules = rules
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        # A client with requests under way must not be destroyed: the library crashes. They end by themselves.
        self._retired: list[tuple[float, KafkaCluster]] = []
        self._beside = Beside()

    def get(
        self, cluster_id: int, version: Hashable, config: Callable[[], Mapping[str, Any]], *, token: int | None = None
    ) -> KafkaCluster | None:
        """The cluster's client at this version of its settings and secrets.

        Args:
            cluster_id: whose.
            version: changes with the settings and the secrets.
            config: the client's settings.
            token: the number of its token. With one it is opened in another thread, and None until it is there. A
                later token has another client, while the one before serves on: librdkafka 2.16 can abort its process
                when it shows a new token on a connection that is in use.

        Raises:
            ValueError: the client refuses the settings, or `config` does.
        """
        key = (cluster_id, version)
        kept = self._kept.pop(key, None)
        now = time.monotonic()
        self._retired = [(at, old) for at, old in self._retired if now - at < _RETIRED_SECONDS]
        if kept is None or kept.client.is_spent or kept.token != token:
            # What stays silent, as a lost coordinator may for hours, gets another one less and less often.
            spent = kept is not None and kept.client.is_spent
            life = min(2 * kept.client.life_seconds, _GREATEST_LIFE) if kept is not None and spent else LEAST_LIFE

            def make() -> KafkaCluster:
                return KafkaCluster(config(), life, self._rules)

            try:
                fresh = make() if token is None else self._beside.open((cluster_id, (version, token)), make)
            except ValueError:
                if kept is None:
                    raise
                # The same settings were taken once, so the one that there is serves on.
                fresh = None
            if fresh is not None:
                if kept is not None:
                    self._retired.append((now, kept.client))
                kept = _Kept(fresh, token)
        if kept is None:
            return None
        for stale in [other for other in self._kept if other[0] == cluster_id]:
            self._retired.append((now, self._kept.pop(stale).client))
        self._kept[key] = kept
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return kept.client

    def close(self) -> None:
        """Let all clients go; they end with their last reference."""
        self._beside.close()
        self._kept.clear()
