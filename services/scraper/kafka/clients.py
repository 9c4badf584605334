"""Clients of clusters, kept per process with an upper bound that holds however many clusters there are.

Each client costs four threads and one for each broker, so their number is what bounds a process's threads.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from services.scraper.kafka.background_opener import BackgroundOpener, ClientKey
from services.scraper.kafka.cluster import MIN_LIFETIME_SECONDS, KafkaCluster

_MAX_LIFETIME_SECONDS = 60.0
#: Clients of a process where no setting says otherwise.
DEFAULT_CLIENTS_LIMIT = 64
#: The share of them that clusters which do not answer, or never did, can count on.
_RESERVED_DIVISOR = 4
#: And the greatest one, so that there is room for the others however busy these are.
_LIMIT_DIVISOR = 2


@dataclass(frozen=True, slots=True)
class _ClientRequest:
    key: ClientKey
    tenant_id: int
    responsive: bool
    token: int | None

    @property
    def opener_key(self) -> ClientKey:
        """Under which it is opened beside."""
        return self.key[0], (self.key[1], self.token)


@dataclass(slots=True)
class _CachedClient:
    key: ClientKey
    client: KafkaCluster
    tenant_id: int
    responsive: bool
    token: int | None = None
    in_use: int = 0

    def is_idle(self, now: float) -> bool:
        """Whether it can be closed: nobody asks, and nothing that was given up may be under way."""
        return not self.in_use and self.client.busy_until < now


class Clients:
    """Clients of one process; each keeps to the rules of addresses. For several threads."""

    def __init__(self, limit: int = DEFAULT_CLIENTS_LIMIT, rules: AddressRules = ANY_ADDRESS) -> None:
        """`limit` clients at most, those included that were let go and whose last requests are under way."""
        self._limit = limit
        self._rules = rules
        self._unresponsive_reserved = max(1, limit // _RESERVED_DIVISOR)
        self._unresponsive_limit = max(1, limit // _LIMIT_DIVISOR)
        self._cached: OrderedDict[ClientKey, _CachedClient] = OrderedDict()
        # A client with requests under way must not be destroyed: the library crashes. They end by themselves.
        self._retired: list[_CachedClient] = []
        self._opener = BackgroundOpener()
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
        """The cluster's client at this version of its settings and secrets, until `release`; None while none is free.

        Args:
            cluster_id: whose.
            version: changes with the settings and the secrets.
            config: the client's settings.
            tenant_id: whose share of the clients it takes.
            responsive: whether the cluster answered when it was asked last.
            token: the number of its token. With one it is opened in another thread, and None until it is there. A
                later token has another client, while the one before serves on: librdkafka 2.16 can abort its process
                when it shows a new token on a connection that is in use.

        Raises:
            ValueError: the client refuses the settings, or `config` does.
        """
        key = (cluster_id, version)
        to_close: list[_CachedClient] = []
        try:
            with self._lock:
                self._retire_others(key, to_close)
                cached = self._cached.get(key)
                if cached is None or cached.client.needs_replacement or cached.token != token:
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
            # Closing joins the client's threads: not under the lock.
            for one in to_close:
                one.client.close()

    def release(self, client: KafkaCluster) -> None:
        """A user of this client has ended."""
        with self._lock:
            for one in (*self._cached.values(), *self._retired):
                if one.client is client:
                    one.in_use -= 1

    def close(self) -> None:
        """Let all clients go; they end with their last reference."""
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
        """Another client in place of the kept one; None while there is none."""
        # What is being opened has its room already.
        if request.opener_key not in self._opener and not self._make_room(request, to_close):
            return None
        # What stays silent, as a lost coordinator may for hours, gets another one less and less often.
        is_expired = cached is not None and cached.client.needs_replacement
        lifetime = (
            min(2 * cached.client.lifetime_seconds, _MAX_LIFETIME_SECONDS)
            if cached is not None and is_expired
            else MIN_LIFETIME_SECONDS
        )

        def make() -> KafkaCluster:
            return KafkaCluster(config(), lifetime, self._rules)

        try:
            if request.token is None:
                return make()
            return self._opener.open(request.opener_key, make, responsive=request.responsive)
        except ValueError:
            if cached is None:
                raise
            # The same settings were taken once, so the one that there is serves on.
            return None

    def _make_room(self, request: _ClientRequest, to_close: list[_CachedClient]) -> bool:
        now = time.monotonic()
        self._release_idle(self._retired, to_close, now)
        while len(self) >= self._limit or (
            not request.responsive and self._count_unresponsive() >= self._unresponsive_limit
        ):
            victim = self._select_victim(request.tenant_id, request.responsive, now)
            if victim is None or victim == request.key:
                return False
            to_close.append(self._cached.pop(victim))
        return True

    def _retire_others(self, key: ClientKey, to_close: list[_CachedClient]) -> None:
        """Retire the cluster's clients of other versions, and close those that can be: the library may still wake them."""
        for stale in [other for other in self._cached if other[0] == key[0] and other != key]:
            self._retired.append(self._cached.pop(stale))
        # Closing takes its time, which is the cluster's own.
        self._release_idle([cached for cached in self._retired if cached.key[0] == key[0]], to_close, time.monotonic())

    def _release_idle(
        self, candidates_to_close: list[_CachedClient], to_close: list[_CachedClient], now: float
    ) -> None:
        idle = [cached for cached in candidates_to_close if cached.is_idle(now)]
        to_close += idle
        self._retired = [cached for cached in self._retired if cached not in idle]

    def _count_unresponsive(self) -> int:
        cached = sum(not one.responsive for one in (*self._cached.values(), *self._retired))
        return cached + self._opener.count_unresponsive()

    def _select_victim(self, tenant_id: int, responsive: bool, now: float) -> ClientKey | None:
        """Whose client is given up for another one: the longest unused one of the tenant that has the most of them."""
        idle = {key: cached for key, cached in self._cached.items() if cached.is_idle(now)}
        unresponsive = {key: cached for key, cached in idle.items() if not cached.responsive}
        responsive_idle = {key: cached for key, cached in idle.items() if cached.responsive}
        counts = Counter(cached.tenant_id for cached in self._cached.values())
        counts[tenant_id] += 1
        if not responsive and self._count_unresponsive() < self._unresponsive_reserved:
            candidates = responsive_idle or unresponsive
        else:
            # Nobody's client goes to a tenant that has more of them: that one waits, or closes one of its own.
            candidates = {
                key: cached for key, cached in unresponsive.items() if counts[cached.tenant_id] >= counts[tenant_id]
            }
            if responsive and not candidates:
                candidates = {
                    key: cached
                    for key, cached in responsive_idle.items()
                    if counts[cached.tenant_id] >= counts[tenant_id]
                }
        return max(candidates, key=lambda key: counts[candidates[key].tenant_id], default=None)
