"""Kafka clients of one process, with an upper limit however many clusters there are.

Each client costs four threads and one per broker, so the number of clients bounds the threads of a process.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from services.scraper import deadlines
from services.scraper.kafka.cluster import KafkaCluster

#: A cluster, and the version of its settings.
ClientKey = tuple[int, Hashable]


class _BackgroundOpener:
    """Opens clients in threads: one with a token blocks its caller for a second, at worst for ten."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._pending: dict[ClientKey, Future[KafkaCluster]] = {}
        self._unresponsive: set[ClientKey] = set()

    def open(self, key: ClientKey, make: Callable[[], KafkaCluster], *, responsive: bool = True) -> KafkaCluster | None:
        """The client that an earlier call requested; None while it is being opened. Raises what `make` raises."""
        for other in [other for other in self._pending if other[0] == key[0] and other != key]:
            self._pending.pop(other).cancel()
        pending = self._pending.get(key)
        if pending is None:
            self._threads = self._threads or ThreadPoolExecutor(deadlines.OPENER_THREADS, "opener")
            self._pending[key] = self._threads.submit(make)
            self._unresponsive &= self._pending.keys()
            if not responsive:
                self._unresponsive.add(key)
            return None
        if not pending.done():
            return None
        return self._pending.pop(key).result()

    def __contains__(self, key: ClientKey) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def count_unresponsive(self) -> int:
        """Clients being opened for unresponsive clusters."""
        return len(self._unresponsive & self._pending.keys())

    def close(self) -> None:
        """Stop opening clients."""
        self._pending.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _ClientRequest:
    key: ClientKey
    tenant_id: int
    responsive: bool
    token: int | None

    @property
    def opener_key(self) -> ClientKey:
        """Of the client in the opener: each token has a client of its own."""
        return self.key[0], (self.key[1], self.token)


