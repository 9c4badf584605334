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

from lagscale.kafka.addresses import ANYWHERE, AddressRules
from services.scraper.kafka.background_opener import Beside, Key
from services.scraper.kafka.cluster import LEAST_LIFE, KafkaCluster

_GREATEST_LIFE = 60.0
#: Clients of a process where no setting says otherwise.
MOST = 64
#: The share of them that clusters which do not answer, or never did, can count on.
_UNPROVEN_SHARE = 4
#: And the greatest one, so that there is room for the others however busy these are.
_UNPROVEN_MOST = 2


@dataclass(frozen=True, slots=True)
class _Wanted:
    key: Key
    tenant_id: int
    proven: bool
    token: int | None

    @property
    def beside(self) -> Key:
        """Under which it is opened beside."""
        return self.key[0], (self.key[1], self.token)


@dataclass(slots=True)
class _Kept:
    key: Key
    client: KafkaCluster
    tenant_id: int
    proven: bool
    token: int | None = None
    in_use: int = 0

    def is_idle(self, now: float) -> bool:
        """Whether it can be closed: nobody asks, and nothing that was given up may be under way."""
        return not self.in_use and self.client.busy_until < now


class Clients:
    """Clients of one process; each keeps to the rules of addresses. For several threads."""

    def __init__(self, limit: int = MOST, rules: AddressRules = ANYWHERE) -> None:
        """`limit` clients at most, those included that were let go and whose last requests are under way."""
        self._limit = limit
        self._rules = rules
        self._share_unproven = max(1, limit // _UNPROVEN_SHARE)
        self._most_unproven = max(1, limit // _UNPROVEN_MOST)
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        # A client with requests under way must not be destroyed: the library crashes. They end by themselves.
        self._retired: list[_Kept] = []
        self._beside = Beside()
        self._lock = threading.Lock()

    def get(
        self,
        cluster_id: int,
        version: Hashable,
        config: Callable[[], Mapping[str, Any]],
        *,
        tenant_id: int = 0,
        proven: bool = True,
        token: int | None = None,
    ) -> KafkaCluster | None:
        """The cluster's client at this version of its settings and secrets, until `rest`; None while none is free.

        Args:
            cluster_id: whose.
            version: changes with the settings and the secrets.
            config: the client's settings.
            tenant_id: whose share of the clients it takes.
            proven: whether the cluster answered when it was asked last.
            token: the number of its token. With one it is opened in another thread, and None until it is there. A
                later token has another client, while the one before serves on: librdkafka 2.16 can abort its process
                when it shows a new token on a connection that is in use.

        Raises:
            ValueError: the client refuses the settings, or `config` does.
        """
        key = (cluster_id, version)
        gone: list[_Kept] = []
        try:
            with self._lock:
                self._retire_others(key, gone)
                kept = self._kept.get(key)
                if kept is None or kept.client.is_spent or kept.token != token:
                    wanted = _Wanted(key, tenant_id, proven, token)
                    client = self._fresh(wanted, kept, config, gone)
                    if client is not None:
                        if kept is not None:
                            self._retired.append(kept)
                        kept = _Kept(key, client, tenant_id, proven, token)
                if kept is None:
                    return None
                kept.proven = proven
                kept.in_use += 1
                self._kept[key] = kept
                self._kept.move_to_end(key)
                return kept.client
        finally:
            # Closing joins the client's threads: not under the lock.
            for one in gone:
                one.client.close()

    def rest(self, client: KafkaCluster) -> None:
        """A user of this client has ended."""
        with self._lock:
            for one in (*self._kept.values(), *self._retired):
                if one.client is client:
                    one.in_use -= 1

    def close(self) -> None:
        """Let all clients go; they end with their last reference."""
        self._beside.close()
        self._kept.clear()
        self._retired.clear()

    def __len__(self) -> int:
        return len(self._kept) + len(self._retired) + len(self._beside)

    def _fresh(
        self, wanted: _Wanted, kept: _Kept | None, config: Callable[[], Mapping[str, Any]], gone: list[_Kept]
    ) -> KafkaCluster | None:
        """Another client in place of the kept one; None while there is none."""
        # What is being opened has its room already.
        if wanted.beside not in self._beside and not self._has_room(wanted, gone):
            return None
        # What stays silent, as a lost coordinator may for hours, gets another one less and less often.
        spent = kept is not None and kept.client.is_spent
        life = min(2 * kept.client.life_seconds, _GREATEST_LIFE) if kept is not None and spent else LEAST_LIFE

        def make() -> KafkaCluster:
            return KafkaCluster(config(), life, self._rules)

        try:
            if wanted.token is None:
                return make()
            return self._beside.open(wanted.beside, make, proven=wanted.proven)
        except ValueError:
            if kept is None:
                raise
            # The same settings were taken once, so the one that there is serves on.
            return None

    def _has_room(self, wanted: _Wanted, gone: list[_Kept]) -> bool:
        now = time.monotonic()
        self._let_go(self._retired, gone, now)
        while len(self) >= self._limit or (not wanted.proven and self._count_unproven() >= self._most_unproven):
            victim = self._victim(wanted.tenant_id, wanted.proven, now)
            if victim is None or victim == wanted.key:
                return False
            gone.append(self._kept.pop(victim))
        return True

    def _retire_others(self, key: Key, gone: list[_Kept]) -> None:
        """Retire the cluster's clients of other versions, and close those that can be: the library may still wake them."""
        for stale in [other for other in self._kept if other[0] == key[0] and other != key]:
            self._retired.append(self._kept.pop(stale))
        # Closing takes its time, which is the cluster's own.
        self._let_go([kept for kept in self._retired if kept.key[0] == key[0]], gone, time.monotonic())

    def _let_go(self, some: list[_Kept], gone: list[_Kept], now: float) -> None:
        idle = [kept for kept in some if kept.is_idle(now)]
        gone += idle
        self._retired = [kept for kept in self._retired if kept not in idle]

    def _count_unproven(self) -> int:
        kept = sum(not one.proven for one in (*self._kept.values(), *self._retired))
        return kept + self._beside.count_unproven()

    def _victim(self, tenant_id: int, proven: bool, now: float) -> Key | None:
        """Whose client is given up for another one: the longest unused one of the tenant that has the most of them."""
        idle = {key: kept for key, kept in self._kept.items() if kept.is_idle(now)}
        bad = {key: kept for key, kept in idle.items() if not kept.proven}
        good = {key: kept for key, kept in idle.items() if kept.proven}
        counts = Counter(kept.tenant_id for kept in self._kept.values())
        counts[tenant_id] += 1
        if not proven and self._count_unproven() < self._share_unproven:
            candidates = good or bad
        else:
            # Nobody's client goes to a tenant that has more of them: that one waits, or closes one of its own.
            candidates = {key: kept for key, kept in bad.items() if counts[kept.tenant_id] >= counts[tenant_id]}
            if proven and not candidates:
                candidates = {key: kept for key, kept in good.items() if counts[kept.tenant_id] >= counts[tenant_id]}
        return max(candidates, key=lambda key: counts[candidates[key].tenant_id], default=None)