@dataclass(slots=True)
class _CachedClient:
    key: ClientKey
    client: KafkaCluster
    tenant_id: int
    responsive: bool
    token: int | None = None
    in_use: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether another client must take over."""
        return self.client.needs_replacement or self.client.has_lost_connections

    def is_idle(self, now: float) -> bool:
        """Whether it can be closed: no user, and no abandoned request under way."""
        return not self.in_use and self.client.busy_until < now


class Clients:
    """Clients of one process; each obeys the address rules. Thread-safe."""

    def __init__(self, limit: int, rules: AddressRules = ANY_ADDRESS) -> None:
        """At most `limit` clients, including retired ones whose last requests are under way."""
        self._limit = limit
        self._rules = rules
        self._unresponsive_reserved = max(1, limit // deadlines.RESERVED_CLIENTS_DIVISOR)
        self._unresponsive_limit = max(1, limit // deadlines.UNRESPONSIVE_CLIENTS_DIVISOR)
        self._cached: OrderedDict[ClientKey, _CachedClient] = OrderedDict()
        # A client with requests under way must not be destroyed: the library crashes. They end by themselves.
        self._retired: list[_CachedClient] = []
        self._opener = _BackgroundOpener()
        self._lock = threading.Lock()

    def get(
        self,
        cluster_id: int,
        version: Hashable,
        config: Callable[[], Mapping[str, Any]],
        *,
        tenant_id: int = 0,
        responsive: bool = True,
        token: int | None = None,
    ) -> KafkaCluster | None:
        """The cluster's client with these settings and secrets, until `release`; None while none is free.

        `version` changes with the settings and the secrets, `config` builds the former; the client takes from the
        tenant's share, and `token` is the number of its access token. A client with a token is opened in another thread;
        until then the result is None. A new token gets a new client, and the previous one serves until that is open:
        librdkafka 2.16 can abort its process when it sends a new token on a connection in use.

        Raises:
            ValueError: the client refuses the settings, or `config` does.
        """
        key = (cluster_id, version)
        to_close: list[_CachedClient] = []
        try:
            with self._lock:
                self._retire_others(key, to_close)
                cached = self._cached.get(key)
                if cached is None or cached.is_spent or cached.token != token:
                    request = _ClientRequest(key, tenant_id, responsive, token)
                    client = self._open_replacement(request, cached, config, to_close)
                    if client is not None:
                        if cached is not None:
                            self._retired.append(cached)
                        cached = _CachedClient(key, client, tenant_id, responsive, token)
                if cached is None:
                    return None
                cached.responsive = responsive
                cached.in_use += 1
                self._cached[key] = cached
                self._cached.move_to_end(key)
                return cached.client
        finally:
            # Closing joins the client's threads, so it happens outside the lock.
            for one in to_close:
                one.client.close()

    def release(self, client: KafkaCluster) -> None:
        """End one use of this client."""
        with self._lock:
            for one in (*self._cached.values(), *self._retired):
                if one.client is client:
                    one.in_use -= 1

    def close(self) -> None:
        """Drop all clients; each ends with its last reference."""
        self._opener.close()
        self._cached.clear()
        self._retired.clear()

    def __len__(self) -> int:
        return len(self._cached) + len(self._retired) + len(self._opener)

    def _open_replacement(
        self,
        request: _ClientRequest,
        cached: _CachedClient | None,
        config: Callable[[], Mapping[str, Any]],
        to_close: list[_CachedClient],
    ) -> KafkaCluster | None:
        """Another client in place of the cached one; None while there is none."""
        # A client that is being opened has its room already.
        if request.opener_key not in self._opener and not self._make_room(request, to_close):
            return None
        lifetime = deadlines.MIN_CLIENT_LIFETIME_SECONDS
        if cached is not None and cached.client.needs_replacement:
            # A cluster that stays silent, as a lost coordinator may for hours, gets a new client less and less often.
            lifetime = min(2 * cached.client.lifetime_seconds, deadlines.MAX_CLIENT_LIFETIME_SECONDS)

        def make() -> KafkaCluster:
            return KafkaCluster(config(), lifetime, self._rules)

        try:
            if request.token is None:
                return make()
            return self._opener.open(request.opener_key, make, responsive=request.responsive)
        except ValueError:
            if cached is None:
                raise
            # The client accepted the same settings before, so the cached one goes on serving.
            return None

    def _make_room(self, request: _ClientRequest, to_close: list[_CachedClient]) -> bool:
        now = time.monotonic()
        self._release_idle(self._retired, to_close, now)
        while len(self) >= self._limit or (
            not request.responsive and self._count_unresponsive() >= self._unresponsive_limit
        ):
            victim = self._select_victim(request.tenant_id, request.responsive, now)
            if victim is None or victim.key == request.key:
                return False
            to_close.append(self._cached.pop(victim.key))
        return True

    def _retire_others(self, key: ClientKey, to_close: list[_CachedClient]) -> None:
        """Retire the cluster's clients of other versions, and close the idle ones."""
        for stale in [other for other in self._cached if other[0] == key[0] and other != key]:
            self._retired.append(self._cached.pop(stale))
        # Only this cluster's: closing takes time.
        self._release_idle([cached for cached in self._retired if cached.key[0] == key[0]], to_close, time.monotonic())

    def _release_idle(self, retired: list[_CachedClient], to_close: list[_CachedClient], now: float) -> None:
        idle = [cached for cached in retired if cached.is_idle(now)]
        to_close += idle
        self._retired = [cached for cached in self._retired if cached not in idle]

    def _count_unresponsive(self) -> int:
        cached = sum(not one.responsive for one in (*self._cached.values(), *self._retired))
        return cached + self._opener.count_unresponsive()

    def _select_victim(self, tenant_id: int, responsive: bool, now: float) -> _CachedClient | None:
        """The client to close for another one: the longest unused one of the tenant with the most clients."""
        idle = [one for one in self._cached.values() if one.is_idle(now)]
        silent, answering = [one for one in idle if not one.responsive], [one for one in idle if one.responsive]
        counts = Counter(cached.tenant_id for cached in self._cached.values())
        counts[tenant_id] += 1
        if not responsive and self._count_unresponsive() < self._unresponsive_reserved:
            candidates = answering or silent
        else:
            # A tenant with more clients than the others never takes one of theirs: it waits, or closes one of its own.
            candidates = [one for one in silent if counts[one.tenant_id] >= counts[tenant_id]]
            if responsive and not candidates:
                candidates = [one for one in answering if counts[one.tenant_id] >= counts[tenant_id]]
        return max(candidates, key=lambda one: counts[one.tenant_id], default=None)
